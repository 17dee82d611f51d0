"""The one-time offer of a job to its supervisor (contract, G)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.errors import TransitionError
from jobman.model.state import Diagnostic, JobOutcome, JobPhase, SupervisorPhase
from jobman.model.transitions._change import Now
from jobman.model.transitions.submission import CLAIM_WINDOW_NS, LEASE_NS, expire_submission, withdraw_submission
from tests.moves import EPOCH_NS, MOVES, PLAIN, SECOND_NS, SITUATIONS, later

SUBMITTED = Now(EPOCH_NS, SECOND_NS)
OFFERED = SITUATIONS["submitting"]


def test_a_claim_makes_the_claimant_owner_and_ends_the_offer() -> None:
    """G.3: claimed, leased for 15 s, credential gone."""
    change = MOVES["claim"].apply(OFFERED, PLAIN, later(SUBMITTED, SECOND_NS))
    assert change is not None
    job, _, supervisor, _ = change.after
    assert supervisor is not None
    assert (job.phase, job.claim, job.supervisor_id) == (JobPhase.STARTING, None, supervisor.id)
    assert (supervisor.phase, supervisor.identity) == (SupervisorPhase.CLAIMED, PLAIN.identity)
    assert supervisor.lease_expires_at_ns - supervisor.claimed_at_ns == LEASE_NS


def test_a_wrong_credential_claims_nothing() -> None:
    """G.7."""
    with pytest.raises(TransitionError):
        MOVES["claim"].apply(OFFERED, PLAIN._replace(credential_hash=b"\x18" * 32), SUBMITTED)


@settings(max_examples=60, deadline=None)
@given(st.integers(-CLAIM_WINDOW_NS, CLAIM_WINDOW_NS) | st.sampled_from((-1, 0, 1)))
def test_before_the_deadline_only_a_claim_and_after_it_only_the_expiry_is_possible(distance_ns: int) -> None:
    """G.3, O.65: at the deadline itself the offer has ended."""
    now = later(SUBMITTED, CLAIM_WINDOW_NS + distance_ns)
    possible, refused = ("claim", "expire") if distance_ns < 0 else ("expire", "claim")
    assert MOVES[possible].apply(OFFERED, PLAIN, now) is not None
    with pytest.raises(TransitionError):
        MOVES[refused].apply(OFFERED, PLAIN, now)


def test_a_clock_set_back_does_not_date_the_claim_before_the_submission() -> None:
    """F.3, D26."""
    change = MOVES["claim"].apply(OFFERED, PLAIN, later(SUBMITTED, SECOND_NS, jump_ns=-3_600 * SECOND_NS))
    assert change is not None
    assert change.after.job.claimed_at_ns == OFFERED.job.submitted_at_ns


def test_an_expired_submission_fails_with_its_diagnostic() -> None:
    """F.2: `submission_failed`, without a supervisor."""
    change = expire_submission(OFFERED, later(SUBMITTED, CLAIM_WINDOW_NS))
    job = change.after.job
    assert (job.outcome, job.supervisor_id, job.claim) == (JobOutcome.SUBMISSION_FAILED, None, None)
    assert [event.diagnostic_code for event in change.events] == [Diagnostic.SUPERVISOR_CLAIM_EXPIRED]
    assert job.waiting_reason == Diagnostic.SUPERVISOR_CLAIM_EXPIRED


def test_a_withdrawn_submission_keeps_the_reason_in_words() -> None:
    """D24: start failures of supervisors carry a reason."""
    problem = withdraw_submission(OFFERED, "the supervisor exited with 1", SUBMITTED).after.job.problem
    assert problem is not None
    assert problem.text == "the supervisor exited with 1"
