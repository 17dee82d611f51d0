"""Edges between jobs: read as they are now, recorded once and for ever (M11, M12, H.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.model.spec import Dependency
from jobman.model.state import JobOutcome, JobPhase
from jobman.policy.waiting import DependencyState, evaluate
from jobman.store.connection import Store
from jobman.store.dependencies import dependents_to_wake, load_dependencies, record_observations
from tests.moves import instant, perform, submitted
from tests.stores import commit_all, count_statements, dump, fast_store, fresh_id, plain_spec


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def _job(store: Store, *moves: str, name: str = "", needs: tuple[Dependency, ...] = ()) -> str:
    history = [submitted(fresh_id(), name)]
    for number, move in enumerate(moves, start=1):
        perform(history, move, instant(number))
    commit_all(store, history, plain_spec(name=name, dependencies=needs))
    return history[0].after.job.id


def _edges(store: Store, job_id: str) -> tuple[DependencyState, ...]:
    return tuple(load_dependencies(store, [job_id]).get(job_id, ()))


def test_an_edge_tells_where_the_other_job_is_now(store: Store) -> None:
    first = _job(store, "claim", name="prepare")
    second = _job(store, "claim", "abort")
    job_id = _job(store, needs=(Dependency(first, "success"), Dependency(second, "finish")))
    expected = {
        DependencyState(Dependency(first, "success"), "prepare", JobPhase.STARTING, 2, None),
        DependencyState(Dependency(second, "finish"), "", JobPhase.COMPLETED, 3, JobOutcome.ABORTED),
    }
    assert set(_edges(store, job_id)) == expected
    assert {edge.label() for edge in _edges(store, job_id)} == {"prepare", second[:8]}


def test_edges_of_many_jobs_are_read_at_once(store: Store) -> None:
    """C6; a job without edges has no entry."""
    first = _job(store)
    ids = [_job(store, needs=(Dependency(first, "success"),)) for _ in range(5)]
    assert set(load_dependencies(store, [first, *ids])) == set(ids)
    assert count_statements(store, lambda: load_dependencies(store, ids)) == 1
    assert load_dependencies(store, []) == {}


@pytest.mark.parametrize(("predicate", "satisfied"), [("aborted", True), ("finish", True), ("success", False)])
def test_what_a_completed_dependency_came_to_is_recorded(store: Store, predicate: str, satisfied: bool) -> None:  # noqa: FBT001
    other = _job(store, "claim", "abort")
    job_id = _job(store, "claim", "await_prerequisites", needs=(Dependency(other, predicate),))
    record_observations(store, job_id, _edges(store, job_id), 77)
    (edge,) = _edges(store, job_id)
    assert (edge.observed_outcome, edge.observed_revision) == (JobOutcome.ABORTED, 3)
    assert edge.satisfied_at_ns == (77 if satisfied else None)
    assert evaluate((edge,)).satisfied is satisfied
    assert evaluate((edge,)).to_record == ()


def test_what_was_recorded_is_never_written_again(store: Store) -> None:
    """M12: an edge that has an observation keeps it, whatever comes later."""
    other = _job(store, "claim", "abort")
    job_id = _job(store, "claim", "await_prerequisites", needs=(Dependency(other, "aborted"),))
    (edge,) = _edges(store, job_id)
    record_observations(store, job_id, [edge], 77)
    before = dump(store)
    record_observations(store, job_id, [edge._replace(outcome=JobOutcome.LOST, revision=9)], 99)
    assert dump(store) == before


def test_a_dependency_that_goes_on_is_not_recorded(store: Store) -> None:
    other = _job(store, "claim")
    job_id = _job(store, "claim", "await_prerequisites", needs=(Dependency(other, "finish"),))
    before = dump(store)
    record_observations(store, job_id, _edges(store, job_id), 77)
    assert dump(store) == before


def test_only_waiting_dependents_are_woken_and_at_most_a_batch(store: Store) -> None:
    """Architecture, Writers: 32 at a time, the rest follow by polling."""
    other = _job(store, "claim")
    needs = (Dependency(other, "success"),)
    _job(store, "claim", needs=needs)
    _job(store, "claim", "await_prerequisites", "cancel", needs=needs)
    _job(store, "claim", "await_prerequisites")
    waiting = {_job(store, "claim", "await_prerequisites", needs=needs) for _ in range(3)}
    assert set(dependents_to_wake(store, other)) == waiting
    for _ in range(40):
        _job(store, "claim", "await_prerequisites", needs=needs)
    woken = dependents_to_wake(store, other)
    assert len(woken) == len(set(woken)) == 32
