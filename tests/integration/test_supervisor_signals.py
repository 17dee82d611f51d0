"""Signals to a supervisor, a removed state directory, and a cancel that races the end (D22, D27, D43)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.injection import assert_sound, left_in_run, outcomes, owner_of, rows
from tests.support import Cli, assert_no_process, eventually, processes_of

ASKED = "supervisor was asked to end (SIGTERM)"


def supervisor_of(cli: Cli, job_id: str) -> int:
    """The PID of the recorded supervisor."""
    owner = owner_of(cli.state, job_id)
    assert owner is not None
    return owner.identity.pid


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def started_target(cli: Cli, script: str, *flags: str) -> tuple[str, int]:
    """Submit ``sh -c script``; return the job and the target's PID once ``ready`` was printed."""
    job_id = cli.run("sh", "-c", f"echo ready; {script}", flags=flags)
    eventually(lambda: cli("logs", job_id, status=None).out.startswith("ready"))
    ((pid,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ? AND phase <> 'completed'", job_id)
    return job_id, pid


# --- Signals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGINT])
def test_a_supervisor_that_is_asked_to_end_cancels_its_job(cli: Cli, signo: signal.Signals) -> None:
    """Differences, "Settled besides": outcome, reason, and nothing is left."""
    job_id, _ = started_target(cli, "exec sleep 60")

    os.kill(supervisor_of(cli, job_id), signo)

    assert cli.wait(job_id) == "cancelled"
    assert ASKED in cli("status", job_id).out
    assert_no_process(cli.state)
    assert left_in_run(cli.state) == set()


def test_a_waiting_supervisor_that_is_asked_to_end_cancels_its_job(cli: Cli) -> None:
    """The same without a target; its own dependents learn of it."""
    first, _ = started_target(cli, "exec sleep 60")
    second = cli.run("true", flags=["--after-success", first])
    third = cli.run("true", flags=["--after-success", second])
    cli.await_phase(second, "waiting")

    os.kill(supervisor_of(cli, second), signal.SIGTERM)

    assert cli.wait(second) == "cancelled"
    assert cli.wait(third) == "aborted"
    assert cli.phase(first) == "running"
    cli("cancel", first)
    assert cli.wait(first) == "cancelled"


def test_a_supervisor_asked_to_end_during_backoff_starts_no_retry(cli: Cli) -> None:
    """A stop intent ends the wait for the next run."""
    job_id = cli.run("false", flags=["--retries", "3", "--retry-delay", "60s"])
    cli.await_phase(job_id, "backoff")

    os.kill(supervisor_of(cli, job_id), signal.SIGTERM)

    assert cli.wait(job_id) == "cancelled"
    assert rows(cli.state, "SELECT count(*) FROM runs") == [(1,)]


def test_signals_that_mean_nothing_to_a_supervisor_are_ignored(cli: Cli) -> None:
    """Differences, "Settled besides": SIGHUP; and SIGPIPE, SIGCHLD and wake-ups change nothing."""
    job_id, target = started_target(cli, "while [ ! -e go ]; do sleep 0.02; done")
    supervisor = supervisor_of(cli, job_id)

    for signo in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP):
        os.kill(supervisor, signo)

    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"
    assert not is_running(target)


def test_a_session_that_is_asked_to_end_ends_as_cancelled(cli: Cli) -> None:
    """The whole session gets SIGTERM, as from a session manager: the record says cancelled, whoever dies first."""
    job_id, target = started_target(cli, "sleep 61 & sleep 62")
    session = supervisor_of(cli, job_id)

    assert {os.getsid(pid) for pid in processes_of(cli.state)} == {session}
    os.kill(session, signal.SIGTERM)
    for pid in processes_of(cli.state):
        _signal(pid, signal.SIGTERM)

    assert cli.wait(job_id) == "cancelled"
    assert not is_running(target)
    assert_no_process(cli.state)


def test_a_session_that_is_killed_is_lost_and_leaves_nothing(cli: Cli) -> None:
    """As by a session manager whose patience is over: supervisor and tree together."""
    job_id, _ = started_target(cli, "sleep 61 & sleep 62")
    supervisor = supervisor_of(cli, job_id)
    everybody = list(processes_of(cli.state))
    os.kill(supervisor, signal.SIGSTOP)
    for pid in everybody:
        _signal(pid, signal.SIGKILL)
    eventually(lambda: not processes_of(cli.state))

    assert cli.json("status", job_id)["outcome"] == "lost"
    assert "outlived" not in cli.json("show", job_id)["diagnostic"]
    assert rows(cli.state, "SELECT count(*) FROM admissions WHERE released_at_ns IS NULL") == [(0,)]
    assert_sound(cli.state)


def _signal(pid: int, signo: int) -> None:
    try:
        os.kill(pid, signo)
    except ProcessLookupError:
        pass


# --- A cancel that races the end (D22) -----------------------------------------------------------------------------


def test_a_cancel_that_races_the_end_never_loses_the_job(cli: Cli) -> None:
    """D22: cancelled, or what the target came to; never lost, and never an error for who cancels."""
    for number in range(6):
        job_id = cli.run("sh", "-c", f"sleep 0.0{number}")
        cli("cancel", job_id)
        assert cli.wait(job_id) in {"cancelled", "success"}

    assert set(outcomes(cli).values()) <= {"cancelled", "success"}
    assert_sound(cli.state)
    assert left_in_run(cli.state) == set()


def test_a_cancel_that_commits_before_the_completion_wins(cli: Cli) -> None:
    """D22, F.4: the target ends by itself while the intent is already durable: cancelled, with what it exited with."""
    job_id, target = started_target(cli, "trap 'exit 0' TERM; while :; do sleep 0.02; done")
    os.kill(supervisor_of(cli, job_id), signal.SIGSTOP)
    os.kill(target, signal.SIGKILL)
    cli("cancel", job_id)

    os.kill(supervisor_of(cli, job_id), signal.SIGCONT)

    assert cli.wait(job_id) == "cancelled"
    ((outcome, exit_signal),) = rows(cli.state, "SELECT outcome, exit_signal FROM runs")
    assert outcome == "cancelled"
    assert exit_signal == "killed"


def test_a_stopped_supervisor_is_not_lost(cli: Cli) -> None:
    """H.6: slow is not dead, however long its lease has been over."""
    job_id, _ = started_target(cli, "while [ ! -e go ]; do sleep 0.02; done")
    supervisor = supervisor_of(cli, job_id)
    os.kill(supervisor, signal.SIGSTOP)
    rows(cli.state, "UPDATE supervisors SET lease_expires_at_ns = claimed_at_ns")

    assert cli.json("status", job_id)["phase"] == "running"
    assert cli("list", "--json").out.count('"running"') == 1

    os.kill(supervisor, signal.SIGCONT)
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"


# --- A store that is gone (D43) ------------------------------------------------------------------------------------


def remove(state: Path) -> None:
    """Remove the state directory, files that appear meanwhile included."""

    def removed() -> bool:
        shutil.rmtree(state, ignore_errors=True)
        return not state.exists()

    eventually(removed)


def overwrite(state: Path) -> None:
    """Let the database be the one of a store without that job, in the same file."""
    rows(state, "PRAGMA foreign_keys=OFF; DELETE FROM jobs")


def test_a_removed_state_directory_ends_supervisors_that_wait(cli: Cli) -> None:
    """D43: without a target at once; with one, when it has ended by itself."""
    first, target = started_target(cli, "while [ ! -e go ]; do sleep 0.02; done; : >ended")
    second = cli.run("true", flags=["--after-success", first])
    third = cli.run("false", flags=["--retries", "1", "--retry-delay", "1h"])
    cli.await_phase(second, "waiting")
    cli.await_phase(third, "backoff")
    waiting = [supervisor_of(cli, second), supervisor_of(cli, third)]
    with_target = supervisor_of(cli, first)

    remove(cli.state)

    eventually(lambda: not any(is_running(pid) for pid in waiting))
    assert is_running(with_target)
    assert is_running(target)
    (cli.cwd / "go").touch()
    eventually(lambda: not is_running(with_target))
    assert (cli.cwd / "ended").exists()


def test_a_replaced_database_ends_supervisors_like_a_removed_one(cli: Cli) -> None:
    """D43: device and inode count, not the name."""
    job_id = cli.run("false", flags=["--retries", "1", "--retry-delay", "1h"])
    cli.await_phase(job_id, "backoff")
    supervisor = supervisor_of(cli, job_id)

    for name in ("jobman.db", "jobman.db-wal", "jobman.db-shm"):
        (cli.state / name).unlink(missing_ok=True)
    (cli.state / "jobman.db").touch(0o600)

    eventually(lambda: not is_running(supervisor))
    # Nothing but its own notes can tell of it any more (D24).
    assert "the database was removed or replaced" in (cli.state / "run" / f"{job_id}.log").read_text()


@pytest.mark.parametrize(
    ("flags", "lose"),
    [
        (("--run-timeout", "1500ms"), remove),
        (("--job-timeout", "1500ms"), remove),
        (("--run-timeout", "1s"), overwrite),
    ],
)
def test_timeouts_are_enforced_without_a_store(cli: Cli, flags: tuple[str, ...], lose: Callable[[Path], None]) -> None:
    """D43: and the grace period, against a target that ignores SIGTERM; nor does a copy put in place abandon it."""
    job_id, target = started_target(cli, "trap '' TERM; while :; do sleep 0.02; done", *flags, "--stop-grace", "200ms")
    supervisor = supervisor_of(cli, job_id)

    lose(cli.state)

    eventually(lambda: not is_running(supervisor))
    assert not is_running(target)


def test_no_retry_follows_without_a_store(cli: Cli) -> None:
    """D43: the target ends, and so does its supervisor, although the job would have runs left."""
    script = "echo run >>runs; while [ ! -e go ]; do sleep 0.02; done; exit 1"
    # The pause is longer than a poll: within one, a run that is due at once may still begin.
    job_id, _ = started_target(cli, script, "--retries", "5", "--retry-delay", "300ms")
    supervisor = supervisor_of(cli, job_id)

    remove(cli.state)
    # Whether it has noticed yet or not when the target ends.
    (cli.cwd / "go").touch()

    eventually(lambda: not is_running(supervisor))
    assert (cli.cwd / "runs").read_text() == "run\n"


def test_a_supervisor_without_a_store_can_be_asked_to_end(cli: Cli) -> None:
    """D43: SIGTERM is then the only way to cancel; a target that fills its pipes is drained until then."""
    script = "trap '' TERM; while :; do head -c 100000 /dev/zero; : >alive; sleep 0.02; done"
    job_id, target = started_target(cli, script, "--stop-grace", "200ms")
    supervisor = supervisor_of(cli, job_id)
    remove(cli.state)
    for _ in range(5):
        (cli.cwd / "alive").unlink(missing_ok=True)
        eventually((cli.cwd / "alive").exists, "the target is not drained")
    assert is_running(supervisor)

    os.kill(supervisor, signal.SIGTERM)

    eventually(lambda: not is_running(supervisor))
    assert not is_running(target)
