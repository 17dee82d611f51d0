"""Exits: seen without reaping, named as Go names them, and paid for at the end."""

from __future__ import annotations

import os
import signal

import pytest

from jobman import process
from tests.integration.test_process_helpers import (
    finish,
    launch,
    nobody_left,  # noqa: F401  # a fixture
    until,
)

pytestmark = [
    pytest.mark.usefixtures("nobody_left"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def exit_of(script: bytes) -> process.ExitStatus | None:
    child = launch(b"sh", b"-c", script)
    until(lambda: process.observe_exit(child.pid) is not None)
    status = process.observe_exit(child.pid)
    assert process.observe_exit(child.pid) == status, "a look must not reap"
    finish(child, closed=(child.gate_fd,))
    return status


@pytest.mark.parametrize("code", [0, 1, 127, 255])
def test_an_exit_code_is_observed_without_reaping(code: int) -> None:
    """D33."""
    assert exit_of(b"exit %d" % code) == (code, None, None, None)


@pytest.mark.parametrize(
    ("number", "name"),
    [(1, "hangup"), (6, "aborted"), (9, "killed"), (11, "segmentation fault"), (15, "terminated"), (34, "signal 34")],
)
def test_a_death_by_signal_is_named(number: int, name: str) -> None:
    assert exit_of(b"ulimit -c 0; kill -%d $$" % number) == (None, name, number, None)


def test_a_living_child_has_no_exit_and_cannot_be_reaped() -> None:
    child = launch(b"sleep", b"60")
    assert process.observe_exit(child.pid) is None
    assert process.reap(child.pid) is None
    os.kill(child.pid, signal.SIGKILL)
    finish(child, closed=(child.gate_fd,))


def test_a_child_that_somebody_else_reaped_says_so() -> None:
    child = launch(b"true")
    os.waitpid(child.pid, 0)
    assert process.observe_exit(child.pid) == (None, None, None, "process_wait_failed")
    assert process.reap(child.pid) is None
    for fd in (child.pidfd, child.stdout_fd, child.stderr_fd, child.result_fd):
        assert fd is not None
        os.close(fd)


def test_reaping_tells_what_the_child_and_its_own_children_used() -> None:
    """D35."""
    burn = b"i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"
    child = launch(b"sh", b"-c", b"(%s); true" % burn)
    until(lambda: process.observe_exit(child.pid) is not None)
    usage = process.reap(child.pid)
    assert usage is not None
    assert usage.max_rss_bytes > 500_000
    assert usage.user_cpu_ns + usage.system_cpu_ns > 1_000_000
    for fd in (child.pidfd, child.stdout_fd, child.stderr_fd, child.result_fd):
        assert fd is not None
        os.close(fd)
