"""``jobman show`` and ``jobman status``: labels, runs by number, usage, selectors (A.5, A.6, A.16, B; D35)."""

from __future__ import annotations

import os
import re

import pytest

from tests.support import Cli, stock

HELD = "until [ -e go ]; do sleep 0.01; done"
JOB_LABELS = [
    "ID",
    "Name",
    "Phase",
    "Outcome",
    "Reason",
    "Submitted",
    "Executable",
    "Working directory",
    "Completed runs",
    "Successful runs",
    "Failed runs",
    "Dependencies",
    "Wait evaluations",
    "Admission",
    "Notification deliveries",
    "Pending notifications",
    "Notification attempts",
]
RUN_LABELS = [
    "ID",
    "Number",
    "Phase",
    "Outcome",
    "Revision",
    "Resolved executable",
    "Reserved",
    "Started",
    "Completed",
    "Logs",
]
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")


def fields_of(text: str) -> dict[str, str]:
    """Return the labelled fields of a view, in their order."""
    lines = text.partition("\n\n")[0].splitlines()
    return {label: value.strip() for label, _, value in (line.partition(":") for line in lines)}


def common_prefix(one: str, other: str) -> str:
    """Return what two different IDs begin with."""
    return one[: next(place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])]


def test_a_job_is_shown_under_the_labels_of_the_contract_in_their_order(cli: Cli) -> None:
    first = cli.finish("true")
    job_id = cli.finish("sh", "-c", "exit 3", flags=("--name", "n", "--after-success", first))
    text = cli("show", job_id).out
    fields = fields_of(text)
    assert [label for label in fields if label in JOB_LABELS] == JOB_LABELS
    assert set(fields) == set(JOB_LABELS)
    assert fields["ID"] == job_id
    assert (fields["Phase"], fields["Outcome"], fields["Reason"]) == ("completed", "failure", "exit 3")
    assert (fields["Completed runs"], fields["Successful runs"], fields["Failed runs"]) == ("1", "0", "1")
    assert (fields["Dependencies"], fields["Executable"]) == ("1", "sh")
    assert fields["Working directory"] == str(cli.cwd)
    assert fields["Admission"] == "released, global, 1 slot(s)"
    assert TIME.fullmatch(fields["Submitted"])
    # The value column begins after the longest label, its colon and two spaces.
    assert all(len(line) == 25 or line[26] != " " for line in text.partition("\n\n")[0].splitlines() if line[25:])
    assert text.startswith(f"{'ID:':26}{job_id}\n")


def test_the_runs_of_a_job_are_a_table(cli: Cli) -> None:
    job_id = cli.finish("false", flags=("--retries", "1"))
    table = cli("show", "job", job_id).out.partition("\n\n")[2].splitlines()
    assert table[0].split() == ["RUN", "PHASE", "OUTCOME", "STARTED", "COMPLETED", "LOGS"]
    for number, line in enumerate(table[1:], start=1):
        cells = line.split()
        assert [*cells[:3], cells[5]] == [str(number), "completed", "failure", "available"]
        assert all(TIME.fullmatch(cell) for cell in cells[3:5])

    # A.6: what somebody has removed by hand is not there any more, whatever was recorded of it.
    (cli.state / "logs" / job_id / "1" / "stdout.log").unlink()
    table = cli("show", job_id).out.partition("\n\n")[2].splitlines()
    assert [line.split()[-1] for line in table] == ["LOGS", "unavailable", "available"]
    assert [fields_of(cli("show", "run", job_id, run).out)["Logs"] for run in "12"] == ["unavailable", "available"]


def test_a_running_job_names_its_supervisor_and_holds_its_slot(cli: Cli) -> None:
    job_id = cli.run("sh", "-c", HELD)
    cli.await_phase(job_id, "running")
    fields = fields_of(cli("show", job_id).out)
    supervisor = cli.json("show", job_id)["supervisor"]
    assert supervisor["state"] == "live"
    assert os.path.exists(f"/proc/{supervisor['pid']}")
    assert fields["Supervisor"] == f"live, pid {supervisor['pid']}"
    assert fields["Admission"] == "active, global, 1 slot(s)"
    order = list(fields)
    assert order.index("Supervisor") == order.index("Admission") + 1
    assert (fields["Outcome"], fields["Reason"]) == ("", "")
    run = fields_of(cli("show", "run", job_id, "1").out)
    assert (run["Phase"], run["Completed"], run["Logs"]) == ("running", "", "available")
    (cli.cwd / "go").touch()
    cli.wait(job_id)


def test_a_run_is_shown_with_what_it_used(cli: Cli) -> None:
    """D35."""
    job_id = cli.finish("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo out; echo >&2")
    fields = fields_of(cli("show", "run", job_id, "1").out)
    assert [label for label in fields if label in RUN_LABELS] == RUN_LABELS
    assert set(fields) - set(RUN_LABELS) == {"Exit", "Peak memory", "CPU time", "Captured"}
    assert fields["Exit"] == "code 0"
    assert re.fullmatch(r"\d+\.\d MiB", fields["Peak memory"])
    assert re.fullmatch(r"\S+s user, \S+s system", fields["CPU time"])
    assert fields["Captured"] == "4 bytes of stdout, 1 bytes of stderr"
    run = cli.json("show", "run", job_id, "1")
    assert (run["logs"]["stdout_size"], run["logs"]["stderr_size"]) == (4, 1)
    usage = run["usage"]
    assert usage["max_rss_bytes"] > 100_000
    assert usage["user_cpu"] != "0s"


