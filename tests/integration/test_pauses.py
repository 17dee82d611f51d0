"""Pauses, repetitions and their deadlines, told by stories on a clock that stands still (H.3, H.5; M22, M29, D20)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stepped_pauses import STORIES
from tests.integration.stepped_supervisor import tell


@pytest.mark.parametrize("story", STORIES)
def test_time_is_accounted_for_to_the_nanosecond(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    tell("tests.integration.stepped_pauses", story, state)
