"""Creating and upgrading the schema: only the first command in a state directory, or after an upgrade, comes here."""

from __future__ import annotations

import os
import time

from jobman.errors import StoreFailureError, StoreForeignError
from jobman.private import open_file
from jobman.store.migrations import APPLICATION_ID, MIGRATIONS, check_history
from jobman.store.safety import DATABASE, make_private_directory
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from jobman.store.connection import Store


def create_schema(store: Store) -> None:
    """Apply every migration to an empty database in one transaction; another first command may do it instead.

    Raises:
        StoreForeignError: the database is not empty although it carries no application ID.
    """
    if _has_schema(store):
        return
    # All first commands come here together, and only one has anything to do.
    patience_ns, store.patience_ns = store.patience_ns, SUPERVISOR_PATIENCE_NS
    try:
        _use_wal(store)
        with store.write():
            if _has_schema(store):
                return
            _apply_from(store, 0)
            store.execute(f"PRAGMA application_id={APPLICATION_ID}")
    finally:
        store.patience_ns = patience_ns
    _empty_log(store)


def upgrade_schema(store: Store) -> None:
    """Apply what is missing in one transaction, after a private copy of the old database (M9).

    Migrations are additive, so supervisors of the older version go on beside it.

    Raises:
        StoreForeignError: its history is not ours.
    """
    with store.write():
        version = store.execute("PRAGMA user_version")[0][0]
        if version >= len(MIGRATIONS):
            return  # another command was quicker
        # Under the lock: a moment ago the version and the history could have been those before and after its commit.
        check_history(store, version)
        _back_up(store, version)
        _apply_from(store, version)
    _empty_log(store)


def _empty_log(store: Store) -> None:
    """Move the new tables from the write-ahead log into the database, so that jobs find room in the log.

    It keeps its size, three times what a job needs there: on a disk that is full there would be no other. Passively:
    nobody is waited for.
    """
    try:
        store.execute("PRAGMA wal_checkpoint(PASSIVE)")
    except StoreFailureError:
        pass  # the schema is committed; whoever writes next finds out what is wrong


def _has_schema(store: Store) -> bool:
    # Tables first: whoever created them of ours has set the version in the same commit.
    tables = store.execute("SELECT count(*) FROM sqlite_schema")[0][0]
    if store.execute("PRAGMA user_version")[0][0]:
        return True
    if tables:
        raise StoreForeignError(path=f"{store.root}/jobman.db", detail="it has tables of another program")
    return False


def _use_wal(store: Store) -> None:
    if store.execute("PRAGMA journal_mode") == [("wal",)]:
        return
    store.lock.acquire(store.patience_ns)
    try:
        # The journal mode cannot change inside a transaction; under the lock nobody else of ours is writing.
        store.execute("PRAGMA journal_mode=WAL")
    finally:
        store.lock.release()


def migration_text(name: str) -> str:
    """Return the SQL of a migration."""
    path = os.path.join(os.path.dirname(__file__), f"{name}.sql")
    with open(path, encoding="utf-8") as file:
        return file.read()


def _back_up(store: Store, version: int) -> None:
    """Copy the database as it is, through a connection of its own: inside our transaction nothing has changed yet."""
    from jobman.store.binding import apsw

    make_private_directory(f"{store.root}/backups")
    path = f"{store.root}/backups/jobman-schema-{version}-{time.time_ns()}.db"  # noqa: TID251  # names a file
    # Created private from its first moment; SQLite accepts an empty file.
    os.close(open_file(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    source = apsw.Connection(f"{store.root}/{DATABASE}", flags=apsw.SQLITE_OPEN_READONLY)
    try:
        source.execute("VACUUM INTO ?", (path,)).fetchall()
    finally:
        source.close()


def _apply_from(store: Store, version: int) -> None:
    for number, (name, checksum) in enumerate(MIGRATIONS[version:], version + 1):
        _apply(store, number, name, checksum)
    store.execute(f"PRAGMA user_version={len(MIGRATIONS)}")


def _apply(store: Store, number: int, name: str, checksum: str) -> None:
    from jobman import __version__

    store.execute(migration_text(name))
    store.execute(
        "INSERT INTO schema_migrations (version, applied_at_ns, jobman_version, checksum) VALUES (?, ?, ?, ?)",
        (number, time.time_ns(), __version__, checksum),  # noqa: TID251  # no clock is injected into opening a store
    )
