"""The gated launch: nothing of the target runs before the gate opens, and then it runs as if alone in the world."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from jobman import process
from jobman.process import LaunchFailure, LaunchRequest, lookup
from jobman.process import launch as launch_module
from jobman.process.liveness import FREE, HELD, LivenessLock, probe
from jobman.process.spawn import spawn_detached
from tests.integration.test_process_helpers import (
    DEADLINE,
    descriptors,
    finish,
    launch,
    nobody_left,  # noqa: F401  # a fixture
    output_of,
    python,
    read_all,
    request,
    result_of,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.usefixtures("nobody_left"),
    # pytest-timeout has a thread; supervisors have none, which Python 3.12 would warn of.
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


def fail(launched: LaunchRequest) -> LaunchFailure | None:
    child = process.launch_gated(launched)
    process.open_gate(child)
    failure = result_of(child)
    finish(child, closed=(child.gate_fd,))
    return failure


# --- The gate ------------------------------------------------------------------------------------------------------


def test_a_gate_that_closes_means_that_the_target_never_runs(tmp_path: Path) -> None:
    child = process.launch_gated(request(b"touch", bytes(tmp_path / "ran")))
    process.close_gate(child)
    assert read_all(child.stdout_fd) == b""
    finish(child, closed=(child.gate_fd, child.stdout_fd))
    assert not (tmp_path / "ran").exists()


def test_a_child_that_somebody_has_stopped_ends_when_the_gate_closes(tmp_path: Path) -> None:
    child = process.launch_gated(request(b"touch", bytes(tmp_path / "ran")))
    os.kill(child.pid, signal.SIGSTOP)
    process.close_gate(child)
    until(lambda: process.observe_exit(child.pid) is not None)
    finish(child, closed=(child.gate_fd,))
    assert not (tmp_path / "ran").exists()


def test_a_supervisor_that_dies_at_the_gate_takes_the_target_with_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = f"""
import os
from jobman.process import LaunchRequest, launch_gated
child = launch_gated(LaunchRequest(b"/usr/bin/touch", (b"touch", {bytes(ran)!r}), {{}}, b"/", 0o22))
os.write(1, b"%d\\n" % child.pid)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run(python(code), capture_output=True, timeout=10, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    until(lambda: process.observe_exit(pid) is not None)
    assert not ran.exists()


def test_the_identity_is_known_before_the_exec_and_stays_the_same() -> None:
    child = process.launch_gated(request(b"cat", b"/proc/self/stat"))
    waiting = process.inspect(child.pid)
    assert waiting is not None
    assert process.presence(waiting) == "alive"
    process.open_gate(child)
    assert result_of(child) is None
    output = output_of(child)
    assert output.startswith(b"%d (cat) " % waiting.pid)
    assert output.rpartition(b")")[2].split()[19].decode() == waiting.creation_id


def test_the_child_leads_its_own_group_in_our_session_before_the_gate_opens() -> None:
    child = process.launch_gated(request(b"true"))
    assert (os.getpgid(child.pid), os.getsid(child.pid)) == (child.pid, os.getsid(0))
    process.close_gate(child)
    finish(child, closed=(child.gate_fd,))


def test_nothing_is_known_of_the_exec_before_the_gate_opens() -> None:
    child = process.launch_gated(request(b"true"))
    with pytest.raises(BlockingIOError):
        process.read_launch_result(child.result_fd)
    process.open_gate(child)
    assert result_of(child) is None
    finish(child, closed=(child.gate_fd,))


def test_opening_the_gate_of_a_child_that_was_killed_is_no_error() -> None:
    child = process.launch_gated(request(b"true"))
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: process.observe_exit(child.pid) is not None)
    process.open_gate(child)
    assert result_of(child) is None
    finish(child, closed=(child.gate_fd,))


def test_the_end_of_the_child_makes_its_pidfd_readable() -> None:
    child = process.launch_gated(request(b"true"))
    assert child.pidfd is not None
    assert not select.select([child.pidfd], [], [], 0)[0]
    process.open_gate(child)
    assert select.select([child.pidfd], [], [], DEADLINE)[0]
    finish(child, closed=(child.gate_fd,))


# --- What the target finds -------------------------------------------------------------------------------------------


def test_signals_ignored_and_blocked_here_are_default_and_free_in_the_target() -> None:
    """Field case 9."""
    old = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)}
    old[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, lambda *_: None)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    try:
        child = launch(b"grep", b"-E", b"Sig(Blk|Ign)", b"/proc/self/status")
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGTERM, signal.SIGCHLD}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in old.items():
            signal.signal(number, handler)
    assert output_of(child).split()[1::2] == [b"0" * 16] * 2


