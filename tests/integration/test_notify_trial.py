"""``notify test`` and a process that cannot do it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from jobman.errors import LaunchError
from jobman.model.notifiers import CommandTarget, Notifier
from jobman.process import spawn
from jobman.service.notify import try_notifier


def test_a_process_that_dies_at_once_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read nothing, which must not be taken for a reader of our own output that has gone, and it is reaped."""
    started = spawn.spawn_detached
    pids = []

    def dies(_argv: Sequence[str], environment: Mapping[bytes, bytes]) -> spawn.Detached:
        process = started(("/bin/false",), environment)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        pids.append(process.pid)
        return process

    monkeypatch.setattr(spawn, "spawn_detached", dies)
    with pytest.raises(LaunchError, match="ended without an answer"):
        try_notifier(Notifier("desk", CommandTarget("true")), str(tmp_path))
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], 0)
