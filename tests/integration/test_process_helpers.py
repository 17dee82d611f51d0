"""What the tests of the process package share: children that are known, waited for, and never left behind."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest

from jobman import process
from jobman.process import GatedChild, LaunchFailure, LaunchRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEADLINE = 10.0
PATH = b"/usr/bin:/bin"
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(process.__file__)))
_PR_SET_CHILD_SUBREAPER = 36


def until(condition: Callable[[], bool], *, what: str = "the condition") -> None:
    """Poll until ``condition`` holds; fail after ``DEADLINE`` seconds."""
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"{what} did not come true within {DEADLINE} s")
        time.sleep(0.002)


def read_all(fd: int) -> bytes:
    """Everything up to end of file, then the descriptor is closed."""
    pieces: list[bytes] = []
    while True:
        if not select.select([fd], [], [], DEADLINE)[0]:
            pytest.fail("no end of file")
        piece = os.read(fd, 65536)
        if not piece:
            os.close(fd)
            return b"".join(pieces)
        pieces.append(piece)


def read_line(fd: int) -> bytes:
    """One line, byte by byte so that nothing behind it is taken."""
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([fd], [], [], DEADLINE)[0]:
            pytest.fail(f"no line, only {line!r}")
        piece = os.read(fd, 1)
        if not piece:
            pytest.fail(f"end of file after {line!r}")
        line += piece
    return line


def request(*argv: bytes, environment: Mapping[bytes, bytes] | None = None, directory: bytes = b"/") -> LaunchRequest:
    """A request for ``argv``, whose first element is looked up."""
    executable = process.resolve_executable(argv[0], directory, PATH)
    assert isinstance(executable, bytes)
    return LaunchRequest(executable, argv, {b"PATH": PATH} if environment is None else environment, directory, 0o22)


def result_of(child: GatedChild) -> LaunchFailure | None:
    """What became of the exec."""
    assert select.select([child.result_fd], [], [], DEADLINE)[0], "no launch result"
    return process.read_launch_result(child.result_fd)


def launch(*argv: bytes, environment: Mapping[bytes, bytes] | None = None) -> GatedChild:
    """A target that runs."""
    child = process.launch_gated(request(*argv, environment=environment))
    process.open_gate(child)
    assert result_of(child) is None
    return child


def output_of(child: GatedChild) -> bytes:
    """The standard output of a target, which is then reaped."""
    output = read_all(child.stdout_fd)
    finish(child, closed=(child.stdout_fd, child.gate_fd))
    return output


def finish(child: GatedChild, *, closed: tuple[int, ...]) -> None:
    """Wait for the end, reap, and close what is not ``closed``."""
    until(lambda: process.observe_exit(child.pid) is not None, what="the end of the child")
    process.reap(child.pid)
    for fd in (child.pidfd, child.stdout_fd, child.stderr_fd, child.gate_fd, child.result_fd):
        if fd is not None and fd not in closed:
            os.close(fd)


def descriptors() -> set[str]:
    """The open descriptors of this process, that of the listing aside."""
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def python(code: str) -> tuple[str, ...]:
    """A command that runs ``code`` in an isolated interpreter that finds our package."""
    return (sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {SOURCE!r})\n{code}")


@pytest.fixture
def nobody_left() -> Iterator[None]:
    """Adopts what the test starts, kills and reaps it, and fails if the test left a living process or a descriptor."""
    assert process.become_subreaper()
    before = set(_children())
    fds = descriptors()
    yield
    left = _living(before)
    end = time.monotonic() + 2  # what the test told to end is on its way
    while left and time.monotonic() < end:
        time.sleep(0.002)
        left = _living(before)
    until(lambda: _kill_children(before) == 0, what="the death of all children")
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    assert left == [], "the test left living processes"
    assert descriptors() <= fds, "the test left open descriptors"


def _children() -> tuple[int, ...]:
    return tuple(identity.pid for identity in process.adopted(os.getpid()))


def _living(before: set[int]) -> list[int]:
    return [pid for pid in _children() if pid not in before and process.observe_exit(pid) is None]


def _kill_children(before: set[int]) -> int:
    left = 0
    for pid in set(_children()) - before:
        os.kill(pid, signal.SIGKILL)
        left += process.reap(pid) is None
    return left
