"""What the page on notifications tells its reader to put into a configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.config.load import load
from jobman.config.subscribing import notifier, warnings
from jobman.model.notifiers import notifier_problem
from tests.blocks import ROOT, Block, blocks_of

PAGE = ROOT / "docs" / "guide" / "notifications.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.language == "yaml"]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.text.partition(" type: ")[2].split()[0])
@pytest.mark.usefixtures("no_source")
def test_every_notifier_is_valid_and_needs_no_warning(tmp_path: Path, block: Block) -> None:
    file = tmp_path / "page.yml"
    file.write_text(block.text)

    stated = load(str(file)).stated

    assert warnings(stated) == []
    made = [notifier(stated, name) for name in stated["notifiers"]]
    assert [notifier_problem(one) for one in made] == [None] * len(made)
