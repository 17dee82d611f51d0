"""A store that is made by several commands at once."""

from __future__ import annotations

from pathlib import Path

from jobman.store.migrations import SCHEMA_VERSION
from tests.stores import outputs, start_python

_OPEN = """
import sys
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
print(store.execute("SELECT count(*) FROM schema_migrations")[0][0], store.execute("PRAGMA journal_mode")[0][0])
"""


def test_first_commands_that_start_together_all_succeed(state: Path) -> None:
    """O.19."""
    processes = [start_python(state, _OPEN, str(state / "new" / "state")) for _ in range(16)]
    assert outputs(processes) == [f"{SCHEMA_VERSION} wal\n"] * 16
