"""No test of the configuration may see that of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.config import paths
from jobman.config.load import VARIABLES


@pytest.fixture
def no_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No file and no variable; returns where the user's file would be looked for."""
    monkeypatch.setattr(paths, "SYSTEM_CONFIG", str(tmp_path / "etc" / "jobman.yml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "jobman" / "jobman.yml"
