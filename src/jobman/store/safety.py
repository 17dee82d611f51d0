"""Whether the state directory and the database files are safe to use (contract, D.5; M10).

Everything here looks at paths with ``lstat`` and never opens a database file: closing such a descriptor would drop the
locks that SQLite holds in this process. On the start-up path of every command, hence no imports beyond ``os``.
"""

from __future__ import annotations

import os
from stat import S_IMODE, S_ISDIR, S_ISREG

from jobman.errors import StateDirectoryError, StoreFileError
from jobman.private import DIRECTORY_MODE, FILE_MODE, make_directory

_OTHERS = 0o077
_REMOTE_TYPES = frozenset(("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "coda", "afs", "fuse", "fuseblk"))
DATABASE = "jobman.db"
_SIDECARS = ("jobman.db-wal", "jobman.db-shm")


def prepare_state_directory(path: str) -> str:
    """Create or check the state root; return its canonical path.

    A new or empty directory is made private (D12); one that holds files and is open to others is refused.

    Raises:
        StateDirectoryError: with the reason, and what chooses another directory.
    """
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise StateDirectoryError(path=ascii(path), detail="the path is not valid UTF-8") from None
    root = os.path.realpath(path)
    try:
        make_directories(root)
        _check_directory(root)
        _check_file_system(root)
    except OSError as error:
        raise StateDirectoryError(path=root, detail=(error.strerror or str(error)).lower()) from error
    return root


def make_private_directory(path: str) -> None:
    """Create a directory of ours inside the state root; one that exists already is fine."""
    try:
        make_directory(path)
    except FileExistsError:
        if not S_ISDIR(os.lstat(path).st_mode):
            raise StoreFileError(path=path, detail="is not a directory") from None


def check_database_files(root: str) -> None:
    """Refuse a database file that is a link, shared, open to others, or somebody else's; a missing one is fine.

    Raises:
        StoreFileError: naming the file and the first thing wrong with it.
    """
    for name in (DATABASE, *_SIDECARS):
        path = f"{root}/{name}"
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue
        problem = _file_problem(status)
        if problem:
            raise StoreFileError(path=path, detail=problem)


def repair_sidecars(root: str) -> None:
    """Give the owner back what SQLite's files beside the database lack.

    They take their mode from the database when they are made, so one that was made read-only for a moment would
    otherwise leave files that stop every later write.
    """
    for name in _SIDECARS:
        path = f"{root}/{name}"
        try:
            if os.lstat(path).st_mode & FILE_MODE != FILE_MODE:
                os.chmod(path, FILE_MODE)
        except OSError:
            pass  # a missing one is fine, and one that is not ours has been refused


def make_directories(path: str) -> None:
    """Make a directory and those above it that are missing.

    Raises:
        OSError: the file system refuses.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for path in reversed(missing):
        try:
            make_directory(path)
        except FileExistsError:
            pass  # somebody else was quicker; what they made is checked like any other


def _check_directory(root: str) -> None:
    status = os.lstat(root)
    if not S_ISDIR(status.st_mode):
        raise StateDirectoryError(path=root, detail="is not a directory")
    if status.st_uid != os.geteuid():
        raise StateDirectoryError(path=root, detail=f"belongs to user {status.st_uid}, not to you")
    if S_IMODE(status.st_mode) == DIRECTORY_MODE:
        return
    if not os.listdir(root):
        os.chmod(root, DIRECTORY_MODE)
    elif status.st_mode & _OTHERS:
        mode = S_IMODE(status.st_mode)
        raise StateDirectoryError(
            path=root, detail=f"is open to other users (mode {mode:04o}); chmod 700 makes it private"
        )


def _file_problem(status: os.stat_result) -> str | None:
    if not S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}, not to you"
    if status.st_mode & _OTHERS:
        return f"is open to other users (mode {S_IMODE(status.st_mode):04o}); chmod 600 makes it private"
    return None if status.st_nlink == 1 else "has more than one hard link"


def _check_file_system(root: str) -> None:
    kind = file_system_type(root)
    if kind.partition(".")[0] in _REMOTE_TYPES:
        raise StateDirectoryError(path=root, detail=f"is on a {kind} file system, whose locks cannot be trusted")


def file_system_type(path: str, mountinfo: str = "/proc/self/mountinfo") -> str:
    """Return the type of the file system that holds the canonical ``path``, "" where that cannot be told.

    Python has no ``statfs``; the mount table names the type, and the last longest mount point is the one on top.
    """
    best, kind = -1, ""
    try:
        with open(mountinfo, "rb") as table:
            lines = table.read().split(b"\n")
    except OSError:
        return ""
    wanted = os.fsencode(path) + b"/"
    for line in lines:
        fields = line.split(b" ")
        if len(fields) < 10:
            continue
        point = _unescaped(fields[4]).rstrip(b"/")
        if len(point) >= best and wanted.startswith(point + b"/"):
            best, kind = len(point), fields[fields.index(b"-", 6) + 1].decode()
    return kind


def _unescaped(point: bytes) -> bytes:
    # The kernel writes spaces, tabs, newlines, backslashes and number signs as a backslash and three octal digits.
    first, *escaped = point.split(b"\\")
    return first + b"".join(bytes((int(part[:3], 8),)) + part[3:] for part in escaped)
