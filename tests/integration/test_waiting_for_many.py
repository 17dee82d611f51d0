"""Waiting for many jobs at once: what each change of the store costs (C6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.errors import JobNotFoundError, WaitTimeoutError
from jobman.model.state import Job
from jobman.service import control
from jobman.store.connection import Store
from jobman.store.jobs import load_job
from jobman.testing import FakeClock
from tests.moves import derived_id, walk
from tests.stores import commit_all, fast_store
from tests.support import SUCCEED


def test_only_jobs_that_have_ended_are_read(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """M6: hundreds end one after the other, and each end must not cost a look at all the others."""
    store, read = fast_store(state), list[str]()
    *active, ended = (derived_id("many", "job", number) for number in range(5))
    for job_id in (*active, ended):
        commit_all(store, walk(*(SUCCEED if job_id == ended else ("claim", "await_prerequisites")), job_id=job_id))

    def counted(store: Store, job_id: str) -> Job:
        read.append(job_id)
        return load_job(store, job_id)

    monkeypatch.setattr(control, "load_job", counted)
    monkeypatch.setattr("jobman.recovery.reconcile", lambda *_: False)
    waiting = control.wait_for(store, [*active, ended], FakeClock(), timeout_ns=0)
    try:
        assert next(waiting).id == ended
        with pytest.raises(WaitTimeoutError):
            next(waiting)
        assert read == [ended]
        with pytest.raises(JobNotFoundError):
            next(control.wait_for(store, [derived_id("many", "job", 9)], FakeClock()))
    finally:
        store.close()
