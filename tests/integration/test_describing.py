"""What is told of a job is of one moment, whoever commits meanwhile (contract, A.5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from jobman.model.state import JobPhase, Run, RunPhase
from jobman.service import query
from jobman.store.commit import commit
from jobman.store.connection import Store
from jobman.store.jobs import load_runs
from jobman.testing import FakeClock
from tests.moves import EXAMPLE_JOB_ID, walk
from tests.stores import commit_all, fast_store
from tests.support import SUCCEED


def test_a_job_that_ends_while_it_is_described_is_shown_as_it_was(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its phase and its runs belong together: a running job never has only runs that are over."""
    store, elsewhere = fast_store(state), fast_store(state)
    *before, end = walk(*SUCCEED)
    commit_all(store, before)

    def load_after_the_end(store: Store, job_ids: Sequence[str]) -> dict[str, list[Run]]:
        commit(elsewhere, end)
        monkeypatch.undo()
        return load_runs(store, job_ids)

    monkeypatch.setattr(query, "load_runs", load_after_the_end)
    try:
        detail = query.describe(store, EXAMPLE_JOB_ID, FakeClock())
        assert (detail.summary.job.phase, detail.runs[-1].phase) == (JobPhase.RUNNING, RunPhase.RUNNING)
        assert query.summarize(store, EXAMPLE_JOB_ID, FakeClock()).job.phase == JobPhase.COMPLETED
    finally:
        elsewhere.close()
        store.close()