def test_a_target_of_a_detached_supervisor_has_every_signal_at_its_default() -> None:
    """Field case 9: glibc starts detached processes with two of its own signals ignored."""
    code = """
import os
from jobman.process import LaunchRequest, launch_gated, open_gate
child = launch_gated(LaunchRequest(b"/bin/grep", (b"grep", b"SigIgn", b"/proc/self/status"), {}, b"/", 0o22))
open_gate(child)
os.set_blocking(child.stdout_fd, True)
os.write(1, os.read(child.stdout_fd, 100))
"""
    detached = spawn_detached(python(code), {})
    os.close(detached.input_fd)
    assert read_all(detached.output_fd).split() == [b"SigIgn:", b"0" * 16]
    os.waitpid(detached.pid, 0)


def test_the_mask_of_the_caller_is_restored() -> None:
    before = signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGUSR2})
    output_of(launch(b"true"))
    assert signal.pthread_sigmask(signal.SIG_SETMASK, before) == {signal.SIGUSR2}


def test_the_target_has_the_standard_descriptors_only() -> None:
    """D18, field case 11."""
    inheritable = [os.dup2(1, fd) for fd in (90, 300)]
    child = launch(b"sh", b"-c", b"ls /proc/$$/fd; readlink /proc/$$/fd/0; true")
    for fd in inheritable:
        os.close(fd)
    assert output_of(child).split() == [b"0", b"1", b"2", b"/dev/null"]


def test_the_outputs_are_two_pipes() -> None:
    child = launch(b"sh", b"-c", b"echo out; echo err >&2")
    assert read_all(child.stderr_fd) == b"err\n"
    assert read_all(child.stdout_fd) == b"out\n"
    finish(child, closed=(child.gate_fd, child.stdout_fd, child.stderr_fd))


def test_our_ends_of_the_pipes_do_not_block_and_are_not_inherited() -> None:
    child = process.launch_gated(request(b"true"))
    ours = (child.stdout_fd, child.stderr_fd, child.gate_fd, child.result_fd)
    assert [os.get_inheritable(fd) for fd in ours] == [False] * 4
    for fd in (child.stdout_fd, child.stderr_fd):
        with pytest.raises(BlockingIOError):
            os.read(fd, 1)
    process.close_gate(child)
    finish(child, closed=(child.gate_fd,))


def test_a_given_descriptor_becomes_the_standard_input_and_stays_ours() -> None:
    reader, writer = os.pipe()
    child = process.launch_gated(request(b"cat")._replace(stdin=reader))
    process.open_gate(child)
    assert result_of(child) is None
    os.close(reader)
    os.write(writer, b"given")
    os.close(writer)
    assert output_of(child) == b"given"


HARD_ARGUMENTS = (b"", b"two words", b"line\nline", b"\xff\xfe", b"-n", b"$HOME")


def test_arguments_and_environment_are_exact_bytes() -> None:
    """Field case 27."""
    environment = {b"A B": b"1", b"X": b"\nY=2", b"B": b"\xff", b"EMPTY": b"", b"\xfe": b"name"}
    child = launch(b"sh", b"-c", b'printf "%s\\0" "$@"; exec env -0', b"sh", *HARD_ARGUMENTS, environment=environment)
    parts = output_of(child).split(b"\0")[:-1]
    assert tuple(parts[: len(HARD_ARGUMENTS)]) == HARD_ARGUMENTS
    # The shell adds PWD and the like and drops names that are none; env alone shows what it was given.
    child = launch(b"env", b"-0", environment=environment)
    assert sorted(output_of(child).split(b"\0")[:-1]) == sorted(k + b"=" + v for k, v in environment.items())


def test_the_locale_of_this_interpreter_does_not_reach_the_target() -> None:
    child = launch(b"env", environment={})
    assert output_of(child) == b""


def test_argv_0_is_the_name_as_given() -> None:
    asked = LaunchRequest(b"/bin/sh", (b"any name", b"-c", b"echo $0"), {}, b"/", 0o22)
    child = process.launch_gated(asked)
    process.open_gate(child)
    assert output_of(child) == b"any name\n"


def test_umask_and_directory_are_those_of_the_request(tmp_path: Path) -> None:
    """Field cases 29 and 37."""
    directory = tmp_path / "jobman bun sh" / "-c"
    directory.mkdir(parents=True)
    old = os.umask(0o77)
    child = process.launch_gated(
        request(b"sh", b"-c", b"umask; pwd", directory=bytes(directory))._replace(umask=0o2),
    )
    os.umask(old)
    process.open_gate(child)
    assert output_of(child).decode() == f"0002\n{directory}\n"


