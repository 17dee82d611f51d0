"""Printing the logs of finished and active runs, whole or the last lines, in constant memory (contract, A.7 and J.5).

A source knows how many bytes it will print before it prints the first one, can start at any of them, and can be walked
backward: that is all that ``--lines`` and ``--all`` need. Sources hold no open files between two walks.
"""

from __future__ import annotations

from jobman.logs.layout import LogDirectory, View
from jobman.logs.runfiles import RunFiles, joined, take_inventory
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jobman.logs.runfiles import Notice


class Source(Protocol):
    """Bytes that can be walked both ways.

    Attributes:
        length: how many there are.
        notices: what to tell on stderr after printing them.
    """

    length: int
    notices: tuple[Notice, ...]

    def forward(self, skip: int = 0) -> Iterator[bytes]:
        """Yield all bytes but the first ``skip``, in blocks of 1 byte to 256 KiB."""

    def backward(self) -> Iterator[bytes]:
        """Yield all bytes in such blocks, the last block first."""


class Literal:
    """A source of a few bytes of our own, such as a header."""

    def __init__(self, data: bytes) -> None:
        self.length = len(data)
        self.notices: tuple[Notice, ...] = ()
        self._data = data

    def forward(self, skip: int = 0) -> Iterator[bytes]:
        """Yield what is left after ``skip`` bytes."""
        yield self._data[skip:]

    def backward(self) -> Iterator[bytes]:
        """Yield everything."""
        yield self._data


class StreamSource:
    """One stream of a run: what its files held when they were looked at, whatever the index says.

    Args:
        path: the run's directory.
        stream: which one.
        sizes: bytes of each segment.
    """

    def __init__(self, path: str, stream: Stream, sizes: tuple[int, ...]) -> None:
        self.length = sum(sizes)
        self.notices: tuple[Notice, ...] = ()
        self._path = path
        self._stream = stream
        self._sizes = sizes

    def forward(self, skip: int = 0) -> Iterator[bytes]:
        """Yield the stream from byte ``skip`` on."""
        with RunFiles(self._path) as files:
            for segment, size in enumerate(self._sizes, start=1):
                if skip < size:
                    yield from files.forward(self._stream, segment, skip, size - skip)
                skip = max(skip - size, 0)

    def backward(self) -> Iterator[bytes]:
        """Yield the stream, its last block first."""
        with RunFiles(self._path) as files:
            for segment in range(len(self._sizes), 0, -1):
                yield from files.backward(self._stream, segment, 0, self._sizes[segment - 1])


class Concatenation:
    """Several sources, one after the other."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.length = sum(source.length for source in sources)
        self.notices = tuple(notice for source in sources for notice in source.notices)
        self._sources = sources

    def forward(self, skip: int = 0) -> Iterator[bytes]:
        """Yield all bytes but the first ``skip``."""
        for source in self._sources:
            if skip < source.length:
                yield from source.forward(skip)
            skip = max(skip - source.length, 0)

    def backward(self) -> Iterator[bytes]:
        """Yield the last source first, each backward."""
        for source in reversed(self._sources):
            yield from source.backward()


def open_run(directory: str, number: int, *, view: View, active: bool = False) -> Source:
    """Return what a view of a run shows, after looking at all of its files and, for both streams, checking the index.

    Args:
        directory: as ``layout.run_directory`` returns it.
        number: of the run, for notices.
        view: which streams.
        active: the run is still being written: bytes that have no record yet are normal.

    Raises:
        MissingLogError: a file or segment is missing.
        UnsafeLogError: the path is not ours alone, or a file became shorter while it was read.
        CorruptIndexError: only for both streams; nothing has been printed then.
    """
    if view is View.BOTH:
        # Only this view needs checksums; importing them costs a millisecond.
        from jobman.logs.combined import open_combined

        return open_combined(directory, number, active=active)
    stream = Stream.STDOUT if view is View.STDOUT else Stream.STDERR
    with LogDirectory(directory) as opened:
        sizes = take_inventory(opened).sizes(stream)
    return StreamSource(directory, stream, sizes)


def header(number: int) -> bytes:
    """Return the line ``==> run N <==``, under which ``--all`` prints a run (contract, A.7)."""
    return b"==> run %d <==\n" % number


def with_header(number: int, run: Source) -> Source:
    """Return a run under its header."""
    return Concatenation((Literal(header(number)), run))


def copy(source: Source, write: Callable[[bytes], object], *, lines: int = -1) -> None:
    """Print a source, or its last lines, in blocks of at most 512 KiB.

    Args:
        source: what to print.
        write: called with each block; what it raises is not caught.
        lines: how many lines from the end (a newline at the very end begins no further line); -1 means all.
    """
    skip = 0 if lines < 0 else _start_of_last_lines(source, lines)
    for block in joined(source.forward(skip)):
        write(block)


def _start_of_last_lines(source: Source, lines: int) -> int:
    if lines == 0:
        return source.length
    end, missing = source.length, lines
    for block in source.backward():
        if end == source.length and block.endswith(b"\n"):
            missing += 1  # it ends the last line, and begins none
        newlines = block.count(b"\n")
        if newlines >= missing:
            return end - len(block) + after_newline(block, missing)
        missing -= newlines
        end -= len(block)
    return 0


def after_newline(block: bytes, number: int) -> int:
    """Return the place after a newline, counted from the end of a block that has so many."""
    at = len(block)
    for _ in range(number):
        at = block.rfind(b"\n", 0, at)
    return at + 1
