"""What is not understood: status 2, one line on stderr, and nothing left behind (contract, A.0, A.2 and C; O.3)."""

from __future__ import annotations

import os

import pytest

from tests.support import Cli, processes_of

RUN = ("run",)
TRUE = ("--", "true")
NOT_UTF_8 = os.fsdecode(b"\377")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("frobnicate",), "unknown command 'frobnicate': jobman --help lists what there is"),
        (("lst",), "unknown command 'lst': did you mean list?"),
        (("stat",), "unknown command 'stat': did you mean status?"),
        (("help", "frobnicate"), "unknown command 'frobnicate'"),
        (("--",), "a command must come before --"),
        (("-x",), "unknown flag -x"),
        (("list", "--al"), "list: unknown flag --al: did you mean --all?"),
        (("list", "-n", "3"), "list: unknown flag -n"),
        (("run", "echo", "hi"), "'echo' is out of place: the command must follow --"),
        (("run", "--nam", "x", *TRUE), "run: unknown flag --nam: did you mean --name?"),
        (RUN, "there is no command to run"),
        (("run", "--"), "there is no command to run"),
        (("run", "--name"), "--name needs a value"),
        (("run", "--wait=perhaps", *TRUE), "--wait: invalid value 'perhaps': expected true or false"),
        (("--state-dir",), "--state-dir needs a value"),
        (("status", "--json=2", "x"), "--json: invalid value '2'"),
        (("show", "one", "two"), "accepts 1 arg(s), received 2"),
        (("status", b"\xff\x1b\n", "--bad\x1b\nflag"), "unknown flag '--bad"),
    ],
)
def test_words_that_are_not_understood(cli: Cli, words: tuple[str | bytes, ...], says: str) -> None:
    assert cli.refuses(*words, status=2, says=says).startswith("invalid command usage: ")
    assert not cli.state.exists()


BAD_RUNS: dict[str, list[tuple[str | bytes, ...]]] = {
    "--name": [("",), (" ",), ("a\nb",), ("\x1b",), (NOT_UTF_8,)],
    "--group": [("",), (" a",), ("a ",), ("a\tb",), ("a", "--group", "a"), (NOT_UTF_8,)],
    "--tag": [("",), ("\t",), ("a", "--tag", "a")],
    "--env": [("",), ("A",), ("=x",), ("1A=x",), ("A-B=x",), ("A B=1",), ("é=1",)],
    "--unset-env": [("",), ("A=",), ("A B",), ("A", "--env", "A=1")],
    "--after-success": [("",), (" ",)],
    "--retries": [("-1",), ("x",), ("1.5",), ("",), ("0b2",), ("9223372036854775808",), ("9223372036854775807",)],
    "--success-exit-code": [("",), ("a",), ("-1",), ("0x1",), ("1,",), ("1,1",), ("1", "--success-exit-code", "1")],
    "--retryable-exit-code": [("",), ("-1",), ("3,3",), ("0",), ("7", "--success-exit-code", "7")],
    "--retry-delay": [("",), ("1",), ("-1s",), ("1y",), ("soon",), ("99999999999h",)],
    "--run-timeout": [("5",), ("-0s",), ("1 s",)],
    "--job-timeout": [("x",), ("-5m",)],
    "--stop-grace": [("10",), ("s",), ("-1ns",)],
    "--drain-timeout": [("10",), ("-1s",), ("soon",)],
    "--log-capture": [("out",)],
    "--log-segment-bytes": [("8EiB",)],
    "--log-segments": [("2",), ("2", "--log-segment-bytes", "0"), ("65536", "--log-segment-bytes", "1")],
    "--log-retention": [("-1s",)],
    "--job-spec": [("",), ("none",)],
    "--profile": [("",), ("none",)],
    "--secret-env": [("",), ("A",), ("=x",), ("A=none",)],
    "--wait": [],
    "--exit-code": [],
}


@pytest.mark.parametrize("flag", [flag for flag, values in BAD_RUNS.items() if values])
def test_values_that_are_not_understood_leave_nothing(cli: Cli, flag: str) -> None:
    """Every refusal comes before anything durable, and the supervisor that was started for it goes away."""
    for value, *more in BAD_RUNS[flag]:
        cli.refuses("run", flag, value, *more, *TRUE, status=2, says=flag)
    assert cli.has_no_job()
    assert not (cli.state / "logs").exists() or not any((cli.state / "logs").iterdir())


def test_requests_that_contradict_the_store_leave_nothing(cli: Cli) -> None:
    cli.refuses("run", "--after-success", "nobody", *TRUE, status=3, says="no job matches 'nobody'")
    cli.refuses("run", "--exit-code", *TRUE, status=2, says="run --exit-code needs --wait")
    cli.refuses("run", "--", "", status=2, says="the command is empty")
    assert cli.has_no_job()
    for _ in range(2):
        cli.finish("true", flags=("--name", "twice"))
    cli.refuses("run", "--after-success", "twice", *TRUE, status=4, says="matches several jobs")
    assert len(cli.json("list")["jobs"]) == 2


def test_a_refused_run_leaves_no_process(cli: Cli) -> None:
    for _ in range(3):
        cli.refuses("run", "--tag", "", *TRUE, status=2)
    # Checked again, with a moment of grace, when the test ends.
    assert len(processes_of(cli.state)) <= 3


def test_flags_may_stand_anywhere_but_after_the_first_word_of_a_target(cli: Cli) -> None:
    job_id = cli.finish("echo", "--wait", "--state-dir", "x", "--", "-h")
    assert cli("logs", job_id).out == "--wait --state-dir x -- -h\n"
    assert cli("logs", "-n=1", "--stream=stdout", job_id, "--raw").out == cli("logs", job_id).out
    assert cli("status", "--", job_id).out == cli("status", job_id).out
    done = cli("run", "--wait", "--wait=false", "--name", "a", "--name", "b", *TRUE)
    assert cli.json("status", done.out.strip())["name"] == "b"
