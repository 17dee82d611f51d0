"""Making files and directories that are one user's alone, whatever the umask.

A umask takes bits away even from the owner, so the mode is set once more. On the start-up path of every command, hence
no imports beyond ``os``.
"""

from __future__ import annotations

import os

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600


def make_directory(path: str) -> None:
    """Make a directory.

    Raises:
        FileExistsError: something has that name.
        OSError: the file system refuses.
    """
    os.mkdir(path, DIRECTORY_MODE)
    os.chmod(path, DIRECTORY_MODE)


def open_file(path: str, flags: int) -> int:
    """Open a file of ours that ``flags`` may create, never through a link; return its descriptor, close-on-exec.

    Raises:
        OSError: the file system refuses; nothing is left open.
    """
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    try:
        os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