def test_limits_and_niceness_are_inherited() -> None:
    code = """
import os, resource
from jobman.process import LaunchRequest, launch_gated, open_gate
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); os.nice(3)
child = launch_gated(LaunchRequest(b"/bin/sh", (b"sh", b"-c", b"ulimit -n; nice"), {b"PATH": b"/usr/bin"}, b"/", 0o22))
open_gate(child)
os.set_blocking(child.stdout_fd, True)
while piece := os.read(child.stdout_fd, 100): os.write(1, piece)
"""
    done = subprocess.run(python(code), capture_output=True, timeout=10, check=False)
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert done.stdout.split() == [b"64", b"%d" % min(niceness + 3, 19)]


def test_a_caller_with_closed_standard_descriptors_launches_as_any_other(tmp_path: Path) -> None:
    code = f"""
import os
os.closerange(0, 3)
from jobman.process import LaunchRequest, launch_gated, open_gate
command = b"readlink /proc/$$/fd/0; echo err >&2"
child = launch_gated(LaunchRequest(b"/bin/sh", (b"sh", b"-c", command), {{b"PATH": b"/usr/bin"}}, b"/", 0o22))
open_gate(child)
output = b""
for fd in (child.stdout_fd, child.stderr_fd):
    assert fd > 2
    os.set_blocking(fd, True)
    while piece := os.read(fd, 100): output += piece
os.write(os.open({str(tmp_path / "result")!r}, os.O_WRONLY | os.O_CREAT), output)
"""
    subprocess.run(python(code), timeout=10, check=True)
    assert (tmp_path / "result").read_bytes() == b"/dev/null\nerr\n"


def test_the_liveness_lock_is_closed_in_the_child_and_not_unlocked(tmp_path: Path) -> None:
    lock = LivenessLock.acquire(str(tmp_path / "lock"))
    child = process.launch_gated(request(b"true"), close_in_child=(lock.fileno(),))
    until(lambda: _has_pipes_only(child.pid), what="a child that waits at its gate")
    assert probe(lock.path, lock.device, lock.inode) == HELD
    lock.close()
    assert probe(lock.path, lock.device, lock.inode) == FREE
    process.close_gate(child)
    finish(child, closed=(child.gate_fd,))


def _has_pipes_only(pid: int) -> bool:
    """Whether nothing but 0-2 and pipes is open; the lock is a regular file."""
    try:
        links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    except FileNotFoundError:  # closed meanwhile
        return False
    return all(fd in ("0", "1", "2") or target.startswith("pipe:") for fd, target in links.items())


# --- Failures --------------------------------------------------------------------------------------------------------


def test_a_directory_that_vanished_is_reported_by_stage() -> None:
    """D24, field case 16."""
    failure = fail(request(b"true")._replace(directory=b"/nowhere"))
    assert failure == ("directory", errno.ENOENT)


def test_an_executable_that_vanished_is_reported_by_stage() -> None:
    assert fail(request(b"true")._replace(executable=b"/nowhere")) == ("exec", errno.ENOENT)


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (b"echo no first line\n", 0o755, errno.ENOEXEC),
        (b"#!/no/such/interpreter\n", 0o755, errno.ENOENT),
        (b"#!/bin/sh\n", 0o644, errno.EACCES),
    ],
    ids=["no first line", "no interpreter", "no execute bit"],
)
def test_a_file_that_cannot_be_executed_is_reported(tmp_path: Path, content: bytes, mode: int, expected: int) -> None:
    script = tmp_path / "script"
    script.write_bytes(content)
    script.chmod(mode)
    assert fail(request(b"true")._replace(executable=bytes(script))) == ("exec", expected)


def test_arguments_beyond_the_limit_of_the_kernel_are_reported() -> None:
    """Field case 26."""
    assert fail(request(b"true", b"a" * 140_000)) == ("exec", errno.E2BIG)


def test_arguments_that_no_process_can_have_are_a_failure_and_not_a_second_supervisor() -> None:
    assert fail(request(b"true", b"a\0b")) == ("exec", errno.EINVAL)


def test_a_child_that_cannot_prepare_says_so_before_the_gate_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(launch_module, "_prepare", refuse)
    child = process.launch_gated(request(b"true"))
    assert result_of(child) == ("setup", errno.EIO)
    process.open_gate(child)
    finish(child, closed=(child.gate_fd,))


