"""Recording with group commit, and what happens when the files refuse (contract, J.1 to J.4; architecture)."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from jobman.logs import capture as capture_module
from jobman.logs.capture import BATCH_BYTES, BATCH_NS, Capture
from jobman.logs.layout import View, create_run_directory
from jobman.model.state import Diagnostic, LogIntegrity, Problem, RecordingHealth
from jobman.testing import FakeClock
from tests.unit.logs.support import ERR, JOB, OUT, index_records, path_of, put, read, shown

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), JOB, 1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(wall_ns=5_000_000_007)


def record_shapes(run: str) -> list[tuple[str, int, int, int]]:
    return [(str(r.stream), r.segment, r.offset, r.length) for r in index_records(run)]


# --- Grouping ------------------------------------------------------------------------------------------------------


def test_bytes_are_in_the_stream_file_before_their_batch_is_closed(run: str, clock: FakeClock) -> None:
    """Field case 25: our side adds no delay."""
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"now")
    assert read(run, "stdout.log") == b"now"
    assert read(run, "chunks.idx") == b""


def test_consecutive_reads_of_a_stream_form_one_record(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    for stream, data in [(OUT, b"ab"), (OUT, b"c"), (ERR, b"!"), (OUT, b"d")]:
        capture.write(stream, memoryview(data))
    capture.flush()
    assert record_shapes(run) == [("stdout", 0, 0, 3), ("stderr", 0, 0, 1), ("stdout", 0, 3, 1)]


def test_a_new_batch_begins_a_new_record(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    for _ in range(2):
        capture.write(OUT, b"ab")
        capture.flush()
    assert record_shapes(run) == [("stdout", 0, 0, 2), ("stdout", 0, 2, 2)]


def test_a_batch_is_due_50_ms_after_its_first_byte(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    assert capture.due_ns() is None
    start = clock.monotonic_ns()
    capture.write(OUT, b"a")
    clock.advance(BATCH_NS - 1)
    capture.write(ERR, b"b")
    assert capture.due_ns() == start + 50_000_000
    capture.flush()
    assert capture.due_ns() is None


def test_a_record_is_dated_by_its_first_byte(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    for stream in (OUT, OUT, ERR):
        capture.write(stream, b"x")
        clock.advance(1_000)
    capture.close()
    assert [r.wall_ns for r in index_records(run)] == [5_000_000_007, 5_000_002_007]


def test_a_batch_of_8_mib_is_closed_by_the_next_byte_and_no_record_is_larger(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    capture.write(OUT, bytes(BATCH_BYTES - 1))
    capture.write(ERR, b"!")
    assert index_records(run) == []
    capture.write(OUT, bytes(2 * BATCH_BYTES + 5))
    assert capture.due_ns() is not None
    assert [r.length for r in index_records(run)] == [BATCH_BYTES - 1, 1, BATCH_BYTES, BATCH_BYTES]
    assert capture.close().stdout_bytes == 3 * BATCH_BYTES + 4
    assert [r.length for r in index_records(run)][-1] == 5


def test_empty_writes_leave_no_trace(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"")
    capture.write(OUT, b"a")
    capture.write(OUT, b"")
    capture.write(ERR, b"")
    assert capture.close().integrity is LogIntegrity.VALID
    assert record_shapes(run) == [("stdout", 0, 0, 1)]


def test_a_stream_that_is_not_captured_is_discarded_and_no_loss(run: str, clock: FakeClock) -> None:
    """J.1: its file exists and stays empty."""
    capture = Capture(run, clock=clock, streams=(OUT,))
    capture.write(ERR, b"gone")
    capture.write(OUT, b"kept")
    result = capture.close()
    assert result == (LogIntegrity.VALID, RecordingHealth.HEALTHY, None, 4, 0, 1)
    assert read(run, "stderr.log") == b""
    assert capture.dropped_bytes == 0


# --- Closing -------------------------------------------------------------------------------------------------------


def test_closing_commits_the_rest_and_removes_the_marker(run: str, clock: FakeClock) -> None:
    """J.1: .active is removed when capture closes."""
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"abc")
    capture.write(ERR, b"de")
    assert os.path.exists(f"{run}/.active")
    assert capture.close() == (LogIntegrity.VALID, RecordingHealth.HEALTHY, None, 3, 2, 1)
    assert sorted(os.listdir(run)) == ["chunks.idx", "stderr.log", "stdout.log"]
    assert len(index_records(run)) == 2


def test_closing_again_repeats_the_result_and_later_bytes_go_nowhere(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"abc")
    result = capture.close()
    capture.write(OUT, b"late")
    capture.flush()
    assert capture.close() == result
    assert read(run, "stdout.log") == b"abc"


def test_a_capture_leaves_no_descriptor_behind(run: str, clock: FakeClock) -> None:
    before = len(os.listdir("/proc/self/fd"))
    capture = Capture(run, clock=clock, segment_bytes=1)
    capture.write(OUT, bytes(40))
    assert len(os.listdir("/proc/self/fd")) <= before + 4 + 16
    capture.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_loss_outside_is_noted_and_the_files_stay_valid(run: str, clock: FakeClock) -> None:
    """D33: descendant_holds_output; the first problem is kept."""
    capture = Capture(run, clock=clock)
    capture.degrade(Diagnostic.DESCENDANT_HOLDS_OUTPUT, "process 7 kept stdout open")
    capture.degrade(Diagnostic.LOG_CAPTURE_DEGRADED, "later")
    capture.write(OUT, b"a")
    result = capture.close()
    assert result.integrity is LogIntegrity.VALID
    assert result.health is RecordingHealth.DEGRADED
    assert result.problem == Problem(Diagnostic.DESCENDANT_HOLDS_OUTPUT, "process 7 kept stdout open")
    assert result.stdout_bytes == 1


# --- Segments ------------------------------------------------------------------------------------------------------


def test_chunks_are_split_at_the_segment_boundary(run: str, clock: FakeClock) -> None:
    """J.1, J.3: version 2, segments from 1."""
    capture = Capture(run, clock=clock, segment_bytes=4)
    capture.write(OUT, b"abcdefghij")
    capture.write(ERR, b"!")
    capture.write(OUT, b"kl")
    result = capture.close()
    assert record_shapes(run) == [
        ("stdout", 1, 0, 4),
        ("stdout", 2, 0, 4),
        ("stdout", 3, 0, 2),
        ("stderr", 1, 0, 1),
        ("stdout", 3, 2, 2),
    ]
    assert read(run, "stdout.log") + read(run, "stdout.000002.log") + read(run, "stdout.000003.log") == b"abcdefghijkl"
    assert (result.stdout_bytes, result.stderr_bytes, result.index_version) == (12, 1, 2)
    assert not os.path.exists(f"{run}/stdout.000004.log"), "a segment begins with its first byte, not before"


def test_a_full_segment_allowance_ends_recording_of_both_streams(run: str, clock: FakeClock) -> None:
    """J.3: segment cap, field case 22."""
    capture = Capture(run, clock=clock, segment_bytes=4, segments=2)
    capture.write(ERR, b"err")
    capture.write(OUT, b"12345678")
    capture.write(ERR, b"o")
    capture.write(OUT, b"9")
    capture.write(ERR, b"r")
    result = capture.close()
    assert result[:2] == (LogIntegrity.PARTIAL, RecordingHealth.DEGRADED)
    assert result.problem is not None
    assert result.problem.code is Diagnostic.LOG_CAPTURE_DEGRADED
    assert result.problem.text == "stdout filled its 2 segments of 4 bytes; 2 bytes of later output were dropped"
    assert (result.stdout_bytes, result.stderr_bytes) == (8, 4)
    assert shown(run, View.BOTH) == b"err12345678o"


# --- Faults --------------------------------------------------------------------------------------------------------


def assert_ended(capture: Capture, text: str, code: Diagnostic = Diagnostic.LOG_CAPTURE_DEGRADED) -> None:
    """Later writes are dropped and counted; the result tells what was wrong, the marker is gone."""
    dropped = capture.dropped_bytes
    capture.write(OUT, b"later")
    capture.write(ERR, b"!")
    assert capture.dropped_bytes == dropped + 6
    assert capture.due_ns() is None
    result = capture.close()
    assert result[:2] == (LogIntegrity.PARTIAL, RecordingHealth.DEGRADED)
    assert result.problem is not None
    assert result.problem.code is code
    assert text in result.problem.text
    assert f"{dropped + 6} bytes of later output were dropped" in result.problem.text


def fill_the_disk(capture: Capture, name: str) -> None:
    """Let the kernel answer ENOSPC to every further write to a file."""
    full = os.open("/dev/full", os.O_WRONLY)
    for entry in os.listdir("/proc/self/fd"):
        try:
            if path_of(int(entry)) == name:
                os.dup2(full, int(entry), inheritable=False)
        except FileNotFoundError:
            continue  # the descriptor of the listing itself
    os.close(full)
    assert capture.dropped_bytes == 0


def test_a_full_disk_keeps_what_was_written_and_drops_the_rest(
    run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 23; J.3: any write error stops further capture for the run."""
    real = os.write
    room = [7]

    def write(descriptor: int, data: bytes) -> int:
        if path_of(descriptor) != "stdout.log":
            return real(descriptor, data)
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(data)[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"12345")
    capture.write(OUT, b"67890")
    assert capture.dropped_bytes == 3
    assert_ended(capture, "cannot write to stdout.log: No space left on device")
    assert capture.close().stdout_bytes == 7
    assert shown(run, View.BOTH) == b"1234567"


