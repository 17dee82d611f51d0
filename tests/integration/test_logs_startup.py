"""What reading logs loads: ``jobman logs`` is called in loops (performance budgets)."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"re", "dataclasses", "pathlib", "json", "contextlib", "logging", "google_crc32c"}
PROGRAM = """
import enum, sys, typing
before = set(sys.modules)
import {modules}
print(*(set(sys.modules) - before))
"""


def loaded(modules: str) -> set[str]:
    """Return what importing ``modules`` loads into a fresh interpreter beyond ``enum`` and ``typing``."""
    program = PROGRAM.format(modules=modules)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_a_single_stream_is_read_and_followed_without_checksums() -> None:
    assert loaded("jobman.logs.reader, jobman.logs.follow") & SLOW == set()


@pytest.mark.parametrize("modules", ["jobman.logs.combined", "jobman.logs.capture"])
def test_the_index_costs_one_module_more(modules: str) -> None:
    """The control: the test above can fail."""
    assert "google_crc32c" in loaded(modules)
