"""The sample of a configuration file says nothing that is not true, as shipped and with everything put in force."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jobman.config import paths
from jobman.config.load import ENVIRONMENT, load_concurrency
from jobman.policy.limits import StatedLimits

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "examples" / "jobman.yml"
SYSTEM_CONFIG = paths.SYSTEM_CONFIG


@pytest.fixture(autouse=True)
def _no_other_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(paths, "SYSTEM_CONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(ENVIRONMENT, raising=False)


def uncommented() -> str:
    """Return the sample with every key in force; prose has a space after its hash."""
    return re.sub(r"^( *)#(?! |$)", r"\1", SAMPLE.read_text(), flags=re.MULTILINE)


def test_the_sample_changes_nothing_as_shipped() -> None:
    assert load_concurrency(str(SAMPLE)).limits == StatedLimits(states_store_wide=False, store_wide=None, pools={})


def test_the_sample_is_valid_with_every_line_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "sample.yml"
    file.write_text(uncommented())

    limits = load_concurrency(str(file)).limits

    assert limits == StatedLimits(True, 16, {"gpu": 4, "licence": 1, "batch": None})


def test_every_key_is_in_the_sample_and_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()

    for key in ("schema_version", "concurrency", "max_active_slots", "pools"):
        assert re.search(rf"^ *{key}:", uncommented(), re.MULTILINE)
        assert re.search(rf"^\| `(concurrency\.)?({key})\b", page, re.MULTILINE)
    assert ENVIRONMENT in page
    assert f"`{SYSTEM_CONFIG}`" in page
