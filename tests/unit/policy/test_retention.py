"""Which logs are to go (J.7, K.4): the limits in their order, the oldest first; D11."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.policy.retention import PrunableRun, Retention, beyond_retention, completed_before

NOW = 1_000
KEEP_ALL = Retention(log_age_ns=None)


def run(name: str, at_ns: int, size: int = 10, **facts: Any) -> PrunableRun:
    """Return a run named after its job and number: ``a1``; it ended at ``at_ns``, its job last of all."""
    made = PrunableRun(name, name[0], int(name[1:]), at_ns, size, job_completed_at_ns=900)
    return made._replace(**facts)


A1, A2, A3 = run("a1", 100), run("a2", 300), run("a3", 500)
B1, C1 = run("b1", 200), run("c1", 400)
ALL = (C1, A3, A1, B1, A2)


@pytest.mark.parametrize(
    ("retention", "gone"),
    [
        pytest.param(KEEP_ALL, "", id="unlimited"),
        pytest.param(KEEP_ALL._replace(log_age_ns=700), "a1 b1 a2", id="age, exactly reached counts"),
        pytest.param(KEEP_ALL._replace(log_age_ns=0), "a1 b1 a2 c1 a3", id="age of zero takes all"),
        pytest.param(KEEP_ALL._replace(max_runs_per_job=1), "a1 a2", id="runs of each job"),
        pytest.param(KEEP_ALL._replace(max_runs_per_job=0), "a1 b1 a2 c1 a3", id="no run of any job"),
        pytest.param(KEEP_ALL._replace(max_log_bytes_per_job=20), "a1", id="bytes of each job, exactly reached stays"),
        pytest.param(KEEP_ALL._replace(max_log_bytes_per_job=9), "a1 b1 a2 c1 a3", id="a run larger than the limit"),
        pytest.param(KEEP_ALL._replace(max_jobs=2), "b1", id="jobs, that whose newest run is the oldest first"),
        pytest.param(KEEP_ALL._replace(max_jobs=1), "b1 c1", id="jobs, whole"),
        pytest.param(KEEP_ALL._replace(max_total_log_bytes=25), "a1 b1 a2", id="bytes in all"),
        pytest.param(KEEP_ALL._replace(metadata_age_ns=100), "a1 b1 a2 c1 a3", id="metadata takes its runs along"),
        pytest.param(KEEP_ALL._replace(metadata_age_ns=101), "", id="metadata by the end of the job"),
        pytest.param(
            KEEP_ALL._replace(max_runs_per_job=1, max_total_log_bytes=30), "a1 a2", id="a step sees what is left"
        ),
        pytest.param(KEEP_ALL._replace(log_age_ns=600, max_jobs=1), "a1 b1 a2 c1", id="age before jobs"),
    ],
)
def test_what_a_limit_does_not_keep(retention: Retention, gone: str) -> None:
    assert " ".join(found.id for found in beyond_retention(ALL, retention, NOW)) == gone


@pytest.mark.parametrize(
    ("own_age_ns", "stated", "goes"),
    [
        pytest.param(None, False, True, id="configured: the global age holds"),
        pytest.param(10_000, False, True, id="configured, longer"),
        pytest.param(50, False, True, id="configured, shorter"),
        pytest.param(10_000, True, False, id="stated, longer: it replaces the global age"),
        pytest.param(None, True, False, id="stated: unlimited"),
        pytest.param(50, True, True, id="stated, shorter"),
    ],
)
def test_a_retention_of_its_own_replaces_the_global_age(*, own_age_ns: int | None, stated: bool, goes: bool) -> None:
    """D11."""
    old = run("a1", 100, own_age_ns=own_age_ns, own_stated=stated)
    assert bool(beyond_retention([old], Retention(log_age_ns=500), NOW)) == goes


def test_a_shorter_age_that_was_configured_at_submission_still_counts() -> None:
    assert beyond_retention([run("a1", 100, own_age_ns=50)], KEEP_ALL, NOW)
    assert not beyond_retention([run("a1", 960, own_age_ns=50)], KEEP_ALL, NOW)


def test_ties_go_by_job_and_number() -> None:
    tied = [run(name, 100) for name in ("b1", "a10", "a2")]
    assert [found.id for found in completed_before(tied, 0, NOW)] == ["a2", "a10", "b1"]


def test_a_clock_that_was_set_back_makes_nothing_older() -> None:
    later = run("a1", NOW + 500)
    assert completed_before([later], 1, NOW) == []
    assert completed_before([later], 0, NOW) == [later]


LIMITS = st.none() | st.integers(0, 60)
RETENTIONS = st.builds(Retention, *[LIMITS] * len(Retention._fields))


@st.composite
def many_runs(draw: st.DrawFn) -> list[PrunableRun]:
    """Runs of a few jobs in any order, often at the same time."""
    runs = []
    for job in draw(st.sets(st.sampled_from("abcd"))):
        ended = draw(st.lists(st.integers(950, NOW), min_size=1, max_size=4))
        ages, stated = draw(LIMITS), draw(st.booleans())
        for number, at_ns in enumerate(sorted(ended), start=1):
            size = draw(st.integers(0, 30))
            runs.append(PrunableRun(f"{job}{number}", job, number, at_ns, size, max(ended), ages, stated))
    return draw(st.permutations(runs))


@given(many_runs(), RETENTIONS)
def test_what_is_left_keeps_every_limit_and_a_second_look_finds_nothing(
    runs: list[PrunableRun], retention: Retention
) -> None:
    gone = beyond_retention(runs, retention, NOW)
    left = [one for one in runs if one not in gone]
    jobs = {one.job_id for one in left}
    sizes = {job: [one.log_bytes for one in left if one.job_id == job] for job in jobs}
    assert sorted(gone, key=lambda one: (one.completed_at_ns, one.job_id, one.number)) == gone
    assert len(jobs) <= _limit(retention.max_jobs)
    assert sum(map(sum, sizes.values())) <= _limit(retention.max_total_log_bytes)
    assert all(len(own) <= _limit(retention.max_runs_per_job) for own in sizes.values())
    assert all(sum(own) <= _limit(retention.max_log_bytes_per_job) for own in sizes.values())
    assert beyond_retention(left, retention, NOW) == []


@given(many_runs(), RETENTIONS)
def test_nothing_goes_that_no_limit_asks_for(runs: list[PrunableRun], retention: Retention) -> None:
    """Without ages the oldest of each job go, and one less would be over the limit of bytes."""
    retention = retention._replace(log_age_ns=None, metadata_age_ns=None)
    runs = [one._replace(own_age_ns=None) for one in runs]
    gone = beyond_retention(runs, retention, NOW)
    left = [one for one in runs if one not in gone]
    for one in gone:
        assert all(other.number > one.number for other in left if other.job_id == one.job_id)
    if gone:
        fuller = retention._replace(max_jobs=None, max_runs_per_job=None, max_log_bytes_per_job=None)
        only_total = beyond_retention(runs, fuller, NOW)
        kept = sum(one.log_bytes for one in runs if one not in only_total)
        assert not only_total or kept + only_total[-1].log_bytes > _limit(retention.max_total_log_bytes)


def _limit(limit: int | None) -> int | float:
    return float("inf") if limit is None else limit
