"""Machines that refuse: few descriptors, no process, small files, no locale, no standard streams, clocks that jump."""

from __future__ import annotations

import glob
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.injection import (
    ALL_POINTS,
    assert_sound,
    injected,
    outcomes,
    rows,
    run_under,
    run_with,
    wrapped_interpreter,
)
from tests.support import Cli, eventually, installed_command, processes_of, require_tool

DAY_S = 86_400
DESCRIPTORS = range(4, 33) if ALL_POINTS else (4, 6, 7, 9, 11, 13, 16, 24)


def test_few_descriptors_are_said_and_leave_nothing_stuck(cli: Cli) -> None:
    """Field case 32: jobs that cannot start fail one by one with the reason; the state stays sound."""
    cli("list")
    for number in DESCRIPTORS:
        limited = [require_tool("prlimit"), f"--nofile={number}"]
        # An environment with more in it needs more before any program begins.
        if subprocess.run([*limited, sys.executable, "-c", ""], capture_output=True, check=False).returncode:
            continue
        done = run_under(cli, limited, "run", "--wait", "--", "true")
        assert done.status in {0, 1}, number
        assert done.err.count("\n") == done.status, done.err
        assert "Traceback" not in done.err

    found = outcomes(cli)
    assert "success" in found.values()
    assert set(found.values()) <= {"success", "failure", "submission_failed"}
    for job_id, outcome in found.items():
        assert outcome == "success" or cli.json("status", job_id)["reason"]
    assert_sound(cli.state)
    eventually(lambda: not processes_of(cli.state))


def test_a_system_without_processes_is_said(cli: Cli, tmp_path: Path) -> None:
    """Field case 32: to the submitter, or as the reason why the job has failed."""
    kinds = "clone,clone3,fork,vfork"
    refused = run_under(cli, injected(kinds, 1, "error=EAGAIN"), "run", "--", "true")
    assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1)
    assert "resource temporarily unavailable" in refused.err

    python = wrapped_interpreter(tmp_path / "python", injected(kinds, 1, "error=EAGAIN"))
    job_id = run_with(cli, python, "--", "true").out.strip()
    assert cli.wait(job_id) == "failure"
    assert "no more processes can be started" in cli.json("status", job_id)["reason"]


def test_a_limit_on_files_that_no_store_fits_into_is_refused(cli: Cli) -> None:
    """Field case 23: nothing that such a supervisor wants to record could be recorded."""
    cli("list")
    done = run_under(cli, [require_tool("prlimit"), "--fsize=100000"], "run", "--", "true")
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert "ulimit -f" in done.err
    assert cli.has_no_job()


def _looks(job_id: str) -> Sequence[Sequence[str]]:
    return (("list",), ("status", job_id), ("show", job_id), ("logs", job_id), ("cancel", job_id), ("doctor",))


@pytest.mark.parametrize("closing", ["", ">&-", "<&- 2>&-"])
def test_every_look_works_without_locale_directory_or_standard_streams(cli: Cli, closing: str) -> None:
    """Field cases 16 and 19; traps: a closed descriptor must not become the database."""
    job_id = cli.finish("printf", "é", flags=("--name", "é…"))
    poor = cli.environment | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    for words in _looks(job_id):
        place = cli.cwd / "gone"
        place.mkdir()
        script = f'rmdir ../gone; exec "$@" {closing}'
        argv = ["sh", "-c", script, "sh", installed_command(), *words]
        done = subprocess.run(argv, cwd=place, env=poor, capture_output=True, check=False, timeout=15)
        assert (done.returncode, done.stderr) == (0, b""), words
        assert bool(done.stdout) == (closing != ">&-"), words
    assert_sound(cli.state)


def _faketime() -> str:
    """Return the library of the ``faketime`` command."""
    require_tool("faketime")
    places = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime", "/usr/local/lib/faketime")
    return next(found for place in places for found in glob.glob(f"{place}/libfaketime.so.1"))


def _set(clock: Path, days: int) -> None:
    """Replace the file: the library ends a process that finds it empty."""
    fresh = clock.with_suffix(".new")
    fresh.write_text(f"{days * DAY_S:+d}")
    fresh.rename(clock)


@pytest.mark.parametrize("first", [1, -1])
def test_clocks_that_jump_by_days_change_nothing(cli: Cli, tmp_path: Path, first: int) -> None:
    """D26, M29: neither a limit, nor a pause between runs, nor the order of what is recorded."""
    clock = tmp_path / "clock"
    _set(clock, 0)
    fakes = {"LD_PRELOAD": _faketime(), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    true_clocks = dict(cli.environment)
    cli.environment |= fakes | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    until = "touch r$JOBMAN_RUN_NUMBER; while [ ! -e go$JOBMAN_RUN_NUMBER ]; do sleep 0.02; done; [ -e go2 ]"
    flags = ("--retries", "1", "--retry-delay", "200ms", "--run-timeout", "10m", "--job-timeout", "20m")
    job_id = cli.run("sh", "-c", until, flags=flags)
    for number, days in enumerate((first, -first), 1):
        eventually((cli.cwd / f"r{number}").exists)
        _set(clock, days)
        (cli.cwd / f"go{number}").touch()
    # The library lets every ``time.sleep`` of this process fail, whatever the clock.
    cli.environment = true_clocks
    assert cli("wait", job_id).out == f"{job_id}\tsuccess\n"
    times = rows(cli.state, "SELECT reserved_at_ns, started_at_ns, completed_at_ns FROM runs ORDER BY number")
    flat = [time_ns for run in times for time_ns in run]
    assert flat == sorted(flat)
    assert cli("doctor").out.startswith("healthy\t")
