"""Where the bytes of a run lie, and how to get at them without being led elsewhere (contract, D.4, J.1 and J.5).

``<root>/logs/<job-id>/<run-number>/`` holds ``.active``, ``stdout.log``, ``stderr.log``, ``chunks.idx`` and, for
segmented streams, ``stdout.000002.log`` and so on.
"""

from __future__ import annotations

import os
import stat

from jobman.errors import MissingLogError, UnsafeLogError
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from typing import Final, Self

ACTIVE_MARKER: Final = ".active"
INDEX: Final = "chunks.idx"
LAST_SEGMENT: Final = 65_535
STREAMS: Final = (Stream.STDOUT, Stream.STDERR)

_PRIVATE_DIRECTORY: Final = 0o700
_PRIVATE_FILE: Final = 0o600
_OTHERS: Final = 0o077
_SEGMENT_DIGITS: Final = 6
CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: a FIFO that takes a file's place between look and open must not hang the reader.
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class View(StrEnum):
    """What of a run is shown: one stream, or both in the order in which they were observed (contract, A.7)."""

    STDOUT = "stdout"
    STDERR = "stderr"
    BOTH = "both"


class Labels(NamedTuple):
    """What stands before each line that is shown: when it began, of which stream it is (contract, A.16)."""

    timestamps: bool = False
    prefix: bool = False


def segment_name(stream: Stream, segment: int) -> str:
    """Return the file name of a segment; 0 (unsegmented) and 1 are ``stdout.log``."""
    return f"{stream}.log" if segment <= 1 else f"{stream}.{segment:0{_SEGMENT_DIGITS}d}.log"


def segment_of(stream: Stream, name: str) -> int | None:
    """Return which segment of a stream a file name is of, the first as 1; ``None`` if it is none of its."""
    if name == segment_name(stream, 1):
        return 1
    digits = name.removeprefix(f"{stream}.").removesuffix(".log")
    segment = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) == _SEGMENT_DIGITS else 0
    return segment if 1 < segment <= LAST_SEGMENT and name == segment_name(stream, segment) else None


def run_directory(root: str, job_id: str, number: int) -> str:
    """Return the directory of a run below the state directory ``root``."""
    return f"{root}/logs/{job_id}/{number}"


def is_complete(root: str, job_id: str, number: int) -> bool:
    """Say whether the files that every run has are there; nothing is opened."""
    path = run_directory(root, job_id, number)
    return all(os.path.lexists(f"{path}/{name}") for name in (*(segment_name(stream, 1) for stream in STREAMS), INDEX))


def _first_files() -> tuple[str, ...]:
    return (ACTIVE_MARKER, *(segment_name(stream, 1) for stream in STREAMS), INDEX)


# --- Creating ------------------------------------------------------------------------------------------------------


def create_run_directory(root: str, job_id: str, number: int) -> str:
    """Create the directory of a run with its empty files, and return its path.

    Parents are created where they are missing (0700); the run's own directory and its files (0600) must be new. The
    entries are made durable by `sync_entries` before the first record that relies on them, not here: a run that starts
    would wait for syncs that one without output never needs.

    Raises:
        FileExistsError: the run has a directory already.
        OSError: the file system refuses; nothing of the run is left then.
    """
    path = run_directory(root, job_id, number)
    for parent in (f"{root}/logs", f"{root}/logs/{job_id}"):
        _create_parent(parent)
    os.mkdir(path, _PRIVATE_DIRECTORY)
    try:
        _fill(path)
    except OSError:
        remove_unused_run_directory(root, job_id, number)
        raise
    return path


def sync_entries(path: str) -> None:
    """Make the entries of a run's files, and of the directories down to them, durable: run, job, ``logs``, state.

    Raises:
        OSError: the file system refuses.
    """
    for _ in range(4):
        _sync_directory(path)
        path = os.path.dirname(path)


def remove_unused_run_directory(root: str, job_id: str, number: int) -> None:
    """Take back what ``create_run_directory`` made for a reservation that was not committed.

    Removes only its files, and only while they are empty: a directory that holds anything else stays as it is.
    """
    path = run_directory(root, job_id, number)
    try:
        directory = os.open(path, DIRECTORY_FLAGS)
    except OSError:
        return
    try:
        for name in _first_files():
            _unlink_empty(directory, name)
    finally:
        os.close(directory)
    try:
        os.rmdir(path)
    except OSError:
        pass  # somebody's file is in it


def remove_marker(directory: int) -> None:
    """Remove ``.active`` through the descriptor of its directory, durably; one that is missing already is no error.

    Raises:
        OSError: the file system refuses.
    """
    try:
        os.unlink(ACTIVE_MARKER, dir_fd=directory)
    except FileNotFoundError:
        return
    os.fsync(directory)


def _create_parent(path: str) -> None:
    try:
        os.mkdir(path, _PRIVATE_DIRECTORY)
    except FileExistsError:
        pass


