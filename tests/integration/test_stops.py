"""Runs that end while somebody wants something else of them (F.4, H.7, I.2 to I.4; D3, D4, D22, D24, D33)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stepped_stops import STORIES
from tests.integration.stepped_supervisor import tell


@pytest.mark.parametrize("story", STORIES)
def test_what_becomes_of_a_run(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    tell("tests.integration.stepped_stops", story, state)
