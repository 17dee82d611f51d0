"""A command killed at any system call has been carried out or not, and nothing in between (issue 5)."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.faults.injection import ALL_POINTS, assert_interrupted, assert_sound, injected, traced
from tests.faults.scenarios import SCENARIOS, points
from tests.support import Cli, eventually

# ``run``, ``list`` and ``clean`` are killed by tests of their own.
KILLED = [name for name in SCENARIOS if name not in {"run", "first", "clean"}]
SAMPLE = [
    ("cancel", "fdatasync", 1),
    ("cancel", "write", 1),
    ("pause", "fdatasync", 2),
    ("resume", "write", 1),
    ("input", "sendto", 1),
    ("eof", "fdatasync", 1),
    ("rerun", "fdatasync", 2),
    ("apply", "fdatasync", 2),
    ("repair", "fdatasync", 1),
    ("repair", "unlink,unlinkat", 3),
    ("backup", "link,linkat,rename", 1),
]
# Pages of SQLite's log count with the syncs that follow them: before those nothing of it is there.
CALLS = (
    "fdatasync",
    "fsync",
    "link,linkat,rename",
    "unlink",
    "unlink,unlinkat",
    "sendto",
    "write",
    "flock",
    "ftruncate",
)
EVERY = [(name, *point) for name in KILLED for point in points(SCENARIOS[name], *CALLS)]
POINTS = EVERY if ALL_POINTS else SAMPLE


@pytest.mark.parametrize(("name", "syscall", "number"), POINTS)
def test_a_command_killed_at_a_system_call_can_be_given_again(cli: Cli, name: str, syscall: str, number: int) -> None:
    """M4, M7, M9: the record is sound, and the next command finds a job that can be dealt with as before."""
    scenario = SCENARIOS[name]
    scenario.prepare(cli)

    done = scenario.run(cli, injected(syscall, number))

    assert done.status == -signal.SIGKILL or (ALL_POINTS and done.status == 0)
    assert_sound(cli.state)
    scenario.settle(cli)
    assert_sound(cli.state)


# While it loads modules, reads, waits for the lock, writes, and answers.
MOMENTS = [*(("openat", n) for n in range(1, 160, 12)), *((call, n) for call in CALLS for n in (1, 2, 3))]
INTERRUPTED = [
    (name, syscall, n)
    for name in SCENARIOS
    for syscall, n in MOMENTS
    if syscall == "openat" or n <= SCENARIOS[name].calls.get(syscall, 0)
]
INTERRUPTED_SAMPLE = [
    ("pause", "fdatasync", 2),
    ("backup", "fdatasync", 1),
    ("repair", "openat", 90),
    ("first", "write", 1),
]


@pytest.mark.parametrize(("name", "syscall", "number"), INTERRUPTED if ALL_POINTS else INTERRUPTED_SAMPLE)
def test_an_interrupted_command_says_so_in_one_line(cli: Cli, name: str, syscall: str, number: int) -> None:
    """A.0: Ctrl-C at any moment; nothing is half done."""
    scenario = SCENARIOS[name]
    scenario.prepare(cli)

    assert_interrupted(scenario.run(cli, injected(syscall, number, "signal=INT")))

    scenario.settle(cli)
    assert_sound(cli.state)


@pytest.mark.parametrize("name", SCENARIOS if ALL_POINTS else ["pause"])
def test_no_call_of_a_command_is_left_out(cli: Cli, tmp_path: Path, name: str) -> None:
    """The tables cover what each command does; one that does more needs more points."""
    scenario, log = SCENARIOS[name], tmp_path / "log"
    scenario.prepare(cli)
    kinds = [kind for syscall in scenario.calls for kind in syscall.split(",")]

    assert scenario.run(cli, traced(*kinds, log=log)).status == 0

    eventually(lambda: log.exists() and log.stat().st_size > 0)
    made = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    for syscall, count in scenario.calls.items():
        assert 0 < sum(made.count(kind) for kind in syscall.split(",")) <= count, syscall
    scenario.settle(cli)