def test_a_full_disk_at_the_first_byte_is_no_crash(run: str, clock: FakeClock) -> None:
    """Field case 23, with the kernel's own answer."""
    capture = Capture(run, clock=clock)
    fill_the_disk(capture, "stdout.log")
    capture.write(OUT, b"abc")
    assert capture.dropped_bytes == 3
    assert_ended(capture, "No space left on device")
    assert capture.close().stdout_bytes == 0


def test_what_would_have_been_discarded_anyway_is_not_counted_as_dropped(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock, streams=(OUT,))
    fill_the_disk(capture, "stdout.log")
    capture.write(OUT, b"abc")
    capture.write(ERR, b"never captured")
    assert capture.dropped_bytes == 3


def test_an_index_that_takes_no_record_ends_recording(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    fill_the_disk(capture, "chunks.idx")
    capture.write(OUT, b"abc")
    capture.flush()
    assert_ended(capture, "cannot write to chunks.idx: No space left on device")
    assert capture.close().stdout_bytes == 3
    assert shown(run, View.STDOUT) == b"abc"


def test_short_writes_are_completed(run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data)[:3]))
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"1234567")
    capture.write(OUT, b"890ab")
    assert capture.close().integrity is LogIntegrity.VALID
    assert shown(run, View.BOTH) == b"1234567890ab"
    assert record_shapes(run) == [("stdout", 0, 0, 12)]


