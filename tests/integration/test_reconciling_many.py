"""What one look does when very many jobs have lost their owners at once, as after a restart."""

from __future__ import annotations

from pathlib import Path

from jobman import recovery
from jobman.testing import FakeClock
from tests.moves import derived_id, walk
from tests.stores import commit_all, fast_store


def test_a_look_records_so_many_losses_and_the_next_one_goes_on(state: Path) -> None:
    """Architecture, Liveness: bounded per call."""
    store = fast_store(state)
    for number in range(3):
        commit_all(store, walk("claim", job_id=derived_id("reconciling many", "job", number)))
    try:
        assert [recovery.reconcile_all(store, FakeClock(), at_most=2) for _ in range(3)] == [2, 1, 0]
        assert store.execute("SELECT DISTINCT outcome FROM jobs") == [("lost",)]
    finally:
        store.close()
