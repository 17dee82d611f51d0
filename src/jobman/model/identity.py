"""Who a process is: a PID alone is never an identity."""

from __future__ import annotations

from jobman.values import NamedTuple, StrEnum


class ProcessIdentity(NamedTuple):
    """One process, for ever: PID, creation and boot together.

    ``creation_id`` is field 22 of ``/proc/PID/stat`` (start time in clock ticks) as text, ``boot_id`` the kernel's
    random boot ID, ``pid_namespace`` the inode of the PID namespace in which ``pid`` means something. The first three
    come from section I.1 of the contract; the namespace keeps a container from judging the processes of its host.
    """

    pid: int
    creation_id: str
    boot_id: str
    pid_namespace: str


class Presence(StrEnum):
    """What a look at the process table says of an identity."""

    ALIVE = "alive"
    GONE = "gone"
    """Nobody has that PID, it is a zombie, another process has it, or the machine was booted since."""
    UNKNOWN = "unknown"
    """The PID belongs to another PID namespace, or the process table cannot be read: never a reason to signal."""
