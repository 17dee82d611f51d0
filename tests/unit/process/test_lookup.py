"""The words for a target that did not start."""

from __future__ import annotations

import errno

import pytest

from jobman.process import LaunchFailure, Stage, describe

NOT_STARTED = "executable 'foo' could not be started"
CASES: dict[str, tuple[Stage, int, bytes, str, str]] = {
    "not in PATH": (
        "lookup",
        errno.ENOENT,
        b"foo",
        "executable_not_found",
        "executable 'foo' was not found in PATH",
    ),
    "no such path": ("lookup", errno.ENOENT, b"./foo", "executable_not_found", "executable './foo' was not found"),
    "no execute bit": (
        "lookup",
        errno.EACCES,
        b"foo",
        "permission_denied",
        "executable 'foo' may not be executed: permission denied",
    ),
    "refused by the kernel": (
        "exec",
        errno.EACCES,
        b"foo",
        "permission_denied",
        "executable 'foo' may not be executed: permission denied",
    ),
    "missing directory": (
        "directory",
        errno.ENOENT,
        b"foo",
        "working_directory_missing",
        "directory '/x' does not exist",
    ),
    "no directory": (
        "directory",
        errno.ENOTDIR,
        b"foo",
        "working_directory_missing",
        "directory '/x' cannot be entered: not a directory",
    ),
    "closed directory": (
        "directory",
        errno.EACCES,
        b"foo",
        "permission_denied",
        "directory '/x' cannot be entered: permission denied",
    ),
    "missing interpreter": (
        "exec",
        errno.ENOENT,
        b"foo",
        "executable_not_found",
        "executable 'foo', or the interpreter that its first line names, was not found",
    ),
    "no first line": (
        "exec",
        errno.ENOEXEC,
        b"foo",
        "target_start_failed",
        f"{NOT_STARTED}: exec format error (not a program for this machine, nor a script that begins with #!)",
    ),
    "a directory": (
        "lookup",
        errno.EISDIR,
        b"./foo",
        "permission_denied",
        "executable './foo' may not be executed: it is a directory",
    ),
    "being written": (
        "exec",
        errno.ETXTBSY,
        b"foo",
        "target_start_failed",
        "executable 'foo' could not be started: text file busy",
    ),
    "no process": (
        "setup",
        errno.EAGAIN,
        b"foo",
        "target_start_failed",
        f"{NOT_STARTED}: no more processes can be started, by a limit of the user or of the system",
    ),
    "too long": (
        "exec",
        errno.E2BIG,
        b"foo",
        "target_start_failed",
        "executable 'foo' could not be started: the arguments and the environment are too long",
    ),
    "no descriptor": (
        "setup",
        errno.EMFILE,
        b"foo",
        "target_start_failed",
        "executable 'foo' could not be started: too many open files",
    ),
    "not our permission": (
        "setup",
        errno.EPERM,
        b"foo",
        "target_start_failed",
        "executable 'foo' could not be started: operation not permitted",
    ),
    "hard to print": (
        "lookup",
        errno.ENOENT,
        b"\xff\n\x1b'",
        "executable_not_found",
        'executable "\\xff\\n\\x1b\'" was not found in PATH',
    ),
}


@pytest.mark.parametrize(("stage", "number", "name", "code", "text"), CASES.values(), ids=CASES)
def test_a_failure_is_described(*, stage: Stage, number: int, name: bytes, code: str, text: str) -> None:
    """D24."""
    described = describe(LaunchFailure(stage, number), name, b"/x")
    assert described == (code, text)
    assert described[1].isprintable()