@pytest.mark.parametrize("left", range(12))
def test_a_lack_of_descriptors_is_an_error_that_leaves_nothing_open(left: int) -> None:
    """Field case 32: whatever descriptor is the one too many."""
    code = f"""
import os, resource
from jobman.process import LaunchRequest, launch_gated, open_gate
asked = LaunchRequest(b"/bin/true", (b"true",), {{}}, b"/", 0o22)
before = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.RLIMIT_NOFILE, (before - 1 + {left},) * 2)
try:
    child = launch_gated(asked)
except OSError as error:
    resource.setrlimit(resource.RLIMIT_NOFILE, (before - 1 + {left},) * 2)
    print("error", error.errno)
else:
    print("launched")
    os.kill(child.pid, 9)
    for fd in (child.stdout_fd, child.stderr_fd, child.gate_fd, child.result_fd): os.close(fd)
    if child.pidfd is not None: os.close(child.pidfd)
try:
    os.listdir("/proc/self/fd")
except OSError: pass
else: assert len(os.listdir("/proc/self/fd")) == before, os.listdir("/proc/self/fd")
"""
    done = subprocess.run(python(code), capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0, done.stderr
    # One for the input (and /dev/null beside it for a moment), two for each of four pipes.
    assert done.stdout == ("launched\n" if left >= 9 else f"error {errno.EMFILE}\n")


def test_a_process_that_cannot_be_forked_is_an_error_that_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "no process")

    before = descriptors()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    monkeypatch.setattr(os, "fork", refuse)
    with pytest.raises(BlockingIOError):
        process.launch_gated(request(b"true"))
    assert descriptors() == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask


# --- Lookup ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """``bin/tool`` can be executed, ``bin/data`` cannot, ``bin/sub`` is a directory, ``link`` leads to ``far/away``."""
    for directory in ("bin/sub", "far/away", "work"):
        (tmp_path / directory).mkdir(parents=True)
    for name, mode in (("bin/tool", 0o755), ("bin/data", 0o644), ("far/tool", 0o755), ("work/own", 0o755)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("far/away")
    return tmp_path


FOUND = {
    "absolute": ("{place}/bin/tool", "", "bin/tool"),
    "relative to the directory": ("../bin/tool", "", "bin/tool"),
    "cleaned": ("./..//bin/./tool", "", "bin/tool"),
    "through the PATH": ("tool", "/nowhere:{place}/bin", "bin/tool"),
    "empty element is the directory": ("own", ":/nowhere", "work/own"),
    "relative element is below the directory": ("tool", "../bin", "bin/tool"),
    "past what cannot be executed": ("tool", "{place}/bin/data:{place}/bin", "bin/tool"),
    "dots behind a link keep their meaning": ("../link/../tool", "", "work/../link/../tool"),
}


@pytest.mark.parametrize(("name", "path", "expected"), FOUND.values(), ids=FOUND)
def test_an_executable_is_found(place: Path, name: str, path: str, expected: str) -> None:
    found = process.resolve_executable(
        os.fsencode(name.format(place=place)), bytes(place / "work"), os.fsencode(path.format(place=place))
    )
    assert found == os.fsencode(f"{place}/{expected}")


REFUSED = {
    "nowhere in PATH": ("absent", "{place}/bin", ("lookup", errno.ENOENT)),
    "no such file": ("./absent", "{place}/bin", ("lookup", errno.ENOENT)),
    "a name with a slash is not looked for in PATH": ("./tool", "{place}/bin", ("lookup", errno.ENOENT)),
    "not executable": ("../bin/data", "", ("lookup", errno.EACCES)),
    "not executable, in PATH": ("data", "{place}/bin", ("lookup", errno.EACCES)),
    "not executable, and nowhere else": ("data", "{place}/bin:/nowhere", ("lookup", errno.EACCES)),
    "a directory": ("../bin/sub", "", ("lookup", errno.EISDIR)),
    "a directory, in PATH": ("sub", "{place}/bin", ("lookup", errno.ENOENT)),
    "empty PATH": ("own", "", ("lookup", errno.ENOENT)),
    "empty name": ("", "{place}/bin", ("lookup", errno.ENOENT)),
}


@pytest.mark.parametrize(("name", "path", "expected"), REFUSED.values(), ids=REFUSED)
def test_an_executable_is_refused(place: Path, name: str, path: str, expected: tuple[str, int]) -> None:
    found = process.resolve_executable(os.fsencode(name), bytes(place / "work"), os.fsencode(path.format(place=place)))
    assert found == expected


def test_without_a_path_the_default_of_the_system_is_searched() -> None:
    assert process.resolve_executable(b"sh", b"/", None) in (b"/bin/sh", b"/usr/bin/sh")


def test_a_missing_directory_is_said_before_the_executable_is_looked_for(place: Path) -> None:
    missing, file = bytes(place / "gone"), bytes(place / "bin" / "tool")
    assert process.resolve_executable(b"./absent", missing, None) == ("directory", errno.ENOENT)
    assert process.resolve_executable(b"./absent", file, None) == ("directory", errno.ENOTDIR)


def test_a_name_with_a_nul_byte_is_not_found() -> None:
    assert lookup.resolve_executable(b"/a\0b", b"/", None) == ("lookup", errno.ENOENT)
