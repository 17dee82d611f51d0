"""Cancel, time out, pause, resume (contract, H.5, H.7 and O)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.errors import TransitionError
from jobman.model.state import JobOutcome, JobPhase, Reason, RunPhase, StopReason
from jobman.model.transitions._change import Now
from jobman.model.transitions.stopping import pause, request_cancel, request_job_timeout, request_run_timeout, resume
from tests.moves import HOUR_NS, SECOND_NS, SITUATIONS, instant, later, perform, reload, walk

SOON = instant(20)
STOPPABLE = [
    "starting, claimed",
    "starting, admitted",
    "starting, reserved",
    "waiting",
    "queued",
    "running",
    "backoff",
    "paused, waiting",
    "paused, running",
    "stopping, run timeout",
]


@pytest.mark.parametrize("situation", STOPPABLE)
def test_a_cancellation_is_an_intent_that_stops_job_and_run(situation: str) -> None:
    """H.7, M28: durable before anything is done about it; no next run is left over."""
    change = request_cancel(SITUATIONS[situation], SOON)
    assert change is not None
    job, run, _, _ = change.after
    assert (job.phase, job.intent, job.waiting_reason) == (JobPhase.STOPPING, StopReason.CANCELLATION, "cancellation")
    assert (job.cancellation_requested_at_ns, job.next_run_at_ns) == (SOON.wall_ns, None)
    assert run is None or run.phase == RunPhase.STOPPING


@pytest.mark.parametrize("situation", STOPPABLE)
def test_a_repeated_cancellation_has_nothing_to_do(situation: str) -> None:
    """O.43: idempotent."""
    change = request_cancel(SITUATIONS[situation], SOON)
    assert change is not None
    assert request_cancel(change.after, later(SOON, SECOND_NS)) is None


def test_a_submission_that_nobody_owns_cannot_be_cancelled() -> None:
    """H.7: a conflict, exit status 5."""
    with pytest.raises(TransitionError) as caught:
        request_cancel(SITUATIONS["submitting"], SOON)
    assert caught.value.exit_status == 5


def test_a_cancellation_is_accepted_while_a_run_timeout_stops_the_target() -> None:
    """D10: the job ends as cancelled; the run keeps why it was stopped first."""
    change = request_cancel(SITUATIONS["stopping, run timeout"], SOON)
    assert change is not None
    assert change.after.run == SITUATIONS["stopping, run timeout"].run
    history = [change]
    perform(history, "end", later(SOON, SECOND_NS))
    assert history[-1].after.job.outcome == JobOutcome.CANCELLED


def test_a_cancellation_gives_its_own_reason_when_it_has_one() -> None:
    """A supervisor that is asked to end says so."""
    change = request_cancel(SITUATIONS["running"], SOON, "supervisor was asked to end (SIGTERM)")
    assert change is not None
    assert change.events[0].reason == "supervisor was asked to end (SIGTERM)"


def test_a_job_timeout_is_an_intent_that_a_later_cancellation_does_not_replace() -> None:
    """O.44."""
    change = request_job_timeout(SITUATIONS["running"], SOON)
    job, run, _, _ = change.after
    assert run is not None
    assert (job.intent, run.stop_reason) == (StopReason.TIMEOUT, StopReason.TIMEOUT)
    assert (job.cancellation_requested_at_ns, job.waiting_reason) == (SOON.wall_ns, Reason.JOB_TIMEOUT)
    assert request_cancel(change.after, later(SOON, SECOND_NS)) is None


def test_a_job_timeout_overtakes_a_run_timeout() -> None:
    """O.45: the job timeout bounds everything."""
    change = request_job_timeout(SITUATIONS["stopping, run timeout"], SOON)
    assert change.after.job.intent == StopReason.TIMEOUT


def test_a_run_timeout_is_no_intent_of_the_job() -> None:
    """F.2, O.45."""
    change = request_run_timeout(SITUATIONS["running"], SOON)
    job, run, _, _ = change.after
    assert run is not None
    assert (job.phase, job.intent, job.cancellation_requested_at_ns) == (JobPhase.STOPPING, None, None)
    assert (run.stop_reason, run.stop_requested_at_ns) == (StopReason.TIMEOUT, SOON.wall_ns)
    assert change.events[0].reason == Reason.RUN_TIMEOUT


@pytest.mark.parametrize("situation", ["waiting", "queued", "backoff", "running"])
def test_a_job_resumes_where_it_was_paused(situation: str) -> None:
    """F.2, H.5: absolute times such as the next run are not shifted."""
    before = SITUATIONS[situation]
    paused = pause(before, SOON).after
    resumed = resume(paused, later(SOON, SECOND_NS)).after
    assert paused.job.phase == JobPhase.PAUSED
    assert resumed.job._replace(revision=0) == before.job._replace(revision=0, total_paused_ns=SECOND_NS)
    assert (paused.run and paused.run.phase) == (before.run and RunPhase.PAUSED)
    assert (resumed.run and resumed.run.phase) == (before.run and before.run.phase)


@pytest.mark.parametrize("situation", ["starting, claimed", "starting, admitted", "starting, reserved"])
def test_a_launch_in_progress_cannot_be_paused(situation: str) -> None:
    """O.67: never a false pause."""
    with pytest.raises(TransitionError):
        pause(SITUATIONS[situation], SOON)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, HOUR_NS), st.integers(-HOUR_NS, HOUR_NS)), max_size=4))
def test_paused_time_is_measured_by_the_monotonic_clock(pauses: list[tuple[int, int]]) -> None:
    """D26: setting the wall clock during a pause neither shortens nor lengthens it."""
    snapshot, now = SITUATIONS["running"], SOON
    for elapsed_ns, jump_ns in pauses:
        snapshot = pause(snapshot, now).after
        now = later(now, elapsed_ns, jump_ns)
        snapshot = resume(snapshot, now).after
    assert snapshot.job.total_paused_ns == sum(elapsed_ns for elapsed_ns, _ in pauses)


def test_a_monotonic_clock_of_another_boot_never_makes_a_negative_pause() -> None:
    """D26: a negative duration is never shown."""
    resumed = resume(SITUATIONS["paused, running"], Now(SOON.wall_ns, 5))
    assert resumed.after.job.total_paused_ns == 0


@pytest.mark.parametrize("situation", ["paused, waiting", "paused, running"])
@pytest.mark.parametrize("earlier_ns", [0, 7])
def test_cancelling_a_paused_job_closes_the_pause(situation: str, earlier_ns: int) -> None:
    """D20: and adds it to what was paused before."""
    before = SITUATIONS[situation]
    assert before.job.pause is not None
    before = before._replace(job=before.job._replace(total_paused_ns=earlier_ns))
    change = request_cancel(before, SOON)
    assert change is not None
    assert before.job.pause is not None
    open_ns = SOON.monotonic_ns - before.job.pause.monotonic_ns
    assert open_ns > 0
    assert (change.after.job.pause, change.after.job.total_paused_ns) == (None, earlier_ns + open_ns)


def test_a_cancelled_job_that_had_no_run_ends_without_one() -> None:
    """H.7, O.43: cancel before reservation completes without a run."""
    after = reload(walk("claim", "cancel", "finish_cancelled")[-1].after)
    assert (after.job.outcome, after.job.counters.runs, after.run) == (JobOutcome.CANCELLED, 0, None)


def test_a_cancelled_launch_ends_without_a_process() -> None:
    """H.7: reserved, not started: the run is cancelled and has no exit."""
    run = walk("claim", "admit", "reserve", "cancel", "end")[-1].after.run
    assert run is not None
    assert (run.outcome, run.exit) == ("cancelled", None)