def test_a_diagnostic_follows_the_admission(cli: Cli) -> None:
    """A.16, D24."""
    bad = cli.finish("false", flags=("--name", "bad"))
    job_id = cli.finish("true", flags=("--after-success", "bad"))
    fields = fields_of(cli("show", job_id).out)
    order = list(fields)
    assert order[order.index("Admission") + 1] == "Diagnostic"
    assert fields["Diagnostic"].endswith("(dependency_unsatisfied)")
    assert fields["Admission"] == "none"
    assert "bad" in fields["Reason"]
    assert cli.json("show", job_id)["dependencies"][0]["depends_on"] == bad


def test_a_run_is_chosen_by_number_from_either_end_wherever_the_flags_are(cli: Cli) -> None:
    """O.6."""
    job_id = cli.finish("false", flags=("--retries", "2"))
    ids = [run["id"] for run in cli.json("show", job_id)["runs"]]
    for number, expected in (("1", ids[0]), ("3", ids[2]), ("-1", ids[2]), ("-3", ids[0]), ("+2", ids[1])):
        assert cli.json("show", "run", job_id, number)["id"] == expected
        assert fields_of(cli("show", "run", job_id, number).out)["ID"] == expected
    assert cli("show", "run", "--json", job_id, "-1").out == cli("show", "run", job_id, "-1", "--json").out
    assert cli("show", "--json", "run", job_id, "-1").out == cli("show", "run", job_id, "-1", "--json").out
    for absent in ("4", "-4"):
        cli.refuses("show", "run", job_id, absent, status=3, says=f"has no run {absent}")
    for text in ("0", "x", "1x", ""):
        cli.refuses("show", "run", job_id, text, status=2, says="RUN: invalid value")
    cli.refuses("show", "run", job_id, status=2, says="accepts 2 arg(s), received 1")
    cli.refuses("show", "run", job_id, "1", "2", status=2, says="accepts 2 arg(s), received 3")
    cli.refuses("show", "run", "nobody", "1", status=3)


def test_jobs_that_are_named_like_subcommands_can_be_shown(cli: Cli) -> None:
    for name in ("run", "job", "show"):
        job_id = cli.finish("true", flags=("--name", name))
        assert cli.json("show", "job", name)["summary"]["id"] == job_id
        assert cli("show", "job", name, "--json").out == cli("show", "--json", job_id).out


def test_values_under_sensitive_names_are_hidden(cli: Cli) -> None:
    """K.8, C.1: in documents, never in logs."""
    job_id = cli.finish("sh", "-c", "echo $API_TOKEN", flags=("--env", "API_TOKEN=hunter2"))
    assert "hunter2" not in cli("show", job_id, "--json").out + cli("show", job_id).out
    environment = cli.json("show", job_id)["specification"]["environment"]
    assert environment["set"] == {"API_TOKEN": "[REDACTED]"}
    assert cli("logs", job_id).out == "hunter2\n"


# --- status ---------------------------------------------------------------------------------------------------------


def test_status_is_five_fields_of_which_unknown_ones_are_empty(cli: Cli) -> None:
    """A.5, D36."""
    running = cli.run("sh", "-c", HELD)
    cli.await_phase(running, "running")
    assert cli("status", running).out == f"{running}\t\trunning\t\t\n"
    (cli.cwd / "go").touch()
    cli.wait(running)
    failed = cli.finish("sh", "-c", "exit 4", flags=("--name", "a b"))
    assert cli("status", "a b").out == f"{failed}\ta b\tcompleted\tfailure\texit 4\n"
    summary = cli.json("status", failed)
    assert summary == cli.json("show", failed)["summary"]
    assert (summary["revision"], summary["reason"]) == (5, "exit 4")


@pytest.mark.parametrize("verb", [("status",), ("show",), ("show", "job"), ("wait",), ("logs",), ("cancel",)])
def test_a_selector_is_an_id_a_prefix_or_a_name(cli: Cli, verb: tuple[str, ...]) -> None:
    """Section B, O.68."""
    first, second = stock(cli.state, 2)
    named = cli.finish("true", flags=("--name", first[:8]))
    cli.finish("true", flags=("--name", "twice"))
    cli.finish("true", flags=("--name", "twice"))
    common = common_prefix(first, second)
    assert len(common) >= 8
    assert second in cli(*verb, second, status=None).out or verb == ("logs",)
    # A prefix shadows a name that looks the same, and several matches are ambiguous even then.
    said = cli.refuses(*verb, first[:8], status=4, says=f"'{first[:8]}' matches several jobs")
    assert first in said
    assert named not in said
    cli.refuses(*verb, common, status=4)
    cli.refuses(*verb, "twice", status=4, says="'twice' matches several jobs")
    cli.refuses(*verb, "Twice", status=3, says="no job matches 'Twice'")
    cli.refuses(*verb, second[:7], status=3)
    cli.refuses(*verb, second.upper(), status=3)
    cli.refuses(*verb, b"\xff\xfe", status=3, says="no job matches")
    cli.refuses(*verb, "", status=2, says="JOB: invalid value ''")
    cli.refuses(*verb, status=2, says="arg(s), received 0")


def test_a_unique_prefix_is_enough(cli: Cli) -> None:
    first, second = stock(cli.state, 2)
    common = common_prefix(first, second)
    assert cli.json("status", first[: len(common) + 1])["id"] == first
    job_id = cli.finish("true")
    assert cli.json("status", job_id[:8])["id"] == job_id
    assert cli.json("status", job_id[:9])["id"] == job_id
