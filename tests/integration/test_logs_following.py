"""Following a run while it is written (contract, J.6)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.errors import CorruptIndexError, MissingLogError, UnsafeLogError
from jobman.logs.capture import Capture
from jobman.logs.follow import Follower
from jobman.logs.layout import View, create_run_directory
from jobman.testing import FakeClock
from tests.unit.logs.support import ERR, OUT, Write, content, put, read, scratch_run, writes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STREAMS = {View.STDOUT: OUT, View.STDERR: ERR, View.BOTH: None}


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), "job", 1)


@pytest.fixture
def capture(run: str) -> Iterator[Capture]:
    capture = Capture(run, clock=FakeClock())
    yield capture
    capture.close()


def poll(follower: Follower) -> bytes:
    blocks: list[bytes] = []
    count = follower.poll(blocks.append)
    assert count == len(b"".join(blocks))
    return b"".join(blocks)


@settings(max_examples=100, deadline=None)
@given(writes, st.sets(st.integers(0, 12)), st.sampled_from([0, 1, 4]), st.sampled_from(list(View)))
def test_everything_is_printed_once_in_order_whenever_one_looks(
    sequence: list[Write], looks: set[int], segment_bytes: int, view: View
) -> None:
    """J.6: across segments, and once more after completion."""
    with scratch_run() as run:
        capture = Capture(run, clock=FakeClock(), segment_bytes=segment_bytes)
        follower = Follower(run, view)
        output = b""
        for number, write in enumerate(sequence):
            if number in looks:
                output += poll(follower)
                assert content(sequence[:number], STREAMS[view]).startswith(output)
            capture.write(write.stream, write.data)
            if write.flush:
                capture.flush()
        capture.close()
        output += poll(follower)
        assert output == content(sequence, STREAMS[view])
        assert poll(follower) == b""
        assert follower.notices(1) == ()


def test_a_stream_is_seen_at_once_and_both_when_the_batch_is_closed(run: str, capture: Capture) -> None:
    """Field case 25; architecture, Log durability."""
    stream, both = Follower(run, View.STDOUT), Follower(run, View.BOTH)
    capture.write(OUT, b"now")
    assert (poll(stream), poll(both)) == (b"now", b"")
    capture.flush()
    assert (poll(stream), poll(both)) == (b"", b"now")


def test_bytes_added_to_a_segment_after_the_look_at_its_successor_are_not_lost(
    run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J.6: a writer that rotates between the look for segments and the look at the last one."""
    capture = Capture(run, clock=FakeClock(), segment_bytes=4)
    follower = Follower(run, View.STDOUT)
    capture.write(OUT, b"ab")
    real = os.listdir

    def rotate_after_listing(path: int) -> list[str]:
        names = real(path)
        monkeypatch.setattr(os, "listdir", real)
        capture.write(OUT, b"cdefgh")
        return names

    monkeypatch.setattr(os, "listdir", rotate_after_listing)
    assert poll(follower) == b"abcd"
    assert poll(follower) == b"efgh"
    capture.close()


@pytest.mark.parametrize("how", ["truncated", "replaced"])
def test_a_stream_file_that_begins_anew_is_printed_from_its_beginning(run: str, capture: Capture, how: str) -> None:
    """J.6: truncated stream file restarts at 0; field case 22."""
    follower = Follower(run, View.STDOUT)
    capture.write(OUT, b"old bytes")
    assert poll(follower) == b"old bytes"
    if how == "replaced":
        os.rename(f"{run}/stdout.log", f"{run}/aside")
        os.close(os.open(f"{run}/stdout.log", os.O_CREAT, 0o600))
        put(run, "stdout.log", b"new bytes, and more of them")
    else:
        put(run, "stdout.log", b"new")
    assert poll(follower) == read(run, "stdout.log")


