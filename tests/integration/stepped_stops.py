"""Stories of runs that end while somebody wants something else of them: cancels, pauses, deadlines, leftovers.

Run as a program, as `tests.integration.stepped_supervisor` says.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobman import process
from jobman.errors import TransitionError
from jobman.model.identity import ProcessIdentity
from jobman.model.spec import Classification, Completion, Environment, JobSpec, Limit, StopPolicy, Timeouts
from jobman.model.state import Diagnostic, Problem, Run
from jobman.service import control
from jobman.service.query import summarize
from tests.integration.stepped_gates import ask
from tests.integration.stepped_pauses import LOOP, cancel, refuses, resume, runs, state_of
from tests.integration.stepped_supervisor import DAY, HOUR, SECOND, STUBBORN, TICK, Story, shell
from tests.support import descriptors_free, processes_of

THRICE = Completion(Limit(3), Limit(1), Limit(3))
CHILD = "sleep 60 >/dev/null 2>&1"
EXECUTED = "until grep -q sleep /proc/$!/comm; do :; done"


def at_its_end(state: str, script: str = "exit 3", **members: object) -> Story:
    """A job whose leader has ended by itself, which its supervisor has not seen yet."""
    go = Path(state).parent / "go"
    go.unlink(missing_ok=True)
    story = Story(state, shell(f"until [ -e {go} ]; do sleep 0.01; done; {script}", **members))
    story.until_phase("running")
    go.touch()
    while state_of(leader(story)) != "Z":
        time.sleep(0.001)
    assert story.phase() == "running"
    return story


def leader(story: Story) -> int:
    """The PID of the active run's leader."""
    run = story.snapshot().run
    assert run is not None
    assert run.identity is not None
    return run.identity.pid


def last_run(story: Story) -> Run:
    """See the job through; return its last run."""
    story.until_phase("completed", tick_ns=TICK)
    return runs(story)[-1]


def others(state: str) -> dict[int, str]:
    """What runs here, with the letter of its state."""
    found = {}
    for pid in processes_of(Path(state)):
        try:
            found[pid] = state_of(pid)
        except OSError:
            continue  # it has ended meanwhile
    return found


@contextmanager
def left_alone(state: str) -> Iterator[str]:
    """Give the words that name the one process that is left running, and kill it at the end."""
    ((pid, letter),) = others(state).items()
    assert letter in "RSD", "it must not stay stopped"
    yield f"left running: sleep (pid {pid})"
    os.kill(pid, signal.SIGKILL)


def a_cancel_meets_the_end(state: str) -> None:
    """D22, F.4: an intent that is committed before the completion wins, whatever the exit was; later is too late."""
    story = at_its_end(state, completion=THRICE)
    ask(story, control.cancel)
    run = last_run(story)
    assert (story.snapshot().job.outcome, run.outcome, run.number) == ("cancelled", "cancelled", 1)
    assert run.exit is not None
    assert (run.exit.exit_code, run.exit.platform_reason) == (None, "process_terminated")
    story = at_its_end(state)
    assert last_run(story).outcome == "failure"
    before = story.snapshot()
    ask(story, control.cancel)
    assert story.snapshot() == before


def a_pause_meets_the_end(state: str) -> None:
    """D4: the run completes with its real exit, and then there is nothing to resume."""
    story = at_its_end(state)
    ask(story, control.pause)
    assert story.phase() == "paused"
    run = last_run(story)
    assert (run.outcome, run.exit and run.exit.exit_code) == ("failure", 3)
    assert story.snapshot().job.pause is None
    refuses(story, control.resume)
    refuses(story, control.pause)


def a_paused_target_dies(state: str) -> None:
    """D4: by itself, or just before somebody resumes it; what it leaves behind is ended, or let go."""
    for resumed in (False, True):
        story = Story(state, shell(f"{LOOP} & {LOOP}"))
        paused(story)
        os.kill(leader(story), signal.SIGKILL)
        if resumed:
            ask(story, control.resume)
        run = last_run(story)
        assert (run.outcome, run.exit and run.exit.signal) == ("failure", "killed")
        assert others(state) == {}
        refuses(story, control.resume)
    story = Story(state, shell(f"{CHILD} & exec sleep 61", stop=StopPolicy(leave_descendants=True)))
    story.until_phase("running")
    story.until(lambda: sorted(processes_of(Path(state)).values()) == ["sleep 60", "sleep 61"], "both")
    paused(story)
    os.kill(leader(story), signal.SIGKILL)
    run = last_run(story)
    with left_alone(state) as words:
        assert run.problem == Problem(Diagnostic.DESCENDANTS_LEFT, words)


