"""Following the runs of a job: what is asked of the store at every look (D45; C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobman.logs.layout import View, create_run_directory
from jobman.model.state import Run
from jobman.service.output import JobFollower
from jobman.store import jobs, rows
from jobman.testing import FakeClock
from tests.moves import EXAMPLE_JOB_ID, PLAIN, walk
from tests.stores import commit_all, fast_store

ONCE = ("admit", "reserve", "start", "end")


def test_every_look_reads_one_run_however_many_the_job_has(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job may have thousands of runs, and the one that is followed is looked at twenty times a second."""
    store, read, begun = fast_store(state), list[int](), list[int]()
    commit_all(store, walk("claim", *ONCE * 5, "cancel", "finish_cancelled", choice=PLAIN._replace(retry_ns=0)))
    for number in range(1, 6):
        create_run_directory(store.root, EXAMPLE_JOB_ID, number)

    def counted(row: tuple[Any, ...]) -> Run:
        read.append(row[2])
        return rows.run_from(row)

    monkeypatch.setattr(jobs, "run_from", counted)
    try:
        follower = JobFollower(store, EXAMPLE_JOB_ID, FakeClock())
        assert follower.follow_runs(((View.STDOUT, lambda _block: None),), begun.append) == []
    finally:
        store.close()
    assert begun == [1, 2, 3, 4, 5]
    assert read == [number for number in begun for _ in ("found", "seen to be over")]
