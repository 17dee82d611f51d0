"""The standard input of a job, as its supervisor provides it: real descriptors, sockets and stores (I.6)."""

from __future__ import annotations

import os
from pathlib import Path

from jobman.model.spec import StdinPolicy
from jobman.model.state import Diagnostic, Problem
from jobman.supervisor.stdin import StandardInput
from jobman.testing import FakeClock
from tests.stores import fast_store, plain_spec
from tests.support import descriptors_free

RUN = "018f2b6c-7d1e-7abc-9def-0123456789ab"


def test_an_endpoint_for_which_no_descriptor_is_free_is_made_by_a_later_run(tmp_path: Path) -> None:
    """I.6, D24: a supervisor that cannot listen lives on, and a run that cannot be given its input says so."""
    store = fast_store(tmp_path / "s")
    for free in range(3):
        stdin = StandardInput(store, RUN, plain_spec(stdin=StdinPolicy.LIVE))
        with descriptors_free(free):
            stdin.offer(FakeClock())
            refused = stdin.open(RUN)
        assert isinstance(refused, Problem), free
        assert refused.code == Diagnostic.STDIN_UNAVAILABLE
        assert "too many open files" in refused.text
        reader = stdin.open(RUN)
        assert isinstance(reader, int)
        os.close(reader)
        stdin.close()
    store.close()


def test_the_database_itself_is_no_input(tmp_path: Path) -> None:
    """Closing a descriptor of it drops the locks of SQLite (traps for Python)."""
    store = fast_store(tmp_path / "s")
    (tmp_path / "link").symlink_to(tmp_path / "s/jobman.db")
    for path in (tmp_path / "link", tmp_path / "s/jobman.db-wal", tmp_path / "s/jobman.db-shm"):
        spec = plain_spec(stdin=StdinPolicy.FILE, stdin_path=str(path))
        refused = StandardInput(store, RUN, spec).open(RUN)
        assert isinstance(refused, Problem)
        assert "belongs to the store" in refused.text
    store.close()
