"""The one connection of a process to its store.

Every statement goes through `Store.execute`, which exhausts its cursor (APSW steps lazily, and a cursor left open keeps
a read snapshot) and turns SQLite's complaints into our errors. On the start-up path of every command and of the
supervisor's claim, hence no imports beyond ``apsw`` and ``os``.
"""

from __future__ import annotations

import os

from jobman.errors import StateDirectoryError, StoreBusyError, StoreFailureError, StoreFileError, StoreForeignError
from jobman.private import open_file
from jobman.store.binding import apsw
from jobman.store.migrations import ensure_schema
from jobman.store.safety import (
    DATABASE,
    check_database_files,
    make_private_directory,
    prepare_state_directory,
    repair_sidecars,
)
from jobman.store.transaction import CLIENT_PATIENCE_NS, Read, Write, WriterLock

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Row = tuple[Any, ...]

_MANY_STATEMENTS = 100
_BUSY_SLEEP_MS = (2, 20)
_BUSY_LIMIT_MS = 5_000
# In pages of 4 KiB: from where on the write-ahead log is merged, and in which part of each 8 MiB it is to begin anew.
_MERGE_PAGES = 1_000
_RESTART_PAGES = 2_000
_RESTART_PART = 200
_RESTART_LIMIT_MS = 100
_NO_INDEX = (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP, apsw.SQLITE_IOERR_SHMOPEN)


class Store:
    """An open state directory.

    Attributes:
        root: its canonical path.
        lock: the queue of writers.
        read_only: nothing can be written; only queries work.
        obstacle: what keeps a read-only one from being written to, said of its directory.
        has_queued: notifications were queued through this connection; whoever sees to it that they are sent, clears it.
    """

    __slots__ = ("_connection", "_identity", "has_queued", "lock", "obstacle", "patience_ns", "read_only", "root")

    def __init__(self, root: str, connection: apsw.Connection, *, read_only: bool) -> None:
        self.root = root
        self.read_only = read_only
        self.obstacle = "is read-only"
        self.has_queued = False
        self._connection = connection
        self.lock = WriterLock(f"{root}/run/writer.lock")
        self.patience_ns = CLIENT_PATIENCE_NS
        self._identity = _file_identity(f"{root}/{DATABASE}")

    def execute(self, statement: str, bindings: Sequence[object] = ()) -> list[Row]:
        """Run one or more statements and return every row."""
        try:
            return self._connection.execute(statement, tuple(bindings)).fetchall()
        except apsw.Error as error:
            raise translate(error, f"{self.root}/{DATABASE}") from error
        except UnicodeDecodeError as error:
            raise StoreFailureError(detail="it holds text that is not UTF-8: the file is damaged") from error

    def changes(self) -> int:
        """Return how many rows the last statement changed."""
        return self._connection.changes()

    def write(self) -> Write:
        """Return the context manager of a write transaction; inside another it is a savepoint of that one."""
        return Write(self)

    def read(self) -> Read:
        """Return a context manager in which all queries see one moment of the store, whoever commits meanwhile."""
        return Read(self)

    def in_transaction(self) -> bool:
        """Say whether a transaction is open."""
        return self._connection.in_transaction

    def data_version(self) -> int:
        """Return a number that changes when another process has committed.

        The pragma looks at the file; ``Connection.data_version`` does not, and would stay the same for ever.
        """
        return int(self.execute("PRAGMA data_version")[0][0])

    def is_replaced(self) -> bool:
        """Say whether the database file was removed or is another one than we opened (D43).

        A directory that cannot be looked into at the moment says neither.
        """
        try:
            return _file_identity(f"{self.root}/{DATABASE}") != self._identity
        except OSError:
            return False

    def release_memory(self) -> None:
        """Free what SQLite only keeps to be fast; the next query reads its pages again."""
        self.execute("PRAGMA shrink_memory")

    def close(self) -> None:
        """Close the connection and the lock."""
        self._connection.close()
        self.lock.close()


def open_store(path: str, *, statements: int = _MANY_STATEMENTS) -> Store:
    """Open the store below ``path``, creating it if need be.

    Args:
        path: the state directory.
        statements: how many prepared statements are kept, each some 5 kB.

    Raises:
        StateDirectoryError: the directory is unsafe, remote, or cannot be made.
        StoreFileError: a database file is unsafe.
        StoreForeignError: the database is not ours.
        StoreNewerError: a newer Jobman wrote it.
    """
    root = prepare_state_directory(path)
    check_database_files(root)
    if not os.access(root, os.W_OK):
        return _open_read_only(root)
    try:
        make_private_directory(f"{root}/run")
        _create_database_file(f"{root}/{DATABASE}")
    except OSError as error:
        raise StateDirectoryError(path=root, detail=(error.strerror or str(error)).lower()) from error
    repair_sidecars(root)
    try:
        return _accepted(Store(root, _connect(f"{root}/{DATABASE}", statements=statements), read_only=False))
    except StoreFailureError as error:
        if not lacks_only_room(error.__cause__, root):
            raise
        try:
            store = _open_unshared(root)
        except StoreForeignError:
            raise error from None  # it was being made
        store.obstacle = "is on a disk that is full or broken"
        return store


