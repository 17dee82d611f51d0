"""Many submitters at once: every job ends, none is stuck, nobody waits in vain for the store (field cases 31, 33)."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.injection import assert_sound, left_in_run, outcomes
from tests.support import Cli, assert_no_process, installed_command

# Seconds on an idle machine; a hundred interpreters share two cores with whatever else runs there.
pytestmark = pytest.mark.timeout(60)


def submit(cli: Cli, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run one command beside others."""
    argv = [installed_command(), *words]
    return subprocess.run(argv, env=cli.environment, cwd=cli.cwd, capture_output=True, check=False, timeout=60)


def test_fifty_jobs_submitted_at_once_all_succeed(cli: Cli) -> None:
    """Issue 2: in a state directory that does not exist yet, so that the first opens race too (O.19)."""
    with ThreadPoolExecutor(50) as pool:
        done = list(pool.map(lambda _: submit(cli, "run", "--", "true"), range(50)))

    assert {(one.returncode, one.stderr) for one in done} == {(0, b"")}
    ids = {one.stdout.decode().strip() for one in done}
    assert len(ids) == 50
    assert outcomes(cli) == dict.fromkeys(ids, "success")
    assert cli("list", "--active", "--json").out.strip().endswith('"jobs":[]}}')
    assert_no_process(cli.state)
    assert left_in_run(cli.state) == set()
    assert_sound(cli.state)


def test_sixty_four_writers_with_readers_in_between(cli: Cli) -> None:
    """Field case 33: nobody is told that the store is busy, and every list is whole."""
    jobs = 64

    def submit_and_list(number: int) -> set[tuple[int, bytes]]:
        done = [submit(cli, "run", "--", "true")]
        if number % 8 == 0:
            done.append(submit(cli, "list", "--json"))
        return {(one.returncode, one.stderr) for one in done}

    with ThreadPoolExecutor(jobs) as pool:
        told = set().union(*pool.map(submit_and_list, range(jobs)))

    assert told == {(0, b"")}
    assert list(outcomes(cli).values()) == ["success"] * jobs
    assert_no_process(cli.state)
    assert left_in_run(cli.state) == set()
    assert_sound(cli.state)
