"""Submitting a specification that no flag can ask for, as ``jobman run`` submits one.

Run as a program (``python -m tests.integration.submitting STATE <specification``), because a supervisor takes the
environment of the process that starts it. Prints the job's ID.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from jobman.clock import SystemClock
from jobman.model.spec import JobSpec
from jobman.model.spec_json import decode, encode
from jobman.service.launch import new_job_id, start
from jobman.service.submit import submit
from jobman.store.connection import open_store
from tests.support import Cli

ROOT = Path(__file__).parents[2]


def submit_spec(cli: Cli, spec: JobSpec, **options: Any) -> str:
    """Submit ``spec`` with a real supervisor; return the job's ID."""
    argv = [sys.executable, "-m", "tests.integration.submitting", str(cli.state)]
    options |= {"env": cli.environment, "cwd": ROOT, "input": encode(spec), "timeout": 15}
    done = subprocess.run(argv, capture_output=True, check=False, text=True, **options)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).strip()


def main() -> None:
    """Submit what stdin describes."""
    clock = SystemClock()
    candidate = start(new_job_id(clock), sys.argv[1])
    sys.stdout.write(submit(open_store(sys.argv[1]), candidate, decode(sys.stdin.read()), clock) + "\n")


if __name__ == "__main__":
    main()
