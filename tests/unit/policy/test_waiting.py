"""Whether the prerequisites of a first run are met (H.2, E.4; M12, M13)."""

from __future__ import annotations

import pytest

from jobman.model.spec import Dependency, Predicate
from jobman.model.state import JobOutcome, JobPhase
from jobman.policy.waiting import DependencyState, evaluate
from tests.moves import derived_id

OUTCOMES = tuple(JobOutcome)


def _edge(
    predicate: str = "success", outcome: JobOutcome | None = None, seen: JobOutcome | None = None, number: int = 1
) -> DependencyState:
    other_id = derived_id("other", "job", number)
    phase = JobPhase.RUNNING if outcome is None else JobPhase.COMPLETED
    return DependencyState(Dependency(other_id, predicate), "", phase, 4, outcome, seen, 4 if seen else None)


ACCEPTED = {
    Predicate.SUCCESS: {"success"},
    Predicate.FINISH: {outcome.value for outcome in OUTCOMES},
    Predicate.FAILED: {"failure"},
    Predicate.TIMED_OUT: {"timed_out"},
    Predicate.CANCELLED: {"cancelled"},
    Predicate.ABORTED: {"aborted"},
    Predicate.LOST: {"lost"},
    Predicate.SUBMISSION_FAILED: {"submission_failed"},
    "outcomes:failure,lost": {"failure", "lost"},
    "outcomes:success,timed_out": {"success", "timed_out"},
}


def test_every_predicate_is_here() -> None:
    assert set(Predicate) <= set(ACCEPTED)


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("predicate", ACCEPTED)
def test_a_predicate_accepts_what_e_4_says(predicate: str, outcome: JobOutcome) -> None:
    accepted = outcome.value in ACCEPTED[predicate]
    gate = evaluate((_edge(predicate, outcome),))
    assert gate.satisfied is accepted
    assert (gate.impossible is not None) is not accepted


def test_without_edges_all_are_satisfied() -> None:
    assert evaluate(()) == ((), None, True)


def test_all_edges_must_be_satisfied() -> None:
    done, going_on = _edge(outcome=JobOutcome.SUCCESS), _edge(number=2)
    assert evaluate((done, going_on)) == ((done,), None, False)


def test_one_impossible_edge_is_enough_even_while_others_go_on() -> None:
    going_on, failed = _edge(), _edge(outcome=JobOutcome.FAILURE, number=2)
    assert evaluate((going_on, failed)).impossible == failed


def test_the_first_impossible_edge_is_named() -> None:
    first, second = _edge(outcome=JobOutcome.LOST), _edge(outcome=JobOutcome.LOST, number=2)
    assert evaluate((first, second)).impossible == first


def test_what_was_recorded_is_not_recorded_again_and_precedes_what_is_read_now() -> None:
    """M12: a job whose outcome could be rewritten would still be seen as it was."""
    edge = _edge(outcome=JobOutcome.LOST, seen=JobOutcome.SUCCESS)
    assert evaluate((edge,)) == ((), None, True)


def test_a_name_is_what_a_person_calls_the_other_job_else_the_start_of_its_id() -> None:
    edge = _edge()
    assert edge.label() == edge.edge.job_id[:8]
    assert edge._replace(name="prepare").label() == "prepare"
