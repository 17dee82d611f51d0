"""A ``clean`` that is killed at any system call leaves nothing that the next one does not finish (J.7, O.23)."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.cleaning import BYTES, FILES, add_job, add_logs, tree
from tests.faults.injection import ALL_POINTS, assert_sound, injected, left_in_run, rows, run_under, traced
from tests.moves import derived_id
from tests.stores import fast_store
from tests.support import Cli, check_document, eventually

IDS = [derived_id("killed", "job", number) for number in range(2)]
# How many calls of each kind a cleaning of two runs makes, rounded up; a test holds that none is left out.
CALLS = {
    "rename,renameat,renameat2": 2,
    "fsync": 10,
    "fdatasync": 8,
    "unlink,unlinkat,rmdir": 24,
    "write": 4,
    "flock": 14,
    "pwrite64": 120,
}
SAMPLE = {
    "rename,renameat,renameat2": (2,),
    "fsync": (1, 3),
    "fdatasync": (2,),
    "unlink,unlinkat,rmdir": (4, 7, 8),
    "write": (1,),
}
POINTS = [
    (syscall, number)
    for syscall, count in CALLS.items()
    for number in (range(1, count + 1) if ALL_POINTS else SAMPLE.get(syscall, ()))
]
CLEAN = ("clean", "--all", "--force", "--json")


@pytest.fixture
def stocked(cli: Cli) -> Cli:
    """A store with two jobs whose logs are there."""
    store = fast_store(cli.state)
    for job_id in IDS:
        add_job(store, job_id)
        add_logs(store, job_id)
    store.close()
    return cli


@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_cleaning_killed_at_a_system_call_is_finished_by_the_next(stocked: Cli, syscall: str, number: int) -> None:
    """SIGKILL on entry to the call; what is left is counted as it was, and a preview knows it (D13)."""
    done = run_under(stocked, injected(syscall, number), *CLEAN)

    assert done.status in {0, -signal.SIGKILL}
    assert_sound(stocked.state)
    pruned = rows(stocked.state, "SELECT pruned_files, pruned_bytes FROM runs WHERE pruned_at_ns IS NOT NULL")
    assert set(pruned) <= {(len(FILES), BYTES)}
    seen, removed = (check_document("clean", stocked(*words).out) for words in (("clean", "--all", "--json"), CLEAN))
    assert removed == seen | {"applied": True}
    assert (seen["files"], seen["bytes"]) == (seen["runs"] * len(FILES), seen["runs"] * BYTES)
    assert tree(stocked.state) == {}
    assert rows(stocked.state, "SELECT * FROM jobs") == []
    assert_sound(stocked.state)
    assert left_in_run(stocked.state) == set()


@pytest.mark.parametrize(("syscall", "number", "error"), [("renameat", 2, "EIO"), ("unlinkat", 3, "EROFS")])
def test_a_file_system_that_refuses_ends_a_cleaning_which_the_next_goes_on_with(
    stocked: Cli, syscall: str, number: int, error: str
) -> None:
    """One line, status 1, and the work that was done is kept."""
    done = run_under(stocked, injected(syscall, number, f"error={error}"), *CLEAN)
    assert (done.status, done.err.count("\n")) == (1, 1), done
    assert check_document("clean", stocked(*CLEAN).out)["jobs"] == 2
    assert tree(stocked.state) == {}


def test_no_call_of_a_cleaning_is_left_out(stocked: Cli, tmp_path: Path) -> None:
    """The table above covers what ``clean`` does; one that does more needs more points."""
    log = tmp_path / "log"
    kinds = [name for syscall in CALLS for name in syscall.split(",") if name != "renameat2"]

    assert run_under(stocked, traced(*kinds, log=log), *CLEAN).status == 0

    eventually(lambda: log.exists() and log.stat().st_size > 0)
    made = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    for syscall, count in CALLS.items():
        assert 0 < sum(made.count(name) for name in syscall.split(",")) <= count, syscall
