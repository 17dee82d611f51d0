"""Lists: filters before the limit, the newest first, page by page, in a fixed number of queries (A.4, D38, C6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.clock import SystemClock
from jobman.model.state import Job, JobOutcome, JobPhase
from jobman.service.query import enumerate_jobs
from jobman.store import jobs as jobs_module
from jobman.store.connection import Store
from jobman.store.jobs import JobFilter, list_jobs
from tests.moves import EPOCH_NS, SECOND_NS, instant, perform, submitted
from tests.stores import commit_all, count_statements, executed, fast_store, fresh_id, plain_spec, statements_of, steps

_PATHS = (
    (),
    ("withdraw",),
    ("claim", "await_prerequisites"),
    ("claim", "enqueue_full"),
    ("claim", "admit", "reserve", "start"),
    ("claim", "admit", "reserve", "start", "cancel", "end"),
    ("claim", "admit", "reserve", "start", "end"),
    ("claim", "abort"),
)
_TEXTS = ("", "a", "ab", "B", "a*", "é", "[a]")


class Listed(NamedTuple):
    """A job and the labels it was given."""

    job: Job
    groups: tuple[str, ...]
    tags: tuple[str, ...]


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def _add(store: Store, *, second: int, name: str = "", path: tuple[str, ...] = (), **labels: Any) -> Listed:
    history = [submitted(fresh_id(), name, instant(second))]
    for number, move in enumerate(path, start=1):
        perform(history, move, instant(second + number))
    spec = plain_spec(name=name, **labels)
    commit_all(store, history, spec)
    return Listed(history[-1].after.job, spec.groups, spec.tags)


def _ids(pages: Iterator[list[Job]]) -> list[str]:
    return [job.id for page in pages for job in page]


# --- Against a naive reference --------------------------------------------------------------------------------------

_LABELS = st.sets(st.sampled_from(("x", "y", "é")), max_size=2).map(lambda some: tuple(sorted(some)))
_JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "second": st.integers(0, 3),
            "name": st.sampled_from(_TEXTS),
            "path": st.sampled_from(_PATHS),
            "groups": _LABELS,
            "tags": _LABELS,
        }
    ),
    max_size=8,
)
_SECONDS = st.none() | st.integers(-1, 4).map(lambda second: EPOCH_NS + second * SECOND_NS)
_FILTERS = st.builds(
    JobFilter,
    phases=st.just(()) | st.sets(st.sampled_from(list(JobPhase))).map(tuple),
    outcomes=st.just(()) | st.sets(st.sampled_from(list(JobOutcome))).map(tuple),
    active=st.none() | st.booleans(),
    name=st.none() | st.sampled_from(_TEXTS),
    name_glob=st.none() | st.sampled_from(("*", "a*", "?", "[ab]*", "a[*]", "")),
    group=st.none() | st.sampled_from(("x", "é", "none")),
    tags=_LABELS,
    submitted_after_ns=_SECONDS,
    submitted_before_ns=_SECONDS,
)


def _matches(one: Listed, wanted: JobFilter) -> bool:
    job = one.job
    return all(
        (
            not wanted.phases or job.phase in wanted.phases,
            not wanted.outcomes or job.outcome in wanted.outcomes,
            wanted.active is None or wanted.active == (job.phase != "completed"),
            wanted.name is None or job.name == wanted.name,
            wanted.name_glob is None or fnmatchcase(job.name, wanted.name_glob),
            wanted.group is None or wanted.group in one.groups,
            set(wanted.tags) <= set(one.tags),
            wanted.submitted_after_ns is None or job.submitted_at_ns > wanted.submitted_after_ns,
            wanted.submitted_before_ns is None or job.submitted_at_ns < wanted.submitted_before_ns,
        )
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(made=_JOBS, wanted=_FILTERS, page=st.tuples(st.none() | st.integers(1, 5), st.integers(1, 4)))
def test_a_list_is_what_a_naive_reading_of_the_contract_gives(
    store: Store, made: list[dict[str, Any]], wanted: JobFilter, page: tuple[int | None, int]
) -> None:
    limit, size = page
    with store.write():
        store.execute("DELETE FROM jobs")
    jobs = [_add(store, **one) for one in made]
    matching = [one.job for one in jobs if _matches(one, wanted)]
    newest_first = sorted(matching, key=lambda job: (job.submitted_at_ns, job.id), reverse=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "_PAGE", size)
        assert [job for some in list_jobs(store, wanted, limit) for job in some] == newest_first[:limit]
        for number, last in enumerate(newest_first, start=1):
            after = wanted._replace(before=last)
            assert _ids(list_jobs(store, after, limit)) == [job.id for job in newest_first[number:][:limit]]


# --- Particular cases -----------------------------------------------------------------------------------------------


def test_jobs_of_one_instant_are_ordered_by_id(store: Store) -> None:
    """O.21: the keyset goes on in the middle of a tie."""
    made = sorted((_add(store, second=0).job.id for _ in range(7)), reverse=True)
    assert _ids(list_jobs(store, JobFilter(), None)) == made
    assert _ids(list_jobs(store, JobFilter(), 3)) == made[:3]
    third = next(job for page in list_jobs(store, JobFilter(), None) for job in page if job.id == made[2])
    assert _ids(list_jobs(store, JobFilter(before=third), 3)) == made[3:6]


def test_filters_come_before_the_limit(store: Store) -> None:
    """O.21."""
    wanted = _add(store, second=0, name="wanted").job.id
    for second in range(1, 6):
        _add(store, second=second)
    assert _ids(list_jobs(store, JobFilter(name="wanted"), 1)) == [wanted]


def test_jobs_that_arrive_between_two_pages_shift_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "_PAGE", 2)
    made = [_add(store, second=second).job.id for second in range(4)][::-1]
    pages = list_jobs(store, JobFilter(), None)
    first = next(pages)
    _add(store, second=9)
    assert [job.id for job in first] + _ids(pages) == made


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("train*", {"train", "train-1", "train*"}),
        ("train", {"train"}),
        ("TRAIN*", set[str]()),
        ("train?*", {"train-1", "train*"}),
        ("train[*]", {"train*"}),
        ("*-[0-9]", {"train-1"}),
        ("%", set[str]()),
        ("[", set[str]()),
    ],
)
def test_patterns_are_those_of_a_shell_and_case_sensitive(store: Store, pattern: str, names: set[str]) -> None:
    for name in ("train", "train-1", "train*", "other", ""):
        _add(store, second=0, name=name)
    found = {job.name for page in list_jobs(store, JobFilter(name_glob=pattern), None) for job in page}
    assert found == names


def test_an_empty_store_gives_no_page(store: Store) -> None:
    assert list(list_jobs(store, JobFilter(), None)) == []


# --- Cost -----------------------------------------------------------------------------------------------------------


def _statements_of_a_list(store: Store, limit: int | None, *, with_runs: bool) -> Callable[[], object]:
    return lambda: list(enumerate_jobs(store, JobFilter(active=False), SystemClock(), limit=limit, with_runs=with_runs))


@pytest.mark.parametrize("with_runs", [False, True])
def test_a_page_takes_a_fixed_number_of_queries(store: Store, with_runs: bool) -> None:  # noqa: FBT001  # parametrized
    """C6: the original asked once per job."""
    path = ("claim", "admit", "reserve", "start", "cancel", "end")
    for second in range(3):
        _add(store, second=second, path=path)
    few = statements_of(store, _statements_of_a_list(store, None, with_runs=with_runs))
    for second in range(40):
        _add(store, second=second, path=path)
    assert count_statements(store, _statements_of_a_list(store, None, with_runs=with_runs)) == len(few)
    # What brackets those of a page into one moment looks at nothing.
    assert len([statement for statement in few if statement not in {"BEGIN", "ROLLBACK"}]) <= 5


def test_each_further_page_costs_the_same(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for second in range(9):
        _add(store, second=second, path=("claim", "abort"))
    monkeypatch.setattr(jobs_module, "_PAGE", 3)
    three = count_statements(store, lambda: list(list_jobs(store, JobFilter(), 9)))
    assert three == 3


def test_the_index_serves_the_order(store: Store) -> None:
    """A list of the newest hundred must not sort a million."""
    with executed() as statements:
        list(list_jobs(store, JobFilter(), 100))
    plan = " ".join(steps(store, statements))
    assert "jobs_by_submission" in plan
    assert "TEMP B-TREE" not in plan
