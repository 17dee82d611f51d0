"""Stories of pauses, repetitions and their deadlines, on a clock that is told when to go on.

Run as a program, as `tests.integration.stepped_supervisor` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobman.errors import TransitionError
from jobman.model.spec import Backoff, Classification, Completion, Delay, JobSpec, Limit, StopPolicy, Timeouts
from jobman.model.state import Run
from jobman.policy.limits import StatedLimits
from jobman.service import control
from jobman.store.jobs import load_runs
from jobman.store.limits import apply_stated
from jobman.testing import FakeClock
from tests.integration.stepped_gates import ask, delay, ended, waiting
from tests.integration.stepped_supervisor import DAY, HOUR, SECOND, STUBBORN, TICK, Story, shell
from tests.support import processes_of

LOOP = "while :; do sleep 0.02; done"
MANY = Limit(99)


def runs(story: Story) -> list[Run]:
    """The runs of a job, the first one first."""
    return list(load_runs(story.store, [story.job_id]).get(story.job_id, ()))


def state_of(pid: int) -> str:
    """The letter of a process's state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def again(script: str = "exit 1", **members: Any) -> JobSpec:
    """A job that is repeated without end."""
    members.setdefault("completion", Completion(Limit(None), MANY, Limit(None)))
    return shell(script, **members)


def cancel(story: Story) -> None:
    """Cancel and see it through."""
    ask(story, control.cancel)
    story.until_phase("completed", tick_ns=TICK)
    assert story.snapshot().job.outcome == "cancelled"


