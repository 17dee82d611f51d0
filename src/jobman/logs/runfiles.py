"""The stream files of one run, read by place: what both views and the follower stand on."""

from __future__ import annotations

import os

from jobman.errors import UnsafeLogError
from jobman.logs import layout
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Final, Self

BLOCK_BYTES: Final = 256 * 1024


class NoticeKind(StrEnum):
    """What a reader should know although the output is printed."""

    UNINDEXED = "unindexed"
    """A stream holds bytes that no record names: the combined view leaves them out."""


class Notice(NamedTuple):
    """Something to tell on stderr: of which run, from which byte of which stream on, and in words."""

    kind: NoticeKind
    run: int
    offset: int
    text: str
    stream: Stream


class Inventory(NamedTuple):
    """Sizes in bytes, the index before the streams: every record within ``index_bytes`` names bytes within them."""

    index_bytes: int
    stdout: tuple[int, ...]
    stderr: tuple[int, ...]

    def sizes(self, stream: Stream) -> tuple[int, ...]:
        """Return the size of each segment of a stream."""
        return self.stdout if stream is Stream.STDOUT else self.stderr


def take_inventory(directory: layout.LogDirectory) -> Inventory:
    """Look at all files of a run.

    Raises:
        MissingLogError: the index, a stream or a segment is missing (contract, J.5: for any view).
        UnsafeLogError: a file is not ours alone.
    """
    index_bytes = directory.look(layout.INDEX).st_size
    stdout, stderr = (_sizes(directory, stream) for stream in layout.STREAMS)
    return Inventory(index_bytes, stdout, stderr)


def _sizes(directory: layout.LogDirectory, stream: Stream) -> tuple[int, ...]:
    segments = range(1, directory.segments(stream) + 1)
    return tuple(directory.look(layout.segment_name(stream, segment)).st_size for segment in segments)


class _Window:
    """One open file and the block of it that was read last, so that tiny chunks cost no system call each."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path
        self._start = 0
        self._block = b""

    def read(self, offset: int, length: int, start: int) -> bytes:
        """Return ``length`` bytes at ``offset``; what lies outside the present block is fetched from ``start`` on."""
        at = offset - self._start
        if at < 0 or at + length > len(self._block):
            self._start, at = start, offset - start
            self._block = self._fetch(start)
            if at + length > len(self._block):
                raise UnsafeLogError(path=self.path, detail="it became shorter while it was being read")
        return self._block[at : at + length]

    def _fetch(self, start: int) -> bytes:
        try:
            return os.pread(self.descriptor, BLOCK_BYTES, start)
        except OSError as error:
            raise UnsafeLogError(path=self.path, detail=error.strerror) from error


class RunFiles:
    """Reads ranges of the stream files of a run; at most one file of each stream is open.

    Use it in a ``with`` statement.

    Args:
        path: the run's directory.

    Raises:
        MissingLogError: the directory, or later a file, is gone.
        UnsafeLogError: it is not ours alone, or became shorter than the range asked for.
    """

    def __init__(self, path: str) -> None:
        self.directory = layout.LogDirectory(path)
        self._windows: dict[Stream, tuple[int, _Window]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _segment, window in self._windows.values():
            os.close(window.descriptor)
        self._windows.clear()
        self.directory.close()

    def forward(self, stream: Stream, segment: int, offset: int, length: int) -> Iterator[bytes]:
        """Yield a range in blocks of at most 256 KiB."""
        window = self._window(stream, segment)
        for start in range(offset, offset + length, BLOCK_BYTES):
            yield window.read(start, min(BLOCK_BYTES, offset + length - start), start)

    def backward(self, stream: Stream, segment: int, offset: int, length: int) -> Iterator[bytes]:
        """Yield a range in blocks of at most 256 KiB, the last one first."""
        window = self._window(stream, segment)
        for end in range(offset + length, offset, -BLOCK_BYTES):
            start = max(end - BLOCK_BYTES, offset)
            yield window.read(start, end - start, max(end - BLOCK_BYTES, 0))

    def _window(self, stream: Stream, segment: int) -> _Window:
        known = self._windows.get(stream)
        if known is not None:
            if known[0] == segment:
                return known[1]
            os.close(known[1].descriptor)
            del self._windows[stream]
        name = layout.segment_name(stream, segment)
        window = _Window(self.directory.open(name), f"{self.directory.path}/{name}")
        self._windows[stream] = (segment, window)
        return window


def joined(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in blocks of 256 to 512 KiB, the last one aside: tiny chunks must not become tiny writes."""
    waiting: list[bytes] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += len(block)
        if size >= BLOCK_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


class Page:
    """A ``write`` that begins a new line where it is told to, if the last one has no end."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._unfinished = False
        self._owed = b""

    def begin(self) -> None:
        """Let what comes next stand on a line of its own."""
        self._owed = b"\n" if self._unfinished else b""

    def __call__(self, block: bytes) -> None:
        """Write a block that is not empty."""
        self._write(self._owed + block)
        self._owed = b""
        self._unfinished = not block.endswith(b"\n")
