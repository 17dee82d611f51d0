"""Looking at a database from outside, copying it, and merging its write-ahead log: what ``doctor`` asks of the store.

The looks use a connection of their own that cannot write, so that a damaged file stays as it was found.
"""

from __future__ import annotations

import os

from jobman.errors import BackupError
from jobman.private import open_file
from jobman.store.binding import apsw
from jobman.store.connection import lacks_only_room, read_only_address
from jobman.store.safety import DATABASE, make_directories
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store

SOUND = ("ok",)
_COMPLAINTS = 5
_BUSY_WAIT_MS = 5_000


class Database(NamedTuple):
    """What a look has found; ``None`` is what could not be read.

    ``integrity`` is SQLite's verdict, `SOUND` or its first complaints; ``foreign_keys`` counts rows that refer to
    nothing; ``unreadable`` says why the file could not be looked at, which is no damage.
    """

    schema_version: int | None
    integrity: tuple[str, ...]
    foreign_keys: int | None
    unreadable: str = ""

    def is_sound(self) -> bool:
        """Say whether nothing is wrong with it."""
        return self.integrity == SOUND and self.foreign_keys == 0


def sqlite_version() -> str:
    """Return the version of the SQLite library that is used."""
    return apsw.sqlite_lib_version()


def examine(root: str) -> Database:
    """Look at the database below ``root``, which must be safe to open; whatever is wrong with it is a result."""
    try:
        connection = _reader(root)
    except apsw.Error as error:
        return Database(None, (str(error),), None, str(error))
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.BusyError, apsw.IOError) as error:
        connection.close()
        return Database(None, (str(error),), None, str(error))
    except apsw.Error:
        pass  # is a result of what follows
    try:
        version = _number(connection, "PRAGMA user_version")
        violations = _number(connection, "SELECT count(*) FROM pragma_foreign_key_check")
        return Database(version, _integrity(connection), violations)
    finally:
        connection.close()


def back_up(root: str, path: str) -> None:
    """Copy the database below ``root`` to ``path`` as it is at one moment, private, whoever writes meanwhile.

    The copy has its name only when it is whole and durable.

    Raises:
        BackupError: ``path`` exists already, or the copy cannot be made.
    """
    if os.path.lexists(path):
        raise BackupError(path=path, detail="exists already: choose another name")
    if any("\udc80" <= char <= "\udcff" for char in path):
        raise BackupError(path=path, detail="SQLite opens only paths that are UTF-8")
    unfinished = f"{path}.{os.getpid()}.unfinished"
    try:
        make_directories(os.path.dirname(path))
        os.close(open_file(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        _copy(root, unfinished)
        _publish(unfinished, path)
    except apsw.Error as error:
        # SQLite's own words for this are "not an error" more often than not.
        detail = f"the database cannot be copied ({type(error).__name__.removesuffix('Error').lower()})"
        raise BackupError(path=path, detail=detail) from error
    except OSError as error:
        raise BackupError(path=path, detail=(error.strerror or str(error)).lower()) from error
    finally:
        for left in (unfinished, f"{unfinished}-journal", f"{unfinished}-wal", f"{unfinished}-shm"):
            _unlink(left)


def merge_wal(store: Store) -> bool:
    """Move the write-ahead log into the database and empty it; ``False`` if a reader or writer kept it busy."""
    store.lock.acquire(store.patience_ns)
    try:
        busy = store.execute("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
    finally:
        store.lock.release()
    return not busy


def unknown_jobs(store: Store, job_ids: Sequence[str]) -> list[str]:
    """Return those of the IDs that no job has."""
    found = {row[0] for row in store.execute("SELECT id FROM jobs")} if job_ids else set()
    return [job_id for job_id in job_ids if job_id not in found]


def lost_holders(store: Store) -> list[str]:
    """Return the completed jobs that still hold slots: something of their last run may be alive (D42)."""
    rows = store.execute(
        "SELECT DISTINCT job_id FROM admissions CROSS JOIN jobs ON jobs.id = job_id"
        " WHERE released_at_ns IS NULL AND jobs.phase = 'completed' ORDER BY job_id"
    )
    return [row[0] for row in rows]


def completed_runs(store: Store, job_id: str) -> list[int]:
    """Return the numbers of the runs of a job that are over."""
    rows = store.execute("SELECT number FROM runs WHERE job_id = ? AND phase = 'completed'", (job_id,))
    return [row[0] for row in rows]


def _reader(root: str) -> apsw.Connection:
    database = f"{root}/{DATABASE}"
    if os.access(root, os.W_OK):
        connection = _writable_reader(root, database)
    elif os.path.lexists(f"{database}-wal"):
        raise apsw.CantOpenError("the directory is read-only, and the last writer left a -wal file to be merged first")
    else:
        connection = _unshared(database)
    connection.set_busy_timeout(_BUSY_WAIT_MS)
    return connection


def _writable_reader(root: str, database: str) -> apsw.Connection:
    connection = apsw.Connection(database, flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(_BUSY_WAIT_MS)
    try:
        connection.execute("PRAGMA schema_version").fetchall()
    except apsw.IOError as error:
        if lacks_only_room(error, root):
            connection.close()
            return _unshared(database)
    except apsw.Error:
        pass  # whoever looks is told again
    return connection


def _unshared(database: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(read_only_address(database), flags=flags)


def _number(connection: apsw.Connection, statement: str) -> int | None:
    try:
        ((number,),) = connection.execute(statement).fetchall()
    except (apsw.Error, UnicodeDecodeError):
        return None
    return int(number)  # type: ignore[arg-type]  # a pragma and a count are integers


def _integrity(connection: apsw.Connection) -> tuple[str, ...]:
    try:
        rows = connection.execute(f"PRAGMA integrity_check({_COMPLAINTS})").fetchall()
    except apsw.Error as error:
        return (str(error),)
    except UnicodeDecodeError:
        return ("it holds text that is not UTF-8",)
    # One row may hold several lines; the first says what it is about.
    return tuple(str(row[0]).replace("\n", ": ") for row in rows)


def _copy(root: str, path: str) -> None:
    source = _reader(root)
    try:
        target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            with target.backup("main", source, "main") as copying:
                # All pages in one step: one read transaction, so one moment of the source.
                while not copying.done:
                    copying.step(-1)
        finally:
            target.close()
    finally:
        source.close()


def _publish(unfinished: str, path: str) -> None:
    _sync(unfinished, os.O_RDONLY)
    try:
        os.link(unfinished, path, follow_symlinks=False)  # unlike a rename it never replaces
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.rename(unfinished, path)
    _sync(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: str, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