def paused(story: Story) -> None:
    """Pause a job as soon as its command runs with a child, and see all of it stopped."""
    if story.phase() != "running":
        story.until_phase("running")
        story.until(lambda: len(shells(story)) >= 2, "both shells")
    ask(story, control.pause)
    story.until(lambda: bool((run := story.snapshot().run) and run.signalled_at_ns), "the pause is confirmed")
    assert set(others(story.store.root).values()) <= {"T", "D"}


def shells(story: Story) -> list[int]:
    """The shells of the active run."""
    return [pid for pid, line in processes_of(Path(story.store.root)).items() if "while :" in line]


def a_pause_in_the_drain(state: str) -> None:
    """D33, I.4: what outlives the leader stands still, and so do its drain and its grace; each goes on where it was."""
    stop = StopPolicy(grace_ns=5 * SECOND, drain_ns=10 * SECOND)
    story = Story(state, shell(f"(trap '' TERM; exec sleep 60) & {EXECUTED}", stop=stop))
    story.until(lambda: story.stage() == "exited", "the leader has ended")
    story.pass_time(4 * SECOND)
    held(story)
    story.pass_time(6 * SECOND - 1)
    assert story.asked_ns() is None
    story.pass_time(1)
    assert story.asked_ns() == story.clock.monotonic_ns()
    story.pass_time(3 * SECOND)
    held(story)
    story.pass_time(2 * SECOND - 1)
    assert others(state)
    run = last_run(story)
    assert (run.outcome, run.logs.diagnostic_code) == ("success", "descendant_holds_output")
    assert others(state) == {}
    story = Story(state, shell(f"sh -c '{LOOP}' & exit 0", stop=stop))
    story.until(lambda: story.stage() == "exited", "the leader has ended")
    paused(story)
    cancel(story)
    assert others(state) == {}


def held(story: Story) -> None:
    """Pause for a day, in which nothing is due, and resume."""
    ask(story, control.pause)
    story.until(lambda: bool((run := story.snapshot().run) and run.signalled_at_ns), "the pause is confirmed")
    assert set(others(story.store.root).values()) == {"T"}
    before = story.snapshot()
    story.pass_time(DAY)
    assert story.snapshot() == before
    resume(story, "running")
    assert "T" not in others(story.store.root).values()