def _fill(path: str) -> None:
    directory = os.open(path, DIRECTORY_FLAGS)
    try:
        for name in _first_files():
            os.close(os.open(name, CREATE_FLAGS, _PRIVATE_FILE, dir_fd=directory))
    finally:
        os.close(directory)


def _sync_directory(path: str) -> None:
    directory = os.open(path, DIRECTORY_FLAGS)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _unlink_empty(directory: int, name: str) -> None:
    try:
        if os.stat(name, dir_fd=directory, follow_symlinks=False).st_size == 0:
            os.unlink(name, dir_fd=directory)
    except OSError:
        pass  # a missing file is what we want, any other keeps the directory


# --- Reading -------------------------------------------------------------------------------------------------------


class LogDirectory:
    """A run's directory, opened safely (contract, J.5); every file in it is reached through its descriptor.

    Use it in a ``with`` statement, or call ``close``.

    Args:
        path: as ``run_directory`` returns it.

    Raises:
        MissingLogError: the directory is not there.
        UnsafeLogError: a part of the path from ``logs`` down is a link, no directory, or open to others.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        run, job = os.path.basename(path), os.path.dirname(path)
        descriptor = _enter(None, os.path.dirname(job), run)
        for part in (job, path):
            parent = descriptor
            try:
                descriptor = _enter(parent, part, run)
            finally:
                os.close(parent)
        self._descriptor = descriptor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def look(self, name: str) -> os.stat_result:
        """Return the status of a file after checking that it is ours alone.

        Raises:
            MissingLogError: there is no such file.
            UnsafeLogError: it is not regular, is open to others, or has another link.
        """
        path = f"{self.path}/{name}"
        try:
            status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            raise self._missing(name) from None
        except OSError as error:
            raise UnsafeLogError(path=path, detail=error.strerror) from error
        check_file(path, status)
        return status

    def open(self, name: str) -> int:
        """Return a descriptor for reading a file; the caller closes it. Raises as ``look`` does."""
        seen = self.look(name)
        path = f"{self.path}/{name}"
        try:
            descriptor = os.open(name, _READ_FLAGS, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise self._missing(name) from None
        except OSError as error:
            raise UnsafeLogError(path=path, detail=error.strerror) from error
        try:
            _check_same(path, seen, os.fstat(descriptor))
        except UnsafeLogError:
            os.close(descriptor)
            raise
        return descriptor

    def segments(self, stream: Stream) -> int:
        """Return how many files a stream has, the first included.

        Raises:
            MissingLogError: the first file, or one before the last, is missing (contract, J.5: a segment gap).
        """
        found = (segment_of(stream, name) for name in os.listdir(self._descriptor))
        numbers = {1, *(segment for segment in found if segment is not None)}
        count = max(numbers)
        if len(numbers) != count:
            gap = next(number for number in range(2, count) if number not in numbers)
            raise self._missing(segment_name(stream, gap))
        return count

    def _missing(self, name: str) -> MissingLogError:
        digits = name.removesuffix(".log")[-_SEGMENT_DIGITS:]
        before = 0
        for segment in range(1, int(digits) if digits.isdecimal() else 1):
            earlier = segment_name(Stream(name.partition(".")[0]), segment)
            try:
                before += os.stat(earlier, dir_fd=self._descriptor, follow_symlinks=False).st_size
            except OSError:
                break  # it went too: ours began there at the earliest
        return MissingLogError(path=f"{self.path}/{name}", run=os.path.basename(self.path), offset=before)

    def remove_marker(self) -> None:
        """Remove ``.active``, durably; one that is missing already is no error.

        Raises:
            OSError: the file system refuses.
        """
        remove_marker(self._descriptor)


def _enter(parent: int | None, path: str, run: str) -> int:
    name = path if parent is None else os.path.basename(path)
    try:
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        raise MissingLogError(path=path, run=run, offset=0) from None
    except OSError as error:
        raise UnsafeLogError(path=path, detail=error.strerror) from error
    if os.fstat(descriptor).st_mode & _OTHERS:
        os.close(descriptor)
        raise UnsafeLogError(path=path, detail="its mode lets others in (it must be 0700)")
    return descriptor


def _check_same(path: str, seen: os.stat_result, found: os.stat_result) -> None:
    if (seen.st_dev, seen.st_ino) != (found.st_dev, found.st_ino):
        raise UnsafeLogError(path=path, detail="it was replaced while it was being opened")
    check_file(path, found)  # an inode number is used again at once: the same number may be a FIFO now


def check_file(path: str, status: os.stat_result) -> None:
    """Refuse a file that is not ours alone.

    Raises:
        UnsafeLogError: it is not regular, is open to others, or has another link.
    """
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeLogError(path=path, detail="it is not a regular file")
    if status.st_mode & _OTHERS:
        raise UnsafeLogError(path=path, detail="its mode lets others in (it must be 0600)")
    if status.st_nlink != 1:
        raise UnsafeLogError(path=path, detail=f"it has {status.st_nlink} links instead of one")
