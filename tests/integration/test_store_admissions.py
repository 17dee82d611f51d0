"""Limits, the queue and the holders: what each query looks at, and what an attempt costs (H.4; M17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobman.policy.admission import Request, Ruling
from jobman.policy.limits import StatedLimits
from jobman.store import migrations
from jobman.store.admissions import (
    Demand,
    enqueue,
    forget_fitting,
    held_jobs,
    is_first,
    load_limits,
    load_request,
    load_view,
    next_ahead,
    note_fitting,
    requests_to_wake,
    rule,
    settle,
    slots_held_by_lost_jobs,
    with_indexes,
)
from jobman.store.connection import Store, open_store
from jobman.store.limits import apply_all, apply_stated
from tests.moves import EXAMPLE_JOB_ID, derived_id, walk
from tests.stores import commit_all, count_statements, executed, fast_store, full_scans, steps

QUEUED = [derived_id("store admissions", "job", number) for number in range(6)]
LAST = QUEUED[-1]
_GIVEN = walk("claim", "admit", "reserve", "start")[-1].after.admission


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    """A pool of two, one slot of it held, six requests that wait for two."""
    opened = fast_store(state)
    apply_stated(opened, StatedLimits(states_store_wide=True, store_wide=9, pools={"gpu": 2}))
    commit_all(opened, walk("claim", "admit", "reserve", "start"))
    opened.execute("UPDATE admissions SET pool = 'gpu', slot_scope = 'gpu', slot_indexes = '1'")
    for place, job_id in enumerate(QUEUED):
        commit_all(opened, walk("claim", "enqueue_full", job_id=job_id))
        enqueue(opened, Request(job_id, "gpu", 2, place))
    yield opened
    opened.close()


def _given(store: Store) -> object:
    assert _GIVEN is not None
    return with_indexes(store, _GIVEN._replace(pool="gpu"), load_limits(store))


QUERIES: dict[str, Callable[[Store], object]] = {
    "load_limits": load_limits,
    "load_view": lambda store: load_view(store, load_limits(store)),
    "load_request": lambda store: load_request(store, LAST),
    "rule": lambda store: rule(store, Demand(LAST, "gpu", 1, 7), 7),
    "rule, for a newcomer": lambda store: rule(store, Demand("new", "gpu", 1, 7), 7),
    "enqueue": lambda store: enqueue(store, Request(LAST, "gpu", 1, 7)),
    "note_fitting": lambda store: note_fitting(store, LAST, 7),
    "forget_fitting": lambda store: forget_fitting(store, LAST),
    "settle": lambda store: settle(store, Request(LAST, "gpu", 1, 7), QUEUED[0], now_ns=7),
    "with_indexes": _given,
    "held_jobs": held_jobs,
    "slots_held_by_lost_jobs": slots_held_by_lost_jobs,
    "is_first": lambda store: is_first(store, LAST),
    "next_ahead": lambda store: next_ahead(store, LAST),
    "requests_to_wake": lambda store: requests_to_wake(store, 2),
    "apply_stated": lambda store: apply_stated(store, StatedLimits(True, 8, {"gpu": 3})),
    "apply_all": lambda store: apply_all(store, StatedLimits(True, 8, {"gpu": 3})),
}


@pytest.mark.parametrize("ask", QUERIES.values(), ids=QUERIES)
def test_no_query_looks_at_every_job_or_at_every_admission_that_ever_was(
    ask: Callable[[Store], object], store: Store
) -> None:
    """With a million finished jobs an attempt costs what it costs with none."""
    with executed() as statements:
        ask(store)
    assert full_scans(store, statements) == set()


def test_an_attempt_that_finds_no_room_does_not_read_the_queue(store: Store) -> None:
    """Architecture, Admission attempt: queued jobs cost little while they wait."""
    verdicts = []
    few = count_statements(store, lambda: verdicts.append(rule(store, Demand(LAST, "gpu", 2, 7), 7)[0]))
    assert verdicts[0].ruling == Ruling.WAIT
    more = count_statements(store, lambda: rule(store, Demand("new", "gpu", 1, 7), 7))
    assert few < more
    assert few == 3


def test_a_job_that_nothing_limits_asks_for_nothing_but_the_limits(store: Store) -> None:
    apply_all(store, StatedLimits(False, None, {"gpu": 2, "disk": None}))
    rulings: list[Ruling] = []
    demands = [Demand("new", pool, 2, 7) for pool in (None, "disk", "tape")]
    asked = count_statements(store, lambda: rulings.extend(rule(store, demand, 7).verdict.ruling for demand in demands))
    assert asked == len(demands)
    assert rulings == [Ruling.ADMIT, Ruling.ADMIT, Ruling.IMPOSSIBLE]


def test_an_admission_finds_those_seen_to_fit_without_reading_the_queue(store: Store) -> None:
    """Architecture, Admission attempt: with a thousand requests it costs what it costs with a few."""
    with executed() as statements:
        settle(store, Request(LAST, "gpu", 1, 7), None, now_ns=7)
    assert not [step for step in steps(store, statements) if step.startswith("SCAN")]


def test_the_one_ahead_is_of_any_pool_and_queued(store: Store) -> None:
    assert next_ahead(store, QUEUED[0]) is None
    assert next_ahead(store, LAST) == QUEUED[-2]
    store.execute("UPDATE jobs SET phase = 'waiting' WHERE id = ?", (QUEUED[-2],))
    store.execute("UPDATE admission_requests SET pool = 'disk' WHERE job_id = ?", (QUEUED[-3],))
    assert next_ahead(store, LAST) == QUEUED[-3]
    assert next_ahead(store, "not queued") is None


def test_the_first_is_the_oldest_of_its_pool_that_is_queued(store: Store) -> None:
    """D41: it keeps the shortest poll."""
    assert [job_id for job_id in QUEUED if is_first(store, job_id)] == QUEUED[:1]
    store.execute("UPDATE jobs SET phase = 'waiting' WHERE id = ?", (QUEUED[0],))
    store.execute("UPDATE admission_requests SET pool = NULL WHERE job_id = ?", (LAST,))
    assert [job_id for job_id in QUEUED if is_first(store, job_id)] == [QUEUED[0], QUEUED[1], LAST]
    assert is_first(store, "not queued")


def test_holders_are_told_oldest_first_and_lost_ones_apart(store: Store) -> None:
    """D42."""
    assert held_jobs(store) == [EXAMPLE_JOB_ID]
    assert slots_held_by_lost_jobs(store) == []
    lost = walk("claim", "admit", "reserve", "start", "lose", job_id=derived_id("store admissions", "job", 9))
    commit_all(store, lost)
    assert len(held_jobs(store)) == 1
    store.execute("UPDATE admissions SET released_at_ns = NULL, pool = 'gpu' WHERE job_id = ?", (lost[0].after.job.id,))
    assert slots_held_by_lost_jobs(store) == [(lost[0].after.job.id, "gpu")]


def test_a_release_wakes_whoever_fits_and_one_to_spare(store: Store) -> None:
    assert requests_to_wake(store, 1) == []
    store.execute("UPDATE admission_requests SET slots = 1")
    assert requests_to_wake(store, 1) == QUEUED[:2]
    apply_all(store, StatedLimits(False, None, {"gpu": None}))
    assert requests_to_wake(store, 1) == [], "without a limit nobody waits"


def test_one_that_reads_the_version_just_before_another_upgrades_finds_nothing_to_do(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M9: what it read is of before the other's commit."""
    open_store(str(state)).close()
    monkeypatch.setattr(migrations, "_header", lambda _store: (migrations.APPLICATION_ID, 1))
    open_store(str(state)).close()
    assert not (state / "backups").exists()
