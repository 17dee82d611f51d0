"""Which file a command names, and the words for why a target did not start."""

from __future__ import annotations

import errno
import os
import stat

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    Stage = Literal["lookup", "setup", "directory", "exec"]
    FailureCode = Literal[
        "executable_not_found", "permission_denied", "working_directory_missing", "target_start_failed"
    ]
else:
    Stage = FailureCode = str  # other modules import the names


_NOT_THERE = frozenset((errno.ENOENT, errno.ENOTDIR))
_REFUSED = frozenset((errno.EACCES, errno.EPERM, errno.EISDIR))
_WORDS = {
    errno.ENOEXEC: "exec format error (not a program for this machine, nor a script that begins with #!)",
    errno.E2BIG: "the arguments and the environment are too long",
    errno.EAGAIN: "no more processes can be started, by a limit of the user or of the system",
    errno.EISDIR: "it is a directory",
}


class LaunchFailure(NamedTuple):
    """Why a target did not start: the stage that failed, and the ``errno`` of the system."""

    stage: Stage
    errno: int

    @property
    def code(self) -> FailureCode:
        """The diagnostic code of this failure."""
        if self.errno in _NOT_THERE and self.stage == "directory":
            return "working_directory_missing"
        if self.errno in _NOT_THERE and self.stage in ("lookup", "exec"):
            return "executable_not_found"
        if self.errno in _REFUSED and self.stage != "setup":
            return "permission_denied"
        return "target_start_failed"


def describe(failure: LaunchFailure, executable: bytes, directory: bytes) -> tuple[FailureCode, str]:
    """The diagnostic code of ``failure`` and one line for the user.

    Args:
        failure: What failed.
        executable: The name as the user gave it.
        directory: The working directory of the job.
    """
    name, place = _shown(executable), _shown(directory)
    if failure.stage == "directory":
        return failure.code, _describe_directory(failure, place)
    words = {
        "executable_not_found": _not_found(failure, executable),
        "permission_denied": f"executable {name} may not be executed: {_reason(failure.errno)}",
    }
    return failure.code, words.get(failure.code) or f"executable {name} could not be started: {_reason(failure.errno)}"


def _describe_directory(failure: LaunchFailure, place: str) -> str:
    if failure.errno == errno.ENOENT:
        return f"directory {place} does not exist"
    return f"directory {place} cannot be entered: {_reason(failure.errno)}"


def _not_found(failure: LaunchFailure, executable: bytes) -> str:
    name = _shown(executable)
    if failure.stage == "exec":
        return f"executable {name}, or the interpreter that its first line names, was not found"
    if b"/" in executable:
        return f"executable {name} was not found"
    return f"executable {name} was not found in PATH"


def _reason(number: int) -> str:
    return _WORDS.get(number) or os.strerror(number)[:1].lower() + os.strerror(number)[1:]


def _shown(name: bytes) -> str:
    # Control characters and what is not UTF-8 come out escaped, so the line can be stored and printed anywhere.
    return repr(name.decode("utf-8", "surrogateescape")).replace("\\udc", "\\x")


def resolve_executable(name: bytes, directory: bytes, path: bytes | None) -> bytes | LaunchFailure:
    """The absolute path of the regular, executable file that ``name`` means; links are not resolved.

    A name with a slash is a path from ``directory``. Any other is looked for in the elements of ``path``, where an
    empty or relative one is a path from ``directory``; None means the system's default path.
    """
    try:
        if not stat.S_ISDIR(os.stat(directory).st_mode):
            return LaunchFailure("directory", errno.ENOTDIR)
    except OSError as error:
        return LaunchFailure("directory", error.errno or errno.EIO)
    candidates = [name] if b"/" in name else _in_path(name, path)
    failure = errno.ENOENT
    for candidate in candidates:
        found = os.path.join(directory, candidate)
        refused = _refusal(found)
        if refused is None:
            return _cleaned(found)
        if refused == errno.EISDIR and b"/" not in name:
            continue
        if refused not in _NOT_THERE:  # remembered, as execvp does: "not found" would hide the file that is there
            failure = refused
    return LaunchFailure("lookup", failure)


def _in_path(name: bytes, path: bytes | None) -> list[bytes]:
    if path is None:
        path = os.fsencode(os.defpath)
    if not path or not name:
        return []
    return [os.path.join(element, name) for element in path.split(b":")]


def _refusal(path: bytes) -> int | None:
    """The errno that executing ``path`` would meet, None if nothing speaks against it."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:  # a NUL byte
        return errno.ENOENT
    if stat.S_ISDIR(mode):
        return errno.EISDIR
    return None if stat.S_ISREG(mode) and os.access(path, os.X_OK) else errno.EACCES


def _cleaned(path: bytes) -> bytes:
    """``path`` without ``.``, ``..`` and doubled slashes, unless a link makes that another file."""
    cleaned = b"/" + os.path.normpath(path).lstrip(b"/")
    try:
        same = os.path.samefile(cleaned, path)
    except OSError:
        same = False
    return cleaned if same else path
