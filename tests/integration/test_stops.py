"""Runs that end while somebody wants something else of them (F.4, H.7, I.2 to I.4; D3, D4, D22, D24, D33)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman import process
from jobman.supervisor import stop
from tests.integration.stepped_stops import STORIES
from tests.integration.stepped_supervisor import tell


def test_a_pause_does_not_wait_for_members_that_it_may_not_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's, such as what a set-user-ID program has started."""
    member, looks = process.Member(process.own_identity(), "su", "S", 1), []
    monkeypatch.setattr(process, "signal_member", lambda _member, _number: False)

    def look() -> list[process.Member]:
        looks.append(member)
        return [member]

    stop.suspend(look)

    assert len(looks) == 2


@pytest.mark.parametrize("story", STORIES)
def test_what_becomes_of_a_run(state: Path, story: str) -> None:
    """Each story tells in its own words what it holds the loop to."""
    tell("tests.integration.stepped_stops", story, state)
