"""Deadlines of a supervisor on a clock that is told when to go on: neither early nor late (D26, D33, H.5, M29)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stepped_supervisor import STORIES, tell


@pytest.mark.parametrize("story", STORIES)
def test_a_deadline_fires_exactly_when_it_is_due(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    tell("tests.integration.stepped_supervisor", story, state)
