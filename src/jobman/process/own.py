"""Who this process is, as plain values: what a fresh supervisor needs before it can afford `jobman.process`."""

from __future__ import annotations

import os


def own_identity_fields() -> tuple[int, str, str, str]:
    """Return PID, creation, boot and PID namespace of this process: the fields of a ``ProcessIdentity`` in order.

    Raises:
        OSError: ``/proc`` is not there.
    """
    with open("/proc/self/stat", "rb") as file:
        # The command name, in parentheses, may hold anything; what follows the last one is fields 3 and later.
        fields = file.read().rpartition(b")")[2].split()
    return os.getpid(), fields[19].decode("ascii"), own_boot_id(), str(os.stat("/proc/self/ns/pid").st_ino)


def own_boot_id() -> str:
    """Return the kernel's random ID of this boot.

    Raises:
        OSError: ``/proc`` is not there.
    """
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read().decode("ascii").strip()
