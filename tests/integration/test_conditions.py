"""What holds a first run back, told by stories on a clock that stands still (contract, H.2; M14, D7, D30, C4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.stepped_gates import STORIES
from tests.integration.stepped_supervisor import tell


@pytest.mark.parametrize("story", STORIES)
def test_a_gate_opens_exactly_when_it_should(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    tell("tests.integration.stepped_gates", story, state)
