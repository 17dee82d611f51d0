"""An append-only file whose owner must know what is on disk: every refusal becomes a problem in words."""

from __future__ import annotations

import os

from jobman.model.state import Diagnostic, Problem
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

# O_APPEND: after a truncation by somebody else, bytes go to the new end instead of leaving a hole.
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CLOSED: Final = -1
_RESERVE_BYTES: Final = 256 * 1024


class RecordingError(Exception):
    """Recording cannot go on; carries the problem to report. Never leaves this package."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def degraded(text: str) -> RecordingError:
    """Return the error for a file that refuses or that is not as it was left."""
    return RecordingError(Problem(Diagnostic.LOG_CAPTURE_DEGRADED, text))


def refused(verb: str, name: str, error: OSError) -> RecordingError:
    """Return the error that says what could not be done to what, and the system's reason."""
    gone = isinstance(error, FileNotFoundError)
    code = Diagnostic.LOG_FILE_REMOVED if gone else Diagnostic.LOG_CAPTURE_DEGRADED
    return RecordingError(Problem(code, f"cannot {verb} {name}: {error.strerror}"))


def removed(name: str) -> RecordingError:
    """Return the error for a file that somebody took away."""
    return RecordingError(Problem(Diagnostic.LOG_FILE_REMOVED, f"{name} was removed while it was being recorded"))


def attempt(verb: str, name: str, action: Callable[[], object]) -> None:
    """Call ``action``; an ``OSError`` becomes a ``RecordingError`` that says what could not be done to what."""
    try:
        action()
    except OSError as error:
        raise refused(verb, name, error) from error


class DurableFile:
    """A file that only this process appends to.

    Args:
        directory: descriptor of its directory.
        name: within the directory; all that a problem tells of the path.
        flags: for ``open``; by default the file must exist and be no link.

    Raises:
        OSError: it cannot be opened.

    Attributes:
        size: bytes that it should hold.
        dirty: whether a sync is owed; set by the owner, cleared by ``sync``.
    """

    __slots__ = ("descriptor", "dirty", "name", "size")

    def __init__(self, directory: int, name: str, flags: int = _FLAGS) -> None:
        self.name = name
        self.size = 0
        self.dirty = False
        self.descriptor = os.open(name, flags, 0o600, dir_fd=directory)

    def append(self, data: bytes) -> None:
        """Write all of ``data``.

        Raises:
            RecordingError: the file system refuses; a part may be written.
        """
        rest = memoryview(data)
        while rest:
            try:
                written = os.write(self.descriptor, rest)
            except OSError as error:
                raise refused("write to", self.name, error) from error
            if not written:
                raise degraded(f"{self.name} takes no more bytes")
            self.size += written
            rest = rest[written:]

    def sync(self) -> None:
        """Make what was written durable and check that the file is still ours.

        Raises:
            RecordingError: the sync failed, which must not be tried again, or ``verify`` complains.
        """
        self.dirty = False
        attempt("sync", self.name, lambda: os.fdatasync(self.descriptor))
        self.verify()

    def verify(self) -> None:
        """Check that the file still has its name and holds as many bytes as were written.

        Raises:
            RecordingError: it was removed (``log_file_removed``), or truncated or written by somebody else.
        """
        try:
            status = os.fstat(self.descriptor)
        except OSError as error:
            raise refused("look at", self.name, error) from error
        if status.st_nlink == 0:
            raise removed(self.name)
        if status.st_size != self.size:
            # Offsets of further records would be wrong.
            raise degraded(f"{self.name} has {status.st_size} bytes instead of {self.size}: another program changed it")

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        descriptor, self.descriptor = self.descriptor, _CLOSED
        if descriptor == _CLOSED:
            return
        try:
            os.close(descriptor)
        except OSError:
            pass  # what mattered was synced before, and the descriptor is gone either way


# --- Room on a full disk -------------------------------------------------------------------------------------------


def hold_reserve(directory: int, name: str) -> None:
    """Let a file of the directory hold some space, so that a log that fills the disk leaves room for the job's end.

    Its result has to be committed to a store on the same disk. Removing the file gives the space back. On a disk that
    is almost full half of the rest is held; where the file system refuses, nothing is.
    """
    _resize(directory, name, _allocate)


def share_reserve(directory: int, name: str) -> None:
    """Give back a quarter of a reserve, for the records of what was written before the disk was full."""
    _resize(directory, name, lambda descriptor: os.ftruncate(descriptor, os.fstat(descriptor).st_size * 3 // 4))


def _allocate(descriptor: int) -> None:
    disk = os.fstatvfs(descriptor)
    size = min(_RESERVE_BYTES, disk.f_bavail * disk.f_frsize // 2)
    if size:
        os.posix_fallocate(descriptor, 0, size)


def _resize(directory: int, name: str, action: Callable[[int], None]) -> None:
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=directory)
    except OSError:
        return
    try:
        action(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
