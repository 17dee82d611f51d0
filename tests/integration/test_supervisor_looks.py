"""How often a supervisor asks the store on its way to a run: every question is time for which somebody waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.clock import Clock
from jobman.model.spec import Dependency
from jobman.model.state import Reason
from jobman.model.transitions import running
from jobman.policy.decide import decide
from jobman.policy.observation import Act, Decision
from jobman.store.commit import commit
from jobman.store.connection import Store, open_store
from jobman.store.jobs import load_snapshot
from jobman.supervisor.observe import Observer
from jobman.testing import FakeClock
from tests.moves import EXAMPLE_JOB_ID, SECOND_NS, derived_id, instant, walk
from tests.stores import commit_all, count_statements, fast_store, plain_spec

OTHER_ID = derived_id("supervisor looks", "job", 1)


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    """A store whose job is claimed, beside one that runs and on which it depends."""
    opened = fast_store(state)
    commit_all(opened, walk("claim", "admit", "reserve", "start", job_id=OTHER_ID))
    commit_all(opened, walk("claim"), plain_spec(dependencies=(Dependency(OTHER_ID, "success"),)))
    yield opened
    opened.close()


def _observer(store: Store, clock: Clock | None = None) -> Observer:
    observer = Observer(store, EXAMPLE_JOB_ID, clock=clock or FakeClock(), claimed_ns=0)
    observer.look(woken=True)
    return observer


def _decide(observer: Observer) -> Decision:
    return decide(observer.observe(None, asked_to_end=False))


def test_nobody_looks_for_slots_before_the_first_attempt(store: Store) -> None:
    """Architecture, Admission attempt: a job without a place in the queue has to write, whatever comes of it."""
    observer = _observer(store)
    observer.spec = plain_spec(pool="unknown")
    acts: list[Act] = []
    assert count_statements(store, lambda: acts.append(_decide(observer).act)) == 0
    assert acts == [Act.ADMIT]
    observer.attempted(observer.snapshot)
    assert _decide(observer).act == Act.FINISH, "an attempt that came to nothing is looked into"


def test_one_that_comes_to_the_queue_anew_is_not_looked_at_either(store: Store) -> None:
    observer = _observer(store)
    observer.advance(running.await_prerequisites(observer.snapshot, instant(5)).after)
    queued = running.enqueue(observer.snapshot, Reason.PREREQUISITES_SATISFIED, instant(6)).after
    assert count_statements(store, lambda: observer.advance(queued)) == 0
    assert count_statements(store, lambda: _decide(observer)) == 0
    assert _decide(observer).act == Act.ADMIT


def test_whoever_is_woken_reads_what_has_changed_and_asks_for_nothing_else(store: Store) -> None:
    """Architecture, Wake-ups: what the count of active jobs is for has time until the next look (Polling)."""
    commit(store, running.await_prerequisites(load_snapshot(store, EXAMPLE_JOB_ID), instant(5)))
    clock = FakeClock()
    observer = _observer(store, clock)
    clock.advance(SECOND_NS)
    assert [count_statements(store, observer.peek) for _ in range(2)] == [2, 1]
    assert count_statements(store, lambda: observer.look(woken=True)) == 1, "nothing has changed"
    other = open_store(store.root)
    other.execute("UPDATE supervisors SET lease_expires_at_ns = lease_expires_at_ns + 1")
    other.close()
    clock.advance(SECOND_NS)
    asked = count_statements(store, lambda: observer.look(woken=True))
    assert asked == 1 + count_statements(store, observer.reload)
    assert [count_statements(store, observer.peek) for _ in range(2)] == [2, 1]
