"""Completed jobs with logs on disk, for tests of cleaning: put there without running anything."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jobman.logs.layout import create_run_directory, remove_marker
from jobman.service.maintain import Scope
from jobman.store.connection import Store
from jobman.testing import FakeClock
from tests.moves import EPOCH_NS, HOUR_NS, derived_id, walk
from tests.stores import commit_all, plain_spec
from tests.support import SUCCEED

FILES = {"stdout.log": b"hello\n", "stderr.log": b"", "chunks.idx": b"x" * 52, "stdout.000002.log": b"more"}
BYTES = sum(map(len, FILES.values()))
FIRST, SECOND = (derived_id("clean", "job", number) for number in (1, 2))
EVERYTHING = Scope()
CLOCK = FakeClock(wall_ns=EPOCH_NS + HOUR_NS)


def add_job(store: Store, job_id: str, *moves: str, **spec: Any) -> None:
    """Store a job that went through ``moves``, by default to its success."""
    commit_all(store, walk(*(moves or SUCCEED), job_id=job_id), plain_spec(**spec))


def add_logs(store: Store, job_id: str, number: int = 1) -> Path:
    """Make the directory of a recorded run."""
    path = Path(create_run_directory(store.root, job_id, number))
    descriptor = os.open(path, os.O_RDONLY)
    remove_marker(descriptor)
    os.close(descriptor)
    for name, content in FILES.items():
        (path / name).write_bytes(content)
        (path / name).chmod(0o600)
    return path


def tree(state: str | Path) -> dict[str, object]:
    """Everything below ``logs/``: what it is, and what a file holds."""
    logs = Path(state, "logs")
    return {
        str(path.relative_to(logs)): path.read_bytes() if path.is_file() else path.lstat().st_mode
        for path in sorted(logs.rglob("*"))
        if not path.is_fifo()
    }
