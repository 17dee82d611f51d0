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
            text = f"{self.name} was removed while it was being recorded"
            raise RecordingError(Problem(Diagnostic.LOG_FILE_REMOVED, text))
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
