"""Printing a run while it is written: what came since the last look, and at its end whatever is left (contract, J.6).

The caller polls (every 100 ms), asks whether the run is completed *before* a poll, and stops after the poll that
followed a "yes": bytes are stored before a completion is committed, so nothing can come later. Nothing stays open
between two polls.
"""

from __future__ import annotations

import os

from jobman.logs import layout
from jobman.logs.layout import View
from jobman.logs.runfiles import BLOCK_BYTES
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.logs.combined import CombinedTail
    from jobman.logs.layout import Labels
    from jobman.logs.runfiles import Notice


class Follower:
    """Follows one run from its first byte.

    Args:
        directory: as ``layout.run_directory`` returns it.
        view: one stream, which needs no index, or both in observed order.
        labels: what to put before each line, which needs the index; a line is printed when it has ended.
    """

    def __init__(self, directory: str, view: View, labels: Labels | None = None) -> None:
        self._tail = _tail(directory, view, labels)

    def poll(self, write: Callable[[bytes], object]) -> int:
        """Print what is new and return how many bytes that was.

        Args:
            write: called with blocks of at most 256 KiB; what it raises is not caught.

        Raises:
            MissingLogError: a file is gone.
            UnsafeLogError: a file is not ours alone any more.
            CorruptIndexError: only for both streams: the index is damaged, was replaced or became shorter.
        """
        return self._tail.poll(write)

    def finish(self, write: Callable[[bytes], object]) -> None:
        """Print what was held back, after the last poll of a completed run; as ``poll``."""
        self._tail.finish(write)

    def notices(self, number: int) -> tuple[Notice, ...]:
        """Return what to tell on stderr after the last poll of a completed run; raises as ``poll`` does."""
        return self._tail.notices(number)


class _StreamTail:
    """The raw files of one stream: where the next byte will be."""

    def __init__(self, path: str, stream: Stream) -> None:
        self._path = path
        self._stream = stream
        self._segment = 1
        self._offset = 0
        self._inode: int | None = None

    def poll(self, write: Callable[[bytes], object]) -> int:
        printed = 0
        with layout.LogDirectory(self._path) as directory:
            # Which segments exist is asked first: one that has a successor by then cannot grow any more.
            last = directory.segments(self._stream)
            while True:
                printed += self._drain(directory, write)
                if self._segment >= last:
                    return printed
                self._segment, self._offset, self._inode = self._segment + 1, 0, None

    def finish(self, _write: Callable[[bytes], object]) -> None:
        pass  # bytes are printed as they come

    def notices(self, _number: int) -> tuple[Notice, ...]:
        return ()

    def _drain(self, directory: layout.LogDirectory, write: Callable[[bytes], object]) -> int:
        descriptor = directory.open(layout.segment_name(self._stream, self._segment))
        try:
            status = os.fstat(descriptor)
            if status.st_size < self._offset or self._inode not in {None, status.st_ino}:
                self._offset = 0  # truncated or replaced by somebody else
            self._inode = status.st_ino
            return self._copy(descriptor, status.st_size, write)
        finally:
            os.close(descriptor)

    def _copy(self, descriptor: int, end: int, write: Callable[[bytes], object]) -> int:
        # Up to the size seen, not to the end of file: against a fast writer that would never return.
        start = self._offset
        while self._offset < end:
            block = os.pread(descriptor, min(BLOCK_BYTES, end - self._offset), self._offset)
            if not block:  # truncated just now: the next poll starts again
                break
            write(block)
            self._offset += len(block)
        return self._offset - start


def _tail(directory: str, view: View, labels: Labels | None) -> CombinedTail | _StreamTail:
    if labels is not None:
        from jobman.logs.lines import LineTail  # asked for rarely

        return LineTail(directory, view, labels)
    if view is View.BOTH:
        # Only this view needs checksums; importing them costs a millisecond.
        from jobman.logs.combined import CombinedTail

        return CombinedTail(directory)
    return _StreamTail(directory, Stream.STDOUT if view is View.STDOUT else Stream.STDERR)
