"""A supervisor has loaded everything it may ever need before its first decision: the package may be replaced meanwhile.

Architecture, Imports in a supervisor; field case 36.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

import jobman
from tests.faults.injection import DRIVER, run_with, started, traced, wrapped_interpreter
from tests.support import Cli, eventually, processes_of

STORIES = {
    "success": ("true",),
    "retry": ("--retries", "1", "--retry-delay", "10ms", "--", "false"),
    "no such program": ("/nonexistent",),
    "live input": ("--stdin", "live", "--", "true"),
    "run timeout": (
        "--run-timeout",
        "300ms",
        "--stop-grace",
        "50ms",
        "--",
        "sh",
        "-c",
        "trap '' TERM; sleep 60 & wait; wait",
    ),
    "job timeout": ("--job-timeout", "300ms", "--", "sleep", "60"),
    "left behind": ("--stop-grace", "50ms", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo text"),
}


@pytest.mark.parametrize("words", STORIES.values(), ids=STORIES.keys())
def test_nothing_is_imported_once_the_target_has_been_forked(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Every module and library is opened before the first fork, whatever the job comes to."""
    log = tmp_path / "log"
    python = wrapped_interpreter(tmp_path / "python", traced("openat", "fork,vfork,clone,clone3,mkdir", log=log))
    words = words if "--" in words else ("--", *words)

    done = run_with(cli, python, *words)

    assert done.status == 0, done.err
    cli.wait(done.out.strip())
    eventually(lambda: not processes_of(cli.state))
    # A run begins with its log directory; what cannot be started is never forked.
    _, found, after = log.read_text().partition(f"logs/{done.out.strip()}")
    assert found
    assert re.findall(r'"[^"]*\.(?:py|pyc|so)(?:\.\d+)?"[^\n]*', after) == []


def test_a_job_ends_although_the_package_is_gone(cli: Cli, tmp_path: Path) -> None:
    """Field case 36: ``pip uninstall`` during a run; a stubborn target is still stopped, and its end recorded."""
    copy = tmp_path / "site"
    shutil.copytree(Path(jobman.__file__).parent, copy / "jobman", ignore=shutil.ignore_patterns("__pycache__"))
    argv = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(copy)!r})\n{DRIVER}", sys.executable]
    script = "trap '' TERM; echo ready; sleep 60 & wait; wait"
    with started(cli, [*argv, "run", "--stop-grace", "100ms", "--", "sh", "-c", script]) as client:
        job_id = client.communicate(timeout=15)[0].decode().strip()
    eventually(lambda: cli("logs", job_id, status=None).out == "ready\n")
    assert any(str(copy) in command for command in processes_of(cli.state).values())

    shutil.rmtree(copy)
    cli("cancel", job_id)

    assert cli.wait(job_id) == "cancelled"