def test_a_stream_cut_while_it_is_read_is_no_error(run: str, capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """J.6."""
    capture.write(OUT, b"abc")
    follower = Follower(run, View.STDOUT)
    monkeypatch.setattr(os, "pread", lambda *_: b"")
    assert poll(follower) == b""


@pytest.mark.parametrize("how", ["shorter", "replaced"])
def test_an_index_that_is_not_the_one_followed_is_corrupt(run: str, capture: Capture, how: str) -> None:
    """J.6: index replaced or shrunk is an error."""
    follower = Follower(run, View.BOTH)
    capture.write(OUT, b"abc")
    capture.flush()
    poll(follower)
    data = read(run, "chunks.idx")
    if how == "replaced":
        os.rename(f"{run}/chunks.idx", f"{run}/aside")
        os.close(os.open(f"{run}/chunks.idx", os.O_CREAT, 0o600))
        put(run, "chunks.idx", data)
    else:
        put(run, "chunks.idx", data[:-1])
    with pytest.raises(CorruptIndexError, match=how):
        poll(follower)


def test_a_damaged_record_prints_nothing_of_its_poll(run: str, capture: Capture) -> None:
    """J.5."""
    follower = Follower(run, View.BOTH)
    capture.write(OUT, b"abc")
    capture.flush()
    assert poll(follower) == b"abc"
    for stream in (OUT, ERR):
        capture.write(stream, b"more")
    capture.flush()
    put(run, "chunks.idx", read(run, "chunks.idx")[:-1] + b"?")
    blocks: list[bytes] = []
    with pytest.raises(CorruptIndexError, match="checksum"):
        follower.poll(blocks.append)
    assert blocks == []


def test_a_record_whose_bytes_are_gone_is_corrupt(run: str, capture: Capture) -> None:
    """J.5: index covering more bytes than the file."""
    capture.write(OUT, b"abc")
    capture.flush()
    os.truncate(f"{run}/stdout.log", 1)
    with pytest.raises(CorruptIndexError, match="its file has 1"):
        poll(Follower(run, View.BOTH))


def test_a_torn_record_waits_for_its_rest(run: str, capture: Capture) -> None:
    follower = Follower(run, View.BOTH)
    capture.write(OUT, b"abc")
    capture.flush()
    whole = read(run, "chunks.idx")
    put(run, "chunks.idx", whole[:30])
    assert poll(follower) == b""
    put(run, "chunks.idx", whole)
    assert poll(follower) == b"abc"


def test_a_completed_run_with_an_unindexed_tail_is_noticed_at_the_end(run: str, capture: Capture) -> None:
    """Differences, settled besides."""
    capture.write(OUT, b"abc")
    capture.close()
    with open(f"{run}/stdout.log", "ab") as file:
        file.write(b"tail")
    both, stream = Follower(run, View.BOTH), Follower(run, View.STDOUT)
    assert (poll(both), poll(stream)) == (b"abc", b"abctail")
    assert [(notice.run, notice.offset) for notice in both.notices(1)] == [(1, 3)]
    assert stream.notices(1) == ()


@pytest.mark.parametrize("view", [View.STDOUT, View.BOTH])
def test_a_removed_or_opened_up_file_ends_the_following(run: str, capture: Capture, view: View) -> None:
    """J.5."""
    capture.write(OUT, b"abc")
    capture.flush()
    follower = Follower(run, view)
    os.chmod(f"{run}/stdout.log", 0o644)
    with pytest.raises(UnsafeLogError):
        poll(follower)
    os.unlink(f"{run}/stdout.log")
    with pytest.raises(MissingLogError):
        poll(Follower(run, view))


def test_nothing_stays_open_between_two_looks(run: str, capture: Capture) -> None:
    followers = [Follower(run, view) for view in View]
    capture.write(OUT, b"abc")
    capture.flush()
    before = len(os.listdir("/proc/self/fd"))
    for follower in followers:
        poll(follower)
    assert len(os.listdir("/proc/self/fd")) == before
