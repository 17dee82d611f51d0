"""Judging and closing a capture whose supervisor died (differences, D1)."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from jobman.errors import UnsafeLogError
from jobman.logs.capture import Capture
from jobman.logs.layout import create_run_directory
from jobman.logs.scan import close_abandoned, scan
from jobman.model.state import LogIntegrity
from jobman.testing import FakeClock
from tests.unit.logs.support import ERR, OUT, put, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A run whose supervisor was killed after a batch."""
    run = create_run_directory(str(tmp_path), "job", 1)
    capture = Capture(run, clock=FakeClock())
    capture.write(OUT, b"abc")
    capture.write(ERR, b"de")
    capture.flush()
    return run


def test_a_capture_abandoned_between_batches_is_valid(run: str) -> None:
    assert scan(run) == (LogIntegrity.VALID, None, 3, 2, 1)


def test_a_capture_abandoned_before_its_first_byte_is_valid(tmp_path: Path) -> None:
    run = create_run_directory(str(tmp_path), "job", 1)
    assert scan(run) == (LogIntegrity.VALID, None, 0, 0, None)


def test_segments_count_together(tmp_path: Path) -> None:
    run = create_run_directory(str(tmp_path), "job", 1)
    capture = Capture(run, clock=FakeClock(), segment_bytes=2)
    capture.write(OUT, b"abcde")
    capture.flush()
    assert scan(run) == (LogIntegrity.VALID, None, 5, 0, 2)


def test_bytes_of_a_batch_that_was_not_closed_make_it_partial(run: str) -> None:
    with open(f"{run}/stderr.log", "ab") as file:
        file.write(b"!!")
    assert scan(run) == (LogIntegrity.PARTIAL, "2 bytes have no record", 3, 4, 1)


def test_a_torn_record_makes_it_partial(run: str) -> None:
    put(run, "chunks.idx", read(run, "chunks.idx") + b"JML")
    result = scan(run)
    assert (result.integrity, result.detail) == (LogIntegrity.PARTIAL, "the last record lacks its end")


def test_a_torn_record_and_its_bytes_are_both_told(run: str) -> None:
    put(run, "chunks.idx", read(run, "chunks.idx")[:-1])
    assert scan(run).detail == "2 bytes have no record; the last record lacks its end"


@pytest.mark.parametrize("damage", ["index", "stream"])
def test_a_contradiction_is_corrupt(run: str, damage: str) -> None:
    if damage == "index":
        put(run, "chunks.idx", b"?" + read(run, "chunks.idx")[1:])
    else:
        os.truncate(f"{run}/stdout.log", 1)
    result = scan(run)
    assert result.integrity is LogIntegrity.CORRUPT
    assert result.detail is not None
    assert "corrupt log chunk index" in result.detail
    assert (result.stdout_bytes, result.stderr_bytes) == (1 if damage == "stream" else 3, 2)


@pytest.mark.parametrize("name", ["stdout.log", "chunks.idx", ""])
def test_missing_files_are_a_result_and_no_exception(run: str, name: str) -> None:
    if name:
        os.unlink(f"{run}/{name}")
    else:
        shutil.rmtree(run)
    result = scan(run)
    assert result.integrity is LogIntegrity.PARTIAL
    assert result.detail is not None
    assert result.detail.startswith("missing log file")
    assert result.stdout_bytes is None


def test_a_bad_sector_is_a_result_and_a_shortage_is_none(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """D1: one log that cannot be read must not keep jobs from being listed; what passes by itself is tried again."""

    def failing(number: int) -> Callable[..., bytes]:
        def pread(*_: object) -> bytes:
            raise OSError(number, os.strerror(number))

        return pread

    monkeypatch.setattr(os, "pread", failing(errno.EIO))
    result = scan(run)
    assert (result.integrity, result.detail) == (LogIntegrity.PARTIAL, f"{run} cannot be read: input/output error")
    monkeypatch.setattr(os, "pread", failing(errno.ENOMEM))
    with pytest.raises(OSError, match="memory"):
        scan(run)


def test_closing_removes_the_marker_only_and_may_be_repeated(run: str) -> None:
    close_abandoned(run)
    assert sorted(os.listdir(run)) == ["chunks.idx", "stderr.log", "stdout.log"]
    close_abandoned(run)
    shutil.rmtree(run)
    close_abandoned(run)


def test_closing_is_durable(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(sorted(os.listdir(descriptor))))
    close_abandoned(run)
    assert synced == [["chunks.idx", "stderr.log", "stdout.log"]]


def test_closing_follows_no_link(tmp_path: Path, run: str) -> None:
    os.rename(run, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", run)
    with pytest.raises(UnsafeLogError):
        close_abandoned(run)
    assert os.path.exists(tmp_path / "elsewhere" / ".active")
