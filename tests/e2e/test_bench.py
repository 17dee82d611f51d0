"""The benchmark measures real processes and leaves none; its figures are no test's business."""

from __future__ import annotations

import json
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
    done = _bench(tmp_path, name)

    header, *rows = done.stdout.splitlines()
    assert header.split() == ["what", "measured", "yardstick", "result", "budget"]
    assert len(rows) == 1


def _bench(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a quick benchmark, which must succeed and leave nothing."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = clean_environment(tmp_path / "state", TMPDIR=str(temporary))

    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", *words],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert processes_below(temporary) == []
    assert os.listdir(temporary) == []
    return done


def test_the_plots_can_be_measured(tmp_path: Path) -> None:
    """The data that ``make bench PLOT=1`` draws: the same figures at every point of a curve."""
    done = _bench(tmp_path, "--plot")

    data = json.loads(done.stdout)
    assert [point["jobs"] for point in data["jobs"]] == [2, 20]
    assert [point["supervisors"] for point in data["waiting"]] == [1, 2]
    for points in (data["jobs"], data["waiting"]):
        assert points[0].keys() == points[1].keys()
        assert all(value > 0 for point in points for value in point.values())


def test_every_row_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "performance.md").read_text()

    assert [name for name in ROWS if f"`{name}`" not in page] == []
    for name, value in (("jobs", "jobs.svg"), ("waiting", "waiting.svg"), ("machine", "growth.json")):
        assert f"](performance/{value})" in page
        assert json.loads((ROOT / "docs" / "reference" / "performance" / "growth.json").read_text())[name]


def test_a_row_over_its_budget_is_called_so() -> None:
    slow = Row("a", "a command", "9 ms", "3 ms", 3.0, 2.5)
    fast = slow._replace(value=2.5)
    floor = slow._replace(value=0.3, budget=0.4, floor=True)

    assert [line.split()[0] for line in table([slow, fast, floor]).splitlines()[1:]] == ["OVER", "ok", "OVER"]
