"""Linux: the process table, identities, and what only this kernel offers.

Everything is read from ``/proc``, and only if that file system shows the PID namespace we live in: a PID means nothing
in another one. Processes vanish while they are looked at; that is never an error here.
"""

from __future__ import annotations

import os

from jobman import signals
from jobman.errors import UnsupportedPlatformError
from jobman.model.identity import Presence, ProcessIdentity
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Value = TypeVar("Value")

_DEAD = frozenset("ZXx")
_STAT_SIZE = 4096
_ENVIRONMENT_PIECE = 65536


def once(ask: Callable[[], Value]) -> Callable[[], Value]:
    """Ask once and remember the answer, as ``functools.cache`` does, which loads ``collections`` (1.5 ms, 0.6 MB)."""
    known: list[Value] = []

    def answer() -> Value:
        if not known:
            known.append(ask())
        return known[0]

    answer.__doc__ = ask.__doc__
    return answer


class Entry(NamedTuple):
    """One line of the process table; ``start`` is in clock ticks since boot, ``state`` the letter of ``ps``."""

    pid: int
    name: str
    state: str
    ppid: int
    pgid: int
    session: int
    start: int

    @property
    def dead(self) -> bool:
        """Whether it has ended and only waits to be reaped."""
        return self.state in _DEAD


# --- Identity ------------------------------------------------------------------------------------------------------


@once
def boot_id() -> str:
    """The kernel's random ID of this boot.

    Raises:
        OSError: ``/proc`` is not there.
    """
    return _read("/proc/sys/kernel/random/boot_id", _STAT_SIZE).decode("ascii").strip()


@once
def pid_namespace() -> str:
    """The inode of our PID namespace as text.

    Raises:
        OSError: ``/proc`` is not there.
    """
    return str(os.stat("/proc/self/ns/pid").st_ino)


def inspect(pid: int) -> ProcessIdentity | None:
    """Who has ``pid`` now, a zombie included; None if nobody has.

    Raises:
        OSError: The process table cannot be read.
        UnsupportedPlatformError: ``/proc`` shows another PID namespace.
    """
    found = entry(pid)
    return None if found is None else identity_of(found)


def own_identity() -> ProcessIdentity:
    """Who this process is.

    Raises:
        OSError: The process table cannot be read.
        UnsupportedPlatformError: ``/proc`` shows another PID namespace.
    """
    found = inspect(os.getpid())
    if found is None:
        raise UnsupportedPlatformError(platform="a /proc that hides the caller's own process")
    return found


def identity_of(entry: Entry) -> ProcessIdentity:
    """The identity of the process that ``entry`` shows."""
    return ProcessIdentity(entry.pid, str(entry.start), boot_id(), pid_namespace())


def presence(identity: ProcessIdentity) -> Presence:
    """Whether the process lives; ``UNKNOWN`` unless the process table proves one or the other."""
    try:
        if identity.boot_id != boot_id():
            return Presence.GONE
        if identity.pid_namespace != pid_namespace():
            return Presence.UNKNOWN
        found = entry(identity.pid)
        if found is None and _exists(identity.pid):
            # Started a moment ago, or hidden from us (hidepid).
            found = entry(identity.pid)
            if found is None:
                return Presence.UNKNOWN
    except (OSError, UnsupportedPlatformError):
        return Presence.UNKNOWN
    if found is None or found.dead or str(found.start) != identity.creation_id:
        return Presence.GONE
    return Presence.ALIVE


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


# --- The process table ---------------------------------------------------------------------------------------------


def entry(pid: int) -> Entry | None:
    """The table's line for ``pid``; None if nobody has it.

    Raises:
        OSError: It cannot be read.
        UnsupportedPlatformError: ``/proc`` shows another PID namespace.
    """
    _require_own_table()
    return _entry(pid)


def table() -> dict[int, Entry]:
    """All processes we may see, zombies included, by PID; no instant of time, but a walk.

    Raises:
        OSError: The table cannot be read.
        UnsupportedPlatformError: ``/proc`` shows another PID namespace.
    """
    _require_own_table()
    entries: dict[int, Entry] = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            found = _entry(int(name))
        except PermissionError:  # hidepid=1: somebody else's
            continue
        if found is not None:
            entries[found.pid] = found
    return entries


