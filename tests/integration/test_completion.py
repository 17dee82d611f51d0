"""What is offered for a word in progress: from the tables of flags, and from a store that is only read (A.14, D47)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.cli import flags
from jobman.cli.app import run
from jobman.cli.complete import complete
from jobman.store.connection import open_existing, open_store
from tests.moves import instant, perform, submitted
from tests.stores import commit_all, downgrade, dump_at, fast_store, fresh_id, plain_spec

_RUNNING = ("claim", "admit", "reserve", "start")
_JOBS = {
    "train": _RUNNING,
    "still": (*_RUNNING, "pause"),
    "early": ("claim", "await_prerequisites"),
    "done": (*_RUNNING, "end"),
    "-odd": _RUNNING,
    "two\nlines": _RUNNING,
}


each_command = pytest.mark.parametrize("command", list(flags.tables()), ids=lambda command: " ".join(command.path))


def put(state: Path, **jobs: tuple[str, ...]) -> dict[str, str]:
    """Put jobs with these names into a store, after these moves; nobody owns them. Return their IDs by name."""
    ids = {name: fresh_id() for name in jobs}
    store = fast_store(state)
    for name, moves in jobs.items():
        history = [submitted(ids[name], name)]
        for number, move in enumerate(moves, start=1):
            perform(history, move, instant(number))
        commit_all(store, history, plain_spec(name=name, groups=("night",), tags=("gpu",)))
    store.close()
    return ids


@pytest.fixture
def jobs(state: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A store with a job of every kind; their IDs by name."""
    monkeypatch.setenv("JOBMAN_STATE_DIR", str(state))
    return put(state, **_JOBS)


def offered(*words: str) -> list[str]:
    """Return the candidates for the last word."""
    return [word for word, _ in complete(words).candidates]


def names(*words: str) -> set[str]:
    """Return the candidates that are no IDs."""
    return {word for word in offered(*words) if len(word) != 36}


# --- From the tables -----------------------------------------------------------------------------------------------


def test_the_first_word_is_a_command() -> None:
    assert offered("") == list(flags.verbs())
    assert offered("st") == ["status"]
    assert offered("--sta") == ["--state-dir"]
    assert dict(complete([""]).candidates)["status"] == flags.load("status").summary


@each_command
def test_every_flag_is_offered_with_what_it_does(command: type[flags.Command]) -> None:
    found = dict(complete([*command.path, "--"]).candidates)

    for flag in flags.flags_of(command):
        assert found[f"--{flag.name}"] == flag.summary


@each_command
def test_every_word_of_a_closed_set_is_offered_after_a_blank_and_after_an_equals_sign(
    command: type[flags.Command],
) -> None:
    for flag in flags.flags_of(command):
        words = list(flag.kind.words) or (["true", "false"] if flag.kind is flags.BOOL else [])
        assert not words or offered(*command.path, f"--{flag.name}=") == [f"--{flag.name}={word}" for word in words]
        if flag.kind.words:
            assert offered(*command.path, f"--{flag.name}", "") == words


@each_command
def test_every_command_can_be_asked_about(command: type[flags.Command]) -> None:
    assert command.path[-1] in offered("help", *command.path[:-1], "")


def test_lists_with_commas_go_on_with_what_is_not_in_them() -> None:
    assert offered("list", "--phase", "running,st") == ["running,starting", "running,stopping"]
    assert "running,running" not in offered("list", "--phase=running,")
    assert offered("run", "--after-outcome", "x=success,l") == ["x=success,lost"]


def test_a_flag_that_was_given_is_offered_again_only_if_it_may_be() -> None:
    again = offered("run", "--name", "x", "--tag", "y", "--retries=2", "--")

    assert "--tag" in again
    assert not {"--name", "--retries", "--max-runs", "--failure-limit"} & set(again)


@pytest.mark.parametrize(
    ("words", "directive"),
    [
        (("--config", "x"), 0),
        (("run", "--wait-file=x"), 0),
        (("run", "--cwd", ""), 16),
        (("--state-dir=", ""), 4),
        (("list", "--limit", ""), 4),
        (("run", "--env", "HO"), 6),
    ],
)
def test_the_shell_is_told_what_else_to_complete(words: tuple[str, ...], directive: int) -> None:
    assert complete(words).directive == directive


def test_after_two_dashes_the_command_of_a_job_is_a_command_line_of_its_own() -> None:
    assert complete(["run", "--name", "--", "--", "git", ""])[1:] == (64, 4)
    assert complete(["run", "--", ""])[1:] == (64, 2)


def test_signals_and_variables_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBMAN_TEST_VARIABLE", "1")

    assert offered("run", "--retry-signal", "TER") == ["TERM"]
    assert offered("run", "--retry-signal", "SIGTER") == ["SIGTERM"]
    assert offered("run", "--unset-env", "JOBMAN_TEST_V") == ["JOBMAN_TEST_VARIABLE"]
    assert offered("run", "--env", "JOBMAN_TEST_V") == ["JOBMAN_TEST_VARIABLE="]


# --- From the store ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "suitable"),
    [
        ("status", {"train", "still", "early", "done"}),
        ("cancel", {"train", "still", "early"}),
        ("wait", {"train", "still", "early"}),
        ("pause", {"train", "early"}),
        ("resume", {"still"}),
    ],
)
def test_jobs_are_those_with_which_the_command_can_do_something(
    jobs: dict[str, str], verb: str, suitable: set[str]
) -> None:
    """D47: names as well as IDs."""
    assert names(verb, "") - {"job", "run"} == suitable
    assert suitable <= {name for name, job_id in jobs.items() if job_id in offered(verb, "")}


