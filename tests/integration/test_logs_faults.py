"""A recording that is killed, or whose files refuse, at any of its system calls (contract, J.3; architecture)."""

from __future__ import annotations

import errno
import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest

from jobman.logs.capture import Capture, CaptureResult
from jobman.logs.layout import View
from jobman.logs.scan import scan
from jobman.model.state import Diagnostic, LogIntegrity, RecordingHealth
from jobman.testing import FakeClock
from tests.unit.logs.support import ERR, OUT, Write, content, feed, scratch_run, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS = ("open", "write", "fdatasync", "fsync", "fstat", "listdir", "unlink", "posix_fallocate")
CHATTY = [
    Write(stream, f"{stream} {number}\n".encode(), flush=number % 2 == 1)
    for number in range(4)
    for stream in (OUT, ERR)
]


class Killed(BaseException):
    """The end of the process, as far as one process can play it: nothing of ours goes on."""


class Fault:
    """Lets the n-th system call of a recording fail; a write has stored half of its bytes by then.

    Attributes:
        made: how many calls there were.
    """

    def __init__(self, patch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
        self.made = 0
        self._number = number
        self._error = error
        for name in CALLS:
            # Waiting for the disk would take most of the time, and shows nothing here.
            real = (lambda _: None) if name in {"fsync", "fdatasync"} else getattr(os, name)
            patch.setattr(os, name, self._wrapped(name, real))

    def _wrapped(self, name: str, real: Any) -> Any:
        def call(*words: Any, **options: Any) -> Any:
            self.made += 1
            if self.made != self._number:
                return real(*words, **options)
            if name == "write":
                descriptor, data = words
                real(descriptor, bytes(data)[: len(data) // 2])
            raise self._error

        return call


def recordings(segment_bytes: int, error: BaseException) -> Iterator[tuple[str, CaptureResult | None]]:
    """Yield the run of each recording of which one call fails, and its result, until none does."""
    for number in itertools.count(1):
        with scratch_run() as run:
            result = None
            with pytest.MonkeyPatch.context() as patch:
                fault = Fault(patch, number, error)
                try:
                    capture = Capture(run, clock=FakeClock(), segment_bytes=segment_bytes)
                    feed(capture, CHATTY)
                    result = capture.close()
                except Killed:
                    pass
            if fault.made < number:
                return
            yield run, result


def assert_trustworthy(run: str) -> None:
    """Every record names bytes that are there; each view is the beginning of what was written."""
    assert scan(run).integrity in {LogIntegrity.VALID, LogIntegrity.PARTIAL}
    assert content(CHATTY).startswith(shown(run, View.BOTH))


@pytest.mark.parametrize("segment_bytes", [0, 7], ids=["one file", "segments"])
def test_a_recording_killed_at_any_call_leaves_an_index_that_tells_the_truth(segment_bytes: int) -> None:
    """M4; D1: chatty, on both streams."""
    count = 0
    for run, _ in recordings(segment_bytes, Killed()):
        count += 1
        assert_trustworthy(run)
        assert content(CHATTY, OUT).startswith(shown(run, View.STDOUT))
        assert content(CHATTY, ERR).startswith(shown(run, View.STDERR))
    assert count > 30


@pytest.mark.parametrize(
    ("number", "segment_bytes"), [(errno.ENOSPC, 0), (errno.ENOSPC, 7), (errno.EIO, 7), (errno.ENOENT, 7)]
)
def test_a_recording_whose_files_refuse_at_any_call_says_so_and_never_raises(number: int, segment_bytes: int) -> None:
    """J.3; field cases 21 and 23."""
    unharmed = 0
    for run, result in recordings(segment_bytes, OSError(number, os.strerror(number))):
        assert result is not None
        assert_trustworthy(run)
        if result.health is RecordingHealth.HEALTHY:
            unharmed += 1
            continue
        assert result.integrity is LogIntegrity.PARTIAL
        assert result.problem is not None
        gone = number == errno.ENOENT
        assert result.problem.code is (Diagnostic.LOG_FILE_REMOVED if gone else Diagnostic.LOG_CAPTURE_DEGRADED)
        assert os.strerror(number) in result.problem.text
    assert unharmed <= 3, "only what holds room for the end may fail in silence, and a marker that is gone already"
