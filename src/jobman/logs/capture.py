"""Recording what a target writes, so that every record of the index names durable bytes (architecture, Log durability).

Raw bytes go to the stream files at once. At most 50 ms or 8 MiB later the batch is closed: the files that it wrote are
synced, then the directory if it has a new file, and only then are the index records written and synced.
"""

from __future__ import annotations

import os

from jobman.logs import index, layout
from jobman.logs.durable import (
    DurableFile,
    RecordingError,
    attempt,
    degraded,
    hold_reserve,
    refused,
    removed,
    share_reserve,
)
from jobman.model.state import LogIntegrity, Problem, RecordingHealth, Stream
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from jobman.clock import Clock
    from jobman.model.state import Diagnostic

BATCH_NS: Final = 50_000_000
BATCH_BYTES: Final = 8 * 1024 * 1024

_STDOUT: Final = Stream.STDOUT
# Segments that fill up within one batch stay open until it is synced; this bounds their descriptors.
_FILES_PER_BATCH: Final = 16
_CLOSED: Final = -1


class CaptureResult(NamedTuple):
    """What became of a run's output; sizes are bytes stored, ``problem`` is ``None`` while health is good."""

    integrity: LogIntegrity
    health: RecordingHealth
    problem: Problem | None
    stdout_bytes: int
    stderr_bytes: int
    index_version: int


class _Sink:
    """One stream: its present file (``None`` while nothing is stored), its segment, and the bytes of all segments."""

    __slots__ = ("captured", "file", "segment", "stream", "total")

    def __init__(self, stream: Stream, streams: tuple[Stream, ...], segment: int) -> None:
        self.stream = stream
        self.captured = stream in streams
        self.segment = segment
        self.file: DurableFile | None = None
        self.total = 0


