"""Pauses, repetitions and their deadlines, told by stories on a clock that stands still (H.3, H.5; M22, M29, D20)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.injection import assert_sound
from tests.integration.stepped_pauses import STORIES
from tests.support import clean_environment

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("story", STORIES)
def test_time_is_accounted_for_to_the_nanosecond(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    argv = [sys.executable, "-m", "tests.integration.stepped_pauses", story, str(state)]

    done = subprocess.run(
        argv, env=clean_environment(state), cwd=ROOT, capture_output=True, check=False, timeout=18, text=True
    )

    assert done.returncode == 0, done.stderr
    assert_sound(state)
