"""``jobman list``: filters, order, pages, the table, and documents while jobs change (contract, A.4; D36, D38)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support import Cli, check_document, processes_of, stock

HELD = "until [ -e go ]; do sleep 0.01; done"
HEADER = ["ID", "NAME", "PHASE", "OUTCOME", "SUBMITTED", "REASON"]


def listed(cli: Cli, *words: str) -> list[str]:
    """Return the IDs that ``list WORDS`` prints, in its order."""
    return [job["id"] for job in cli.json("list", *words)["jobs"]]


def columns(line: str, header: str) -> list[str]:
    """Cut a line of a table where the header says that its columns begin."""
    starts = [header.index(title) for title in HEADER]
    return [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)]


@pytest.fixture
def jobs(cli: Cli) -> dict[str, str]:
    """Five jobs, the oldest first: name and ID."""
    submitted = {
        "train-a": (("--group", "g", "--tag", "x", "--tag", "y"), ("true",)),
        "train-b": (("--group", "g", "--group", "h", "--tag", "x"), ("false",)),
        "Train-c": ((), ("true",)),
        "[odd]*": (("--tag", "y"), ("sleep", "600")),
        "held": ((), ("sh", "-c", HELD)),
    }
    found = {name: cli.run(*words, flags=("--name", name, *flags)) for name, (flags, words) in submitted.items()}
    cli("cancel", "--wait", found["[odd]*"])
    cli("wait", found["train-a"], found["train-b"], found["Train-c"], status=1)
    cli.await_phase(found["held"], "running")
    return found


@pytest.fixture(autouse=True)
def release(cli: Cli) -> Any:
    """Let the jobs go that wait for the file ``go``."""
    yield
    (cli.cwd / "go").touch()
    for job_id in listed(cli, "--active", "--all"):
        cli.wait(job_id)


def test_filters_select_and_the_newest_comes_first(cli: Cli, jobs: dict[str, str]) -> None:
    """All filters must match; of several phases or outcomes, one; of several tags, all."""
    for words, names in (
        ((), list(jobs)),
        (("--all",), list(jobs)),
        (("--active",), ["held"]),
        (("--completed",), ["train-a", "train-b", "Train-c", "[odd]*"]),
        (("--phase", "running"), ["held"]),
        (("--phase", "running,completed"), list(jobs)),
        (("--phase", "waiting", "--phase", "backoff"), []),
        (("--outcome", "success"), ["train-a", "Train-c"]),
        (("--outcome", "failure,cancelled"), ["train-b", "[odd]*"]),
        (("--outcome", "failure", "--outcome", "success"), ["train-a", "train-b", "Train-c"]),
        (("--name", "train-a"), ["train-a"]),
        (("--name", "train"), []),
        (("--name", "[odd]*"), ["[odd]*"]),
        (("--name-match", "train-*"), ["train-a", "train-b"]),
        (("--name-match", "[Tt]rain-?"), ["train-a", "train-b", "Train-c"]),
        (("--group", "g"), ["train-a", "train-b"]),
        (("--group", "G"), []),
        (("--tag", "x"), ["train-a", "train-b"]),
        (("--tag", "x", "--tag", "y"), ["train-a"]),
        (("--tag", "x,y"), []),
        (("--group", "h", "--tag", "x", "--outcome", "failure", "--completed"), ["train-b"]),
        (("--active=false", "--completed=false", "--all=false", "--limit", "2"), ["[odd]*", "held"]),
        (("--limit", "0x2"), ["[odd]*", "held"]),
        # Filters come before the limit (O.21).
        (("--limit", "1", "--outcome", "success"), ["Train-c"]),
    ):
        assert listed(cli, *words) == [jobs[name] for name in reversed(names)], words


def test_submission_times_bound_strictly(cli: Cli, jobs: dict[str, str]) -> None:
    times = {job["id"]: job["submitted_at"] for job in cli.json("list")["jobs"]}
    middle = times[jobs["Train-c"]]
    assert listed(cli, "--submitted-after", middle) == [jobs["held"], jobs["[odd]*"]]
    assert listed(cli, "--submitted-before", middle) == [jobs["train-b"], jobs["train-a"]]
    assert listed(cli, "--submitted-after", middle, "--submitted-before", middle) == []
    assert len(listed(cli, "--submitted-after", "2020-02-29T00:00:00+01:00")) == len(jobs)


def test_pages_follow_each_other_without_gap_or_overlap(cli: Cli, jobs: dict[str, str]) -> None:
    whole = listed(cli)
    pages: list[str] = []
    page = listed(cli, "--limit", "2")
    while page:
        pages += page
        page = listed(cli, "--limit", "2", "--before", page[-1])
    assert pages == whole
    assert listed(cli, "--before", jobs["train-a"]) == []
    cli.refuses("list", "--before", "01a2b3c4-0000-7000-8000-000000000000", status=3)
    cli.refuses("list", "--before", "train-a", status=2, says="a whole job ID")


def test_the_table_is_aligned_and_says_why(cli: Cli, jobs: dict[str, str]) -> None:
    """D36; column width is the longest cell and two."""
    header, *lines = cli("list").out.splitlines()
    assert header.split() == HEADER
    rows = {columns(line, header)[1]: columns(line, header) for line in lines}
    assert rows["train-b"][2:4] == ["completed", "failure"]
    assert rows["train-b"][5] == "exit 1"
    assert rows["[odd]*"][3] == "cancelled"
    assert rows["[odd]*"][5] == "cancelled"
    assert rows["held"][2:4] == ["running", ""]
    assert rows["train-a"][5] == ""
    assert header.index("NAME") == 36 + 2
    assert header.index("PHASE") - header.index("NAME") == len("train-a") + 2
    assert not any(line.endswith(" ") for line in (header, *lines))
    assert [columns(line, header)[0] for line in lines] == listed(cli)
    assert rows["held"][0] == jobs["held"]


def test_runs_are_shown_below_their_jobs(cli: Cli) -> None:
    job_id = cli.finish("false", flags=("--retries", "1"))
    header, *lines = cli("list", "--show-runs").out.splitlines()
    detail = cli.json("show", job_id)
    assert columns(lines[0], header)[0] == job_id
    for line, run in zip(lines[1:], detail["runs"], strict=True):
        expected = [f"  run {run['id']}".strip(), f"#{run['number']}", "completed", "failure", str(run["revision"]), ""]
        assert columns(line, header) == expected
        assert line.startswith("  run ")
    (item,) = cli.json("list", "--show-runs")["jobs"]
    assert item["runs"] == detail["runs"]
    assert item["summary"] == cli.json("status", job_id)


def test_an_empty_list_is_a_header_or_an_empty_document(cli: Cli) -> None:
    assert cli("list").out.split() == HEADER
    assert cli("list", "--json").out == '{"schema_version":1,"data":{"jobs":[]}}\n'
    assert cli("list", "--json", "--show-runs", "--all").out == '{"schema_version":1,"data":{"jobs":[]}}\n'


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--limit", "0"), "--limit: invalid value '0': expected an integer, 1 or more"),
        (("--limit", "x"), "--limit: invalid value"),
        (("--phase", "done"), "--phase: invalid value 'done'"),
        (("--phase", "running,"), "--phase: invalid value ''"),
        (("--outcome", "succes"), "--outcome: invalid value"),
        (("--submitted-after", "yesterday"), "RFC 3339"),
        (("--submitted-before", ""), "RFC 3339"),
        (("--active", "--completed"), "--active and --completed exclude each other"),
        (("--all", "--limit", "3"), "--all and --limit exclude each other"),
        (("--json=maybe",), "true or false"),
        (("somebody",), "accepts 0 arg(s), received 1"),
        (("--tag", os.fsdecode(b"\377")), "--tag must be valid UTF-8"),
        (("--name", os.fsdecode(b"\377")), "--name must be valid UTF-8"),
        (("--name-match", os.fsdecode(b"\377")), "--name-match must be valid UTF-8"),
        (("--group", os.fsdecode(b"\377")), "--group must be valid UTF-8"),
    ],
)
def test_a_filter_that_is_not_understood_is_a_usage_error(cli: Cli, words: tuple[str, ...], says: str) -> None:
    assert cli.refuses("list", *words, status=2, says=says).startswith("invalid command usage: ")


def test_a_list_of_any_length_is_whole_and_may_be_cut_short(cli: Cli) -> None:
    """D38; a broken pipe ends us quietly."""
    job_ids = stock(cli.state, 1_203, ("withdraw",))
    assert listed(cli, "--all") == job_ids[::-1]
    assert listed(cli) == job_ids[::-1][:100]
    assert listed(cli, "--limit", "1100") == job_ids[::-1][:1100]
    assert len(cli("list", "--all").out.splitlines()) == 1 + 1_203
    for words in (("list", "--all"), ("list", "--all", "--json", "--show-runs")):
        with cli.command(*words) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(1)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0, words
    with open("/dev/full", "wb") as full, cli.command("list", "--all", "--json", stdout=full) as process:
        _, err = process.communicate(timeout=15)
    assert (process.returncode, err.count(b"\n")) == (1, 1)


def test_documents_are_valid_while_jobs_change_under_them(cli: Cli) -> None:
    """C.1."""
    flags = ("--retries", "100", "--retry-delay", "20ms")
    job_ids = [cli.run("sh", "-c", "exit 1", flags=flags) for _ in range(2)]
    seen = 0
    while processes_of(cli.state) and seen < 8:
        check_document("list", cli("list", "--json", "--show-runs").out)
        check_document("show-job", cli("show", "--json", job_ids[seen % 2]).out)
        seen += 1
    assert seen > 3
    for job_id in job_ids:
        cli("cancel", "--wait", job_id)
