"""A supervisor killed at any system call of a short job: the store stays sound and nothing is invented (M4, case 4).

The job fails once, is retried, succeeds, and another job waits for it.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman.model.ids import is_id
from tests.faults.injection import (
    ALL_POINTS,
    assert_sound,
    expire_offers,
    injected,
    left_in_run,
    outcomes,
    rows,
    run_with,
    traced,
    wrapped_interpreter,
)
from tests.support import Cli, eventually, processes_of

# How many calls of each kind a supervisor makes for that job, rounded up; a test holds that none is left out.
CALLS = {
    "fdatasync": 30,
    "fsync": 20,
    "write": 12,
    "unlink,unlinkat": 12,
    "rename,renameat,renameat2": 0,
    "mkdir,mkdirat,mknodat": 12,
    "clone,clone3,fork,vfork": 3,
    "flock": 40,
    "wait4,waitid": 20,
    "pipe2": 12,
    "pidfd_open,pidfd_send_signal": 6,
    "dup2,dup3": 8,
    "poll": 60,
    "ftruncate": 4,
    "openat": 400,
}
SAMPLE = {
    "fdatasync": (1, 2, 3, 5, 7, 9, 11, 13, 14),
    "fsync": (3, 6),
    "write": (1, 2, 3, 4),
    "unlink,unlinkat": (1, 2, 3, 4, 5),
    "clone,clone3,fork,vfork": (1, 2),
    "wait4,waitid": (1, 2),
    "mkdir,mkdirat,mknodat": (2, 4),
    "openat": (120, 180, 230),
}
POINTS = (
    [(syscall, number) for syscall, count in CALLS.items() for number in range(1, count + 1)]
    if ALL_POINTS
    else [(syscall, number) for syscall, numbers in SAMPLE.items() for number in numbers]
)
# Fails at first and succeeds then; says how far it has come, outside the state directory.
TARGET = (
    'echo $JOBMAN_RUN_NUMBER >>began; echo "run $JOBMAN_RUN_NUMBER"; [ -e failed ] || { : >failed; exit 1; }; : >done'
)
FLAGS = ("--retries", "1", "--retry-delay", "20ms", "--", "sh", "-c", TARGET)


class Aftermath(NamedTuple):
    """What is true once everything has settled."""

    job_id: str
    outcome: str
    dependent: str


def settle(cli: Cli, told: str, *, killed: bool) -> Aftermath:
    """Look once, as a user does, and wait until whatever still runs has ended by itself."""
    ((job_id, phase),) = rows(cli.state, "SELECT id, phase FROM jobs")
    dependent = cli.run("true", flags=["--after-success", job_id])
    if phase == "submitting":
        expire_offers(cli.state)  # the client was told nothing, so that it could not settle the submission itself
    cli("list")
    found = outcomes(cli)
    assert not told or told == job_id
    assert killed or found[job_id] == "success"
    return Aftermath(job_id, found[job_id], found[dependent])


def assert_nothing_invented(cli: Cli, after: Aftermath) -> None:
    """Every recorded end of a run is one that the target had; the dependent was decided by what is recorded."""
    began = (cli.cwd / "began").read_text().split() if (cli.cwd / "began").exists() else []
    runs = rows(cli.state, "SELECT number, outcome, exit_code FROM runs WHERE job_id = ? ORDER BY number", after.job_id)
    for number, outcome, exit_code in runs:
        assert (outcome, exit_code) in {("failure", 1), ("success", 0), ("lost", None)}
        assert outcome == "lost" or str(number) in began, "an end without a beginning"
    assert len(began) <= len(runs), "a target without a record"
    assert (after.outcome == "success") <= (cli.cwd / "done").exists()
    assert after.outcome in {"success", "lost", "submission_failed"}
    assert after.outcome == "submission_failed" or is_id(after.job_id)
    assert after.dependent == ("success" if after.outcome == "success" else "aborted")


def assert_logs_readable(cli: Cli, job_id: str) -> None:
    """What was captured is there, and no log is called corrupt."""
    numbers = [row[0] for row in rows(cli.state, "SELECT number FROM runs WHERE job_id = ? ORDER BY number", job_id)]
    assert rows(cli.state, "SELECT 1 FROM runs WHERE log_integrity NOT IN ('valid', 'partial')") == []
    for number in numbers:
        shown = cli("logs", "--run", str(number), "--stream", "stdout", job_id).out
        assert shown in {"", f"run {number}\n"}
    complete = "SELECT number FROM runs WHERE job_id = ? AND outcome IN ('success', 'failure')"
    for (number,) in rows(cli.state, complete, job_id):
        assert cli("logs", "--run", str(number), job_id).out == f"run {number}\n"
    kept = {str(number) for number in numbers}
    assert {path.name for path in (cli.state / "logs").glob(f"{job_id}/*")} == kept
    assert not [path for path in (cli.state / "logs").rglob(".active") if path.exists()]


@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_supervisor_killed_at_a_system_call(cli: Cli, tmp_path: Path, syscall: str, number: int) -> None:
    """M4, M7, D1, H.6: whatever it was about to do."""
    python = wrapped_interpreter(tmp_path / "python", injected(syscall, number))

    done = run_with(cli, python, *FLAGS)

    eventually(lambda: not processes_of(cli.state), f"{processes_of(cli.state)}")
    killed = rows(cli.state, "SELECT 1 FROM supervisors WHERE phase = 'claimed'") or done.status
    after = settle(cli, done.out.strip(), killed=bool(killed))
    if done.status:
        assert (done.status, done.out) == (1, "")
        assert re.fullmatch(r"launch job supervisor: [^\n]+\n", done.err)
        assert after.outcome == "submission_failed"
    assert_sound(cli.state)
    assert_nothing_invented(cli, after)
    assert_logs_readable(cli, after.job_id)
    # A supervisor that was killed when its job had completed cannot remove its files, and nobody asks for them again.
    assert {name.partition(".")[0] for name in left_in_run(cli.state)} <= {after.job_id}
    assert after.outcome == "success" or left_in_run(cli.state) <= {f"{after.job_id}.log"}
    assert cli.wait(cli.run("true")) == "success"


ASKED = {"fdatasync": (1, 2, 4), "clone,clone3,fork,vfork": (1,), "write": (3,), "unlink,unlinkat": (1,)}
ASKED_POINTS = (
    POINTS[::3] if ALL_POINTS else [(syscall, number) for syscall, numbers in ASKED.items() for number in numbers]
)


@pytest.mark.parametrize(("syscall", "number"), ASKED_POINTS)
def test_a_supervisor_asked_to_end_at_a_system_call(cli: Cli, tmp_path: Path, syscall: str, number: int) -> None:
    """Field case 6, M26: SIGTERM in any window, between claim and start too, cancels the job or comes too late."""
    python = wrapped_interpreter(tmp_path / "python", injected(syscall, number, "signal=TERM"))

    done = run_with(cli, python, *FLAGS)

    eventually(lambda: not processes_of(cli.state), f"{processes_of(cli.state)}")
    ((outcome,),) = rows(cli.state, "SELECT outcome FROM jobs")
    assert outcome in ({"submission_failed", None} if done.status else {"cancelled", "success"})
    assert_sound(cli.state)
    assert cli.wait(cli.run("true")) == "success"


def test_no_call_of_a_supervisor_is_left_out(cli: Cli, tmp_path: Path) -> None:
    """The table above covers what a supervisor does; one that does more needs more points."""
    log = tmp_path / "log"
    kinds = [name for syscall in CALLS for name in syscall.split(",")]

    done = run_with(cli, wrapped_interpreter(tmp_path / "python", traced(*kinds, log=log)), *FLAGS)

    assert cli.wait(done.out.strip()) == "success"
    eventually(lambda: not processes_of(cli.state))
    made = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    counts = {syscall: sum(made.count(name) for name in syscall.split(",")) for syscall in CALLS}
    assert {syscall: count for syscall, count in counts.items() if count > CALLS[syscall]} == {}
    for syscall, numbers in SAMPLE.items():
        assert counts[syscall] >= max(numbers), f"{syscall}: the sample tries a call that is not made"


def test_a_supervisor_killed_while_its_target_runs_leaves_the_target_and_says_so(cli: Cli) -> None:
    """Field case 4: lost at once, the survivor is named, and its log is kept."""
    job_id = cli.run("sh", "-c", "echo before; exec sleep 60")
    eventually(lambda: cli("logs", job_id, status=None).out == "before\n")
    ((supervisor,),) = rows(cli.state, "SELECT pid FROM supervisors")
    ((target,),) = rows(cli.state, "SELECT pid FROM runs")

    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: supervisor not in processes_of(cli.state))

    detail = cli.json("show", job_id)
    assert detail["summary"]["outcome"] == "lost"
    assert str(target) in detail["diagnostic"]
    assert list(processes_of(cli.state)) == [target]
    assert cli("logs", job_id).out == "before\n"
    os.kill(target, signal.SIGKILL)
