"""What ``doctor`` finds in a state directory: what keeps logs from being read or cleaned is not passed over."""

from __future__ import annotations

import os
from pathlib import Path

from jobman.service.doctor.files import take_stock
from tests.moves import EXAMPLE_JOB_ID

OURS = ("1/stdout.log", "1/stderr.000002.log", "1/chunks.idx", "1/.active", "2.deleting/.cleanup-summary")
NOT_OURS = (
    "notes",
    "1/stdout.log.gz",
    "1/stdout.2.log",
    "1/.cleanup-summary",
    "1/sub/stdout.log",
    "2.deleting/.active",
)


def test_what_cleaning_would_stop_at_is_found(tmp_path: Path) -> None:
    """O.53: an unknown entry and a second name are refused, and keep all later logs from being cleaned."""
    logs = tmp_path / "logs" / EXAMPLE_JOB_ID
    for name in (*OURS, *NOT_OURS):
        (logs / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (logs / name).touch(mode=0o600)
    for directory in (tmp_path / "logs", logs):
        directory.chmod(0o700)
    os.link(logs / "1/chunks.idx", tmp_path / "second")
    found = take_stock(str(tmp_path))
    foreign = {path.removeprefix(f"logs/{EXAMPLE_JOB_ID}/") for path in found.foreign}
    assert foreign == {*NOT_OURS, "1/sub"}
    assert found.strange == (f"logs/{EXAMPLE_JOB_ID}/1/chunks.idx has 2 links", "second has 2 links")
    assert found.marked == ((EXAMPLE_JOB_ID, 1),)
