"""Every test has its own state directory, leaves no process behind, and touches nothing of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import Cli, assert_no_process

settings.register_profile("jobman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("jobman")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory that does not exist yet; at the end no process of it may live."""
    directory = tmp_path / "state"
    yield directory
    assert_no_process(directory)


@pytest.fixture
def cli(state: Path, tmp_path: Path) -> Cli:
    """The installed command in a state directory and a working directory of its own."""
    work = tmp_path / "work"
    work.mkdir()
    return Cli(state, work)
