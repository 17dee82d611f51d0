"""What is not understood: status 2, one line on stderr, and nothing left behind (contract, A.0, A.2 and C; O.3).

The values of flags are the matter of `tests.integration.test_command_line`.
"""

from __future__ import annotations

import pytest

from tests.support import Cli, processes_of

RUN = ("run",)
TRUE = ("--", "true")


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
