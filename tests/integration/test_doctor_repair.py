"""What a repair does while others change what it has found (D46)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.recovery.leftovers import abandoned_files
from jobman.service.doctor import repair as repairing
from jobman.service.doctor.files import take_stock
from jobman.store.connection import Store
from jobman.testing import FakeClock
from tests.moves import derived_id
from tests.stores import fast_store

NOBODY = derived_id("repair", "job", 1)


def test_a_leftover_that_vanishes_keeps_no_other_from_being_removed(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told to be removed is what was, and was by us."""
    store = fast_store(state)
    for suffix in ("lock", "log", "wake"):
        (state / "run" / f"{NOBODY}.{suffix}").touch()

    def found_and_gone(store: Store) -> dict[str, tuple[str, ...]]:
        found = abandoned_files(store)
        os.unlink(state / found[NOBODY][0])
        return found

    monkeypatch.setattr(repairing, "abandoned_files", found_and_gone)
    done = repairing.repair(store, take_stock(str(state)), FakeClock())
    store.close()
    assert not list((state / "run").glob(f"{NOBODY}.*"))
    (told,) = [finding.text for finding in done.findings if finding.topic == "leftovers"]
    assert told == f"removed run/{NOBODY}.log, run/{NOBODY}.wake"