def lacks_only_room(error: BaseException | None, root: str) -> bool:
    """Say whether SQLite failed to make its files beside a database that holds everything there is.

    Nobody has it open then: as for one that is read-only, those files are not needed to look at it (field case 23).
    """
    if getattr(error, "extendedresult", 0) not in _NO_INDEX:
        return False
    return _size(f"{root}/{DATABASE}") > 0 and _size(f"{root}/{DATABASE}-wal") == 0


def open_existing(path: str) -> Store:
    """Open the store below ``path`` for queries, as it is: nothing is made, repaired, upgraded or waited for.

    Raises:
        StateDirectoryError: there is no store.
        StoreFileError: a database file is unsafe.
        StoreForeignError: the database is not ours, or of an older Jobman.
        StoreNewerError: a newer Jobman wrote it.
    """
    root = os.path.realpath(path)
    database = f"{root}/{DATABASE}"
    if not os.path.exists(database):
        raise StateDirectoryError(path=root, detail="holds no store")
    check_database_files(root)
    if not os.access(root, os.W_OK):
        return _open_read_only(root)
    # Not opened read-only: such a connection makes the files beside the database, too, but cannot remove them again.
    return _accepted(Store(root, _connect(database), read_only=True), "PRAGMA query_only=ON; PRAGMA busy_timeout=0")


def translate(error: apsw.Error, path: str) -> StoreBusyError | StoreFailureError | StoreForeignError:
    """Return our error for one of SQLite's about the database at ``path``; its text names no data."""
    if isinstance(error, apsw.BusyError):
        return StoreBusyError(seconds=_BUSY_LIMIT_MS // 1000)
    if isinstance(error, apsw.NotADBError):
        return StoreForeignError(path=path, detail=str(error))
    advice = ": jobman doctor examines it" if isinstance(error, (apsw.CorruptError, apsw.IOError)) else ""
    return StoreFailureError(detail=f"{error}{advice}")


def _open_read_only(root: str) -> Store:
    database = f"{root}/{DATABASE}"
    if not os.path.exists(database):
        raise StateDirectoryError(path=root, detail="holds no store and cannot be written to")
    if os.path.exists(f"{database}-wal"):
        detail = "the directory is read-only and the last writer left a -wal file that has to be merged first"
        raise StoreFileError(path=database, detail=detail)
    return _open_unshared(root)


def _open_unshared(root: str) -> Store:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return _accepted(Store(root, _connect(read_only_address(f"{root}/{DATABASE}"), flags), read_only=True))


def _accepted(store: Store, pragmas: str = "") -> Store:
    """Return a store whose schema is ours, after having brought it to the present version; close one that is not."""
    try:
        if pragmas:
            store.execute(pragmas)
        ensure_schema(store)
        check_database_files(store.root)
    except BaseException:
        store.close()
        raise
    return store


def read_only_address(path: str) -> str:
    """Return the address by which a database that nobody can write to is opened (``SQLITE_OPEN_URI``)."""
    # The three characters that end or escape the path part of an SQLite URI.
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?immutable=1"


def _connect(
    path: str, flags: int = apsw.SQLITE_OPEN_READWRITE, *, statements: int = _MANY_STATEMENTS
) -> apsw.Connection:
    connection = None
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=statements)
        # First, before any pragma: the pragmas themselves may meet somebody else's lock.
        connection.set_busy_handler(_wait_for_others)
        connection.execute("PRAGMA foreign_keys=ON").fetchall()
        connection.execute("PRAGMA synchronous=FULL").fetchall()
        connection.set_wal_hook(_merge)
    except apsw.Error as error:
        if connection is not None:
            connection.close()
        raise translate(error, path) from error
    return connection


def _wait_for_others(attempt: int) -> bool:
    # Only writers that do not know our lock come here. SQLite's own handler sleeps in steps that let hundreds of
    # waiters wake together and fail; a short random sleep spreads them.
    import time

    low, high = _BUSY_SLEEP_MS
    pause_ms = low + os.urandom(1)[0] % (high - low)
    if attempt * (low + high) // 2 >= _BUSY_LIMIT_MS:
        return False
    time.sleep(pause_ms / 1000)
    return True


def _merge(connection: apsw.Connection, database: str, pages: int) -> int:
    """Move a long write-ahead log into the database: called after each commit, whose writer lock is still held.

    SQLite by itself does the first half only. A log begins anew when nobody reads from it; where readers overlap all
    the time, as they do on a busy machine, it grows without end (134 MB in 2,700 commits). So every 8 MiB the readers
    are waited for: those that come meanwhile find everything in the database and do not count.
    """
    if pages < _MERGE_PAGES:
        return apsw.SQLITE_OK
    try:
        if pages >= _RESTART_PAGES and pages % _RESTART_PAGES < _RESTART_PART:
            connection.set_busy_timeout(_RESTART_LIMIT_MS)  # whoever reads for longer must not stop all writers
            connection.wal_checkpoint(database, apsw.SQLITE_CHECKPOINT_RESTART)
        else:
            connection.wal_checkpoint(database, apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.Error:
        pass  # the commit stands all the same, and the next one tries again
    finally:
        connection.set_busy_handler(_wait_for_others)
    return apsw.SQLITE_OK


def _create_database_file(path: str) -> None:
    # SQLite would create it with the umask's mode; ours is private from its first moment (field case 29).
    try:
        os.close(open_file(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    except FileExistsError:
        return


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except FileNotFoundError:
        return 0


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino
