"""What is told of a job is of one moment, whoever commits meanwhile (contract, A.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from jobman.model.state import JobPhase, Run, RunPhase
from jobman.service import query
from jobman.store.commit import commit
from jobman.store.connection import Store
from jobman.store.jobs import JobFilter, load_runs
from jobman.testing import FakeClock
from tests.moves import EXAMPLE_JOB_ID, walk
from tests.stores import commit_all, fast_store
from tests.support import SUCCEED


@pytest.fixture
def store(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose one job runs, and ends when its runs are asked for."""
    opened, elsewhere = fast_store(state), fast_store(state)
    *before, end = walk(*SUCCEED)
    commit_all(opened, before)

    def load_after_the_end(store: Store, job_ids: Sequence[str]) -> dict[str, list[Run]]:
        commit(elsewhere, end)
        monkeypatch.setattr(query, "load_runs", load_runs)
        return load_runs(store, job_ids)

    monkeypatch.setattr(query, "load_runs", load_after_the_end)
    yield opened
    assert query.summarize(opened, EXAMPLE_JOB_ID, FakeClock()).job.phase == JobPhase.COMPLETED
    elsewhere.close()
    opened.close()


def test_a_job_that_ends_while_it_is_described_is_shown_as_it_was(store: Store) -> None:
    """Its phase and its runs belong together: a running job never has only runs that are over."""
    detail = query.describe(store, EXAMPLE_JOB_ID, FakeClock())
    assert (detail.summary.job.phase, detail.runs[-1].phase) == (JobPhase.RUNNING, RunPhase.RUNNING)


def test_a_job_that_ends_while_it_is_listed_is_shown_as_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of every job of a page."""
    monkeypatch.setattr(query, "reconcile_active", lambda *_: None)  # its supervisor is none
    (listed,) = query.enumerate_jobs(store, JobFilter(), FakeClock(), limit=None, with_runs=True)
    assert (listed.summary.job.phase, listed.runs[-1].phase) == (JobPhase.RUNNING, RunPhase.RUNNING)
