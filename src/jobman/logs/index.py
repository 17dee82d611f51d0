"""The chunk index: one 52-byte record per chunk, in the order in which the chunks were observed (contract, J.2).

A record names a byte range of a stream file. Version 1 knows one file per stream (segment 0), version 2 segments from 1
on; an index holds one version only. Sequence numbers are contiguous over both streams, offsets within each file.
"""

from __future__ import annotations

import os
import struct

import google_crc32c

from jobman.errors import CorruptIndexError
from jobman.model.state import Stream
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

RECORD_BYTES: Final = 52
LARGEST_CHUNK: Final = 16 * 1024 * 1024
UNSEGMENTED: Final = 1
SEGMENTED: Final = 2

if google_crc32c.implementation != "c":
    # The fallback in Python takes half a minute for a large index.
    raise ImportError("jobman needs the C implementation of google-crc32c: reinstall it from a wheel")
_crc32c: Callable[[bytes], int] = google_crc32c.value
_MAGIC: Final = b"JMLI"
_SECOND: Final = 1_000_000_000
_CHECKED_BYTES: Final = 48
_HEAD: Final = struct.Struct("<4sBBHQQQqq")
_WHOLE: Final = struct.Struct("<4sBBHQQQqqI")
_BLOCK_RECORDS: Final = 1260  # just under 64 KiB
_BLOCK_BYTES: Final = _BLOCK_RECORDS * RECORD_BYTES
_FEW_RECORDS: Final = 16
_CODES: Final = {Stream.STDOUT: 1, Stream.STDERR: 2}
_STREAMS: Final = {code: stream for stream, code in _CODES.items()}


class Record(NamedTuple):
    """One chunk: ``length`` bytes at ``offset`` of a segment of ``stream``, first byte observed at ``wall_ns``."""

    version: int
    stream: Stream
    segment: int
    sequence: int
    offset: int
    length: int
    wall_ns: int


def encode(record: Record) -> bytes:
    """Return the 52 bytes of a record."""
    seconds, nanoseconds = divmod(record.wall_ns, _SECOND)
    head = _HEAD.pack(
        _MAGIC,
        record.version,
        _CODES[record.stream],
        record.segment,
        record.sequence,
        record.offset,
        record.length,
        seconds,
        nanoseconds,
    )
    return head + _crc32c(head).to_bytes(4, "little")


def decode(data: bytes) -> Record:
    """Return the record in 52 bytes.

    Raises:
        ValueError: with the reason, if they are no valid record by themselves.
    """
    magic, version, code, segment, sequence, offset, length, seconds, nanoseconds, checksum = _WHOLE.unpack(data)
    if magic != _MAGIC:
        raise ValueError("it does not begin with JMLI")
    if checksum != _crc32c(data[:_CHECKED_BYTES]):
        raise ValueError("its checksum is wrong")
    if code not in _STREAMS:
        raise ValueError(f"unknown stream {code}")
    if not 1 <= length <= LARGEST_CHUNK:
        raise ValueError(f"impossible length {length}")
    if not 0 <= nanoseconds < _SECOND:
        raise ValueError(f"impossible nanoseconds {nanoseconds}")
    if not (segment == 0 if version == UNSEGMENTED else version == SEGMENTED and segment > 0):
        raise ValueError(f"version {version} with segment {segment}")
    return Record(version, _STREAMS[code], segment, sequence, offset, length, seconds * _SECOND + nanoseconds)


