"""A store of an earlier schema is upgraded as it is opened, once, after a private copy (M9; architecture, Schema)."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import apsw
import pytest

from jobman.errors import StoreForeignError, StoreNewerError
from jobman.store.admissions import load_limits, load_view
from jobman.store.connection import Store, _connect, open_store
from jobman.store.jobs import load_job, load_snapshot
from jobman.store.migrations import MIGRATIONS, SCHEMA_VERSION
from jobman.store.migrations._apply import migration_text
from jobman.store.specs import load_spec
from tests.moves import EXAMPLE_JOB_ID, derived_id, walk
from tests.stores import await_line, commit_all, downgrade, dump, outputs, start_python, tell
from tests.support import Cli

DONE_ID = derived_id("upgrading", "job", 1)
WAITING_ID = derived_id("upgrading", "job", 2)


def _schema_of(database: Path) -> set[tuple[object, ...]]:
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return set(rows)


@pytest.fixture
def old(state: Path) -> Path:
    """A store as version 1 made it; see `_made_by`."""
    return _made_by(1, state)


def _made_by(version: int, state: Path) -> Path:
    """A store as an earlier version made it: a job that is done, one that runs with a slot, one that waits.

    Nobody has it open. The rows are moved through a table without the columns that came later, so that they are as old
    as their schema.
    """
    store = open_store(str(state))
    commit_all(store, walk("claim", "admit", "reserve", "start", "end", job_id=DONE_ID))
    commit_all(store, walk("claim", "admit", "reserve", "start"))
    commit_all(store, walk("claim", "await_prerequisites", job_id=WAITING_ID))
    rows = {table: content for table, content in dump(store).items() if table != "schema_migrations"}
    downgrade(store, version)
    store.execute("PRAGMA foreign_keys=OFF")
    known = [name for (name,) in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in known:
        width = len(store.execute(f"PRAGMA table_info({table})"))
        for row in rows.get(table, []):
            store.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", row[:width])  # noqa: S608  # ours
    store.execute("PRAGMA foreign_keys=ON")
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return state


def _version(state: Path) -> int:
    connection = apsw.Connection(str(state / "jobman.db"), flags=apsw.SQLITE_OPEN_READONLY)
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    connection.close()
    assert isinstance(version, int)
    return version


def test_the_old_store_of_these_tests_is_what_version_1_made(old: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.db"
    connection = apsw.Connection(str(made))
    connection.execute(migration_text(MIGRATIONS[0][0])).fetchall()
    connection.close()
    assert _schema_of(old / "jobman.db") == _schema_of(made)
    assert _version(old) == 1


def test_opening_upgrades_and_keeps_every_job(old: Path, tmp_path: Path) -> None:
    new = open_store(str(tmp_path / "new"))
    new.close()
    store = open_store(str(old))
    assert _version(old) == SCHEMA_VERSION
    assert _schema_of(old / "jobman.db") == _schema_of(tmp_path / "new" / "jobman.db")
    assert store.execute("PRAGMA foreign_key_check; PRAGMA integrity_check") == [("ok",)]
    assert load_job(store, DONE_ID).outcome == "success"
    running = load_snapshot(store, EXAMPLE_JOB_ID)
    assert running.run is not None
    assert running.admission is not None
    assert (running.admission.pool, running.admission.slot_scope, running.admission.slot_indexes) == (None, None, ())
    assert load_job(store, WAITING_ID).phase == "waiting"
    spec = load_spec(store, WAITING_ID)
    assert (spec.pool, spec.slots, spec.waits.conditions) == (None, 1, ())
    # The slot that the old row holds counts, and nothing limits it yet.
    view = load_view(store, load_limits(store))
    assert (dict(view.used), view.queue, dict(view.limits.capacities)) == ({"": 1}, (), {})
    store.close()


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_store_of_every_earlier_version_is_upgraded(state: Path, tmp_path: Path, version: int) -> None:
    """M9: to the schema that a new store has, with every row, after a copy that is named after the version."""
    old = _made_by(version, state)
    assert _version(old) == version
    before = _rows(old)
    open_store(str(tmp_path / "new")).close()

    open_store(str(old)).close()

    assert _version(old) == SCHEMA_VERSION
    assert _schema_of(old / "jobman.db") == _schema_of(tmp_path / "new" / "jobman.db")
    after = _rows(old)
    for table, rows in before.items():
        assert [row[: len(rows[0])] for row in after[table]] == rows, table
    (copy,) = (old / "backups").iterdir()
    assert copy.name.startswith(f"jobman-schema-{version}-")


def _rows(state: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the tables that have any, but not of the history of migrations."""
    connection = apsw.Connection(str(state / "jobman.db"), flags=apsw.SQLITE_OPEN_READONLY)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    found = {str(name): connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for (name,) in tables}  # noqa: S608  # our own names
    connection.close()
    return {name: rows for name, rows in found.items() if rows and name != "schema_migrations"}


