"""Removing the logs of a run so that every step can be resumed and nothing else is touched (contract, J.7; O.23, O.53).

The steps: everything in the directory is checked; it is renamed to ``<number>.deleting``, which no reader looks into;
how much it holds is written into ``.cleanup-summary`` in it and made durable; the files are removed; the caller commits
the tombstone; the summary, the directory, and the job's own if it is empty then, are removed. After a crash the same
calls go on where they were left.

A directory is entered through its parent's descriptor and never through a link; a file is removed through the
descriptor of its directory.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct

import google_crc32c

from jobman.errors import ActiveCaptureError, UnsafeLogError
from jobman.logs import layout
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Final, Self

CLAIMED: Final = ".deleting"
SUMMARY: Final = ".cleanup-summary"

_MAGIC: Final = b"JMC\x01"
_HEAD: Final = struct.Struct("<4sQQ")
_CHECKSUM: Final = struct.Struct("<I")
_SUMMARY_BYTES: Final = _HEAD.size + _CHECKSUM.size
_OTHERS: Final = 0o077
_crc32c: Callable[[bytes], int] = google_crc32c.value


class Holdings(NamedTuple):
    """What the logs of a run are made of: files, the index included, and their bytes."""

    files: int
    bytes: int


NOTHING: Final = Holdings(0, 0)


class CleaningLock:
    """Keeps one cleaning of a state directory from another; previews share it. Use it in a ``with`` statement.

    The lock is on the directory itself and ends with the process. It is waited for as long as it takes: a plan is made
    of what the other one has left.
    """

    def __init__(self, root: str, *, shared: bool) -> None:
        self._descriptor = os.open(root, layout.DIRECTORY_FLAGS)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class JobLogs:
    """The directory ``logs/<job-id>``, whose runs are to be cleaned. Use it in a ``with`` statement.

    A directory that does not exist holds nothing.

    Raises:
        UnsafeLogError: it, or ``logs``, is a link, no directory, another user's, or open to others.
        OSError: the file system refuses.
    """

    def __init__(self, root: str, job_id: str) -> None:
        self._path = f"{root}/logs/{job_id}"
        self._name = job_id
        self._parent = _enter(None, f"{root}/logs")
        self._descriptor: int | None = None
        try:
            self._descriptor = None if self._parent is None else _enter(self._parent, self._path)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self._descriptor, self._parent):
            if descriptor is not None:
                os.close(descriptor)
        self._descriptor = self._parent = None

    def measure(self, number: int) -> Holdings:
        """Return what `claim` would, after the same checks, and change nothing.

        Raises:
            ActiveCaptureError: the run is marked as being recorded.
            UnsafeLogError: something in the directory is not what we left there.
        """
        directory = self._open(number)
        if directory is None:
            return NOTHING
        with directory:
            return directory.summary() or directory.measure()

    def claim(self, number: int) -> Holdings:
        """Take a run's logs away from readers, and return durably how much there is to remove.

        Raises:
            ActiveCaptureError: the run is marked as being recorded; nothing was changed.
            UnsafeLogError: something in the directory is not what we left there; nothing was changed.
            OSError: the file system refuses.
        """
        directory = self._open(number)
        if directory is None:
            return NOTHING
        with directory:
            known = directory.summary()
            if known is not None:
                return known
            found = directory.measure()
            if not directory.claimed:
                self._rename(str(number), f"{number}{CLAIMED}")
            directory.write_summary(found)
            return found

    def empty(self, number: int) -> None:
        """Remove the files of a run that was claimed.

        Raises:
            UnsafeLogError: something in the directory is not what we left there; it stays.
            OSError: the file system refuses.
        """
        directory = self._open(number)
        if directory is not None:
            with directory:
                directory.empty()

    def finish(self, number: int) -> None:
        """Remove what is left of a run that has its tombstone, and the job's directory if that is empty then (D19).

        Durable when it returns, except for the job's directory: see `sync_removals`. Raises as ``empty`` does.
        """
        directory = self._open(number)
        if directory is not None:
            with directory:
                directory.empty()
                directory.unlink_summary()
            os.rmdir(directory.name, dir_fd=self._descriptor)
        if not self.remove_if_empty():
            self._sync()

    def remove_if_empty(self) -> bool:
        """Remove the job's directory unless something is in it; say whether it is gone."""
        if self._descriptor is None or self._parent is None:
            return True
        try:
            os.rmdir(self._name, dir_fd=self._parent)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
            return False
        return True

    def expect_only(self, numbers: Collection[int]) -> None:
        """Refuse a directory in which something else is than the runs of these numbers.

        Raises:
            UnsafeLogError: there is.
        """
        if self._descriptor is None:
            return
        known = {f"{number}{suffix}" for number in numbers for suffix in ("", CLAIMED)}
        for name in sorted(os.listdir(self._descriptor)):
            if name not in known:
                raise UnsafeLogError(path=f"{self._path}/{name}", detail="it belongs to no run whose logs are kept")

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        # Before the summary: a directory that a power cut gives its old name back must not hold one.
        self._sync()

    def _sync(self) -> None:
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _open(self, number: int) -> _RunLogs | None:
        """Open the directory of a run under either of its names; ``None`` if it has none."""
        if self._descriptor is None:
            return None
        path = f"{self._path}/{number}"
        claimed = _enter(self._descriptor, path + CLAIMED)
        if claimed is not None and self._has(str(number)):
            os.close(claimed)
            raise UnsafeLogError(path=path, detail=f"it stands beside {number}{CLAIMED}, which a cleaning has claimed")
        if claimed is not None:
            return _RunLogs(claimed, path + CLAIMED, claimed=True)
        plain = _enter(self._descriptor, path)
        return None if plain is None else _RunLogs(plain, path, claimed=False)

    def _has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True


