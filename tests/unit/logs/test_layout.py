"""Names, creation and safe opening of log files (contract, D.4, J.1 and J.5)."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from jobman.errors import MissingLogError, UnsafeLogError
from jobman.logs import layout
from jobman.logs.layout import (
    LogDirectory,
    create_run_directory,
    remove_unused_run_directory,
    segment_name,
    sync_entries,
)
from jobman.model.state import Stream
from tests.unit.logs.support import JOB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = {".active", "stdout.log", "stderr.log", "chunks.idx"}


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), JOB, 3)


def test_a_new_run_has_its_four_empty_files_and_nobody_else_may_look(tmp_path: Path) -> None:
    """D.4, J.1; the umask must not matter."""
    before = os.umask(0)
    try:
        run = create_run_directory(str(tmp_path), JOB, 3)
    finally:
        os.umask(before)
    assert run == f"{tmp_path}/logs/{JOB}/3" == layout.run_directory(str(tmp_path), JOB, 3)
    assert set(os.listdir(run)) == FILES
    for name in FILES:
        status = os.lstat(f"{run}/{name}")
        assert (stat.S_IMODE(status.st_mode), status.st_size) == (0o600, 0)
    for directory in (run, os.path.dirname(run), f"{tmp_path}/logs"):
        assert stat.S_IMODE(os.lstat(directory).st_mode) == 0o700


def test_a_run_directory_is_never_taken_over(tmp_path: Path, run: str) -> None:
    """J.1: created exclusively."""
    with pytest.raises(FileExistsError):
        create_run_directory(str(tmp_path), JOB, 3)
    assert set(os.listdir(run)) == FILES
    create_run_directory(str(tmp_path), JOB, 4)


def test_a_creation_that_fails_leaves_nothing_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse_index(path: str, flags: int, *args: int, dir_fd: int | None = None) -> int:
        if path == layout.INDEX:
            raise OSError(28, "No space left on device")
        return real(path, flags, *args, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse_index)
    with pytest.raises(OSError, match="No space"):
        create_run_directory(str(tmp_path), JOB, 3)
    assert os.listdir(f"{tmp_path}/logs/{JOB}") == []


def test_creating_a_run_waits_for_no_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: pytest.fail("a start must not wait for the disk"))
    create_run_directory(str(tmp_path), JOB, 3)


def test_every_new_entry_is_synced_from_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Architecture, Log durability: the directory of a new file is synced before its records."""
    synced: list[tuple[str, int]] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((os.path.relpath(path, tmp_path), len(os.listdir(path))))
        real(descriptor)

    path = create_run_directory(str(tmp_path), JOB, 3)
    monkeypatch.setattr(os, "fsync", note)
    sync_entries(path)
    assert synced == [(f"logs/{JOB}/3", 4), (f"logs/{JOB}", 1), ("logs", 1), (".", 1)]


def test_an_unused_run_is_taken_back(tmp_path: Path, run: str) -> None:
    remove_unused_run_directory(str(tmp_path), JOB, 3)
    assert not os.path.exists(run)
    remove_unused_run_directory(str(tmp_path), JOB, 3)


@pytest.mark.parametrize("name", ["stdout.log", "notes.txt"])
def test_bytes_are_never_taken_back(tmp_path: Path, run: str, name: str) -> None:
    with open(f"{run}/{name}", "w") as file:
        file.write("precious")
    remove_unused_run_directory(str(tmp_path), JOB, 3)
    assert os.listdir(run) == [name]