def run_timeout(state: str) -> None:
    """H.5: paused time is deducted from the run timeout, to the nanosecond, however often; nothing fires meanwhile."""
    story = Story(state, shell(LOOP, timeouts=Timeouts(HOUR, 0)))
    story.until_phase("running")
    for _ in range(3):
        story.pass_time(HOUR // 4)
        pause(story)
        story.pass_time(DAY)
        assert story.phase() == "paused"
        resume(story, "running")
    assert story.snapshot().job.total_paused_ns == 3 * DAY
    story.pass_time(HOUR // 4 - 1)
    assert story.phase() == "running"
    story.pass_time(1)
    story.until_phase("completed", tick_ns=TICK)
    assert [run.outcome for run in runs(story)] == ["timed_out"]


def pause(story: Story) -> None:
    """Pause, and see the tree stopped and that recorded."""
    ask(story, control.pause)
    assert story.phase() == "paused"
    if story.snapshot().run is None:
        story.settle()
        return
    story.until(lambda: bool((run := story.snapshot().run) and run.signalled_at_ns), "the pause is confirmed")
    run = story.snapshot().run
    assert run is not None
    assert run.identity is not None
    # A parent between vfork and exec waits in the kernel for its stopped child.
    assert run.phase == "paused"
    assert state_of(run.identity.pid) in ("T", "D")


def resume(story: Story, phase: str) -> None:
    """Resume, and see the job in ``phase``."""
    ask(story, control.resume)
    assert story.phase() == phase
    if phase == "running":
        story.until(lambda: bool((run := story.snapshot().run) and run.signalled_at_ns), "the resumption is confirmed")


def job_timeout(state: str) -> None:
    """H.5: the same for the job's timeout, over waiting, running and backoff; a run's pause is not another run's."""
    budgets = Timeouts(HOUR, 4 * HOUR)
    spec = again(timeouts=budgets, failure_delay=Delay(base_ns=10 * HOUR))
    story = Story(state, spec._replace(waits=waiting(delay(HOUR)).waits))
    story.until_phase("waiting")
    pause(story)
    story.pass_time(HOUR // 2)
    resume(story, "waiting")
    story.pass_time(HOUR // 2)
    story.until_phase("backoff")
    assert story.snapshot().job.total_paused_ns == HOUR // 2
    pause(story)
    story.pass_time(DAY // 4)
    assert story.phase() == "paused"
    resume(story, "backoff")
    # An hour has passed since the claim, half of it paused.
    story.pass_time(3 * HOUR + HOUR // 2 - 1)
    assert story.phase() == "backoff"
    story.pass_time(1)
    assert ended(story) == ("timed_out", "job_timeout")
    assert story.snapshot().job.total_paused_ns == HOUR // 2 + DAY // 4


def absolute_times(state: str) -> None:
    """H.5: delays and the time of the next run are not shifted by a pause; they pass, and nothing begins before it."""
    story = Story(state, waiting(delay(HOUR)))
    story.until_phase("waiting")
    pause(story)
    story.pass_time(2 * HOUR)
    assert story.phase() == "paused"
    resume(story, "waiting")
    assert ended(story) == ("success", "")
    story = Story(state, again(failure_delay=Delay(base_ns=HOUR)))
    story.until_phase("backoff")
    due_ns = story.snapshot().job.next_run_at_ns
    pause(story)
    story.pass_time(HOUR // 2)
    resume(story, "backoff")
    assert story.snapshot().job.next_run_at_ns == due_ns
    story.pass_time(HOUR // 2 - 1)
    assert (story.phase(), len(runs(story))) == ("backoff", 1)
    story.pass_time(1)
    story.until(lambda: story.snapshot().job.counters.runs == 2, "the second run")
    story.until_phase("backoff")
    cancel(story)
    abort_ns = FakeClock().wall_ns() + HOUR
    story = Story(state, waiting(delay(DAY, abort_at_ns=abort_ns)))
    story.until_phase("waiting")
    pause(story)
    story.pass_time(2 * HOUR)
    assert story.phase() == "paused", "a deadline does not fire while paused"
    resume(story, "waiting")
    assert ended(story) == ("aborted", "wait_abort_deadline")


def phases(state: str) -> None:
    """A.9: what cannot be paused or resumed says so and stays as it was; what can goes back to where it was."""
    story = Story(state, shell(STUBBORN, stop=StopPolicy(grace_ns=HOUR)))
    assert story.phase() == "starting"
    refuses(story, control.pause)
    refuses(story, control.resume)
    story.until(lambda: story.stage() == "gated", "the child at its gate")
    refuses(story, control.pause)
    story.until_phase("running")
    refuses(story, control.resume)
    pause(story)
    revision = story.snapshot().job.revision
    ask(story, control.pause)
    assert story.snapshot().job.revision == revision, "paused already"
    resume(story, "running")
    story.pass_time(1)
    ask(story, control.cancel)
    refuses(story, control.pause)
    refuses(story, control.resume)
    story.until(lambda: story.asked_ns() is not None, "SIGTERM")
    story.pass_time(HOUR)
    story.until_phase("completed", tick_ns=TICK)
    refuses(story, control.pause)
    refuses(story, control.resume)
    apply_stated(story.store, StatedLimits(states_store_wide=True, store_wide=1, pools={}))
    holder = Story(state, shell(LOOP))
    holder.until_phase("running")
    queued = Story(state, shell("exit 0"))
    queued.until_phase("queued")
    pause(queued)
    cancel(holder)
    queued.pass_time(HOUR)
    assert queued.phase() == "paused", "free slots do not start a paused job"
    resume(queued, "queued")
    assert ended(queued) == ("success", "")


def refuses(story: Story, verb: Any) -> None:
    """See that ``verb`` is a conflict that changes nothing."""
    before = story.snapshot()
    with pytest.raises(TransitionError):
        ask(story, verb)
    assert story.snapshot() == before


def cancellation(state: str) -> None:
    """D20: a cancellation wins over a pause, closes it, and wakes what sleeps so that it can end in its own way."""
    room = Path(state).parent
    story = Story(state, shell(f"trap 'echo last >{room}/words; exit 3' TERM; {LOOP}"))
    story.until_phase("running")
    story.pass_time(SECOND)
    pause(story)
    story.pass_time(HOUR)
    cancel(story)
    assert (room / "words").read_text() == "last\n"
    job, (run,) = story.snapshot().job, runs(story)
    assert (run.outcome, job.pause, run.phase) == ("cancelled", None, "completed")
    assert job.total_paused_ns == HOUR
    story = Story(state, again(failure_delay=Delay(base_ns=HOUR)))
    story.until_phase("backoff")
    pause(story)
    story.pass_time(HOUR)
    cancel(story)
    assert (story.snapshot().job.total_paused_ns, len(runs(story))) == (HOUR, 1)


def unseen(state: str) -> None:
    """A pause that is undone before the supervisor has seen it needs no signal, and is confirmed all the same."""
    story = Story(state, shell(LOOP))
    story.until_phase("running")
    for verbs in ((control.pause, control.resume), (control.pause,), (control.resume, control.pause)):
        for verb in verbs:
            ask(story, verb)
            story.clock.advance(1)
        run = story.snapshot().run
        assert run is not None
        assert run.signalled_at_ns is None
        story.until(lambda: bool((run := story.snapshot().run) and run.signalled_at_ns), "confirmed")
        assert run.identity is not None
        # A shell that has just forked waits in the kernel, stopped or not.
        assert state_of(run.identity.pid) in ("TD" if verbs[-1] is control.pause else "RSD")
    cancel(story)


def busy(state: str) -> None:
    """A tree that forks all the time is stopped as a whole, and each time it is asked to end it can say good-bye."""
    room = Path(state).parent
    for number in range(8):
        words = room / f"words{number}"
        script = f"trap 'echo last >>{words}; exit 3' TERM; while :; do /bin/true; done"
        story = Story(state, shell(f"({script}) & {script}", stop=StopPolicy(grace_ns=HOUR)))
        story.until_phase("running")
        story.settle()
        pause(story)
        before = [(pid, state_of(pid)) for pid in processes_of(Path(state))]
        assert {letter for _, letter in before} <= {"T", "D"}
        story.settle()
        assert [(pid, state_of(pid)) for pid in processes_of(Path(state))] == before
        cancel(story)
        assert words.read_text() == "last\nlast\n"


def last_member(state: str) -> None:
    """The end of what a leader leaves behind is noticed by itself, however lately the tree was looked at."""
    ready = Path(state).parent / "ready"
    slow = f"trap 'sleep 0.2; exit' TERM; : >{ready}; while :; do sleep 0.02; done"
    script = f'setsid sh -c "{slow}" >/dev/null 2>&1 & until [ -e {ready} ]; do sleep 0.01; done'
    story = Story(state, shell(script, stop=StopPolicy(grace_ns=HOUR)))
    assert ended(story) == ("success", "")


def backoffs(state: str) -> None:
    """H.3: the time of the next run is the completion and the delay, exactly; the cap holds."""
    hours = {
        Backoff.CONSTANT: [1, 1, 1, 1],
        Backoff.LINEAR: [1, 2, 3, 4],
        Backoff.EXPONENTIAL: [1, 2, 4, 5],
    }
    for backoff, expected in hours.items():
        pause_of = Delay(base_ns=HOUR, backoff=backoff, max_delay_ns=5 * HOUR)
        story = Story(state, again(failure_delay=pause_of, success_delay=Delay(base_ns=DAY)))
        for number, hour in enumerate(expected, 1):
            story.until(lambda: story.snapshot().job.counters.runs == number, "a run")  # noqa: B023  # of this round
            story.until_phase("backoff")
            job, last = story.snapshot().job, runs(story)[-1]
            assert last.completed_at_ns is not None
            assert job.next_run_at_ns == last.completed_at_ns + hour * HOUR
            assert story.snapshot().admission is None, "no slot is held during backoff"
            story.pass_time(hour * HOUR - 1)
            assert len(runs(story)) == number
            story.pass_time(1)
        story.until_phase("backoff")
        cancel(story)


def jitter(state: str) -> None:
    """H.3: half of the jitter each way, never before the end of the last run, never beyond the cap."""
    pause_of = Delay(base_ns=SECOND, jitter_ns=SECOND, max_delay_ns=SECOND + SECOND // 4)
    story = Story(state, again(failure_delay=pause_of))
    drawn = []
    for number in range(1, 16):
        story.until(lambda: story.snapshot().job.counters.runs == number, "a run")  # noqa: B023  # of this round
        story.until_phase("backoff")
        at_ns, completed_ns = story.snapshot().job.next_run_at_ns, runs(story)[-1].completed_at_ns
        assert at_ns is not None
        assert completed_ns is not None
        drawn.append(at_ns - completed_ns)
        story.clock.advance(drawn[-1])
    assert all(SECOND // 2 <= ns <= SECOND + SECOND // 4 for ns in drawn)
    assert len(set(drawn)) > 2
    story.until_phase("backoff")
    cancel(story)


def retry_deadlines(state: str) -> None:
    """H.3: a run that would begin exactly at the deadline is scheduled, one that would begin later is not."""
    for late_ns, outcome in ((0, "backoff"), (1, "completed")):
        completion = Completion(MANY, MANY, MANY, retry_abort_at_ns=FakeClock().wall_ns() + HOUR - late_ns)
        story = Story(state, again(completion=completion, failure_delay=Delay(base_ns=HOUR)))
        story.until(lambda: story.snapshot().job.counters.runs == 1, "the run")  # noqa: B023  # of this round
        assert story.phase() == outcome
        if outcome == "backoff":
            cancel(story)
    assert (story.snapshot().job.outcome, story.snapshot().job.waiting_reason) == ("aborted", "retry_deadline")


def precedence(state: str) -> None:
    """H.3, O.44, O.45: an intent to cancel beats every limit; a job's timeout beats a retryable run timeout."""
    rules = Classification(retry_timeout=True)
    story = Story(state, again(LOOP, timeouts=Timeouts(HOUR, HOUR), classification=rules))
    story.until_phase("running")
    story.clock.advance(HOUR)
    story.until_phase("completed", tick_ns=TICK)
    assert [run.outcome for run in runs(story)] == ["timed_out"]
    assert story.snapshot().job.outcome == "timed_out"
    story = Story(state, again(LOOP, timeouts=Timeouts(HOUR, 3 * HOUR), classification=rules))
    story.until_phase("running")
    story.clock.advance(HOUR)
    story.until(lambda: story.snapshot().job.counters.runs == 1, "the run timeout", tick_ns=TICK)
    story.until_phase("running")
    assert [run.outcome for run in runs(story)] == ["timed_out", None]
    story.clock.advance(HOUR)
    story.until(lambda: story.phase() == "stopping", "the next run timeout")
    cancel(story)
    assert [run.outcome for run in runs(story)] == ["timed_out", "cancelled"], "D10"


def numbers(state: str) -> None:
    """Runs follow one another without a gap in their numbers, and one after the other."""
    story = Story(state, again(completion=Completion(Limit(4), MANY, Limit(None))))
    story.until_phase("completed")
    found = runs(story)
    assert [run.number for run in found] == [1, 2, 3, 4]
    assert all(later.reserved_at_ns >= (earlier.completed_at_ns or 0) for earlier, later in pairwise(found))
    assert (story.snapshot().job.outcome, story.snapshot().job.waiting_reason) == ("failure", "run_limit")


STORIES: dict[str, Callable[[str], None]] = {
    "run_timeout": run_timeout,
    "job_timeout": job_timeout,
    "absolute_times": absolute_times,
    "phases": phases,
    "cancellation": cancellation,
    "unseen": unseen,
    "busy": busy,
    "last_member": last_member,
    "backoffs": backoffs,
    "jitter": jitter,
    "retry_deadlines": retry_deadlines,
    "precedence": precedence,
    "numbers": numbers,
}

if __name__ == "__main__":
    os.environ["JOBMAN_STATE_DIR"] = sys.argv[2]
    STORIES[sys.argv[1]](sys.argv[2])
