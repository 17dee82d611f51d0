"""Both streams of a run in the order in which they were observed: the chunks, one index record after the other."""

from __future__ import annotations

import os

from jobman.errors import MissingLogError
from jobman.logs import layout
from jobman.logs.index import RECORD_BYTES, Chain, IndexFile, whole_records
from jobman.logs.runfiles import Notice, NoticeKind, RunFiles, joined, take_inventory
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from jobman.logs.index import Record
    from jobman.logs.runfiles import Inventory
    from jobman.model.state import Stream


class CombinedSource:
    """The chunks that a validated index names; see ``reader.Source``.

    Args:
        path: the run's directory.
        chain: which checked the index, up to the byte where this source ends.
        notices: what to tell on stderr.
    """

    def __init__(self, path: str, chain: Chain, notices: tuple[Notice, ...]) -> None:
        self.length = sum(chain.total(stream) for stream in layout.STREAMS)
        self.notices = notices
        self._path = path
        self._end = chain.position

    def forward(self, skip: int = 0) -> Iterator[bytes]:
        """Yield all bytes but the first ``skip``."""
        with RunFiles(self._path) as files, OpenIndex(files.directory) as index:
            start, skip = self._locate(index.file, skip)
            yield from _chunks(files, index.file.records(start, self._end), skip)

    def backward(self) -> Iterator[bytes]:
        """Yield all bytes, the last block first."""
        with RunFiles(self._path) as files, OpenIndex(files.directory) as index:
            for record in index.file.records_backward(0, self._end):
                yield from files.backward(record.stream, record.segment, record.offset, record.length)

    def _locate(self, index: IndexFile, skip: int) -> tuple[int, int]:
        # From the end, since who skips anything wants a few lines of a large log.
        if skip == 0:
            return 0, 0
        position, remaining = self._end, self.length - skip
        for record in index.records_backward(0, self._end):
            if remaining <= 0:
                break
            position -= RECORD_BYTES
            remaining -= record.length
        return position, max(-remaining, 0)


class CombinedTail:
    """The chunks of a run that is being written, from the first one on; see ``follow.Follower``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._chain = Chain(f"{path}/{layout.INDEX}", self._size_of)
        self._identity: tuple[int, int] | None = None

    def poll(self, write: Callable[[bytes], object]) -> int:
        """Check the records that are new, then print their chunks."""
        printed = 0
        with RunFiles(self._path) as files, OpenIndex(files.directory) as index:
            start, stop = self._chain.position, self._new_end(index.file)
            for block in index.file.blocks(start, stop):
                self._chain.extend(block)
            self._chain.settle()
            if start == stop:
                return 0
            for block in joined(self._render(files, index.file.records(start, stop))):
                write(block)
                printed += len(block)
        return printed

    def notices(self, number: int) -> tuple[Notice, ...]:
        """Return what to tell on stderr about a run that is completed and drained."""
        with layout.LogDirectory(self._path) as directory:
            return unindexed_notices(self._chain, take_inventory(directory), number)

    def finish(self, _write: Callable[[bytes], object]) -> None:
        """Print what was held back; here nothing is."""

    def _render(self, files: RunFiles, records: Iterator[Record]) -> Iterator[bytes]:
        return _chunks(files, records)

    def _new_end(self, index: IndexFile) -> int:
        status = os.fstat(index.descriptor)
        identity = (status.st_dev, status.st_ino)
        position = self._chain.position
        if self._identity not in {None, identity}:
            raise index.corrupt(position, "it was replaced while it was followed")
        if status.st_size < position:
            raise index.corrupt(status.st_size, "it became shorter")
        self._identity = identity
        return whole_records(status.st_size)

    def _size_of(self, stream: Stream, segment: int) -> int:
        with layout.LogDirectory(self._path) as directory:
            return directory.look(layout.segment_name(stream, segment)).st_size


def _chunks(files: RunFiles, records: Iterator[Record], skip: int = 0) -> Iterator[bytes]:
    for record in records:
        yield from files.forward(record.stream, record.segment, record.offset + skip, record.length - skip)
        skip = 0


class OpenIndex:
    """The index of a run while it is open, to be used in a ``with`` statement."""

    def __init__(self, directory: layout.LogDirectory) -> None:
        self.file = IndexFile(directory.open(layout.INDEX), f"{directory.path}/{layout.INDEX}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.file.descriptor)


def open_combined(path: str, number: int, *, active: bool) -> CombinedSource:
    """Return the combined view after checking its whole index; arguments and errors as ``reader.open_run``."""
    with layout.LogDirectory(path) as directory:
        inventory = take_inventory(directory)
        chain = check_index(directory, inventory)
    notices = () if active else unindexed_notices(chain, inventory, number)
    return CombinedSource(path, chain, notices)


def check_index(directory: layout.LogDirectory, inventory: Inventory) -> Chain:
    """Check all whole records that the index had when the inventory was taken, against the files as they were then.

    Raises:
        CorruptIndexError: see ``Chain``.
        MissingLogError: the index names a segment that is not there.
    """
    with OpenIndex(directory) as index:
        chain = Chain(index.file.path, sizes_in(inventory, directory.path))
        for block in index.file.blocks(0, whole_records(inventory.index_bytes)):
            chain.extend(block)
    chain.settle()
    return chain


def sizes_in(inventory: Inventory, path: str) -> Callable[[Stream, int], int]:
    """Return what tells a ``Chain`` the sizes of an inventory; it raises ``MissingLogError`` for a missing segment."""

    def size_of(stream: Stream, segment: int) -> int:
        sizes = inventory.sizes(stream)
        if segment > len(sizes):
            name = layout.segment_name(stream, segment)
            raise MissingLogError(path=f"{path}/{name}", run=os.path.basename(path), offset=sum(sizes))
        return sizes[max(segment, 1) - 1]

    return size_of


def unindexed_bytes(chain: Chain, inventory: Inventory, stream: Stream) -> int:
    """Return how many bytes of a stream no record names."""
    return sum(inventory.sizes(stream)) - chain.total(stream)


def unindexed_notices(chain: Chain, inventory: Inventory, number: int) -> tuple[Notice, ...]:
    """Return one notice for each stream of a completed run that holds bytes without a record."""
    notices = []
    for stream in layout.STREAMS:
        left_out = unindexed_bytes(chain, inventory, stream)
        if left_out:
            text = (
                f"run {number}: {left_out} bytes of {stream} from byte {chain.total(stream)} on are not in the chunk "
                f"index and were left out; --stream {stream} alone shows them"
            )
            notices.append(Notice(NoticeKind.UNINDEXED, number, chain.total(stream), text, stream))
    return tuple(notices)
