"""Gated launch: a child that waits, fully prepared, until its identity is durable, and only then becomes the target.

The caller forks, records who the child is, and opens the gate; the child executes the target and the end of file of a
close-on-exec pipe says so, or that pipe says what failed. A caller that dies closes the gate: the child exits and no
instruction of the target has run.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import resource

from jobman import signals
from jobman.process._linux_library import default_library_signals
from jobman.process.lookup import LaunchFailure
from jobman.process.spawn import close_all, close_inherited_descriptors, pipe_above_standard
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import NoReturn

    from jobman.process.lookup import Stage

# More would count against the user's quota of pipe memory; beyond it the kernel shrinks everybody's new pipes.
_PIPE_SIZE = 256 * 1024
_HIGHEST_SIGNAL = 64
_STAGES: tuple[Stage, ...] = ("setup", "directory", "exec")
_FAILED = 127
_REPORT_SIZE = 64


class LaunchRequest(NamedTuple):
    """What to execute; everything that is not said here is inherited from the caller.

    ``executable`` is the resolved path, ``argv[0]`` the name as given, ``directory`` an absolute path. ``stdin`` is a
    descriptor for the target's standard input, which stays the caller's; None means ``/dev/null``. ``file_size_limit``
    is the soft and hard limit to restore, None to inherit the caller's.
    """

    executable: bytes
    argv: tuple[bytes, ...]
    environment: Mapping[bytes, bytes]
    directory: bytes
    umask: int
    stdin: int | None = None
    file_size_limit: tuple[int, int] | None = None


class GatedChild(NamedTuple):
    """A child that waits at its gate; all descriptors are close-on-exec and belong to the caller.

    ``stdout_fd``, ``stderr_fd`` and ``result_fd`` are for reading and do not block. ``pidfd`` becomes readable when the
    child ends; None where the kernel has none.
    """

    pid: int
    pidfd: int | None
    stdout_fd: int
    stderr_fd: int
    gate_fd: int
    result_fd: int


class _Ends(NamedTuple):
    """The child's ends of the pipes, then the caller's in the order of ``GatedChild``."""

    stdin: int
    stdout: int
    stderr: int
    gate: int
    result: int
    stdout_fd: int
    stderr_fd: int
    gate_fd: int
    result_fd: int


def launch_gated(request: LaunchRequest, *, close_in_child: Collection[int] = ()) -> GatedChild:
    """Fork a child that leads its own process group, has descriptors 0-2 only, default handlers, and waits.

    It has no thread beside it at the fork. Once the gate opens it takes the umask and the directory, empties its signal
    mask, and executes the target.

    Args:
        request: What to execute.
        close_in_child: Descriptors that the child closes before anything else, above all that of a liveness lock.

    Raises:
        OSError: No process, descriptor or memory is free; nothing is left behind.
    """
    default_library_signals()
    ends = _open_ends(request.stdin)
    ours = (ends.stdout_fd, ends.stderr_fd, ends.gate_fd, ends.result_fd)
    blocked = signals.pthread_sigmask(signals.SIG_BLOCK, signals.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _be_the_child(request, ends, (*close_in_child, *ours))
    except OSError:
        close_all(ours)
        raise
    finally:
        # The child never comes here. Signals that arrived meanwhile are handled now, when the child is known.
        signals.pthread_sigmask(signals.SIG_SETMASK, blocked)
        close_all((ends.stdin, ends.stdout, ends.stderr, ends.gate, ends.result))
    _lead_group(pid)
    return GatedChild(pid, _pidfd(pid), *ours)


def open_gate(child: GatedChild) -> None:
    """Let the child execute the target, and close the gate; a child that is gone already is no error."""
    try:
        os.write(child.gate_fd, b"\0")
    except BrokenPipeError:
        pass
    finally:
        os.close(child.gate_fd)


def close_gate(child: GatedChild) -> None:
    """End the child before it has executed anything, even if somebody has stopped it, and close the gate."""
    os.kill(child.pid, signals.SIGKILL)  # nobody has reaped it yet: the PID is its own
    os.close(child.gate_fd)


def read_launch_result(result_fd: int) -> LaunchFailure | None:
    """What became of the exec, once ``result_fd`` is readable: None if the target runs.

    A child that was killed between the gate and its exec looks like a target that was killed at its first instruction.

    Raises:
        BlockingIOError: Not known yet.
    """
    report = os.read(result_fd, _REPORT_SIZE)
    if not report:
        return None
    stage, _, number = report.partition(b" ")
    return LaunchFailure(_STAGES[int(stage)], int(number))


# --- The caller's side ---------------------------------------------------------------------------------------------


def _open_ends(stdin: int | None) -> _Ends:
    opened: list[int] = []
    try:
        opened.append(_stdin_above_standard(stdin))
        for _ in range(4):
            opened.extend(pipe_above_standard())
    except OSError:
        close_all(opened)
        raise
    child_stdin, *pipes = opened
    stdout_fd, stdout, stderr_fd, stderr, gate, gate_fd, result_fd, result = pipes
    for fd in (stdout_fd, stderr_fd, result_fd):
        os.set_blocking(fd, False)
    _enlarge(stdout_fd)
    _enlarge(stderr_fd)
    return _Ends(child_stdin, stdout, stderr, gate, result, stdout_fd, stderr_fd, gate_fd, result_fd)


def _stdin_above_standard(stdin: int | None) -> int:
    """A descriptor for the child that arranging its 0-2 cannot overwrite, whatever the caller's descriptors are."""
    if stdin is not None:
        return fcntl.fcntl(stdin, fcntl.F_DUPFD_CLOEXEC, 3)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(null)


def _enlarge(pipe: int) -> None:
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
    except OSError:  # the quota is used up: the default size does
        pass


def _lead_group(pid: int) -> None:
    """Done by both sides: whoever acts first, the group exists when the caller signals it."""
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


# --- The child's side: plain system calls, and always _exit ----------------------------------------------------------


def _be_the_child(request: LaunchRequest, ends: _Ends, close_first: Collection[int]) -> NoReturn:
    stage = 0
    try:
        gc.disable()  # a finalizer would act on what it shares with the caller
        close_all(close_first)
        _prepare(ends)
        if not os.read(ends.gate, 1):
            os._exit(0)
        os.umask(request.umask)
        if request.file_size_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, request.file_size_limit)
        stage = 1
        os.chdir(request.directory)
        stage = 2
        signals.pthread_sigmask(signals.SIG_SETMASK, ())
        os.execve(request.executable, request.argv, request.environment)
    except OSError as error:
        _report(ends.result, stage, error.errno or errno.EIO)
    except BaseException:  # noqa: BLE001  # whatever it is, a second supervisor must not go on from here
        _report(ends.result, stage, errno.EINVAL)
    finally:
        os._exit(_FAILED)


def _prepare(ends: _Ends) -> None:
    _lead_group(os.getpid())
    # Default before the mask is emptied: a signal that is pending by then kills, as it would the target.
    for signo in range(1, _HIGHEST_SIGNAL + 1):
        try:
            signals.signal(signo, signals.SIG_DFL)
        except (OSError, ValueError):  # SIGKILL, SIGSTOP, and those of the C library
            pass
    os.dup2(ends.stdin, 0)
    os.dup2(ends.stdout, 1)
    os.dup2(ends.stderr, 2)
    close_inherited_descriptors(keep=(ends.gate, ends.result))


def _report(result: int, stage: int, number: int) -> None:
    try:
        os.write(result, b"%d %d" % (stage, number))
    except OSError:  # the caller is gone
        pass
