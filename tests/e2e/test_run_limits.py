"""Timeouts and the end of process trees: ``--run-timeout``, ``--job-timeout``, ``--stop-grace`` (H.5, I.3; F.7)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support import Cli, eventually, processes_of, require_tool

HELD = "until [ -e go ]; do sleep 0.01; done"
# Says that it is ready, counts what it is sent, and ignores it.
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"term\\n"))
os.write(1, b"ready\\n")
while True:
    time.sleep(60)
"""


def has_printed(cli: Cli, job_id: str, text: str) -> Callable[[], bool]:
    """Return a condition: the output of a job contains ``text``."""
    return lambda: text in cli("logs", job_id, status=None).out


def targets(cli: Cli) -> list[str]:
    """Return the command lines of what runs here, supervisors excepted."""
    return [line for line in processes_of(cli.state).values() if "supervisor/__main__.py" not in line]


# --- Timeouts -------------------------------------------------------------------------------------------------------


def test_a_run_that_takes_too_long_is_stopped_and_the_job_fails(cli: Cli) -> None:
    """F.7: without a retry of timeouts the job is a failure; O.47: a timed out run has no exit code."""
    job_id = cli.finish("sleep", "600", flags=("--run-timeout", "200ms", "--retries", "3"))
    detail = cli.json("show", job_id)
    (run,) = detail["runs"]
    assert (detail["summary"]["outcome"], run["outcome"]) == ("failure", "timed_out")
    assert detail["summary"]["reason"] == "run timeout"
    assert detail["runtime"]["waiting_reason"] == "non_retryable_failure"
    assert run["exit"]["signal"] == "terminated"
    assert "exit_code" not in run["exit"]
    assert "cancellation_requested_at" not in detail


def test_a_target_that_exits_when_it_is_timed_out_has_no_exit_code(cli: Cli) -> None:
    """F.4 and O.47: the code is dropped, a factual platform reason replaces it."""
    script = "trap 'exit 0' TERM; while :; do sleep 0.01; done"
    job_id = cli.finish("sh", "-c", script, flags=("--run-timeout", "200ms"))
    run = cli.json("show", "run", job_id, "1")
    assert run["outcome"] == "timed_out"
    assert run["exit"]["platform_reason"] == "process_terminated"


def test_a_job_that_takes_too_long_is_stopped_while_it_runs(cli: Cli) -> None:
    job_id = cli.finish("sleep", "600", flags=("--job-timeout", "300ms", "--retries", "3"))
    detail = cli.json("show", job_id)
    assert [run["outcome"] for run in detail["runs"]] == ["timed_out"]
    assert detail["summary"]["outcome"] == "timed_out"
    assert detail["diagnostic_code"] == "job_timeout"
    assert "cancellation_requested_at" in detail


def test_a_job_that_takes_too_long_is_ended_while_it_waits(cli: Cli) -> None:
    first = cli.run("sh", "-c", HELD)
    job_id = cli.finish("true", flags=("--after-success", first, "--job-timeout", "300ms"))
    detail = cli.json("show", job_id)
    assert detail["runs"] == []
    assert detail["summary"]["outcome"] == "timed_out"
    assert detail["summary"]["reason_code"] == "job_timeout"
    (cli.cwd / "go").touch()
    assert cli.wait(first) == "success"


def test_a_job_that_takes_too_long_is_ended_in_its_backoff(cli: Cli) -> None:
    """O.45: the job timeout bounds the backoff."""
    flags = ("--retries", "5", "--retry-delay", "1h", "--job-timeout", "500ms")
    job_id = cli.finish("false", flags=flags)
    detail = cli.json("show", job_id)
    assert [run["outcome"] for run in detail["runs"]] == ["failure"]
    assert detail["summary"]["outcome"] == "timed_out"


def test_the_run_timeout_begins_anew_with_each_run_and_after_the_waiting(cli: Cli) -> None:
    """Field case 35: each option works beside each other one."""
    first = cli.run("sh", "-c", "sleep 0.4")
    flags = ("--after-success", first, "--retries", "1", "--retry-delay", "200ms", "--run-timeout", "300ms")
    job_id = cli.finish("sh", "-c", "[ -e n ] && exec sleep 600; touch n; exit 3", flags=flags)
    detail = cli.json("show", job_id)
    assert [run["outcome"] for run in detail["runs"]] == ["failure", "timed_out"]


# --- Stopping -------------------------------------------------------------------------------------------------------


def test_a_target_that_ignores_the_signal_is_killed_after_its_grace(cli: Cli) -> None:
    job_id = cli.run(sys.executable, "-c", STUBBORN, flags=("--stop-grace", "300ms"))
    eventually(has_printed(cli, job_id, "ready"))
    cli("cancel", "--wait", job_id)
    detail = cli.json("show", job_id)
    assert detail["summary"]["outcome"] == "cancelled"
    assert detail["runs"][0]["exit"]["signal"] == "killed"
    assert cli("logs", job_id).out == "ready\nterm\n"


def test_a_target_that_needs_a_moment_is_not_killed_within_its_grace(cli: Cli) -> None:
    script = "trap 'sleep 0.3; echo tidy; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    job_id = cli.run("sh", "-c", script)
    eventually(has_printed(cli, job_id, "ready"))
    cli("cancel", "--wait", job_id)
    # On stderr the shell may tell of the sleep that the signal has ended.
    assert cli("logs", "--stream", "stdout", job_id).out == "ready\ntidy\n"
    assert cli.json("show", job_id)["runs"][0]["outcome"] == "cancelled"


