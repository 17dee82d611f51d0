"""Liveness: a kernel lock that a supervisor holds as long as it lives, and that others test without touching it.

The lock belongs to an open file description (``F_OFD_SETLK``): the kernel drops it when the last copy of the descriptor
is closed, that is at death, and closing another descriptor of the same file does not drop it, as it would a POSIX lock.
Where such locks are missing ``flock`` takes their place; a test then takes a shared lock for a moment.

Nothing here imports ``typing``, ``enum``, ``struct`` or ``contextlib``: every start-up path loads this module.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final, Literal, Self

    LockState = Literal["held", "free", "missing", "replaced"]

LOCK_SUFFIX: Final = ".lock"
HELD: Final = "held"
"""Somebody holds the lock of the recorded file."""
FREE: Final = "free"
"""Nobody holds it; from ``seize``: we do now."""
MISSING: Final = "missing"
"""No file has that name: proves nothing."""
REPLACED: Final = "replaced"
"""Another file has that name: proves nothing."""

_SETLK = getattr(fcntl, "F_OFD_SETLK", None)
_GETLK = getattr(fcntl, "F_OFD_GETLK", None)
# struct flock begins with l_type; whence, start, length and PID are all zero for a lock of the whole file.
_TYPE_SIZE = 2
_WHOLE_FILE = fcntl.F_WRLCK.to_bytes(_TYPE_SIZE, sys.byteorder) + bytes(30)


class LivenessLock:
    """The lock that says "this supervisor lives"; ``device`` and ``inode`` are recorded with its claim.

    A forked child must *close* its copy of the descriptor (``close_in_child=(lock.fileno(),)`` of ``launch_gated``) and
    never unlock it: both processes share one open file description, so an unlock in the child is the parent's too, and
    a copy left open keeps the lock held after the parent's death.
    """

    __slots__ = ("_fd", "device", "inode", "path")

    def __init__(self, path: str, fd: int) -> None:
        status = os.fstat(fd)
        self.path = path
        self.device = status.st_dev
        self.inode = status.st_ino
        self._fd = fd

    @classmethod
    def acquire(cls, path: str) -> Self:
        """Create the file ``path``, mode 0600, and lock it.

        Raises:
            FileExistsError: Something has that name, a dangling link included.
            OSError: The file cannot be created or locked; it does not remain.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(path, flags, 0o600)
        try:
            os.fchmod(fd, 0o600)  # a umask such as 0777 would shut observers out
            if not _take(fd):
                raise BlockingIOError(errno.EAGAIN, "a new file is locked by somebody else", path)
            return cls(path, fd)
        except OSError:
            os.unlink(path)
            os.close(fd)
            raise

    def fileno(self) -> int:
        """The descriptor to close in a forked child."""
        return self._fd

    def unlink(self) -> None:
        """Remove the file while the lock is held; another file of that name is left alone."""
        try:
            status = os.stat(self.path, follow_symlinks=False)
            if (status.st_dev, status.st_ino) == (self.device, self.inode):
                os.unlink(self.path)
        except OSError:
            pass  # missing, or the directory cannot be used at the moment: what is left is swept up later

    def close(self) -> None:
        """Give the lock up; the file stays. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Seizure:
    """The outcome of ``seize``; use as a context manager, which gives the lock up at its end.

    ``state`` is ``FREE`` if and only if the lock is ours until then.
    """

    __slots__ = ("_fd", "state")

    def __init__(self, state: LockState, fd: int = -1) -> None:
        self.state = state
        self._fd = fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the lock up. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def lock_path(root: str, job_id: str) -> str:
    """Return where the supervisor of a job keeps its lock, below the state directory ``root``."""
    return f"{root}/run/{job_id}{LOCK_SUFFIX}"


def probe(path: str, device: int, inode: int) -> LockState:
    """Who holds the lock of the recorded file; takes nothing, so it disturbs neither a holder nor an acquirer.

    Raises:
        OSError: The file cannot be opened for another reason than that it is missing (no descriptor, no permission);
            like ``MISSING`` it proves nothing.
    """
    fd, state = _open_recorded(path, (device, inode), os.O_RDONLY)
    if fd is None:
        return state
    try:
        return _test(fd)
    finally:
        os.close(fd)


def seize(path: str, device: int, inode: int) -> Seizure:
    """Take the lock of the recorded file exclusively, without waiting, and hold it: proof that its owner is dead.

    Raises:
        OSError: The file cannot be opened or locked for another reason than that somebody holds it.
    """
    fd, state = _open_recorded(path, (device, inode), os.O_RDWR)
    if fd is None:
        return Seizure(state)
    try:
        taken = _take(fd)
        removed = os.fstat(fd).st_nlink == 0
    except BaseException:
        os.close(fd)
        raise
    if taken and not removed:
        return Seizure(FREE, fd)
    os.close(fd)
    return Seizure(HELD if not taken else MISSING)


def _open_recorded(path: str, recorded: tuple[int, int], mode: int) -> tuple[int | None, LockState]:
    """A descriptor of the recorded file, or None and why not."""
    try:
        # Non-blocking: another file of that name may be a FIFO.
        fd = os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None, MISSING
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV):
            return None, REPLACED
        raise
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) == recorded:
        return fd, FREE
    os.close(fd)
    return None, REPLACED


def _take(fd: int) -> bool:
    if _SETLK is not None:
        try:
            fcntl.fcntl(fd, _SETLK, _WHOLE_FILE)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if error.errno != errno.EINVAL:  # EINVAL: a kernel before 3.15
                raise
        else:
            return True
    return _flock(fd, fcntl.LOCK_EX)


def _test(fd: int) -> LockState:
    if _GETLK is not None:
        try:
            found = fcntl.fcntl(fd, _GETLK, _WHOLE_FILE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        else:
            return FREE if int.from_bytes(found[:_TYPE_SIZE], sys.byteorder) == fcntl.F_UNLCK else HELD
    # Closing the descriptor, which the caller does next, gives the shared lock up.
    return FREE if _flock(fd, fcntl.LOCK_SH) else HELD


def _flock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
