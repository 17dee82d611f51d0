"""The contract: what the rest of Jobman asks of the operating system; callers never look at the platform."""

from __future__ import annotations

from jobman.process._linux import (
    boot_id,
    inspect,
    own_identity,
    pid_namespace,
    presence,
    signal_group,
    signal_process,
)
from jobman.process._linux_library import become_subreaper, prepare_launches, release_memory
from jobman.process.exits import ExitStatus, Usage, observe_exit, reap, signal_name, signal_names
from jobman.process.launch import (
    GatedChild,
    LaunchRequest,
    close_gate,
    launch_gated,
    open_gate,
    read_launch_result,
)
from jobman.process.lookup import FailureCode, LaunchFailure, Stage, describe, resolve_executable
from jobman.process.tree import (
    Member,
    RunTree,
    adopted,
    has_members,
    kill_all,
    members,
    reap_adopted,
    signal_member,
    survivors,
)

__all__ = [
    "ExitStatus",
    "FailureCode",
    "GatedChild",
    "LaunchFailure",
    "LaunchRequest",
    "Member",
    "RunTree",
    "Stage",
    "Usage",
    "adopted",
    "become_subreaper",
    "boot_id",
    "close_gate",
    "describe",
    "has_members",
    "inspect",
    "kill_all",
    "launch_gated",
    "members",
    "observe_exit",
    "open_gate",
    "own_identity",
    "pid_namespace",
    "prepare_launches",
    "presence",
    "read_launch_result",
    "reap",
    "reap_adopted",
    "release_memory",
    "resolve_executable",
    "signal_group",
    "signal_member",
    "signal_name",
    "signal_names",
    "signal_process",
    "survivors",
]
