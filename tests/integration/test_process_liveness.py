"""The liveness lock: the kernel's own word on whether a supervisor lives."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from jobman.process import liveness
from jobman.process.liveness import FREE, HELD, MISSING, REPLACED, LivenessLock, probe, seize
from tests.integration.test_process_helpers import (
    nobody_left,  # noqa: F401  # a fixture
    python,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobman.process.liveness import LockState

pytestmark = pytest.mark.usefixtures("nobody_left")


@pytest.fixture(params=["open file description", "flock"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "flock":
        monkeypatch.setattr(liveness, "_SETLK", None)
        monkeypatch.setattr(liveness, "_GETLK", None)
    return str(request.param)


@pytest.fixture
def lock(tmp_path: Path, kind: str) -> Iterator[LivenessLock]:  # noqa: ARG001  # the kind must be set first
    lock = LivenessLock.acquire(str(tmp_path / "lock"))
    yield lock
    lock.close()


def look(lock: LivenessLock) -> LockState:
    return probe(lock.path, lock.device, lock.inode)


def test_a_lock_is_held_until_it_is_closed(lock: LivenessLock) -> None:
    assert look(lock) == HELD
    lock.close()
    lock.close()
    assert look(lock) == FREE


def test_probing_in_the_process_of_the_holder_does_not_drop_the_lock(lock: LivenessLock) -> None:
    """A plain POSIX lock vanishes when any descriptor of the file is closed."""
    assert [look(lock) for _ in range(3)] == [HELD] * 3


def test_a_seizure_is_exclusive_while_it_lasts(lock: LivenessLock) -> None:
    lock.close()
    with seize(lock.path, lock.device, lock.inode) as seizure:
        assert seizure.state == FREE
        assert look(lock) == HELD
        with seize(lock.path, lock.device, lock.inode) as second:
            assert second.state == HELD
        assert look(lock) == HELD
    assert look(lock) == FREE


def test_a_held_lock_cannot_be_seized(lock: LivenessLock) -> None:
    with seize(lock.path, lock.device, lock.inode) as seizure:
        assert seizure.state == HELD
    assert look(lock) == HELD


def test_an_exec_does_not_carry_the_lock_away(lock: LivenessLock) -> None:
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        lock.close()
        state = look(lock)
        child.kill()
    assert state == FREE


def test_a_missing_file_proves_nothing(lock: LivenessLock) -> None:
    lock.unlink()
    lock.unlink()
    assert look(lock) == MISSING
    assert seize(lock.path, lock.device, lock.inode).state == MISSING
    assert probe(lock.path + "/below", lock.device, lock.inode) == MISSING


@pytest.mark.parametrize("other", ["file", "link", "fifo", "directory"])
def test_another_file_of_that_name_proves_nothing_and_is_left_alone(lock: LivenessLock, other: str) -> None:
    os.rename(lock.path, lock.path + ".moved")
    match other:
        case "file":
            os.close(os.open(lock.path, os.O_CREAT | os.O_EXCL))
        case "link":
            os.symlink(lock.path + ".moved", lock.path)
        case "fifo":
            os.mkfifo(lock.path)
        case "directory":
            os.mkdir(lock.path)
    assert look(lock) == REPLACED
    assert seize(lock.path, lock.device, lock.inode).state == REPLACED
    lock.unlink()
    assert os.path.lexists(lock.path)


def test_a_file_removed_under_a_seizure_is_missing(lock: LivenessLock, monkeypatch: pytest.MonkeyPatch) -> None:
    lock.close()
    take = liveness._take

    def removed_meanwhile(fd: int) -> bool:
        os.unlink(lock.path)
        return take(fd)

    monkeypatch.setattr(liveness, "_take", removed_meanwhile)
    assert seize(lock.path, lock.device, lock.inode).state == MISSING


def test_a_file_that_cannot_be_opened_is_an_error_and_not_a_proof(
    lock: LivenessLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError):
        look(lock)
    with pytest.raises(PermissionError):
        seize(lock.path, lock.device, lock.inode)


def test_an_existing_name_is_refused(tmp_path: Path, lock: LivenessLock) -> None:
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (lock.path, str(dangling)):
        with pytest.raises(FileExistsError):
            LivenessLock.acquire(path)
    assert look(lock) == HELD
    assert not (tmp_path / "nowhere").exists()


def test_a_lock_that_cannot_be_taken_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> bool:
        raise OSError(37, "no locks available")

    monkeypatch.setattr(liveness, "_take", refuse)
    with pytest.raises(OSError, match="no locks"):
        LivenessLock.acquire(str(tmp_path / "lock"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_file_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Field case 29."""
    old = os.umask(umask)
    try:
        lock = LivenessLock.acquire(str(tmp_path / "lock"))
    finally:
        os.umask(old)
    assert stat.filemode(os.stat(lock.path).st_mode) == "-rw-------"
    lock.close()


HOLDER = """
import os
from jobman.process.liveness import LivenessLock
lock = LivenessLock.acquire({path!r})
if os.fork() == 0:
    lock.close()
    os.write(1, b"child closed\\n")
    os.read(0, 1)
    os._exit(0)
os.write(1, b"%d %d\\n" % (lock.device, lock.inode))
os.read(0, 1)
"""


def test_the_lock_outlives_a_forked_copy_and_ends_with_its_holder(tmp_path: Path) -> None:
    """The child lives on and has closed its copy: the death of the holder alone frees the lock."""
    path = str(tmp_path / "lock")
    command = python(HOLDER.format(path=path))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        lines = sorted([holder.stdout.readline(), holder.stdout.readline()])
        assert lines[1] == b"child closed\n"
        device, inode = map(int, lines[0].split())
        assert probe(path, device, inode) == HELD
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert probe(path, device, inode) == FREE


PROBER = """
import os
from jobman.process.liveness import probe
status = os.stat({path!r})
os.write(1, b"ready\\n")
while os.path.exists({path!r}):
    for _ in range(100): probe({path!r}, status.st_dev, status.st_ino)
"""


def test_probes_never_stand_in_the_way_of_whoever_takes_the_lock(tmp_path: Path) -> None:
    """Probes by ``flock`` made 3,063 of 20,000 starts fail."""
    lock = LivenessLock.acquire(str(tmp_path / "lock"))
    lock.close()
    with subprocess.Popen(python(PROBER.format(path=lock.path)), stdout=subprocess.PIPE) as prober:
        assert prober.stdout is not None
        assert prober.stdout.readline() == b"ready\n"
        states = set()
        for _ in range(5000):
            with seize(lock.path, lock.device, lock.inode) as seizure:
                states.add(seizure.state)
        assert states == {FREE}
        lock.unlink()
        until(lambda: prober.poll() is not None)
    assert prober.returncode in (0, 1)
