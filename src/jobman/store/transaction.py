"""One way to write: queue for the writer lock, begin immediate, commit or roll back.

Writers queue on ``flock`` so that the kernel wakes one of them and nobody spins; SQLite's own lock is then free.
Nothing may fork while a transaction is open: the child would share the lock.
"""

from __future__ import annotations

import errno
import fcntl
import os

from jobman.errors import StoreBusyError, StoreFailureError
from jobman.private import open_file

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from jobman.store.connection import Store

CLIENT_PATIENCE_NS = 5_000_000_000
SUPERVISOR_PATIENCE_NS = 30_000_000_000
_SECOND_NS = 1_000_000_000


class WriterLock:
    """The file ``run/writer.lock``, locked by whoever writes."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self, patience_ns: int) -> None:
        """Take the lock.

        Raises:
            StoreBusyError: somebody else kept it for ``patience_ns``.
        """
        if self._descriptor < 0:
            self._descriptor = self._open()
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _block(self._descriptor, patience_ns)

    def release(self) -> None:
        """Let the next writer in."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the descriptor; the lock, if held, goes with it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        try:
            return open_file(self._path, os.O_CREAT | os.O_RDWR)
        except OSError as error:
            raise StoreFailureError(detail=f"{self._path}: {(error.strerror or str(error)).lower()}") from error


class Write:
    """A write transaction as a context manager; see `jobman.store.connection.Store.write`.

    Commits when the block ends, rolls back when it raises. Nested inside another it becomes a savepoint, so writers can
    be combined: only the outermost commit makes anything durable.
    """

    __slots__ = ("_outermost", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._outermost = True

    def __enter__(self) -> Store:
        store = self._store
        if store.read_only:
            raise StoreFailureError(detail=f"{store.root} {store.obstacle}")
        self._outermost = not store.in_transaction()
        if not self._outermost:
            store.execute("SAVEPOINT nested")
            return store
        store.lock.acquire(store.patience_ns)
        try:
            store.execute("BEGIN IMMEDIATE")
        except BaseException:
            store.lock.release()
            raise
        return store

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._outermost:
            self._end_nested(succeeded=kind is None)
            return
        try:
            self._end(succeeded=kind is None)
        finally:
            self._store.lock.release()

    def _end(self, *, succeeded: bool) -> None:
        if succeeded:
            try:
                self._store.execute("COMMIT")
            except BaseException:
                _roll_back(self._store)
                raise
        else:
            _roll_back(self._store)

    def _end_nested(self, *, succeeded: bool) -> None:
        if succeeded:
            self._store.execute("RELEASE nested")
        elif self._store.in_transaction():  # see _roll_back
            self._store.execute("ROLLBACK TO nested; RELEASE nested")


class Read:
    """One moment of the store as a context manager; see `jobman.store.connection.Store.read`.

    Inside a transaction it is a part of that one, which is of one moment anyway.
    """

    __slots__ = ("_outermost", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._outermost = True

    def __enter__(self) -> None:
        self._outermost = not self._store.in_transaction()
        if self._outermost:
            self._store.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._outermost:
            _roll_back(self._store)


def _roll_back(store: Store) -> None:
    # SQLite has already done it after some failures (a full disk); a second attempt would hide the first error.
    if store.in_transaction():
        store.execute("ROLLBACK")


class _Elapsed(Exception):  # noqa: N818  # never leaves this module
    pass


def _block(descriptor: int, patience_ns: int) -> None:
    """Wait in the kernel's queue for the lock, at most ``patience_ns``.

    The only way to bound ``flock`` without a thread is a signal whose handler raises; where signals cannot be handled
    (not the main thread) it is tried again and again instead.
    """
    from jobman import signals

    if patience_ns <= 0:
        raise StoreBusyError(seconds=0)  # a timer of zero would never go off

    def elapse(_signal: int, _frame: FrameType | None) -> None:
        raise _Elapsed

    try:
        before = signals.signal(signals.SIGALRM, elapse)
    except ValueError:
        _try_repeatedly(descriptor, patience_ns)
        return
    # Whoever started us may have blocked it, and a blocked alarm would let us wait for ever.
    mask = signals.pthread_sigmask(signals.SIG_UNBLOCK, (signals.SIGALRM,))
    try:
        signals.setitimer(signals.ITIMER_REAL, patience_ns / _SECOND_NS)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        signals.setitimer(signals.ITIMER_REAL, 0)
    except _Elapsed:
        # The alarm may have come just after the lock: let go of it rather than keep what nobody knows of.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        raise StoreBusyError(seconds=patience_ns // _SECOND_NS) from None
    finally:
        signals.setitimer(signals.ITIMER_REAL, 0)
        signals.pthread_sigmask(signals.SIG_SETMASK, mask)
        signals.signal(signals.SIGALRM, before)


def _try_repeatedly(descriptor: int, patience_ns: int) -> None:
    import time

    deadline_ns = time.monotonic_ns() + patience_ns
    while time.monotonic_ns() < deadline_ns:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno != errno.EWOULDBLOCK:
                raise
            time.sleep(0.005)
        else:
            return
    raise StoreBusyError(seconds=patience_ns // _SECOND_NS)
