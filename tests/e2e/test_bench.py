"""The benchmark measures real processes and leaves none; its figures are no test's business."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import ROWS, table
from bench.bed import Row
from tests.e2e.test_demo import processes_below
from tests.support import clean_environment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ROWS)
def test_every_row_can_be_measured_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = clean_environment(tmp_path / "state", TMPDIR=str(temporary))

    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", name],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["what", "measured", "yardstick", "result", "budget"]
    assert len(rows) == 1
    assert processes_below(temporary) == []
    assert os.listdir(temporary) == []


def test_a_row_over_its_budget_is_called_so() -> None:
    slow = Row("a", "a command", "9 ms", "3 ms", 3.0, 2.5)
    fast = slow._replace(value=2.5)
    floor = slow._replace(value=0.3, budget=0.4, floor=True)

    assert [line.split()[0] for line in table([slow, fast, floor]).splitlines()[1:]] == ["OVER", "ok", "OVER"]