def a_job_timeout_and_a_pause(state: str) -> None:
    """H.5, H.7: it does not fire while paused, nor late; a cancel then changes nothing any more."""
    story = Story(state, shell(f"{LOOP} & {STUBBORN}", timeouts=Timeouts(0, HOUR), stop=StopPolicy(grace_ns=HOUR)))
    story.until_phase("running")
    story.pass_time(HOUR // 2)
    paused(story)
    story.pass_time(DAY)
    assert story.phase() == "paused"
    resume(story, "running")
    story.pass_time(HOUR // 2 - 1)
    assert story.phase() == "running"
    story.pass_time(1)
    assert (story.phase(), story.asked_ns()) == ("stopping", story.clock.monotonic_ns())
    before = story.snapshot()
    ask(story, control.cancel)
    assert story.snapshot() == before
    with pytest.raises(TransitionError):
        ask(story, control.pause)
    story.pass_time(HOUR)
    assert last_run(story).outcome == "timed_out"
    assert story.snapshot().job.outcome == "timed_out"
    assert others(state) == {}


def a_stopped_target(state: str) -> None:
    """I.3: who was stopped by somebody else is continued after SIGTERM, and so can end in its own way."""
    story = Story(state, shell("trap 'exit 3' TERM; kill -STOP $$; exit 4", stop=StopPolicy(grace_ns=HOUR)))
    story.until_phase("running")
    story.until(lambda: state_of(leader(story)) == "T", "it stops itself")
    cancel(story)
    assert [run.exit and run.exit.platform_reason for run in runs(story)] == ["process_terminated"]


def without_force(state: str) -> None:
    """D3, D33: a stubborn target is waited for, however long, and a second cancel changes nothing; its rest is left."""
    go, patient = Path(state).parent / "go", StopPolicy(5 * SECOND, force_after_grace=False)
    script = f"trap '' TERM; {CHILD} & until [ -e {go} ]; do sleep 0.01; done; exit 4"
    story = Story(state, shell(script, stop=patient, completion=THRICE))
    story.until_phase("running")
    story.until(lambda: "sleep 60" in processes_of(Path(state)).values(), "its child")
    ask(story, control.cancel)
    story.until(lambda: story.asked_ns() is not None, "SIGTERM")
    for _ in range(3):
        story.pass_time(DAY)
        ask(story, control.cancel)
    assert (story.phase(), story.alive()) == ("stopping", True)
    go.touch()
    run = last_run(story)
    with left_alone(state) as words:
        assert run.problem == Problem(Diagnostic.DESCENDANTS_LEFT, words)
    assert run.outcome == "cancelled"
    assert summarize(story.store, story.job_id, story.clock).reason == "cancelled"


def left(state: str) -> None:
    """D33: ``--leave-descendants`` leaves what outlives the command, and names it; a cancel ends it all the same."""
    leaving = StopPolicy(drain_ns=0, leave_descendants=True)
    story = Story(state, shell(f"head -c 150000 /dev/zero; sleep 60 & {EXECUTED}; echo end", stop=leaving))
    run = last_run(story)
    with left_alone(state) as words:
        assert run.problem is not None
        assert run.problem.text.startswith(words)
    assert (run.outcome, run.problem.code) == ("success", "descendants_left")
    assert (run.logs.diagnostic_code, run.logs.stdout_bytes) == ("descendant_holds_output", 150_004)
    story = Story(state, shell(f"{CHILD} & {EXECUTED}", stop=leaving))
    run = last_run(story)
    with left_alone(state) as words:
        assert run.problem == Problem(Diagnostic.DESCENDANTS_LEFT, words)
    assert run.logs.health == "healthy", "no stream was cut"
    story = Story(state, shell(f"{CHILD} & {LOOP}", stop=leaving))
    story.until_phase("running")
    cancel(story)
    assert (others(state), runs(story)[-1].problem) == ({}, None)


def unkillable(state: str) -> None:
    """D33: what survives SIGKILL keeps the run in ``stopping``, with its name; it is gone from the record with it."""
    story = Story(state, shell("trap '' TERM; exec sleep 60", stop=StopPolicy(5 * SECOND)))
    story.until_phase("running")
    story.until(lambda: list(processes_of(Path(state)).values()) == ["sleep 60"], "the target")
    kill_all, process.kill_all = process.kill_all, lambda list_members: len(list(list_members()))
    ask(story, control.cancel)
    story.until(lambda: story.asked_ns() is not None, "SIGTERM")
    story.pass_time(5 * SECOND)
    story.pass_time(SECOND - 1)
    run = story.snapshot().run
    assert run is not None
    assert run.problem is None
    words = f"sleep (pid {leader(story)}) survives SIGKILL"
    story.pass_time(HOUR)
    run = story.snapshot().run
    assert run is not None
    assert run.problem == Problem(Diagnostic.TARGET_CANNOT_BE_KILLED, words)
    assert summarize(story.store, story.job_id, story.clock).reason == f"stopping: cancelled; {words}"
    process.kill_all = kill_all
    assert (last_run(story).outcome, runs(story)[-1].problem) == ("cancelled", None)


def launches(state: str) -> None:
    """D24, M24: each way not to start has its words and its code; the command is looked for anew before each run."""
    room = Path(state).parent
    for name, content, mode in (("data", "", 0o644), ("astray", "#!/no/where\n", 0o755), ("plain", "echo\n", 0o755)):
        (room / name).write_text(content)
        (room / name).chmod(mode)
    shutil.copy("/bin/true", room / "busy")
    for spec, code, words in (
        (JobSpec("no-such", (), "/"), "executable_not_found", "'no-such' was not found in PATH"),
        (JobSpec("./data", (), str(room)), "permission_denied", "'./data' may not be executed: permission denied"),
        (JobSpec("./state", (), str(room)), "permission_denied", "'./state' may not be executed: it is a directory"),
        (JobSpec("./astray", (), str(room)), "executable_not_found", "the interpreter that its first line names"),
        (JobSpec("./plain", (), str(room)), "target_start_failed", "'./plain' could not be started: exec format error"),
        (JobSpec("./busy", (), str(room)), "target_start_failed", "text file busy"),
        (JobSpec("true", ("a" * 140_000,), "/"), "target_start_failed", "arguments and the environment are too long"),
        (JobSpec("true", (), f"{room}/gone"), "working_directory_missing", f"directory '{room}/gone' does not exist"),
        (JobSpec("true", (), f"{room}/data"), "working_directory_missing", "cannot be entered: not a directory"),
    ):
        with open(room / "busy", "ab"):
            run = last_run(Story(state, spec))
        assert (run.outcome, run.exit, run.logs.health) == ("start_failed", None, "healthy")
        assert run.problem is not None
        assert run.problem.code == code
        assert words in run.problem.text
    fork, os.fork = os.fork, exhausted
    story = Story(state, JobSpec("true", (), "/"))
    run = last_run(story)
    os.fork = fork
    assert run.problem is not None
    assert run.problem.code == "target_start_failed"
    assert "no more processes can be started" in run.problem.text
    before = process.adopted(os.getpid())
    inspect, process.inspect = process.inspect, unreadable
    story = Story(state, JobSpec("true", (), "/"))
    run = last_run(story)
    process.inspect = inspect
    assert (run.outcome, run.problem and run.problem.code) == ("start_failed", "target_start_failed")
    assert process.adopted(os.getpid()) <= before
    path = Environment((("PATH", str(room)),))
    again = JobSpec("later", (), "/", path, completion=THRICE, classification=Classification(retry_start_failure=True))
    story = Story(state, again)
    story.until(lambda: story.snapshot().job.counters.runs == 1, "the first run")
    shutil.copy("/bin/true", room / "later")
    run = last_run(story)
    assert (run.outcome, run.resolved_executable) == ("success", f"{room}/later")
    assert runs(story)[0].outcome == "start_failed"


def exhausted() -> int:
    """Fork when there is no process left."""
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


def unreadable(pid: int) -> ProcessIdentity | None:
    """Look at a process when the system has no room for another open file."""
    raise OSError(errno.ENFILE, os.strerror(errno.ENFILE), f"/proc/{pid}/stat")


def short_of_descriptors(state: str) -> None:
    """A machine that is full for a moment delays a stop, and loses neither it nor the job."""
    go = Path(state).parent / "go"
    story = Story(state, shell(f"trap 'echo asked >{go}; exit 3' TERM; {LOOP}", stop=StopPolicy(grace_ns=HOUR)))
    story.until_phase("running")
    ask(story, control.cancel)
    with descriptors_free(0):
        story.until_phase("stopping")
        for _ in range(3):
            story.step()
        assert (story.asked_ns(), go.exists()) == (None, False)
    run = last_run(story)
    assert go.exists()
    assert run.outcome == "cancelled"
    # The whole limit may be in use for good, such as by the socket for live input.
    with descriptors_free(0):
        assert not story.step()


STORIES: dict[str, Callable[[str], None]] = {
    "a_cancel_meets_the_end": a_cancel_meets_the_end,
    "a_pause_meets_the_end": a_pause_meets_the_end,
    "a_paused_target_dies": a_paused_target_dies,
    "a_pause_in_the_drain": a_pause_in_the_drain,
    "a_job_timeout_and_a_pause": a_job_timeout_and_a_pause,
    "a_stopped_target": a_stopped_target,
    "without_force": without_force,
    "left": left,
    "unkillable": unkillable,
    "launches": launches,
    "short_of_descriptors": short_of_descriptors,
}

if __name__ == "__main__":
    os.environ["JOBMAN_STATE_DIR"] = sys.argv[2]
    STORIES[sys.argv[1]](sys.argv[2])
