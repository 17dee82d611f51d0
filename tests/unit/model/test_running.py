"""Queue, slots, runs and their ends (contract, F.2 and F.4)."""

from __future__ import annotations

import itertools

import pytest

from jobman.errors import InvariantError, TransitionError
from jobman.model.events import EventType
from jobman.model.state import (
    Counters,
    Diagnostic,
    JobOutcome,
    JobPhase,
    Problem,
    Reason,
    RunExit,
    RunLogs,
    RunOutcome,
    RunPhase,
    Snapshot,
)
from jobman.model.transitions.running import (
    Finish,
    Retry,
    RunEnd,
    await_prerequisites,
    end_run,
    enqueue,
    finish_without_run,
)
from tests.moves import PLAIN, SECOND_NS, SITUATIONS, instant, reload, walk

SOON = instant(20)
SUCCESS = RunEnd(RunOutcome.SUCCESS, RunExit(SOON.wall_ns, exit_code=0), PLAIN.logs)
FAILURE = RunEnd(RunOutcome.FAILURE, RunExit(SOON.wall_ns, exit_code=3), PLAIN.logs)
SUCCEEDED = Finish(JobOutcome.SUCCESS, Reason.SUCCESS_TARGET)


def test_prerequisites_gate_only_the_first_run() -> None:
    """H.2."""
    fresh = SITUATIONS["starting, claimed"]
    ran_once = fresh._replace(job=fresh.job._replace(counters=Counters(1, 0, 1)))
    with pytest.raises(TransitionError):
        await_prerequisites(ran_once, SOON)


def test_satisfied_prerequisites_are_dated_when_the_job_is_queued() -> None:
    """H.2."""
    job = enqueue(SITUATIONS["waiting"], Reason.PREREQUISITES_SATISFIED, SOON).after.job
    assert (job.phase, job.prerequisites_satisfied_at_ns) == (JobPhase.QUEUED, SOON.wall_ns)
    assert job.waiting_reason == Reason.PREREQUISITES_SATISFIED


def test_a_job_without_prerequisites_has_no_such_date() -> None:
    assert SITUATIONS["queued"].job.prerequisites_satisfied_at_ns is None


def test_an_elapsed_backoff_forgets_its_next_run() -> None:
    """F.2."""
    assert SITUATIONS["backoff"].job.next_run_at_ns is not None
    assert enqueue(SITUATIONS["backoff"], Reason.BACKOFF_ELAPSED, SOON).after.job.next_run_at_ns is None


def test_slots_that_were_free_at_once_change_nothing_but_the_admission() -> None:
    """F.2: no event, hence no revision."""
    change = walk("claim", "admit")[-1]
    assert change.before is not None
    assert change.after.job == change.before.job
    assert change.after.admission is not None


def test_a_reservation_binds_the_slots_to_the_run() -> None:
    """H.4, M24."""
    job, run, _, admission = SITUATIONS["starting, reserved"]
    assert run is not None
    assert admission is not None
    assert (job.active_run_id, admission.run_id) == (run.id, run.id)
    assert (job.phase, run.phase, run.number) == (JobPhase.STARTING, RunPhase.STARTING, 1)


def test_a_start_publishes_identity_executable_and_time() -> None:
    """F.3: what a running run must have."""
    job, run, _, _ = SITUATIONS["running"]
    assert run is not None
    assert (run.identity, run.resolved_executable) == (PLAIN.identity, "/bin/true")
    assert run.started_at_ns == job.started_at_ns is not None


def test_the_start_of_a_job_is_that_of_its_latest_run() -> None:
    """A.6."""
    once = ("admit", "reserve", "start")
    history = walk("claim", *once, "end", *once, choice=PLAIN._replace(retry_ns=0))
    job, run, _, _ = history[-1].after
    assert run is not None
    assert (run.number, job.started_at_ns) == (2, run.started_at_ns)


@pytest.mark.parametrize(
    ("next_run_at_ns", "phase"),
    [
        pytest.param(None, JobPhase.QUEUED, id="at once: queued"),
        pytest.param(SOON.wall_ns + SECOND_NS, JobPhase.BACKOFF, id="later: backoff"),
    ],
)
def test_another_run_frees_the_slots_and_says_when_it_is_due(next_run_at_ns: int | None, phase: JobPhase) -> None:
    """F.2, H.3, H.4: slots are free during backoff."""
    change = end_run(SITUATIONS["running"], FAILURE, Retry(next_run_at_ns), SOON)
    job, run, supervisor, admission = change.after
    assert (job.phase, job.next_run_at_ns, job.active_run_id) == (phase, next_run_at_ns, None)
    event = change.events[0]
    assert (event.type, event.reason) == (EventType.RETRY_SCHEDULED, Reason.NEXT_RUN)
    assert event.next_run_at_ns == next_run_at_ns
    assert admission is not None
    assert admission.released_at_ns == SOON.wall_ns
    assert run is not None
    assert run.outcome == RunOutcome.FAILURE
    assert supervisor == SITUATIONS["running"].supervisor


