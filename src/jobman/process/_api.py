"""The contract: what the rest of Jobman asks of the operating system; callers never look at the platform."""

from __future__ import annotations

from jobman.process._linux import (
    become_subreaper,
    boot_id,
    inspect,
    own_identity,
    pid_namespace,
    presence,
    signal_group,
    signal_process,
)

__all__ = [
    "become_subreaper",
    "boot_id",
    "inspect",
    "own_identity",
    "pid_namespace",
    "presence",
    "signal_group",
    "signal_process",
]