def test_ids_are_described_by_names_and_states(jobs: dict[str, str]) -> None:
    assert complete(["status", jobs["done"][:30]]).candidates == ((jobs["done"], "done, success"),)
    assert ("train", "running") in complete(["status", "tr"]).candidates
    assert offered("list", "--before", jobs["train"][:30]) == [jobs["train"]]


def test_what_describes_a_job_stays_on_its_line(
    jobs: dict[str, str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    job_id = jobs["two\nlines"]

    run(["__complete", "status", job_id[:30]])

    assert capfdbinary.readouterr().out == f"{job_id}\ttwo\\x0alines, running\n:4\n".encode()


def test_a_name_that_several_jobs_share_is_no_answer(state: Path, jobs: dict[str, str]) -> None:
    other = put(state, train=())

    assert offered("status", "train") == []
    assert {other["train"], jobs["train"]} <= set(offered("status", ""))
    assert offered("list", "--name", "tr") == ["train"]


def test_a_name_that_begins_with_a_dash_stands_only_where_it_is_no_flag(jobs: dict[str, str]) -> None:
    assert "-odd" not in offered("status", "")
    assert offered("status", "-o") == []
    assert offered("status", "--", "-o") == ["-odd"]
    assert offered("run", "--after-success", "-o") == ["-odd"]
    assert offered("run", "--after-success=-o") == ["--after-success=-odd"]
    assert offered("logs", "--run", "-") == ["-1"]
    assert "-1" in offered("show", "run", jobs["done"], "-")


def test_a_job_is_offered_once_to_a_command_that_takes_several(jobs: dict[str, str]) -> None:
    assert "train" in offered("wait", "early", "")
    assert "train" not in offered("wait", "train", "")
    assert jobs.keys() >= names("run", "--after-success", "")


def test_runs_labels_and_pools_are_offered(state: Path, jobs: dict[str, str]) -> None:
    open_store(str(state)).execute("INSERT INTO concurrency_limits VALUES ('analysis', 2), ('', 3)")

    assert offered("show", "run", jobs["done"], "") == ["-1", "1"]
    assert offered("logs", "done", "--run", "") == ["-1", "all", "1"]
    assert offered("list", "--group", "") == ["night"]
    assert offered("run", "--tag", "g") == ["gpu"]
    assert offered("run", "--pool", "") == ["analysis"]
    assert offered("run", "--after-outcome", "don") == ["done="]


def test_names_of_a_configuration_are_offered_before_the_first_job(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "jobman.yml"
    file.write_text(
        """
        concurrency: {pools: {analysis: 2}}
        job_specs: {train: {command: ["true"]}}
        profiles: {fast: {overrides: {admission: {slots: 2}}}}
        wait_conditions: {noon: {type: file-exists, file_exists: {path: noon}}}
        notifiers: {desktop: {type: command, command: {command: [/bin/true]}}}
        """
    )
    assert offered("notify", "test", f"--config={file}", "--state-dir", str(state), "") == ["desktop"]
    assert offered("run", f"--config={file}", "--state-dir", str(state), "--notify", "") == ["desktop"]
    assert offered("run", "--notify-on", "job_f") == ["job_failed"]
    for flag, name in (("pool", "analysis"), ("job-spec", "train"), ("profile", "fast"), ("wait-condition", "noon")):
        assert offered("run", f"--config={file}", "--state-dir", str(state), f"--{flag}", "") == [name]
    assert not state.exists()
    assert offered("run", "--config=/nowhere", "--state-dir", str(state), "--pool", "") == []


# --- Only looking --------------------------------------------------------------------------------------------------


def test_nothing_is_made_where_there_is_no_store(state: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(["__complete", "--state-dir", str(state), "status", ""]) == 0

    assert capfdbinary.readouterr() == (b":4\n", b"")
    assert offered("show", "--state-dir", str(state), "") == ["job", "run"]
    assert not state.exists()


@pytest.mark.usefixtures("jobs")
def test_a_job_whose_owner_is_gone_is_left_as_it_was_recorded(state: Path) -> None:
    before, files = dump_at(state), sorted(state.rglob("*"))

    assert "train" in offered("cancel", "")
    assert sorted(state.rglob("*")) == files
    assert dump_at(state) == before
    with pytest.raises(Exception, match="readonly"):
        open_existing(str(state)).execute("DELETE FROM jobs")


@pytest.mark.usefixtures("jobs")
def test_a_store_of_an_older_version_is_not_upgraded(state: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    store = fast_store(state)
    downgrade(store)

    assert run(["__complete", "status", ""]) == 0
    assert capfdbinary.readouterr() == (b":4\n", b"")
    assert store.execute("PRAGMA user_version") == [(1,)]
    store.close()


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    "words", [("nonsense", ""), ("--", ""), ("status", "--nonsense", ""), ("status", "\udcff"), ("status", "-n"), ()]
)
def test_whatever_stands_there_completion_is_silent(
    words: tuple[str, ...], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run(["__complete", *words]) == 0

    out, err = capfdbinary.readouterr()
    assert out.endswith(b":4\n")
    assert err == b""


def test_descriptions_can_be_left_out(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    run(["__complete_bare", "st"])

    assert capfdbinary.readouterr().out == b"status\n:4\n"
