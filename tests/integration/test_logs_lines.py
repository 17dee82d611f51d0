"""What ``logs --timestamps`` and ``--prefix`` print: whole lines under labels (contract, A.16)."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobman.errors import CorruptIndexError, MissingLogError
from jobman.logs.capture import Capture
from jobman.logs.follow import Follower
from jobman.logs.index import LARGEST_CHUNK, Record, encode
from jobman.logs.layout import Labels, View, create_run_directory, segment_name
from jobman.logs.lines import copy_lines, open_lines
from jobman.logs.reader import header
from jobman.model.scalars import format_timestamp
from jobman.model.state import Stream
from jobman.testing import FakeClock
from tests.integration.test_logs_reading import damages, last_lines, small_blocks
from tests.unit.logs.support import ERR, JOB, OUT, Write, content, index_records, put, read, scratch_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PREFIX, STAMPED = Labels(prefix=True), Labels(timestamps=True)
SHOWN = {View.STDOUT: (OUT,), View.STDERR: (ERR,), View.BOTH: (OUT, ERR)}
MIDLINE = [Write(OUT, b"a"), Write(ERR, b"x\ny"), Write(OUT, b"b\nc\nd", flush=True), Write(ERR, b"z")]

texts = st.lists(
    st.builds(
        Write,
        st.sampled_from([OUT, ERR]),
        st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\xff"]), min_size=1, max_size=5).map(b"".join),
        st.booleans(),
    ),
    max_size=9,
)
shapes = st.tuples(st.sampled_from(list(View)), st.builds(Labels, st.booleans(), st.booleans()))


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), JOB, 1)


def record(directory: str, sequence: Sequence[Write], segment_bytes: int = 0) -> None:
    """Capture the writes, each a nanosecond after the one before."""
    clock = FakeClock(wall_ns=5_000_000_000)
    capture = Capture(directory, clock=clock, segment_bytes=segment_bytes)
    for write in sequence:
        clock.advance(1)
        capture.write(write.stream, write.data)
        if write.flush:
            capture.flush()
    capture.close()


def reference(run: str, view: View, labels: Labels) -> bytes:
    """Put the lines together byte by byte, from what the index says."""
    ended: list[bytes] = []
    opened: dict[Stream, bytes] = {}
    for chunk in index_records(run):
        data = read(run, segment_name(chunk.stream, chunk.segment))[chunk.offset : chunk.offset + chunk.length]
        stamp = f"{format_timestamp(chunk.wall_ns)} " if labels.timestamps else ""
        name = {OUT: "out| ", ERR: "err| "}[chunk.stream] if labels.prefix else ""
        for byte in data if chunk.stream in SHOWN[view] else b"":
            opened[chunk.stream] = opened.get(chunk.stream, f"{stamp}{name}".encode()) + bytes([byte])
            if byte == ord("\n"):
                ended.append(opened.pop(chunk.stream))
    return b"".join(ended) + b"\n".join(opened.values())


def printed(runs: Sequence[str], view: View, labels: Labels, lines: int = -1, *, headers: bool = False) -> bytes:
    blocks: list[bytes] = []
    sections = [
        (header(number) if headers else b"", open_lines(run, number, view=view, labels=labels))
        for number, run in enumerate(runs, start=1)
    ]
    copy_lines(sections, blocks.append, lines=lines)
    return b"".join(blocks)


def test_lines_of_both_streams_stay_whole_though_their_chunks_alternate(run: str) -> None:
    """A.16: a line is printed when it has ended; those without an end come last, as they began."""
    record(run, MIDLINE)
    assert printed([run], View.BOTH, PREFIX) == b"err| x\nout| ab\nout| c\nerr| yz\nout| d"
    assert printed([run], View.STDOUT, PREFIX) == b"out| ab\nout| c\nout| d"
    assert printed([run], View.STDERR, Labels(timestamps=True, prefix=True)) == (
        b"1970-01-01T00:00:05.000000002Z err| x\n1970-01-01T00:00:05.000000002Z err| yz"
    )


@settings(max_examples=150, deadline=None)
@example(MIDLINE, (3, 1), (View.BOTH, PREFIX), 1)
@given(texts, st.tuples(st.integers(0, 4), st.integers(1, 5)), shapes, st.integers(-1, 9))
def test_all_lines_and_the_last_ones_equal_the_obvious_reference(
    sequence: list[Write], sizes: tuple[int, int], shape: tuple[View, Labels], lines: int
) -> None:
    """A.7, A.16: any chunks, any segments, any block borders."""
    view, labels = shape
    segment_bytes, block = sizes
    with scratch_run() as run, small_blocks(block):
        record(run, sequence, segment_bytes)
        assert printed([run], view, labels, lines) == last_lines(reference(run, view, labels), lines)


@settings(max_examples=60, deadline=None)
@given(
    runs=st.lists(texts, min_size=1, max_size=3),
    view=st.sampled_from(list(View)),
    lines=st.integers(-1, 9),
    headers=st.booleans(),
)
def test_each_run_begins_on_a_line_of_its_own(
    *, runs: list[list[Write]], view: View, lines: int, headers: bool
) -> None:
    """A.7: headers count as lines."""
    with ExitStack() as stack:
        directories = [stack.enter_context(scratch_run(number)) for number in range(1, len(runs) + 1)]
        whole = b""
        for number, (run, sequence) in enumerate(zip(directories, runs, strict=True), start=1):
            record(run, sequence)
            part = (header(number) if headers else b"") + reference(run, view, PREFIX)
            whole += b"\n" * (bool(part) and not whole.endswith(b"\n") and bool(whole)) + part
        assert printed(directories, view, PREFIX, lines, headers=headers) == last_lines(whole, lines)


@settings(max_examples=80, deadline=None)
@given(texts, st.sets(st.integers(0, 9)), st.sampled_from([0, 1, 4]), shapes)
def test_following_prints_the_same_lines_whenever_one_looks(
    sequence: list[Write], looks: set[int], segment_bytes: int, shape: tuple[View, Labels]
) -> None:
    """J.6."""
    view, labels = shape
    with scratch_run() as run:
        clock = FakeClock(wall_ns=5_000_000_000)
        capture = Capture(run, clock=clock, segment_bytes=segment_bytes)
        follower = Follower(run, view, labels)
        blocks: list[bytes] = []
        for number, write in enumerate(sequence):
            if number in looks:
                capture.flush()
                follower.poll(blocks.append)
                assert b"".join(blocks) == b"" or blocks[-1].endswith(b"\n")
            clock.advance(1)
            capture.write(write.stream, write.data)
        capture.close()
        follower.poll(blocks.append)
        follower.finish(blocks.append)
        assert b"".join(blocks) == reference(run, view, labels)
        assert follower.notices(1) == ()


@pytest.mark.parametrize("view", list(View))
def test_what_has_no_record_is_left_out_and_said_of_the_streams_shown(run: str, view: View) -> None:
    """J.5: where a line began can only be told from the index."""
    record(run, MIDLINE)
    with open(f"{run}/stdout.log", "ab") as file:
        file.write(b"tail")
    source = open_lines(run, 1, view=view, labels=PREFIX)
    assert b"tail" not in printed([run], view, PREFIX)
    assert [notice.offset for notice in source.notices] == ([] if view is View.STDERR else [6])
    assert open_lines(run, 1, view=view, labels=PREFIX, active=True).notices == ()
    follower = Follower(run, view, PREFIX)
    follower.poll(lambda _: None)
    assert follower.notices(1) == source.notices


@pytest.mark.parametrize("view", list(View))
def test_damage_is_found_before_the_first_line(run: str, view: View) -> None:
    """J.5; O.50: with run and byte."""
    record(run, MIDLINE)
    whole = read(run, "chunks.idx")
    put(run, "chunks.idx", whole[:60] + b"?" + whole[61:])
    with pytest.raises(CorruptIndexError, match=r"chunks\.idx of run 1 at byte 52: its checksum is wrong"):
        open_lines(run, 1, view=view, labels=STAMPED)
    os.unlink(f"{run}/stderr.log")
    with pytest.raises(MissingLogError, match=r"stderr\.log of run 1, which began at byte 0"):
        open_lines(run, 1, view=view, labels=STAMPED)


@settings(max_examples=100, deadline=None)
@given(texts.filter(bool), damages, st.sampled_from([0, 4]))
def test_a_damaged_index_never_labels_what_was_not_captured(
    sequence: list[Write], damage: Callable[[bytes], bytes], segment_bytes: int
) -> None:
    """J.5: an error before any line, or the beginning of each stream and a notice of what is left out."""
    with scratch_run() as run:
        record(run, sequence, segment_bytes)
        put(run, "chunks.idx", damage(read(run, "chunks.idx")))
        for view, stream, label in ((View.STDOUT, OUT, b"out| "), (View.STDERR, ERR, b"err| ")):
            try:
                source = open_lines(run, 1, view=view, labels=PREFIX)
            except CorruptIndexError:
                continue
            lines = printed([run], view, PREFIX).splitlines(keepends=True)
            assert all(line.startswith(label) for line in lines)
            output = b"".join(line.removeprefix(label) for line in lines)
            assert content(sequence, stream).startswith(output)
            assert output == content(sequence, stream) or source.notices


def test_a_line_larger_than_memory_is_labelled_and_the_other_stream_goes_on(run: str) -> None:
    """C5; field case 20: 256 MiB without a newline, the other stream's lines in between."""
    size = 256 * 1024 * 1024
    os.truncate(f"{run}/stdout.log", size)
    with open(f"{run}/stdout.log", "r+b") as file:
        file.seek(size - 1)
        file.write(b"\n")
    count = size // LARGEST_CHUNK
    put(run, "stderr.log", b"meanwhile\n" * count)
    records = []
    for number in range(count):
        records.append(Record(1, OUT, 0, 2 * number + 1, number * LARGEST_CHUNK, LARGEST_CHUNK, 0))
        records.append(Record(1, ERR, 0, 2 * number + 2, number * 10, 10, 0))
    put(run, "chunks.idx", b"".join(map(encode, records)))
    sizes: list[int] = []
    tracemalloc.start()
    source = open_lines(run, 1, view=View.BOTH, labels=PREFIX)
    copy_lines([(b"", source)], lambda block: sizes.append(len(block)), lines=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) == size + 5 + 15
    assert peak < 3 * 1024 * 1024


def test_nothing_stays_open(run: str) -> None:
    record(run, MIDLINE, segment_bytes=1)
    before = len(os.listdir("/proc/self/fd"))
    follower = Follower(run, View.BOTH, PREFIX)
    follower.poll(lambda _: None)
    follower.finish(lambda _: None)
    assert printed([run], View.BOTH, PREFIX, 2)
    assert len(os.listdir("/proc/self/fd")) == before