def children(pid: int) -> tuple[int, ...]:
    """The PIDs of the children of the first thread of ``pid``, zombies included.

    Complete if ``pid`` is the caller and has one thread: nobody else has children, or reaps them meanwhile.

    Raises:
        OSError: The table cannot be read.
        UnsupportedPlatformError: ``/proc`` shows another PID namespace.
    """
    _require_own_table()
    try:
        listed = _read(f"/proc/{pid}/task/{pid}/children", _ENVIRONMENT_PIECE)
    except FileNotFoundError:  # a kernel without the list
        return tuple(found.pid for found in table().values() if found.ppid == pid)
    return tuple(int(child) for child in listed.split())


def initial_environment(pid: int) -> bytes | None:
    """The environment ``pid`` was executed with, entries ended by NUL; None if it is not ours to read, or gone.

    Between fork and exec this is the environment of its parent.
    """
    try:
        return _read(f"/proc/{pid}/environ", _ENVIRONMENT_PIECE)
    except OSError:
        return None


def boot_time_ns() -> int:
    """When the machine was booted, in Unix nanoseconds, exact to a second, by today's setting of the wall clock.

    Raises:
        OSError: ``/proc`` is not there.
    """
    for line in _read("/proc/stat", _ENVIRONMENT_PIECE).splitlines():
        if line.startswith(b"btime "):
            return int(line.split()[1]) * 1_000_000_000
    raise UnsupportedPlatformError(platform="a /proc without the time of boot")


def _entry(pid: int) -> Entry | None:
    try:
        text = _read(f"/proc/{pid}/stat", _STAT_SIZE)
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name may contain blanks and parentheses; the fields behind the last one are numbers.
    head, _, tail = text.rpartition(b")")
    name = head.partition(b"(")[2].decode("utf-8", "backslashreplace")
    fields = tail.split()
    if len(fields) < 20:
        return None
    state = fields[0].decode("ascii")
    return Entry(pid, name, state, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


@once
def _table_is_ours() -> bool:
    """Whether ``/proc`` counts processes as ``getpid`` does.

    ``NSpid`` lists our PID in each namespace from that of ``/proc`` down to our own: one number means there is but one.
    """
    try:
        numbers = own_status(b"NSpid").split()
        if numbers:
            return numbers == [b"%d" % os.getpid()]
        return os.readlink("/proc/self") == str(os.getpid())  # a kernel before 4.1
    except FileNotFoundError:
        return False


def own_status(name: bytes) -> bytes:
    """A line of our own status without its name; empty if the kernel knows none of that name."""
    for line in _read("/proc/self/status", _STAT_SIZE).splitlines():
        if line.startswith(name + b":"):
            return line.partition(b":")[2]
    return b""


def _require_own_table() -> None:
    if not _table_is_ours():
        raise UnsupportedPlatformError(platform="a /proc that shows another PID namespace")


def _read(path: str, piece: int) -> bytes:
    """The whole file; ``open`` would take three times as long, and whole tables are read."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, piece)
        if len(data) < piece and piece == _STAT_SIZE:
            return data
        pieces = [data]
        while data:
            data = os.read(fd, piece)
            pieces.append(data)
        return b"".join(pieces)
    finally:
        os.close(fd)


# --- Signals ------------------------------------------------------------------------------------------------------


def signal_process(identity: ProcessIdentity, signo: int) -> bool:
    """Send ``signo`` to exactly this process; whether it was sent.

    A process that is gone, has ended, cannot be verified, or belongs to another user gets nothing.
    """
    if identity.pid <= 0:
        return False
    try:
        pidfd = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError:  # an old kernel, a sandbox, or no descriptor free: a verified kill is the next best
        return _send(identity, signo, None)
    try:
        return _send(identity, signo, pidfd)
    finally:
        os.close(pidfd)


def _send(identity: ProcessIdentity, signo: int, pidfd: int | None) -> bool:
    # Verified after the pidfd was opened: from here on it means the process that was verified, or nobody.
    if presence(identity) is not Presence.ALIVE:
        return False
    try:
        if pidfd is None:
            os.kill(identity.pid, signo)
        else:
            signals.pidfd_send_signal(pidfd, signo)
    except OSError:
        return False
    return True


def signal_group(leader: ProcessIdentity, signo: int) -> bool:
    """Send ``signo`` to the process group that ``leader`` leads; whether it was sent.

    Only for the parent of a leader that is not yet reaped, a zombie included: only then does the number of the group
    belong to it for certain.
    """
    if leader.pid <= 1:  # killpg(1) would mean every process
        return False
    try:
        found = entry(leader.pid)
        if found is None or identity_of(found) != leader:
            return False
        os.killpg(leader.pid, signo)
    except (OSError, UnsupportedPlatformError):
        return False
    return True