def test_a_grace_of_zero_kills_at_once(cli: Cli) -> None:
    """O.36: a zero is a value, not an absent one."""
    job_id = cli.run(sys.executable, "-c", STUBBORN, flags=("--stop-grace", "0"))
    eventually(has_printed(cli, job_id, "ready"))
    cli("cancel", "--wait", job_id)
    assert cli.json("show", job_id)["specification"]["stop_policy"] == {"force_after_grace": True, "grace_period": "0s"}
    assert cli.json("show", job_id)["runs"][0]["exit"]["signal"] == "killed"


TREES = {
    "shells in shells": "bash -c 'bash -c \"sleep 4321 & sleep 4321 & echo ready; wait\" & wait'",
    "the parent ignores the signal, its child does not": "trap '' TERM; sleep 4321 & echo ready; wait; wait",
    "a session of its own": "setsid sleep 4321 & echo ready; wait",
    "double fork": "(setsid sh -c 'sleep 4321 & sleep 4321 &' &); echo ready; exec sleep 4321",
    "the leader is already gone": "setsid sleep 4321 >/dev/null 2>&1 & echo ready",
}


@pytest.mark.parametrize("tree", TREES)
def test_nothing_of_a_tree_is_left_after_the_job_has_ended(cli: Cli, tree: str) -> None:
    """D28, D33; field cases 2 and 3."""
    require_tool("setsid")
    job_id = cli.run("sh", "-c", TREES[tree], flags=("--stop-grace", "500ms"))
    eventually(has_printed(cli, job_id, "ready"))
    cli("cancel", "--wait", job_id)
    assert targets(cli) == []


# All at once: shells in shells, a session of its own, a double fork, one that ignores the signal, one that is stopped,
# and one that forks as fast as it can, for three seconds and 200 times at most.
ZOO = """
bash -c 'bash -c "sleep 4322 & sleep 4322 & wait" & wait' &
setsid sleep 4322 &
(setsid sh -c 'sleep 4322 & exec sleep 4322' &)
sh -c 'trap "" TERM HUP INT; sleep 4322 & while :; do sleep 0.05; done' &
sh -c 'kill -STOP $$; sleep 4322' &
exec timeout 3 sh -c 'trap "" TERM; grow() { i=0; while [ $i -lt 100 ]; do sleep 3 & i=$((i+1)); done; }
    echo ready; grow & setsid sh -c ":" & grow; wait'
"""


@pytest.mark.parametrize("stop", ["cancel", "--run-timeout", "--job-timeout"])
def test_nothing_of_any_tree_is_left_and_nothing_else_is_touched(cli: Cli, stop: str) -> None:
    """Issue 4; field cases 2 and 3; a neighbour of the same session, directory and command line lives on."""
    with subprocess.Popen(["sleep", "4322"], cwd=cli.cwd) as bystander:
        flags = ("--stop-grace", "200ms", *((stop, "500ms") if stop != "cancel" else ()))
        job_id = cli.run("sh", "-c", ZOO, flags=flags)
        if stop == "cancel":
            eventually(has_printed(cli, job_id, "ready"))
            cli("cancel", job_id)
        outcome = {"cancel": "cancelled", "--run-timeout": "failure", "--job-timeout": "timed_out"}[stop]
        assert cli.wait(job_id) == outcome
        assert targets(cli) == []
        assert bystander.poll() is None
        bystander.kill()


def test_what_outlives_a_command_is_left_and_named_if_that_was_asked_for(cli: Cli) -> None:
    """D33: recorded in the specification only where it is not the default."""
    flags = ("--leave-descendants", "--drain-timeout", "1.5s", "--force-after-grace=false")
    script = "sleep 4323 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do :; done; echo $!"
    job_id = cli.finish("sh", "-c", script, flags=flags)
    left = int(cli("logs", job_id).out)
    assert processes_of(cli.state)[left] == "sleep 4323"
    os.kill(left, signal.SIGKILL)
    detail = cli.json("show", job_id)
    assert detail["specification"]["stop_policy"] == {
        "grace_period": "10s",
        "force_after_grace": False,
        "drain_timeout": "1.5s",
        "leave_descendants": True,
    }
    assert detail["summary"]["outcome"] == "success"
    (run,) = detail["runs"]
    assert run["diagnostic_code"] == "descendants_left"
    assert run["diagnostic"] == f"left running: sleep (pid {left})"
    assert f"sleep (pid {left})" in cli("show", job_id).out


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
def test_death_by_a_signal_is_a_failure_that_names_it(cli: Cli, number: signal.Signals) -> None:
    """F.4."""
    names = {signal.SIGKILL: "killed", signal.SIGSEGV: "segmentation fault", signal.SIGUSR1: "user defined signal 1"}
    job_id = cli.finish("sh", "-c", f"kill -{number.value} $$")
    assert cli.json("show", "run", job_id, "1")["exit"]["signal"] == names[number]
    assert cli.json("status", job_id)["reason"] == f"signal: {names[number]}"
    assert cli("wait", "--exit-code", job_id, status=128 + number).out == f"{job_id}\tfailure\n"