def test_an_unused_run_that_is_a_link_leads_nowhere(tmp_path: Path, run: str) -> None:
    os.rename(run, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", run)
    remove_unused_run_directory(str(tmp_path), JOB, 3)
    assert set(os.listdir(tmp_path / "elsewhere")) == FILES


def test_segments_have_six_digits_from_the_second_on() -> None:
    """J.1."""
    assert [segment_name(Stream.STDERR, n) for n in (0, 1, 2, 65535)] == [
        "stderr.log",
        "stderr.log",
        "stderr.000002.log",
        "stderr.065535.log",
    ]


# --- Safe opening --------------------------------------------------------------------------------------------------


def test_a_file_of_a_sound_run_can_be_opened(run: str) -> None:
    with LogDirectory(run) as directory:
        descriptor = directory.open("stdout.log")
        assert os.read(descriptor, 1) == b""
        os.close(descriptor)


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["run", "job", "logs"])
def test_a_directory_that_others_may_enter_is_refused(run: str, depth: int) -> None:
    """J.5: no group/other bits, from logs down."""
    path = run
    for _ in range(depth):
        path = os.path.dirname(path)
    os.chmod(path, 0o710)  # noqa: S103  # the case itself
    with pytest.raises(UnsafeLogError, match="0700") as caught:
        LogDirectory(run)
    assert caught.value.fields["path"] == path


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["run", "job", "logs"])
def test_a_directory_that_is_a_link_is_refused(tmp_path: Path, run: str, depth: int) -> None:
    """J.5: real directories."""
    path = run
    for _ in range(depth):
        path = os.path.dirname(path)
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(UnsafeLogError) as caught:
        LogDirectory(run)
    assert caught.value.fields["path"] == path


def test_a_missing_directory_is_missing_not_unsafe(tmp_path: Path) -> None:
    with pytest.raises(MissingLogError):
        LogDirectory(f"{tmp_path}/logs/{JOB}/3")


def _link_away(path: str) -> None:
    os.rename(path, f"{path}.real")
    os.symlink(f"{path}.real", path)


def _second_link(path: str) -> None:
    os.link(path, f"{path}.too")


def _readable(path: str) -> None:
    os.chmod(path, 0o640)


def _fifo(path: str) -> None:
    os.unlink(path)
    os.mkfifo(path, 0o600)


def _directory(path: str) -> None:
    os.unlink(path)
    os.mkdir(path, 0o700)


@pytest.mark.parametrize("spoil", [_link_away, _second_link, _readable, _fifo, _directory])
def test_a_file_that_is_not_ours_alone_is_refused(run: str, spoil: Callable[[str], None]) -> None:
    """J.5: regular, no group/other bits, one link."""
    spoil(f"{run}/stdout.log")
    with LogDirectory(run) as directory, pytest.raises(UnsafeLogError) as caught:
        directory.open("stdout.log")
    assert caught.value.fields["path"] == f"{run}/stdout.log"


def test_a_file_replaced_between_look_and_open_is_refused(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """J.5: unchanged between lstat and open."""
    with LogDirectory(run) as directory:
        seen = directory.look("stdout.log")
        os.rename(f"{run}/stderr.log", f"{run}/stdout.log")
        monkeypatch.setattr(directory, "look", lambda _name: seen)
        with pytest.raises(UnsafeLogError, match="replaced"):
            directory.open("stdout.log")


@pytest.mark.parametrize("spoil", [_link_away, _fifo])
def test_a_trap_set_between_look_and_open_neither_leads_away_nor_hangs(
    run: str, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[str], None]
) -> None:
    """J.5; O_NOFOLLOW and O_NONBLOCK."""
    with LogDirectory(run) as directory:
        seen = directory.look("stdout.log")
        spoil(f"{run}/stdout.log")
        monkeypatch.setattr(directory, "look", lambda _name: seen)
        with pytest.raises(UnsafeLogError):
            directory.open("stdout.log")


def test_segments_are_counted_and_a_gap_is_a_missing_file(run: str) -> None:
    """J.5: segment gap; what is not one of our names is no segment."""
    for name in ("stdout.000002.log", "stdout.000004.log", "stdout.2.log", "stdout.000001.log", "stdout.070000.log"):
        os.close(os.open(f"{run}/{name}", os.O_CREAT, 0o600))
    with LogDirectory(run) as directory:
        assert directory.segments(Stream.STDERR) == 1
        with pytest.raises(MissingLogError, match=r"stdout\.000003\.log"):
            directory.segments(Stream.STDOUT)
        os.unlink(f"{run}/stdout.000004.log")
        assert directory.segments(Stream.STDOUT) == 2


def test_a_closed_directory_can_be_closed_again(run: str) -> None:
    directory = LogDirectory(run)
    directory.close()
    directory.close()