class Chain:
    """Checks that records follow each other as J.2 demands, block by block, without keeping any of them.

    Args:
        path: of the index, for errors.
        size_of: tells the present size of a stream's segment in bytes; asked when the index leaves a segment, and by
            ``settle`` for those that still grow.

    Attributes:
        position: bytes of the index that were checked.
        version: of its records, ``None`` before the first.
    """

    def __init__(self, path: str, size_of: Callable[[Stream, int], int]) -> None:
        self.position = 0
        self.version: int | None = None
        self._path = path
        self._size_of = size_of
        # All by the stream's code: the present segment, where it ends, and the bytes of the segments before it.
        self._segments = {1: 0, 2: 0}
        self._ends = {1: 0, 2: 0}
        self._before = {1: 0, 2: 0}

    def total(self, stream: Stream) -> int:
        """Return the bytes of a stream that the records name, all segments together."""
        code = _CODES[stream]
        return self._before[code] + self._ends[code]

    def end(self, stream: Stream) -> tuple[int, int]:
        """Return the segment of a stream that the last of its records names, and where its bytes end there."""
        code = _CODES[stream]
        return self._segments[code], self._ends[code]

    def extend(self, block: bytes) -> None:
        """Check the next whole records.

        Raises:
            CorruptIndexError: one of them is damaged or does not follow; ``position`` then is where it begins.
        """
        segments, ends, start = self._segments, self._ends, self.position
        version, sequence, at = self.version, start // RECORD_BYTES + 1, 0
        for magic, form, code, segment, number, offset, length, _, nanoseconds, checksum in _WHOLE.iter_unpack(block):
            # The usual record costs this one condition; it repeats what decode and _add check with reasons.
            if (
                checksum == _crc32c(block[at : at + _CHECKED_BYTES])
                and magic == _MAGIC
                and form == version
                and number == sequence
                and code in segments
                and segment == segments[code]
                and offset == ends[code]
                and 1 <= length <= LARGEST_CHUNK
                and 0 <= nanoseconds < _SECOND
            ):
                ends[code] += length
            else:
                self.position = start + at
                self._add(block[at : at + RECORD_BYTES])
                version = self.version
            at += RECORD_BYTES
            sequence += 1
        self.position = start + at

    def settle(self) -> None:
        """Compare the segments that still grow with their files.

        Raises:
            CorruptIndexError: a file holds fewer bytes than the records name.
        """
        for code in _STREAMS:
            self._compare(code)

    def _add(self, data: bytes) -> None:
        try:
            record = decode(data)
        except ValueError as error:
            raise self._corrupt(str(error)) from None
        if self.version is None:
            self.version = record.version
            first = 0 if record.version == UNSEGMENTED else 1
            self._segments.update({1: first, 2: first})
        expected = self.position // RECORD_BYTES + 1
        if record.version != self.version:
            raise self._corrupt(f"version {record.version} among records of version {self.version}")
        if record.sequence != expected:
            raise self._corrupt(f"sequence {record.sequence} instead of {expected}")
        self._advance(record)

    def _advance(self, record: Record) -> None:
        code = _CODES[record.stream]
        segment, end = self._segments[code], self._ends[code]
        if self.version == SEGMENTED and record.segment == segment + 1 and end:
            self._compare(code)
            self._before[code] += end
            segment, end = record.segment, 0
        if (record.segment, record.offset) != (segment, end):
            place = f"{record.stream} segment {record.segment} offset {record.offset}"
            raise self._corrupt(f"{place} instead of segment {segment} offset {end}")
        self._segments[code] = segment
        self._ends[code] = end + record.length

    def _compare(self, code: int) -> None:
        stream, segment, end = _STREAMS[code], self._segments[code], self._ends[code]
        size = self._size_of(stream, segment) if end else 0
        if size < end:
            place = f"{stream} segment {segment}" if segment else stream
            raise self._corrupt(f"the records name {end} bytes of {place}, its file has {size}")

    def _corrupt(self, detail: str) -> CorruptIndexError:
        return _corrupt(self._path, self.position, detail)


class IndexFile(NamedTuple):
    """An open index and its path; reads whole blocks of records by position, never through the file's own offset."""

    descriptor: int
    path: str

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes from ``start`` to ``stop`` (multiples of 52) in blocks of whole records.

        Raises:
            CorruptIndexError: the file ends before ``stop``.
        """
        for position in range(start, stop, _BLOCK_BYTES):
            yield self._block(position, min(position + _BLOCK_BYTES, stop))

    def records(self, start: int, stop: int) -> Iterator[Record]:
        """Yield the records between two positions, in order; each is checked by itself, their chain is not.

        Raises:
            CorruptIndexError: a record is damaged, or the file ends before ``stop``.
        """
        for position in range(start, stop, _BLOCK_BYTES):
            yield from self._records(position, min(position + _BLOCK_BYTES, stop))

    def records_backward(self, start: int, stop: int) -> Iterator[Record]:
        """Yield the records between two positions, the last one first; checks and raises as ``records``."""
        # Blocks grow, since most who walk backward want a few records only.
        size = min(_FEW_RECORDS * RECORD_BYTES, _BLOCK_BYTES)
        while stop > start:
            begin = max(stop - size, start)
            yield from reversed(self._records(begin, stop))
            stop, size = begin, min(2 * size, _BLOCK_BYTES)

    def corrupt(self, position: int, detail: str) -> CorruptIndexError:
        """Return the error for an index that is not as it should be from a position on."""
        return _corrupt(self.path, position, detail)

    def _block(self, start: int, stop: int) -> bytes:
        block = os.pread(self.descriptor, stop - start, start)
        if len(block) < stop - start:
            raise self.corrupt(start + len(block), "it became shorter")
        return block

    def _records(self, start: int, stop: int) -> list[Record]:
        block = self._block(start, stop)
        records = []
        for at in range(0, len(block), RECORD_BYTES):
            try:
                records.append(decode(block[at : at + RECORD_BYTES]))
            except ValueError as error:
                raise self.corrupt(start + at, str(error)) from None
        return records


def whole_records(size: int) -> int:
    """Return how many bytes of an index of ``size`` bytes are whole records; the rest is a torn one."""
    return size - size % RECORD_BYTES


def _corrupt(path: str, position: int, detail: str) -> CorruptIndexError:
    # The run's directory is named after its number.
    return CorruptIndexError(path=path, run=os.path.basename(os.path.dirname(path)), offset=position, detail=detail)