def test_a_failed_start_needs_no_exit_and_names_its_problem_in_both_events() -> None:
    """F.2, F.4, D24."""
    problem = Problem(Diagnostic.EXECUTABLE_NOT_FOUND, "no such file: prog")
    end = RunEnd(RunOutcome.START_FAILED, None, PLAIN.logs, problem=problem)
    change = end_run(SITUATIONS["starting, reserved"], end, Retry(None), SOON)
    assert [event.diagnostic_code for event in change.events] == [Diagnostic.EXECUTABLE_NOT_FOUND] * 2
    assert change.after.run is not None
    assert change.after.run.problem == problem


@pytest.mark.parametrize("outcome", [JobOutcome.SUCCESS, JobOutcome.FAILURE, JobOutcome.ABORTED])
def test_a_run_that_ends_its_job_completes_it_whatever_the_outcome(outcome: JobOutcome) -> None:
    """F.2: `job_completed` after a run, a retry deadline (aborted) included."""
    change = end_run(SITUATIONS["running"], SUCCESS, Finish(outcome, Reason.RUN_LIMIT), SOON)
    assert change.events[0].type == EventType.JOB_COMPLETED
    assert (change.after.job.outcome, change.after.job.completed_at_ns) == (outcome, SOON.wall_ns)
    assert change.after.job.waiting_reason == Reason.RUN_LIMIT


def test_a_paused_target_that_dies_completes_its_run_with_the_real_exit() -> None:
    """D4: and the pause ends there (D20)."""
    change = end_run(SITUATIONS["paused, running"], FAILURE, SUCCEEDED, SOON)
    job, run, _, _ = change.after
    assert run is not None
    assert (run.phase, run.exit) == (RunPhase.COMPLETED, FAILURE.exit)
    paused_at = instant(5)
    assert (job.pause, job.total_paused_ns) == (None, SOON.monotonic_ns - paused_at.monotonic_ns)


@pytest.mark.parametrize("situation", ["stopping, cancelled", "stopping, job timeout"])
@pytest.mark.parametrize("following", [SUCCEEDED, Retry(None)], ids=["success", "another run"])
def test_a_committed_intent_cannot_be_overruled_by_the_exit(situation: str, following: Retry | Finish) -> None:
    """D22: a stop intent committed before the completion wins."""
    with pytest.raises(InvariantError):
        end_run(SITUATIONS[situation], SUCCESS, following, SOON)


def test_a_run_timeout_may_be_followed_by_another_run() -> None:
    """O.45: it is no timeout of the job."""
    timed_out = RunEnd(RunOutcome.TIMED_OUT, RunExit(SOON.wall_ns, signal="terminated"), PLAIN.logs)
    assert end_run(SITUATIONS["stopping, run timeout"], timed_out, Retry(None), SOON).after.job.phase == JobPhase.QUEUED


@pytest.mark.parametrize(
    ("wanted_ns", "stored_ns"),
    [
        pytest.param(instant(1).wall_ns, instant(4).wall_ns, id="before the start: at the start"),
        pytest.param(instant(10).wall_ns, instant(10).wall_ns, id="during the run: as observed"),
        pytest.param(instant(99).wall_ns, SOON.wall_ns, id="after now: now"),
    ],
)
def test_an_exit_lies_between_the_start_and_the_end_of_its_run(wanted_ns: int, stored_ns: int) -> None:
    """F.3, D26: the wall clock may be set between the observation and the commit."""
    end = SUCCESS._replace(exit=RunExit(wanted_ns, exit_code=0))
    run = end_run(SITUATIONS["running"], end, SUCCEEDED, SOON).after.run
    assert run is not None
    assert run.exit == RunExit(stored_ns, exit_code=0)


def test_a_run_may_not_end_with_unfinished_logs() -> None:
    """F.3."""
    with pytest.raises(InvariantError, match="log integrity"):
        end_run(SITUATIONS["running"], SUCCESS._replace(logs=RunLogs()), SUCCEEDED, SOON)


IDLE = ("waiting", "queued", "starting, claimed", "starting, admitted", "backoff", "stopping, no run")
ALLOWED = dict.fromkeys(IDLE, (JobOutcome.TIMED_OUT, JobOutcome.ABORTED)) | {
    "stopping, no run": (JobOutcome.CANCELLED,)
}


@pytest.mark.parametrize(("situation", "outcome"), list(itertools.product(IDLE, JobOutcome)))
def test_a_job_without_a_run_ends_only_as_the_table_says(situation: str, outcome: JobOutcome) -> None:
    """F.2: `cancelled` out of stopping, `timed_out` and `aborted` out of the rest."""
    finish = Finish(outcome, Reason.JOB_TIMEOUT)
    if outcome in ALLOWED[situation]:
        change = finish_without_run(SITUATIONS[situation], finish, SOON)
        assert change.after.job.outcome == outcome
        assert not holds_slots(reload(change.after))
    else:
        with pytest.raises(TransitionError):
            finish_without_run(SITUATIONS[situation], finish, SOON)


def holds_slots(snapshot: Snapshot) -> bool:
    return snapshot.admission is not None
