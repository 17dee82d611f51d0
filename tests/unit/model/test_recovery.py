"""What becomes of jobs whose supervisor is provably gone (contract, H.6)."""

from __future__ import annotations

import pytest

from jobman.errors import InvariantError
from jobman.model.events import EntityKind
from jobman.model.state import Counters, Diagnostic, JobOutcome, RunLogs, RunOutcome, SupervisorPhase
from jobman.model.transitions.recovery import Loss, lose
from tests.moves import PLAIN, SITUATIONS, instant

SOON = instant(20)
LOSS = Loss("its supervisor was killed", PLAIN.logs, release_slots=True)
OWNED = [name for name in SITUATIONS if name not in ("submitting", "completed")]


@pytest.mark.parametrize("situation", OWNED)
def test_a_lost_job_is_completed_with_its_run_and_its_owner(situation: str) -> None:
    """H.6: diagnostic and reason on the job, supervisor released, any pause closed, an intent kept."""
    before = SITUATIONS[situation]
    job, run, supervisor, _ = lose(before, LOSS, SOON).after
    assert (job.outcome, job.waiting_reason) == (JobOutcome.LOST, Diagnostic.SUPERVISOR_LEASE_EXPIRED)
    assert job.problem == (Diagnostic.SUPERVISOR_LEASE_EXPIRED, LOSS.detail)
    assert (job.pause, job.active_run_id, job.next_run_at_ns, job.intent) == (None, None, None, before.job.intent)
    assert supervisor is not None
    assert (supervisor.phase, supervisor.released_at_ns) == (SupervisorPhase.RELEASED, SOON.wall_ns)
    assert (run and run.outcome) == (before.run and RunOutcome.LOST)


def test_a_lost_run_counts_as_a_failure_and_keeps_what_its_log_was_worth() -> None:
    """H.6, F.4."""
    job, run, _, _ = lose(SITUATIONS["running"], LOSS, SOON).after
    assert job.counters == Counters(1, 0, 1)
    assert run is not None
    assert (run.logs, run.exit, run.problem) == (PLAIN.logs, None, job.problem)


def test_a_job_lost_between_runs_counts_no_further_run() -> None:
    assert lose(SITUATIONS["backoff"], LOSS, SOON).after.job.counters == SITUATIONS["backoff"].job.counters


@pytest.mark.parametrize("situation", ["starting, admitted", "starting, reserved", "running", "paused, running"])
def test_slots_are_released_in_the_same_transaction_when_nothing_survives(situation: str) -> None:
    """D42, O.28."""
    admission = lose(SITUATIONS[situation], LOSS, SOON).after.admission
    assert admission is not None
    assert admission.released_at_ns == SOON.wall_ns


def test_slots_stay_held_while_a_process_of_the_run_survives() -> None:
    """D42: the job is lost at once, its capacity is not given away."""
    after = lose(SITUATIONS["running"], LOSS._replace(release_slots=False), SOON).after
    assert after.job.outcome == JobOutcome.LOST
    assert after.admission == SITUATIONS["running"].admission


def test_both_events_of_a_lost_run_carry_the_diagnostic() -> None:
    """F.2."""
    events = lose(SITUATIONS["running"], LOSS, SOON).events
    codes = [event.diagnostic_code for event in events if event.kind != EntityKind.SUPERVISOR]
    assert codes == [Diagnostic.SUPERVISOR_LEASE_EXPIRED] * 2


def test_the_log_must_have_been_scanned() -> None:
    """D1, F.3: a completed run has a final log integrity."""
    with pytest.raises(InvariantError, match="log integrity"):
        lose(SITUATIONS["running"], LOSS._replace(logs=RunLogs()), SOON)
