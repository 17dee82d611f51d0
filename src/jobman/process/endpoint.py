"""The Unix socket on which a supervisor takes live input: where it lies, who may come, and who is at the other end.

Only processes of the owner may connect: the socket has mode 0600 in a directory with mode 0700 that is neither a link
nor anybody else's (D31), and both ends ask the kernel for the user of the other.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from hashlib import sha256

from jobman.errors import EndpointError
from jobman.private import DIRECTORY_MODE, FILE_MODE, make_directory

_LONGEST = 100
_BACKLOG = 128
_PEER_SIZE = 12


def endpoint_path(root: str, job_id: str, temporary: str = "") -> str:
    """Return where the socket of a job lies: below the state root, or where that is too long for a socket's address.

    Args:
        root: the canonical state root.
        job_id: the job.
        temporary: ``$TMPDIR``; ``/tmp`` stands in for one that is missing, relative, not UTF-8 or too long as well.
    """
    path = f"{root}/input/{job_id}.sock"
    if _fits(path):
        return path
    name = sha256(f"{root}\0{job_id}".encode()).hexdigest()[:32]
    for directory in (temporary, "/tmp"):  # noqa: S108  # what is found there is checked
        path = f"{directory.rstrip('/')}/jobman-{os.geteuid()}/{name}.sock"
        if directory.startswith("/") and _fits(path):
            return path
    raise AssertionError(path)


def listen(path: str) -> socket.socket:
    """Make the socket ``path`` and listen, not blocking; a stale one of that name is removed.

    Raises:
        EndpointError: its directory is not ours alone, or the system refuses.
    """
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    except OSError as error:
        raise _refused(path, error) from error
    try:
        _prepare_directory(os.path.dirname(path))
        remove(path)
        listener.bind(path)
        os.chmod(path, FILE_MODE)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _refused(path, error) from error
    except EndpointError:
        listener.close()
        raise
    return listener


def connect(path: str) -> socket.socket:
    """Connect to ``path``, not blocking.

    Raises:
        EndpointError: a process of another user listens there.
        OSError: nobody listens there, or too many wait to be heard.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        connection.connect(path)
        trusted = is_ours(connection)
    except OSError:
        connection.close()
        raise
    if not trusted:
        connection.close()
        raise EndpointError(path=path, detail="another user listens there")
    return connection


def is_ours(connection: socket.socket) -> bool:
    """Say whether the process at the other end runs as the same user."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_SIZE)
    # struct ucred: process, user, group, four bytes each.
    return int.from_bytes(found[4:8], sys.byteorder) == os.geteuid()


def remove(path: str) -> None:
    """Remove the socket, if it is still there and the directory allows it."""
    try:
        os.unlink(path)
    except OSError:
        pass


def _refused(path: str, error: OSError) -> EndpointError:
    return EndpointError(path=path, detail=(error.strerror or str(error)).lower())


def _fits(path: str) -> bool:
    try:
        return len(path.encode()) < _LONGEST
    except UnicodeEncodeError:
        return False


def _prepare_directory(path: str) -> None:
    try:
        make_directory(path)
    except FileExistsError:
        pass
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise EndpointError(path=path, detail="is not a directory")
    if status.st_uid != os.geteuid():
        raise EndpointError(path=path, detail=f"belongs to user {status.st_uid}, not to you")
    mode = stat.S_IMODE(status.st_mode)
    if mode != DIRECTORY_MODE and _is_private(os.path.dirname(path)):
        os.chmod(path, DIRECTORY_MODE)  # nobody else could come here anyway
    elif mode != DIRECTORY_MODE:
        raise EndpointError(path=path, detail=f"is not private (mode {mode:04o}); chmod 700 makes it so")


def _is_private(path: str) -> bool:
    status = os.lstat(path)
    return status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == DIRECTORY_MODE