class Capture:
    """Appends the output of one run to its files; for one thread, and never the reason why a run fails.

    Whatever goes wrong with the files ends recording for the run: what is stored stays, later output is dropped and
    counted, and ``close`` tells the problem. A failed sync is never tried again: the kernel has already forgotten which
    pages were bad, and a second call would report success.

    Args:
        directory: as ``layout.create_run_directory`` made it.
        clock: its monotonic reading times the batches, its wall reading dates the records.
        streams: those to record; output of the others is discarded and counts as no loss.
        segment_bytes: size at which a stream goes on in another file; 0 means one file per stream.
        segments: how many files a stream may have; 0 means as many as names allow (65,535).
    """

    def __init__(
        self,
        directory: str,
        *,
        clock: Clock,
        streams: tuple[Stream, ...] = layout.STREAMS,
        segment_bytes: int = 0,
        segments: int = 0,
    ) -> None:
        self.index_version: Final = index.SEGMENTED if segment_bytes else index.UNSEGMENTED
        self.dropped_bytes = 0
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._segments = segments or layout.LAST_SEGMENT
        first = 1 if segment_bytes else 0
        self._stdout = _Sink(Stream.STDOUT, streams, first)
        self._stderr = _Sink(Stream.STDERR, streams, first)
        self._directory = _CLOSED
        self._index: DurableFile | None = None
        # The batch: chunks that await their records, the one that still grows, and how much more it may take.
        self._current: _Sink | None = None
        self._chunk_offset = self._chunk_wall_ns = 0
        self._room = 0
        self._batch_bytes = 0
        self._chunks: list[index.Record] = []
        self._sequence = 0
        self._retired: list[DurableFile] = []
        self._created_file = False
        # Its entries are not durable yet; "" once they are.
        self._new_directory = directory
        self._due_ns: int | None = None
        self._has_reserve = self._ended = False
        self._failure: Problem | None = None
        self._loss_outside: Problem | None = None
        self._result: CaptureResult | None = None
        self._guard(lambda: self._open(directory))

    def write(self, stream: Stream, data: bytes | memoryview) -> None:
        """Store what was read from a stream, at once; never raises because of the files.

        Args:
            stream: where it came from.
            data: a memoryview must be of bytes; it is not kept.
        """
        sink = self._stdout if stream is _STDOUT else self._stderr
        size = len(data)
        if sink is not self._current or size > self._room:
            self._write_pieces(sink, data)
            return
        # From here on: the usual case, kept short since a target may write a hundred thousand times a second.
        written = self._append(sink, data)
        if written < size:
            self._write_pieces(sink, memoryview(data)[written:])

    def due_ns(self) -> int | None:
        """Return the monotonic time at which ``flush`` must be called, or ``None`` while nothing is pending."""
        return self._due_ns

    def flush(self) -> None:
        """Close the batch: sync its files, then its directory, then write and sync its records."""
        if self._due_ns is None:
            return
        self._finish_chunk()
        self._due_ns = None
        self._batch_bytes = 0
        self._guard(self._commit)

    def degrade(self, code: Diagnostic, text: str) -> None:
        """Note that output was lost outside of this capture, such as by ``descendant_holds_output``.

        Recording goes on and the files stay valid. The first note is kept; a failure of the files outweighs it.
        """
        if self._loss_outside is None:
            self._loss_outside = Problem(code, text)

    def close(self) -> CaptureResult:
        """Close the last batch and the files, remove ``.active``, and tell the result; later calls repeat it."""
        if self._result is None:
            self.flush()
            if not self._ended:
                self._guard(self._verify_all)
            self._close_files()
            self._guard(self._remove_marker)
            self._result = self._summary()
        return self._result

    # --- Writing ---------------------------------------------------------------------------------------------------

    def _append(self, sink: _Sink, data: bytes | memoryview) -> int:
        file = sink.file
        if file is None:  # recording ended
            return 0
        try:
            written = os.write(file.descriptor, data)
        except OSError as error:
            self._fail_write(file, error)
            return 0
        file.size += written
        self._room -= written
        return written

    def _fail_write(self, file: DurableFile, error: OSError) -> None:
        self._end_after_batch(refused("write to", file.name, error).problem)

    def _write_pieces(self, sink: _Sink, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest and sink.file is not None:
            self._make_room(sink)
            written = self._append(sink, rest[: self._room])
            rest = rest[written:]
            if not written:
                self._end(degraded(f"{sink.stream}.log takes no more bytes").problem)
        if self._ended and sink.captured:
            self.dropped_bytes += len(rest)

    def _make_room(self, sink: _Sink) -> None:
        if self._room == 0 and self._current is not None:
            self._finish_chunk()
        if self._batch_bytes >= BATCH_BYTES or len(self._retired) >= _FILES_PER_BATCH:
            self.flush()
        if self._segment_bytes and sink.file is not None and sink.file.size >= self._segment_bytes:
            self._rotate(sink, sink.file)
        if self._current is not sink and sink.file is not None:
            self._begin_chunk(sink, sink.file)

    def _begin_chunk(self, sink: _Sink, file: DurableFile) -> None:
        self._finish_chunk()
        if not self._has_reserve:
            self._has_reserve = True
            hold_reserve(self._directory, layout.ACTIVE_MARKER)
        if self._due_ns is None:
            self._due_ns = self._clock.monotonic_ns() + BATCH_NS
        self._current = sink
        self._chunk_offset = file.size
        self._chunk_wall_ns = self._clock.wall_ns()
        self._room = BATCH_BYTES - self._batch_bytes
        if self._segment_bytes:
            self._room = min(self._room, self._segment_bytes - file.size)
        file.dirty = True

    def _finish_chunk(self) -> None:
        sink, self._current = self._current, None
        if sink is None or sink.file is None:
            return
        length = sink.file.size - self._chunk_offset
        if length == 0:  # its only write failed
            return
        sink.total += length
        self._batch_bytes += length
        self._sequence += 1
        self._chunks.append(
            index.Record(
                self.index_version,
                sink.stream,
                sink.segment,
                self._sequence,
                self._chunk_offset,
                length,
                self._chunk_wall_ns,
            )
        )

    def _rotate(self, sink: _Sink, full: DurableFile) -> None:
        self._finish_chunk()
        if sink.segment >= self._segments:
            text = f"{sink.stream} filled its {self._segments} segments of {self._segment_bytes} bytes"
            self._end_after_batch(degraded(text).problem)
            return
        name = layout.segment_name(sink.stream, sink.segment + 1)
        try:
            sink.file = DurableFile(self._directory, name, layout.CREATE_FLAGS)
        except OSError as error:
            self._end_after_batch(refused("create", name, error).problem)
            return
        self._retired.append(full)
        sink.segment += 1
        self._created_file = True

    # --- Committing ------------------------------------------------------------------------------------------------

    def _commit(self) -> None:
        for file in (*self._retired, *self._stream_files()):
            if file.dirty:
                file.sync()
        for file in self._retired:
            file.close()
        self._retired.clear()
        if self._new_directory:
            path, self._new_directory, self._created_file = self._new_directory, "", False
            attempt("sync", "the log directory", lambda: layout.sync_entries(path))
        elif self._created_file:
            self._created_file = False
            attempt("sync", "the log directory", lambda: os.fsync(self._directory))
        self._append_records()

    def _append_records(self) -> None:
        file, chunks = self._index, self._chunks
        if file is None or not chunks:
            return
        self._chunks = []
        file.append(b"".join(map(index.encode, chunks)))
        file.sync()

    def _stream_files(self) -> list[DurableFile]:
        return [sink.file for sink in (self._stdout, self._stderr) if sink.file is not None]

    # --- Opening, ending -------------------------------------------------------------------------------------------

    def _open(self, directory: str) -> None:
        try:
            self._directory = os.open(directory, layout.DIRECTORY_FLAGS)
            self._index = DurableFile(self._directory, layout.INDEX)
            for sink in (self._stdout, self._stderr):
                if sink.captured:
                    sink.file = DurableFile(self._directory, layout.segment_name(sink.stream, sink.segment))
        except OSError as error:
            raise refused("open", "the log files", error) from error

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except RecordingError as error:
            self._end(error.problem)

    def _end_after_batch(self, problem: Problem) -> None:
        # What was stored before is still good and deserves its records; if they fail too, the first failure is told.
        self._failure = problem
        share_reserve(self._directory, layout.ACTIVE_MARKER)
        self.flush()
        self._end(problem)

    def _end(self, problem: Problem) -> None:
        if self._ended:
            return
        self._finish_chunk()
        self._ended = True
        self._failure = self._failure or problem
        self._due_ns = None
        self._chunks = []
        # At once: a removed file gives its space back only when it is closed.
        self._close_files()

    def _close_files(self) -> None:
        for file in (*self._retired, *self._stream_files()):
            file.close()
        self._retired.clear()
        self._stdout.file = self._stderr.file = None
        if self._index is not None:
            self._index.close()
            self._index = None

    def _verify_all(self) -> None:
        # A file that was removed after its last batch was closed is still a loss.
        for file in self._stream_files():
            file.verify()
        if self._index is not None:
            self._index.verify()
        for sink in (self._stdout, self._stderr):
            if sink.segment > 1:
                self._verify_full_segments(sink)

    def _verify_full_segments(self, sink: _Sink) -> None:
        # They are closed, so only their names can tell.
        names: list[str] = []
        attempt("list", "the log directory", lambda: names.extend(os.listdir(self._directory)))
        found = frozenset(names)
        for segment in range(1, sink.segment):
            name = layout.segment_name(sink.stream, segment)
            if name not in found:
                raise removed(name)

    def _remove_marker(self) -> None:
        directory, self._directory = self._directory, _CLOSED
        if directory == _CLOSED:
            return
        try:
            attempt("remove", layout.ACTIVE_MARKER, lambda: layout.remove_marker(directory))
        finally:
            os.close(directory)

    def _summary(self) -> CaptureResult:
        problem = self._failure or self._loss_outside
        if problem is not None and self.dropped_bytes:
            problem = Problem(problem.code, f"{problem.text}; {self.dropped_bytes} bytes of later output were dropped")
        return CaptureResult(
            LogIntegrity.PARTIAL if self._ended else LogIntegrity.VALID,
            RecordingHealth.DEGRADED if problem else RecordingHealth.HEALTHY,
            problem,
            self._stdout.total,
            self._stderr.total,
            self.index_version,
        )
