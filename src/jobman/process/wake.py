"""Wake-ups: a FIFO that a sleeping supervisor polls, and the byte that others write to it.

A wake-up carries no message and promises nothing: the reader looks at the store, which it also does without one.
Nothing here imports ``typing`` or ``contextlib``; every client that changes a job loads this module.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

_READ_SIZE = 65536


class WakeReceiver:
    """The reading end of a wake-up FIFO; closing it leaves the file, ``unlink`` removes it."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def create(cls, path: str) -> Self:
        """Make the FIFO ``path``, mode 0600, and open it.

        Raises:
            FileExistsError: Something has that name, a dangling link included.
            OSError: The directory or the file cannot be used.
        """
        os.mkfifo(path, 0o600)
        os.chmod(path, 0o600)  # a umask such as 0777 would shut ourselves out
        # Reading and writing: with a writer of its own the FIFO never reports end of file, and opening never waits.
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.close(fd)
            raise FileExistsError(f"{path} was replaced while it was made")
        return cls(path, fd)

    def fileno(self) -> int:
        """The descriptor to poll for reading; also fit for ``signal.set_wakeup_fd``."""
        return self._fd

    def drain(self) -> bool:
        """Take all wake-ups that have arrived; whether there was one. Never blocks."""
        try:
            # A FIFO holds 64 KiB, so one read takes all; what comes later makes the descriptor readable again.
            return bool(os.read(self._fd, _READ_SIZE))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close the descriptor; later wake-ups go nowhere. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def unlink(self) -> None:
        """Remove the file, if it is still there and the directory allows it."""
        try:
            os.unlink(self.path)
        except OSError:
            pass


def wake_path(root: str, job_id: str) -> str:
    """Return the path of the FIFO that wakes the supervisor of a job."""
    return f"{root}/run/{job_id}.wake"


def wake_jobs(root: str, job_ids: Iterable[str]) -> None:
    """Wake the supervisors of these jobs in the state directory ``root``; one that has none is left out."""
    for job_id in job_ids:
        wake(wake_path(root, job_id))


def wake(path: str) -> None:
    """Write one byte to the FIFO ``path`` if somebody reads it; never blocks, never raises.

    A full FIFO wakes its reader anyway, and a missing one has no reader.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY)
    except (OSError, ValueError):
        return
    try:
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.write(fd, b"\0")
    except OSError:
        pass
    finally:
        os.close(fd)
