"""Many jobs that one completion releases at once (issue: no busy failure, no duplicate; the makespan is printed)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.support import Cli, eventually

COUNT = int(os.environ.get("JOBMAN_MANY", "60"))


def test_all_dependents_of_one_job_run_once_when_it_has_ended(cli: Cli) -> None:
    gate, ran = Path(cli.cwd) / "gate", Path(cli.cwd) / "ran"
    first = cli.run("sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.05; done")
    for _ in range(COUNT):
        cli.run("sh", "-c", f"echo x >>{ran}", flags=("--after-success", first))
    eventually(lambda: cli("list", "--phase", "waiting", "--all").out.count("\n") == COUNT + 1)

    gate.touch()
    began = time.monotonic()
    eventually(lambda: cli.json("list", "--active")["jobs"] == [], within=60)

    print(f"makespan of {COUNT} released jobs: {time.monotonic() - began:.1f} s")  # noqa: T201  # what was asked for
    assert ran.read_text() == "x\n" * COUNT
    assert cli("list", "--outcome", "success", "--all").out.count("\n") == COUNT + 2