def sync_removals(root: str) -> None:
    """Make durable that directories of jobs were removed."""
    logs = _enter(None, f"{root}/logs")
    if logs is not None:
        try:
            os.fsync(logs)
        finally:
            os.close(logs)


def is_claimed(root: str, job_id: str, number: int) -> bool:
    """Say whether the logs of a run are being removed."""
    return os.path.lexists(layout.run_directory(root, job_id, number) + CLAIMED)


class _RunLogs:
    """The open directory of one run, by either of its names."""

    def __init__(self, descriptor: int, path: str, *, claimed: bool) -> None:
        self._descriptor = descriptor
        self._path = path
        self.name = os.path.basename(path)
        self.claimed = claimed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def measure(self) -> Holdings:
        sizes = [self._look(name).st_size for name in self._names()]
        return Holdings(len(sizes), sum(sizes))

    def summary(self) -> Holdings | None:
        """Return what was durably counted, ``None`` if nothing was: then no file has been removed yet."""
        if not self.claimed:
            return None
        try:
            self._look(SUMMARY)
            descriptor = os.open(SUMMARY, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        try:
            data = os.read(descriptor, _SUMMARY_BYTES + 1)
        finally:
            os.close(descriptor)
        self._names()
        return _decoded(data)

    def write_summary(self, found: Holdings) -> None:
        self.unlink_summary()  # one that a crash has left half written
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(SUMMARY, flags, 0o600, dir_fd=self._descriptor)
        try:
            _write_all(descriptor, _encoded(found))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.fsync(self._descriptor)

    def unlink_summary(self) -> None:
        try:
            os.unlink(SUMMARY, dir_fd=self._descriptor)
        except FileNotFoundError:
            pass

    def empty(self) -> None:
        names = self._names()
        for name in names:
            self._look(name)
        for name in names:
            os.unlink(name, dir_fd=self._descriptor)

    def _names(self) -> list[str]:
        """Return the files of the run, after making sure that nothing else is there."""
        names = sorted(os.listdir(self._descriptor))
        if layout.ACTIVE_MARKER in names:
            raise ActiveCaptureError(path=f"{self._path}/{layout.ACTIVE_MARKER}")
        if self.claimed and SUMMARY in names:
            names.remove(SUMMARY)
        for name in names:
            if not is_log_file(name):
                raise UnsafeLogError(path=f"{self._path}/{name}", detail="it is not a file of a run's logs")
        return names

    def _look(self, name: str) -> os.stat_result:
        status = os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)
        layout.check_file(f"{self._path}/{name}", status)
        return status


def _enter(parent: int | None, path: str) -> int | None:
    """Return a descriptor of a directory that is ours alone, ``None`` if there is none."""
    name = path if parent is None else os.path.basename(path)
    try:
        descriptor = os.open(name, layout.DIRECTORY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise UnsafeLogError(path=path, detail="it is not a directory of our own") from error
        raise
    status = os.fstat(descriptor)
    if stat.S_IMODE(status.st_mode) & _OTHERS or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise UnsafeLogError(path=path, detail="it belongs to others, or its mode lets them in (it must be 0700)")
    return descriptor


def is_log_file(name: str) -> bool:
    """Say whether a file of this name belongs to the record of a run, its marker aside."""
    return name == layout.INDEX or any(layout.segment_of(stream, name) is not None for stream in layout.STREAMS)


def _encoded(found: Holdings) -> bytes:
    head = _HEAD.pack(_MAGIC, *found)
    return head + _CHECKSUM.pack(_crc32c(head))


def _decoded(data: bytes) -> Holdings | None:
    if len(data) != _SUMMARY_BYTES or _CHECKSUM.unpack(data[_HEAD.size :])[0] != _crc32c(data[: _HEAD.size]):
        return None
    magic, files, size = _HEAD.unpack(data[: _HEAD.size])
    return Holdings(files, size) if magic == _MAGIC else None


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