def test_a_file_that_takes_nothing_and_says_nothing_cannot_hang_the_run(
    run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Capture(run, clock=clock)
    monkeypatch.setattr(os, "write", lambda _descriptor, _data: 0)
    capture.write(OUT, b"abc")
    assert_ended(capture, "takes no more bytes")


def failing_sync(names: list[str], bad: str) -> Callable[[int], None]:
    def sync(descriptor: int) -> None:
        names.append(path_of(descriptor))
        if names[-1] == bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    return sync


def test_bytes_whose_sync_failed_get_no_record_and_the_sync_is_not_repeated(
    run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Architecture: a failed sync ends recording and is never retried."""
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"good")
    capture.flush()
    names: list[str] = []
    monkeypatch.setattr(os, "fdatasync", failing_sync(names, "stderr.log"))
    capture.write(OUT, b"a")
    capture.write(ERR, b"b")
    capture.flush()
    assert_ended(capture, "cannot sync stderr.log: Input/output error")
    assert names.count("stderr.log") == 1
    assert shown(run, View.BOTH) == b"good"


def test_an_index_whose_sync_failed_ends_recording(run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr(os, "fdatasync", failing_sync(names, "chunks.idx"))
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"a")
    capture.flush()
    assert_ended(capture, "cannot sync chunks.idx")
    assert names == ["stdout.log", "chunks.idx"]


def test_a_directory_that_cannot_be_synced_keeps_the_new_segment_out_of_the_index(
    run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Capture(run, clock=clock, segment_bytes=2)
    names: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing_sync(names, "1"))
        capture.write(OUT, b"abc")
        capture.flush()
    assert names == ["1"]
    assert index_records(run) == []
    assert_ended(capture, "cannot sync the log directory")


def test_a_segment_that_cannot_be_created_ends_recording_after_the_last_one(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock, segment_bytes=2)
    put(run, "stdout.000002.log", b"somebody's")
    capture.write(OUT, b"abc")
    assert capture.dropped_bytes == 1
    assert_ended(capture, "cannot create stdout.000002.log: File exists")
    assert record_shapes(run) == [("stdout", 1, 0, 2)]
    assert read(run, "stdout.000002.log") == b"somebody's"


@pytest.mark.parametrize("name", ["stdout.log", "chunks.idx"])
def test_a_removed_file_degrades_recording_and_is_not_made_again(run: str, clock: FakeClock, name: str) -> None:
    """Field case 21; differences, settled besides: st_nlink == 0."""
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"before")
    capture.flush()
    os.unlink(f"{run}/{name}")
    capture.write(OUT, b"after")
    capture.flush()
    assert_ended(capture, f"{name} was removed", Diagnostic.LOG_FILE_REMOVED)
    assert not os.path.exists(f"{run}/{name}")


@pytest.mark.parametrize(
    ("name", "segment_bytes"),
    [("stdout.log", 0), ("stderr.log", 0), ("chunks.idx", 0), ("stdout.log", 2), ("stdout.000002.log", 2)],
)
def test_a_file_removed_after_its_last_batch_is_noticed_at_the_end(
    run: str, clock: FakeClock, name: str, segment_bytes: int
) -> None:
    """Field case 21; J.5: without a full segment no view can be shown."""
    capture = Capture(run, clock=clock, segment_bytes=segment_bytes)
    capture.write(OUT, b"before")
    capture.flush()
    os.unlink(f"{run}/{name}")
    result = capture.close()
    assert result[:2] == (LogIntegrity.PARTIAL, RecordingHealth.DEGRADED)
    assert result.problem == Problem(Diagnostic.LOG_FILE_REMOVED, f"{name} was removed while it was being recorded")


def test_a_run_with_output_holds_room_for_its_end_and_gives_it_back(run: str, clock: FakeClock) -> None:
    """Field case 23: the result has to be committed on the disk that a log has filled."""

    def held() -> int:
        return os.stat(f"{run}/.active").st_blocks * 512

    capture = Capture(run, clock=clock)
    assert held() == 0
    capture.write(OUT, b"abc")
    assert held() == 256 * 1024
    fill_the_disk(capture, "stdout.log")
    capture.write(OUT, b"d")
    assert held() == 192 * 1024, "the records of what was written need some of it"
    capture.close()
    assert not os.path.exists(f"{run}/.active")


def test_room_that_cannot_be_held_is_no_loss(run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"abc")
    os.unlink(f"{run}/.active")
    capture.write(ERR, b"d")
    assert capture.close().health is RecordingHealth.HEALTHY


def test_a_removed_directory_is_no_crash(run: str, clock: FakeClock) -> None:
    """Field case 21."""
    capture = Capture(run, clock=clock, segment_bytes=4)
    capture.write(OUT, b"ab")
    shutil.rmtree(run)
    capture.write(OUT, b"cdefgh")
    assert_ended(capture, "cannot create stdout.000002.log: No such file or directory", Diagnostic.LOG_FILE_REMOVED)
    assert not os.path.exists(run)


def test_a_stream_file_cut_by_another_program_ends_recording(run: str, clock: FakeClock) -> None:
    """Field case 22: a record after a truncation would name bytes that are not there."""
    capture = Capture(run, clock=clock)
    capture.write(OUT, b"before")
    capture.flush()
    os.truncate(f"{run}/stdout.log", 0)
    capture.write(OUT, b"after")
    capture.flush()
    assert_ended(capture, "stdout.log has 5 bytes instead of 11")
    assert shown(run, View.STDOUT) == b"after"


def test_files_that_cannot_be_opened_degrade_the_run_from_its_start(run: str, clock: FakeClock) -> None:
    os.unlink(f"{run}/stderr.log")
    os.symlink("/dev/null", f"{run}/stderr.log")
    capture = Capture(run, clock=clock)
    assert_ended(capture, "cannot open the log files")
    assert not os.path.exists(f"{run}/.active")


def test_a_missing_directory_degrades_the_run_from_its_start(tmp_path: Path, clock: FakeClock) -> None:
    capture = Capture(str(tmp_path / "none"), clock=clock)
    assert_ended(capture, "No such file or directory", Diagnostic.LOG_FILE_REMOVED)


def test_a_failure_of_the_files_outweighs_a_loss_outside(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock)
    capture.degrade(Diagnostic.DESCENDANT_HOLDS_OUTPUT, "held")
    fill_the_disk(capture, "stdout.log")
    capture.write(OUT, b"abc")
    assert_ended(capture, "No space left")


def test_a_marker_that_cannot_be_removed_is_told(run: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture(run, clock=clock)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "unlink", refuse)
    result = capture.close()
    assert result.problem is not None
    assert result.problem.text == "cannot remove .active: Read-only file system"


def test_segments_that_fill_up_within_a_batch_are_bounded(run: str, clock: FakeClock) -> None:
    capture = Capture(run, clock=clock, segment_bytes=1)
    capture.write(OUT, bytes(50))
    open_segments = sum(path_of(int(e)).startswith("stdout") for e in os.listdir("/proc/self/fd") if _is_open(e))
    assert open_segments <= capture_module._FILES_PER_BATCH + 1
    capture.close()
    assert len(index_records(run)) == 50


def _is_open(entry: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{entry}")