def test_a_private_copy_of_the_old_store_is_kept(old: Path) -> None:
    before = (
        apsw.Connection(str(old / "jobman.db")).execute("SELECT id, phase, revision FROM jobs ORDER BY 1").fetchall()
    )
    mask = os.umask(0)
    try:
        open_store(str(old)).close()
    finally:
        os.umask(mask)
    (copy,) = (old / "backups").iterdir()
    assert copy.name.startswith("jobman-schema-1-")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute("PRAGMA user_version").fetchall() == [(1,)]
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("SELECT id, phase, revision FROM jobs ORDER BY 1").fetchall() == before
    connection.close()


def test_an_upgrade_happens_once(old: Path) -> None:
    for _ in range(3):
        open_store(str(old)).close()
    assert len(list((old / "backups").iterdir())) == 1


_OPEN = """
import sys
from jobman.store.connection import open_store
print("ready", flush=True)
sys.stdin.readline()
store = open_store(sys.argv[1])
print(store.execute("PRAGMA user_version")[0][0], store.execute("SELECT count(*) FROM jobs")[0][0])
"""


def test_two_that_upgrade_at_the_same_time_do_it_once(old: Path) -> None:
    processes = [start_python(old, _OPEN, str(old)) for _ in range(4)]
    for process in processes:
        await_line(process)
    for process in processes:
        tell(process)
    assert outputs(processes) == [f"{SCHEMA_VERSION} 3\n"] * 4
    assert len(list((old / "backups").iterdir())) == 1


def test_a_supervisor_of_the_old_version_goes_on_writing(old: Path) -> None:
    """Migrations are additive, and statements name their columns."""
    connection = _connect(f"{old}/jobman.db")
    before = Store(str(old), connection, read_only=False)
    before.execute("SELECT count(*) FROM jobs")
    open_store(str(old)).close()
    with before.write():
        before.execute("UPDATE jobs SET revision = revision + 1 WHERE id = ?", (DONE_ID,))
        before.execute(
            "INSERT INTO admissions (id, job_id, run_id, slots, acquired_at_ns, lease_expires_at_ns, released_at_ns)"
            " VALUES ('old', ?, NULL, 1, 5, 6, NULL)",
            (WAITING_ID,),
        )
    before.close()
    store = open_store(str(old))
    assert load_view(store, load_limits(store)).used == {"": 2}
    store.close()


def test_an_upgrade_that_fails_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"0001_jobs": "", "0002_scheduling": "CREATE TABLE half_way (id TEXT) STRICT; SELECT * FROM nowhere"}
    before = _schema_of(old / "jobman.db")
    monkeypatch.setattr("jobman.store.migrations._apply.migration_text", broken.__getitem__)
    with pytest.raises(Exception, match="no such table: nowhere"):
        open_store(str(old))
    assert _schema_of(old / "jobman.db") == before
    assert _version(old) == 1
    monkeypatch.undo()
    open_store(str(old)).close()
    assert _version(old) == SCHEMA_VERSION


def test_an_old_store_that_can_only_be_read_is_refused(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobman.store.connection.os.access", lambda _path, _mode: False)
    with pytest.raises(
        StoreForeignError, match=f"schema 1 has to be upgraded to {SCHEMA_VERSION}.*read-only"
    ) as caught:
        open_store(str(old))
    assert "\n" not in str(caught.value)
    assert _version(old) == 1


def test_a_store_of_a_newer_version_is_refused(cli: Cli, old: Path) -> None:
    newer = SCHEMA_VERSION + 1
    connection = apsw.Connection(str(old / "jobman.db"))
    connection.execute(f"PRAGMA user_version={newer}").fetchall()
    connection.close()
    with pytest.raises(StoreNewerError):
        open_store(str(old))
    cli.refuses("list", status=1, says=f"has schema {newer}, this Jobman knows {SCHEMA_VERSION}: upgrade jobman")
    assert not (old / "backups").exists()


def test_an_old_store_whose_history_is_not_ours_is_not_upgraded(old: Path) -> None:
    connection = apsw.Connection(str(old / "jobman.db"))
    connection.execute("UPDATE schema_migrations SET checksum = 'x'").fetchall()
    connection.close()
    with pytest.raises(StoreForeignError, match="its migrations are not the ones this Jobman knows"):
        open_store(str(old))
    assert _version(old) == 1


def test_a_command_upgrades_and_says_nothing_of_it(cli: Cli, old: Path) -> None:
    assert cli("status", DONE_ID).err == ""
    assert _version(old) == SCHEMA_VERSION
