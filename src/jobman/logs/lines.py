"""Captured output line by line, each line after a label that says when it came and of which stream it is (A.16).

A line is printed when its end is found, so that the lines of two streams stay whole however their chunks lie between
each other. Of a line without an end so far only the place is kept: it may be larger than memory. All of this needs the
index, for one stream too.
"""

from __future__ import annotations

from jobman.logs.combined import CombinedTail, OpenIndex, check_index, unindexed_notices
from jobman.logs.index import RECORD_BYTES
from jobman.logs.layout import STREAMS, LogDirectory, View
from jobman.logs.reader import after_newline
from jobman.logs.runfiles import Page, RunFiles, joined, take_inventory
from jobman.model.scalars import format_timestamp
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Final, Self

    from jobman.logs.index import Chain, IndexFile, Record
    from jobman.logs.layout import Labels
    from jobman.logs.runfiles import Notice

    Write = Callable[[bytes], object]

_PREFIXES: Final = {Stream.STDOUT: b"out| ", Stream.STDERR: b"err| "}
_SHOWN: Final = {View.STDOUT: (Stream.STDOUT,), View.STDERR: (Stream.STDERR,), View.BOTH: STREAMS}


class _Files:
    """The stream files of a run twice: one goes ahead through the chunks, the other comes back for an open line."""

    def __init__(self, path: str) -> None:
        self.ahead = RunFiles(path)
        self.back = RunFiles(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ahead.__exit__()
        self.back.__exit__()


class _OpenLine:
    """A line whose end was not found yet: its label, the record of its first byte, and where its bytes are."""

    __slots__ = ("_ranges", "_stream", "label", "sequence")

    def __init__(self, first: Record, label: bytes) -> None:
        self.label = label
        self.sequence = first.sequence
        self._stream = first.stream
        # Segment, offset, length; one for each segment, since the chunks of a stream follow each other.
        self._ranges: list[tuple[int, int, int]] = []

    def extend(self, segment: int, offset: int, length: int) -> None:
        """Add the bytes that follow."""
        if self._ranges and self._ranges[-1][0] == segment:
            _, offset, known = self._ranges.pop()
            length += known
        self._ranges.append((segment, offset, length))

    def blocks(self, files: _Files) -> Iterator[bytes]:
        """Yield the label, then the bytes."""
        yield self.label
        for place in self._ranges:
            yield from files.back.forward(self._stream, *place)


class _Piece(NamedTuple):
    """A block of a chunk that begins at byte ``at`` of its segment."""

    record: Record
    label: bytes
    at: int
    block: bytes


class _Assembler:
    """Takes chunks in the order in which they were observed, and yields lines in the order in which they ended."""

    def __init__(self, labels: Labels, opened: dict[Stream, _OpenLine]) -> None:
        self._labels = labels
        self._open = opened

    def lines(self, files: _Files, records: Iterator[Record], skip: int = 0) -> Iterator[bytes]:
        """Yield the lines that end in these records, of which the first ``skip`` bytes are left out."""
        for record in records:
            label, at = _label(self._labels, record), record.offset + skip
            for block in files.ahead.forward(record.stream, record.segment, at, record.length - skip):
                yield from self._split(files, _Piece(record, label, at, block))
                at += len(block)
            skip = 0

    def rest(self, files: _Files, number: int) -> Iterator[bytes]:
        """Yield the lines that will have no end, the last ``number`` of them, in the order in which they began."""
        opened = sorted(self._open.values(), key=lambda line: line.sequence)
        for place, line in enumerate(opened[len(opened) - min(number, len(opened)) :]):
            if place:
                yield b"\n"
            yield from line.blocks(files)
        self._open = {}

    def _split(self, files: _Files, piece: _Piece) -> Iterator[bytes]:
        record, label, at, block = piece
        line = self._open.get(record.stream)
        begin, end = 0, block.rfind(b"\n") + 1
        if end and line is not None:
            begin = block.index(b"\n") + 1
            line.extend(record.segment, at, begin)
            yield from line.blocks(files)
            line = None
            del self._open[record.stream]
        if begin < end:
            yield label + block[begin : end - 1].replace(b"\n", b"\n" + label) + b"\n"
        if end < len(block):
            if line is None:
                line = self._open[record.stream] = _OpenLine(record, label)
            line.extend(record.segment, at + end, len(block) - end)


class Start(NamedTuple):
    """Where to begin: byte of the index, byte of that record's chunk, the lines open there, how many have no end.

    ``lines`` is how many there are from there on.
    """

    position: int
    skip: int
    opened: dict[Stream, _OpenLine]
    unfinished: int
    lines: int


class LineSource:
    """The lines of a finished or active run, whole or the last ones, in constant memory.

    Args:
        path: the run's directory.
        view: which streams.
        labels: what each line says of itself.
        chain: which checked the index, up to the byte where this source ends.
        notices: what to tell on stderr.
    """

    def __init__(
        self, path: str, view: View, labels: Labels, *, chain: Chain, notices: tuple[Notice, ...] = ()
    ) -> None:
        self.notices = notices
        self._path = path
        self._streams = tuple(stream for stream in _SHOWN[view] if chain.total(stream))
        self._labels = labels
        self._chain = chain
        self._end = chain.position

    def beginning(self) -> Start:
        """Return where the first line begins; its ``lines`` say nothing."""
        return Start(0, 0, {}, len(self._streams), -1)

    def last(self, limit: int) -> Start:
        """Return where the last ``limit`` lines begin, at least one; fewer if there are no more."""
        with _Files(self._path) as files, OpenIndex(files.ahead.directory) as index:
            unfinished = min(limit, self._count_unfinished(files))
            position, skip, found = self._end, 0, 0
            if unfinished < limit:
                position, skip, found = self._before_lines(files, index.file, limit - unfinished)
            opened = self._opened_before(files, index.file, position, skip)
        return Start(position, skip, opened, unfinished, unfinished + found)

    def forward(self, start: Start) -> Iterator[bytes]:
        """Yield all lines from there on; the last one has an end only if it was captured."""
        assembler = _Assembler(self._labels, dict(start.opened))
        with _Files(self._path) as files, OpenIndex(files.ahead.directory) as index:
            records = _of(self._streams, index.file.records(start.position, self._end))
            yield from assembler.lines(files, records, start.skip)
            yield from assembler.rest(files, start.unfinished)

    def _count_unfinished(self, files: _Files) -> int:
        places = ((stream, *self._chain.end(stream)) for stream in self._streams)
        return sum(b"\n" not in files.back.forward(stream, segment, end - 1, 1) for stream, segment, end in places)

    def _before_lines(self, files: _Files, index: IndexFile, wanted: int) -> tuple[int, int, int]:
        """Return the place after which ``wanted`` lines end (index, chunk), and how many these are."""
        missing = wanted
        for position, record in _backward(self._streams, index, self._end):
            at = record.length
            for block in files.ahead.backward(record.stream, record.segment, record.offset, record.length):
                at -= len(block)
                newlines = block.count(b"\n")
                if newlines > missing:
                    return position, at + after_newline(block, missing + 1), wanted
                missing -= newlines
        return 0, 0, wanted - missing

    def _opened_before(self, files: _Files, index: IndexFile, position: int, skip: int) -> dict[Stream, _OpenLine]:
        """Return the lines that began before a place and did not end before it."""
        wanted = set(self._streams)
        if skip:
            [there] = index.records(position, position + RECORD_BYTES)
            wanted.discard(there.stream)  # what is skipped ends with a newline
        found: dict[Stream, list[tuple[Record, int]]] = {stream: [] for stream in wanted}
        for _, record in _backward(self._streams, index, position):
            if record.stream in wanted:
                begin = self._last_line_in(files, record)
                if begin < record.length:
                    found[record.stream].append((record, begin))
                if begin:
                    wanted.discard(record.stream)
            if not wanted:
                break
        return {stream: self._reopen(parts[::-1]) for stream, parts in found.items() if parts}

    def _last_line_in(self, files: _Files, record: Record) -> int:
        at = record.length
        for block in files.ahead.backward(record.stream, record.segment, record.offset, record.length):
            at -= len(block)
            begin = block.rfind(b"\n") + 1
            if begin:
                return at + begin
        return 0

    def _reopen(self, parts: list[tuple[Record, int]]) -> _OpenLine:
        line = _OpenLine(parts[0][0], _label(self._labels, parts[0][0]))
        for record, begin in parts:
            line.extend(record.segment, record.offset + begin, record.length - begin)
        return line


class LineTail(CombinedTail):
    """The lines of a run that is being written, each when it has ended; see ``follow.Follower``."""

    def __init__(self, path: str, view: View, labels: Labels) -> None:
        super().__init__(path)
        self._streams = _SHOWN[view]
        self._assembler = _Assembler(labels, {})

    def finish(self, write: Write) -> None:
        """Print what has no end, after the last poll."""
        with _Files(self._path) as files:
            for block in joined(self._assembler.rest(files, len(STREAMS))):
                write(block)

    def notices(self, number: int) -> tuple[Notice, ...]:
        """Return what to tell on stderr about a run that is completed and drained."""
        return _about(self._streams, super().notices(number))

    def _render(self, _files: RunFiles, records: Iterator[Record]) -> Iterator[bytes]:
        with _Files(self._path) as files:
            yield from self._assembler.lines(files, _of(self._streams, records))


def open_lines(path: str, number: int, *, view: View, labels: Labels, active: bool = False) -> LineSource:
    """Return the lines of a run after checking its whole index; arguments and errors as ``reader.open_run``."""
    with LogDirectory(path) as directory:
        inventory = take_inventory(directory)
        chain = check_index(directory, inventory)
    notices = () if active else _about(_SHOWN[view], unindexed_notices(chain, inventory, number))
    return LineSource(path, view, labels, chain=chain, notices=notices)


def copy_lines(sections: Sequence[tuple[bytes, LineSource]], write: Write, *, lines: int = -1) -> None:
    """Print several runs, each after a header that may be empty; arguments and blocks as ``reader.copy``."""
    page = Page(write)
    for header, source, start in reversed(list(_last_sections(sections, lines))):
        page.begin()
        if header:
            page(header)
        for block in joined(source.forward(start)):
            page(block)


def _last_sections(
    sections: Sequence[tuple[bytes, LineSource]], missing: int
) -> Iterator[tuple[bytes, LineSource, Start]]:
    """Yield the sections that have some of the last lines, the last one first; a header is a line."""
    if missing < 0:
        yield from ((header, source, source.beginning()) for header, source in reversed(sections))
        return
    for header, source in reversed(sections):
        if not missing:
            return
        start = source.last(missing)
        missing -= start.lines
        shown = header if missing else b""
        missing -= bool(shown)
        yield shown, source, start


def _about(streams: tuple[Stream, ...], notices: tuple[Notice, ...]) -> tuple[Notice, ...]:
    return tuple(notice for notice in notices if notice.stream in streams)


def _of(streams: tuple[Stream, ...], records: Iterator[Record]) -> Iterator[Record]:
    return (record for record in records if record.stream in streams)


def _backward(streams: tuple[Stream, ...], index: IndexFile, end: int) -> Iterator[tuple[int, Record]]:
    """Yield the records of some streams before a position, each with its own position, the last one first."""
    position = end
    for record in index.records_backward(0, end):
        position -= RECORD_BYTES
        if record.stream in streams:
            yield position, record


def _label(labels: Labels, record: Record) -> bytes:
    stamp = f"{format_timestamp(record.wall_ns)} ".encode() if labels.timestamps else b""
    return stamp + (_PREFIXES[record.stream] if labels.prefix else b"")
