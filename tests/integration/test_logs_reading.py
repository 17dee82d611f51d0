"""What ``logs`` prints of a run: views, last lines, damage (contract, A.7 and J.5)."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.errors import CorruptIndexError, JobmanError, MissingLogError, UnsafeLogError
from jobman.logs import index, runfiles
from jobman.logs.capture import Capture
from jobman.logs.follow import Follower
from jobman.logs.index import RECORD_BYTES
from jobman.logs.layout import View, create_run_directory
from jobman.logs.reader import Concatenation, copy, open_run, with_header
from jobman.logs.runfiles import NoticeKind
from jobman.testing import FakeClock
from tests.unit.logs.support import (
    ERR,
    JOB,
    OUT,
    Write,
    content,
    printed,
    put,
    read,
    record,
    scratch_run,
    shown,
    writes,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jobman.logs.reader import Source

HELLO = [Write(OUT, b"one\n"), Write(ERR, b"two\n"), Write(OUT, b"three\n", flush=True), Write(ERR, b"four")]


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), JOB, 1)


def small_blocks(size: int) -> ExitStack:
    """Let block borders fall everywhere: blocks of ``size`` bytes, and of ``size`` index records."""
    stack = ExitStack()
    stack.enter_context(mock.patch.object(runfiles, "BLOCK_BYTES", size))
    stack.enter_context(mock.patch.object(index, "_BLOCK_BYTES", size * RECORD_BYTES))
    return stack


def last_lines(data: bytes, number: int) -> bytes:
    """What ``--lines`` means, in the most obvious way."""
    if number < 0:
        return data
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    return b"".join(lines[len(lines) - min(number, len(lines)) :])


# --- Views ---------------------------------------------------------------------------------------------------------


def test_each_view_shows_its_bytes(run: str) -> None:
    """A.7: raw bytes of a stream; both in observed order."""
    record(run, HELLO)
    assert shown(run, View.STDOUT) == b"one\nthree\n"
    assert shown(run, View.STDERR) == b"two\nfour"
    assert shown(run, View.BOTH) == b"one\ntwo\nthree\nfour"


@settings(max_examples=60, deadline=None)
@given(writes, st.sampled_from([0, 1, 3, 8]), st.integers(1, 9))
def test_what_was_written_is_what_is_read(sequence: list[Write], segment_bytes: int, block: int) -> None:
    """J.2, J.3; field case 17: any bytes, any segments, any block borders."""
    with scratch_run() as run, small_blocks(block):
        result = record(run, sequence, segment_bytes)
        source = open_run(run, 1, view=View.BOTH)
        assert printed(source) == content(sequence)
        assert source.notices == ()
        for view, stream, size in ((View.STDOUT, OUT, result.stdout_bytes), (View.STDERR, ERR, result.stderr_bytes)):
            assert shown(run, view) == content(sequence, stream)
            assert size == len(content(sequence, stream))


def test_a_run_without_output_prints_nothing(run: str) -> None:
    record(run, [])
    for view in View:
        assert shown(run, view) == b""
        assert shown(run, view, lines=3) == b""


def test_reading_many_segments_keeps_few_files_open_and_none_at_the_end(run: str) -> None:
    record(run, [Write(stream, b"x") for _ in range(30) for stream in (OUT, ERR)], segment_bytes=1)
    before = len(os.listdir("/proc/self/fd"))
    for view in View:
        source = open_run(run, 1, view=view)
        most = max(len(os.listdir("/proc/self/fd")) for _block in source.forward())
        assert most <= before + 4, "the directory, the index and one file of each stream"
        assert printed(source, lines=2)
        assert len(os.listdir("/proc/self/fd")) == before


def test_blocks_of_output_are_neither_tiny_nor_large(run: str) -> None:
    """Field case 20: blocks, never lines."""
    record(run, [Write(stream, b"x" * size) for size in (5, 70_000, 9, 800_000) for stream in (OUT, ERR)])
    blocks: list[bytes] = []
    copy(open_run(run, 1, view=View.BOTH), blocks.append)
    assert len(b"".join(blocks)) == 2 * 870_014
    assert max(map(len, blocks)) <= 512 * 1024
    assert min(map(len, blocks[:-1])) >= 256 * 1024


# --- Last lines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "lines", "expected"),
    [
        pytest.param(b"a\nb\nc\n", 1, b"c\n", id="the last newline ends a line and begins none"),
        pytest.param(b"a\nb\nc", 1, b"c", id="a last line without newline is one"),
        pytest.param(b"a\nb\nc", 2, b"b\nc", id="two"),
        pytest.param(b"a\n\n", 1, b"\n", id="an empty line is one"),
        pytest.param(b"a\nb\n", 9, b"a\nb\n", id="more than there are"),
        pytest.param(b"a\nb\n", 0, b"", id="none"),
        pytest.param(b"a\nb\n", -1, b"a\nb\n", id="all"),
    ],
)
def test_lines_counts_from_the_end(run: str, data: bytes, lines: int, expected: bytes) -> None:
    """A.7: --lines."""
    record(run, [Write(OUT, data)])
    assert last_lines(data, lines) == expected
    for view in (View.STDOUT, View.BOTH):
        assert shown(run, view, lines) == expected


texts = st.lists(
    st.builds(
        Write,
        st.sampled_from([OUT, ERR]),
        st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r", b"\xff"]), min_size=1, max_size=6).map(b"".join),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.integers(-1, 9), st.integers(1, 5), st.sampled_from(list(View)))
def test_last_lines_of_all_runs_equal_the_obvious_reference(
    runs: list[list[Write]], lines: int, block: int, view: View
) -> None:
    """A.7: headers count; block borders anywhere."""
    stream = {View.STDOUT: OUT, View.STDERR: ERR, View.BOTH: None}[view]
    with ExitStack() as stack:
        stack.enter_context(small_blocks(block))
        sources: list[Source] = []
        bare = b""
        headed = b""
        for number, sequence in enumerate(runs, start=1):
            run = stack.enter_context(scratch_run(number))
            record(run, sequence, segment_bytes=block - 1)
            sources.append(open_run(run, number, view=view))
            bare += content(sequence, stream)
            headed += f"==> run {number} <==\n".encode() + content(sequence, stream)
        assert printed(Concatenation(sources), lines) == last_lines(bare, lines)
        headers = [with_header(number, source) for number, source in enumerate(sources, start=1)]
        assert printed(Concatenation(headers), lines) == last_lines(headed, lines)


# --- Damage --------------------------------------------------------------------------------------------------------


def cut(data: bytes, seed: int) -> bytes:
    return data[: seed % (len(data) + 1)]


def flip(data: bytes, seed: int) -> bytes:
    at, change = seed % len(data), 1 + seed // len(data) % 255
    return data[:at] + bytes([data[at] ^ change]) + data[at + 1 :]


def append(data: bytes, seed: int) -> bytes:
    return data + bytes([seed % 256]) * (seed % 120)


def drop_record(data: bytes, seed: int) -> bytes:
    at = _some_record(data, seed)
    return data[:at] + data[at + RECORD_BYTES :]


def repeat_record(data: bytes, seed: int) -> bytes:
    at = _some_record(data, seed)
    return data[: at + RECORD_BYTES] + data[at:]


def swap_parts(data: bytes, seed: int) -> bytes:
    at = _some_record(data, seed)
    return data[at:] + data[:at]


def _some_record(data: bytes, seed: int) -> int:
    return seed % (len(data) // RECORD_BYTES) * RECORD_BYTES


damages = st.builds(
    partial,
    st.sampled_from([cut, flip, append, drop_record, repeat_record, swap_parts]),
    seed=st.integers(0, 100_000),
)


@settings(max_examples=300, deadline=None)
@given(writes.filter(bool), damages, st.sampled_from([0, 5]))
def test_a_damaged_index_never_prints_wrong_bytes_in_silence(
    sequence: list[Write], damage: Callable[[bytes], bytes], segment_bytes: int
) -> None:
    """J.5: an error before any byte, or the beginning of the output and a notice of what is left out."""
    with scratch_run() as run:
        record(run, sequence, segment_bytes)
        put(run, "chunks.idx", damage(read(run, "chunks.idx")))
        try:
            source = open_run(run, 1, view=View.BOTH)
        except CorruptIndexError:
            pass
        else:
            output = printed(source)
            assert content(sequence).startswith(output)
            assert output == content(sequence) or source.notices
            assert printed(source, 1) == last_lines(output, 1)
        followed: list[bytes] = []
        with suppress(CorruptIndexError):
            Follower(run, View.BOTH).poll(followed.append)
        assert content(sequence).startswith(b"".join(followed))
        assert shown(run, View.STDOUT) == content(sequence, OUT)
        assert shown(run, View.STDERR) == content(sequence, ERR)


def test_a_torn_last_record_is_silent_and_its_bytes_are_noticed(run: str) -> None:
    """J.5: torn final record, unindexed raw tail."""
    record(run, HELLO)
    put(run, "chunks.idx", read(run, "chunks.idx")[:-1])
    source = open_run(run, 1, view=View.BOTH)
    assert printed(source) == b"one\ntwo\nthree\n"
    [notice] = source.notices
    assert notice[:3] == (NoticeKind.UNINDEXED, 1, 4)
    assert "4 bytes of stderr from byte 4 on" in notice.text


def test_a_torn_record_beside_complete_streams_is_no_news(run: str) -> None:
    """J.5: torn final record is silent."""
    record(run, HELLO)
    put(run, "chunks.idx", read(run, "chunks.idx") + b"JMLI\x01")
    source = open_run(run, 1, view=View.BOTH)
    assert (printed(source), source.notices) == (content(HELLO), ())


def test_an_unindexed_tail_is_left_out_of_both_and_shown_by_its_stream(run: str) -> None:
    """J.5."""
    record(run, HELLO)
    with open(f"{run}/stdout.log", "ab") as file:
        file.write(b"tail")
    source = open_run(run, 1, view=View.BOTH)
    assert printed(source) == content(HELLO)
    assert [notice.offset for notice in source.notices] == [10]
    assert Concatenation([with_header(1, source)]).notices == source.notices
    assert shown(run, View.STDOUT) == b"one\nthree\ntail"


def test_the_tail_of_an_active_run_is_no_news(run: str) -> None:
    """Differences, settled besides: neither is said of a run that is still active."""
    record(run, HELLO)
    with open(f"{run}/stdout.log", "ab") as file:
        file.write(b"not yet in the index")
    assert open_run(run, 1, view=View.BOTH, active=True).notices == ()


def test_an_index_ahead_of_a_stream_is_corrupt_for_both_only(run: str) -> None:
    """J.5: index covering more bytes than the file."""
    record(run, HELLO)
    os.truncate(f"{run}/stdout.log", 5)
    with pytest.raises(CorruptIndexError, match="name 10 bytes of stdout, its file has 5"):
        open_run(run, 1, view=View.BOTH)
    assert shown(run, View.STDOUT) == b"one\nt"


@pytest.mark.parametrize("view", list(View))
@pytest.mark.parametrize("name", ["stdout.log", "stderr.log", "chunks.idx", "stdout.000002.log"])
def test_a_missing_file_is_an_error_for_every_view(run: str, view: View, name: str) -> None:
    """J.5: missing index/stream file or segment gap."""
    record(run, [Write(OUT, b"1234567890")], segment_bytes=4)
    os.unlink(f"{run}/{name}")
    with pytest.raises(MissingLogError) as caught:
        open_run(run, 1, view=view)
    assert caught.value.fields["path"] == f"{run}/{name}"


def test_a_missing_last_segment_is_missed_by_the_index(run: str) -> None:
    record(run, [Write(OUT, b"1234567890")], segment_bytes=4)
    os.unlink(f"{run}/stdout.000003.log")
    with pytest.raises(MissingLogError, match=r"stdout\.000003\.log"):
        open_run(run, 1, view=View.BOTH)


@pytest.mark.parametrize("view", list(View))
def test_a_file_open_to_others_is_refused(run: str, view: View) -> None:
    """J.5."""
    record(run, HELLO)
    os.chmod(f"{run}/stderr.log", 0o644)
    with pytest.raises(UnsafeLogError):
        open_run(run, 1, view=view)


@pytest.mark.parametrize("view", list(View))
@pytest.mark.parametrize("lines", [-1, 1])
def test_a_run_pruned_after_the_look_is_an_error_of_ours(run: str, view: View, lines: int) -> None:
    record(run, HELLO)
    source = open_run(run, 1, view=view)
    shutil.rmtree(run)
    with pytest.raises(MissingLogError):
        printed(source, lines)


@pytest.mark.parametrize("view", list(View))
@pytest.mark.parametrize("lines", [-1, 1])
@pytest.mark.parametrize("name", ["stdout.log", "stderr.log", "chunks.idx"])
def test_files_that_shrink_after_the_look_are_an_error_of_ours(run: str, view: View, lines: int, name: str) -> None:
    record(run, HELLO)
    source = open_run(run, 1, view=view)
    os.truncate(f"{run}/{name}", 1)
    if view in {"both", name.partition(".")[0]}:
        with pytest.raises(JobmanError, match="shorter"):
            printed(source, lines)
    else:
        assert printed(source) == content(HELLO, {View.STDOUT: OUT, View.STDERR: ERR}[view])


def test_an_active_run_may_grow_between_look_and_print(run: str) -> None:
    """The snapshot is printed, nothing is torn."""
    capture = Capture(run, clock=FakeClock(), segment_bytes=4)
    capture.write(OUT, b"abcdef")
    capture.flush()
    sources = {view: open_run(run, 1, view=view, active=True) for view in View}
    capture.write(OUT, b"ghijkl")
    capture.write(ERR, b"!")
    capture.close()
    assert printed(sources[View.BOTH]) == b"abcdef"
    assert printed(sources[View.STDOUT]) == b"abcdef"
    assert printed(sources[View.STDERR]) == b""
