"""Starts a process that outlives its starter, and cleans what a process inherits.

This is the hottest start-up path of the client and of the supervisor: nothing here imports ``typing``, ``signal`` or
``subprocess``, which cost 3 to 8 ms each.
"""

from __future__ import annotations

import os
import sys

import jobman

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

# The C library keeps 32 and 33 for itself; naming them is a warning in posix_spawn.
ALL_SIGNALS = (*range(1, 32), *range(34, 65))
_RUN_NAMES = (b"JOB_ID", b"JOB_NAME", b"RUN_ID", b"RUN_NUMBER", b"POOL", b"SLOTS", b"EVENT_ID")
_SITES = ("site-packages", "dist-packages")
_COERCED_LOCALES = (b"C.UTF-8", b"C.utf8", b"UTF-8")


class Detached:
    """A started process; ``input_fd`` writes to its standard input, ``output_fd`` reads its standard output.

    Both descriptors are blocking, close-on-exec, above 2, and belong to the caller; so does reaping ``pid`` if the
    caller lives on.
    """

    __slots__ = ("input_fd", "output_fd", "pid")

    def __init__(self, pid: int, input_fd: int, output_fd: int) -> None:
        self.pid = pid
        self.input_fd = input_fd
        self.output_fd = output_fd


def is_listed() -> bool:
    """Whether ``/proc`` shows this process under its PID: not so without it, or if it is of another PID namespace."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def spawn_detached(argv: Sequence[str], environment: Mapping[bytes, bytes]) -> Detached:
    """Start ``argv`` in a session of its own, with an empty signal mask and default handlers.

    Standard error is ``/dev/null``. Descriptors above 2 that the caller inherited without close-on-exec reach the new
    process, which therefore calls ``close_inherited_descriptors`` first.

    Args:
        argv: ``argv[0]`` is the path of the executable; ``PATH`` is not searched.
        environment: The whole environment of the new process.

    Raises:
        OSError: No descriptor or process is free, or the executable cannot be executed; nothing is left open.
    """
    child_input, input_fd = pipe_above_standard()
    try:
        output_fd, child_output = pipe_above_standard()
    except OSError:
        close_all((child_input, input_fd))
        raise
    actions = [
        (os.POSIX_SPAWN_DUP2, child_input, 0),
        (os.POSIX_SPAWN_DUP2, child_output, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        pid = os.posix_spawn(
            argv[0], tuple(argv), environment, file_actions=actions, setsid=True, setsigmask=(), setsigdef=ALL_SIGNALS
        )
    except BaseException:
        close_all((input_fd, output_fd))
        raise
    finally:
        close_all((child_input, child_output))
    return Detached(pid, input_fd, output_fd)


def pipe_above_standard() -> tuple[int, int]:
    """A close-on-exec pipe ``(reader, writer)`` whose ends lie above 2.

    A caller whose descriptors 0-2 are closed would otherwise get them here, and arranging a child's 0-2 would overwrite
    one end with the other.

    Raises:
        OSError: No descriptor is free.
    """
    reader, writer = os.pipe()
    try:
        reader = _above_standard(reader)
        writer = _above_standard(writer)
    except OSError:
        close_all((reader, writer))
        raise
    return reader, writer


def _above_standard(fd: int) -> int:
    if fd > 2:
        return fd
    import fcntl  # only a caller with closed standard descriptors pays for it

    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def close_all(fds: Collection[int]) -> None:
    """Close every descriptor of ``fds``, also when closing one fails."""
    for fd in fds:
        try:
            os.close(fd)
        except OSError:
            pass


def ensure_standard_descriptors() -> None:
    """Open ``/dev/null`` on those of the descriptors 0-2 that are closed.

    Otherwise the next file opened would become standard output, and be written to.

    Raises:
        OSError: ``/dev/null`` cannot be opened.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free descriptor is this one: those below it are open by now.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def close_inherited_descriptors(keep: Collection[int] = ()) -> None:
    """Close every descriptor above 2 except those in ``keep``."""
    try:
        listed = [int(name) for name in os.listdir("/proc/self/fd")]
    except (OSError, ValueError):
        _close_ranges(keep)
        return
    close_all([fd for fd in listed if fd > 2 and fd not in keep])


def _close_ranges(keep: Collection[int]) -> None:
    start = 3
    for fd in sorted(keep):
        os.closerange(start, fd)
        start = max(start, fd + 1)
    # Descriptors may lie above the present limit when it was lowered after they were opened.
    os.closerange(start, max(os.sysconf("SC_OPEN_MAX"), 65536))


def submitter_environment() -> dict[bytes, bytes]:
    """The environment of this process as it was given to it, with the changes the program made since.

    CPython writes ``LC_CTYPE`` into its own environment when the locale is C or missing; here it is what it was.
    """
    environment = dict(os.environb)
    if environment.get(b"LC_CTYPE") not in _COERCED_LOCALES:
        return environment
    given = _initial_environment()
    if given is None:
        return environment
    for entry in given:
        if entry.startswith(b"LC_CTYPE="):
            environment[b"LC_CTYPE"] = entry.partition(b"=")[2]
            return environment
    del environment[b"LC_CTYPE"]
    return environment


def without_run(environment: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Remove what names the run, or the event, that the caller belongs to; return the same environment."""
    for name in _RUN_NAMES:
        environment.pop(b"JOBMAN_" + name, None)
    return environment


def package_roots() -> list[str]:
    """Where Jobman and its libraries are, never the working directory or what else may be on this process's path."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(jobman.__file__)))
    sites = [os.path.abspath(path) for path in sys.path if path.endswith(_SITES)]
    return [home, *(site for site in sites if site != home)]


def _initial_environment() -> list[bytes] | None:
    try:
        with open("/proc/self/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return None
