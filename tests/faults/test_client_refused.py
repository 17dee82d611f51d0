"""A command that is refused one call, by a full disk or a broken one, says so in one line or does without (issue 5)."""

from __future__ import annotations

import os
import re

import pytest

from tests.faults.injection import ALL_POINTS, assert_sound, injected, left_in_run, run_under
from tests.faults.scenarios import SCENARIOS, points
from tests.support import Cli, eventually, processes_of

WRITES = ("pwrite64", "write", "ftruncate", "fdatasync", "fsync")
SAID = re.compile(
    r"no space left on device|database or disk is full|input/output error|disk i/o error|full or broken", re.IGNORECASE
)
SAMPLE = [
    ("first", "pwrite64", 12),
    ("run", "pwrite64", 14),
    ("run", "fdatasync", 1),
    ("cancel", "pwrite64", 12),
    ("apply", "fdatasync", 1),
    ("backup", "pwrite64", 40),
]
EVERY = [(name, *point) for name in SCENARIOS for point in points(SCENARIOS[name], *WRITES)]


def errors_for(syscall: str, number: int) -> tuple[str, ...]:
    """There are hundreds of pages, each like its neighbour: one gets the one error, the next the other."""
    if not ALL_POINTS:
        return ("ENOSPC",)
    return ("ENOSPC", "EIO") if syscall != "pwrite64" else ("ENOSPC",) if number % 2 else ("EIO",)


POINTS = [(*point, error) for point in (EVERY if ALL_POINTS else SAMPLE) for error in errors_for(*point[1:])]


@pytest.mark.parametrize(("name", "syscall", "number", "error"), POINTS)
def test_a_command_that_is_refused_a_write_says_so(
    cli: Cli, name: str, syscall: str, number: int, *, error: str
) -> None:
    """M20: what was refused is named, nothing is half done, and the next command works."""
    scenario = SCENARIOS[name]
    scenario.prepare(cli)

    done = scenario.run(cli, injected(syscall, number, f"error={error}"))

    assert done.status in {0, 1}
    assert "internal error" not in done.err
    if done.status and not done.out.startswith("unhealthy\t"):
        assert (done.err.count("\n"), done.err[-1:]) == (1, "\n")
        assert SAID.search(done.err) or "launch job supervisor" in done.err, done.err
    scenario.settle(cli)
    assert_sound(cli.state)


@pytest.mark.parametrize("number", [2, 3])
def test_output_that_cannot_be_passed_on_names_the_job(cli: Cli, number: int) -> None:
    """D2: its ID, or what its command writes; the job goes on."""
    # Its end would be passed on, by a write of its own.
    never_ends, writer = os.pipe()
    words = ("run", "--foreground", "--", "echo", "text")
    done = run_under(cli, injected("write", number, "error=ENOSPC"), *words, stdin=never_ends)
    os.close(never_ends)
    os.close(writer)
    assert done.status == 1
    found = re.fullmatch(
        r"standard output: no space left on device; job (\S+) was submitted and goes on: .*\n", done.err
    )
    assert found
    assert cli.wait(found[1]) == "success"
    assert cli("logs", found[1]).out == "text\n"
    eventually(lambda: not processes_of(cli.state))
    assert left_in_run(cli.state) == set()
