"""Machines that refuse: few descriptors, no process, small files, no locale, no standard streams, clocks that jump."""

from __future__ import annotations

import fcntl
import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
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
from tests.support import (
    DEADLINE_S,
    Cli,
    Result,
    assert_no_process,
    eventually,
    installed_command,
    processes_of,
    require_tool,
)

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
    assert "no more processes can be started" in refused.err

    python = wrapped_interpreter(tmp_path / "python", injected(kinds, 1, "error=EAGAIN"))
    job_id = run_with(cli, python, "--", "true").out.strip()
    assert cli.wait(job_id) == "failure"
    assert "no more processes can be started" in cli.json("status", job_id)["reason"]


class Somebody:
    """A user without privileges with a state directory in ``place``, who may read an interpreter anywhere."""

    def __init__(self, place: Path) -> None:
        self.cli = Cli(place / "state", place)
        # Nobody else's: the limit counts every process of the user.
        self._uid = 100_000 + os.getpid()
        for path in (place, place / "home"):
            os.chown(path, self._uid, self._uid)
        self._become = [require_tool("setpriv"), f"--reuid={self._uid}", f"--regid={self._uid}", "--clear-groups"]
        reading = "dac_read_search"
        self._become += [
            f"--bounding-set=-all,+{reading}",
            f"--inh-caps=+{reading}",
            f"--ambient-caps=+{reading}",
            "--",
        ]

    def __call__(self, processes: int, *words: str) -> Result:
        """Run jobman while the user may have so many processes; none is left of those before."""
        assert_no_process(self.cli.state)
        prefix = [*self._become, require_tool("prlimit"), f"--nproc={processes}", "--"]
        return run_under(self.cli, prefix, *words)


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    """Another user, whom a limit on processes binds; not below ``tmp_path``, which only we may enter."""
    if os.geteuid():
        pytest.skip("becoming another user is not permitted here")
    with tempfile.TemporaryDirectory() as place:
        yield Somebody(Path(place))


def test_a_user_who_may_have_no_more_processes_is_told(somebody: Somebody) -> None:
    """Field case 32: the kernel's own refusal, of a supervisor to the submitter, of a target as the job's reason."""
    alone = somebody(1, "run", "--", "true")
    assert (alone.status, alone.out, alone.err.count("\n")) == (1, "", 1)
    assert "no more processes" in alone.err
    assert somebody(2, "run", "--name", "two", "--wait", "--", "true").status == 1
    assert "no more processes" in somebody(20, "status", "two").out
    assert somebody(20, "run", "--wait", "--", "true").status == 0
    assert somebody(20, "doctor").out.startswith("healthy\t")
    assert_no_process(somebody.cli.state)


def test_a_limit_on_files_that_no_store_fits_into_is_refused(cli: Cli) -> None:
    """Field case 23: nothing that such a supervisor wants to record could be recorded."""
    cli("list")
    done = run_under(cli, [require_tool("prlimit"), "--fsize=100000"], "run", "--", "true")
    assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
    assert "ulimit -f" in done.err
    assert cli.has_no_job()


def _looks(job_id: str) -> Sequence[Sequence[str]]:
    return (("list",), ("status", job_id), ("show", job_id), ("logs", job_id), ("cancel", job_id), ("doctor",))


POOR = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
CLOSINGS = [closed for count in range(4) for closed in itertools.combinations(("<&-", ">&-", "2>&-"), count)]


def test_every_look_works_without_locale_directory_or_standard_streams(cli: Cli) -> None:
    """Field cases 16 and 19; traps: a closed descriptor must not become the database; each set of descriptors."""
    job_id = cli.finish("printf", "é", flags=("--name", "é…"))
    submit = ("run", "--cwd", "/", "--wait", "--", "true")
    for number, closed in enumerate(CLOSINGS):
        every = (*_looks(job_id), submit)
        for words in every if number < 2 else (every[number % 6], submit):
            place = cli.cwd / "gone"
            place.mkdir()
            script = f'rmdir ../gone; exec "$@" {" ".join(closed)}'
            argv = ["sh", "-c", script, "sh", installed_command(), *words]
            env = cli.environment | POOR
            done = subprocess.run(argv, cwd=place, env=env, capture_output=True, check=False, timeout=DEADLINE_S)
            assert (done.returncode, done.stderr) == (0, b""), (words, closed)
            assert bool(done.stdout) == (">&-" not in closed), (words, closed)
    assert set(outcomes(cli).values()) == {"success"}
    assert_sound(cli.state)


def test_somebody_who_writes_for_long_costs_neither_a_result_nor_a_submission(cli: Cli) -> None:
    """Field case 33: as long as it takes until everybody waits; looks do not."""
    job_id = cli.run("sh", "-c", "echo text; until [ -e go ]; do sleep 0.02; done; exit 7")
    cli.await_phase(job_id, "running")
    ((pid,),) = rows(cli.state, "SELECT pid FROM runs")
    with (cli.state / "run" / "writer.lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (cli.cwd / "go").touch()
        eventually(lambda: pid not in processes_of(cli.state))
        client = cli.command("run", "--wait", "--", "true")
        waits = re.compile(rf"-> FLOCK +ADVISORY +WRITE +{client.pid} ")
        eventually(lambda: waits.search(Path("/proc/locks").read_text()))
        assert cli("logs", job_id).out == "text\n"
        assert cli.phase(job_id) == "running"
        assert cli("doctor").out.startswith("healthy\t")
    assert cli.wait(job_id) == "failure"
    assert cli.json("show", job_id)["runs"][0]["exit"]["exit_code"] == 7
    client.communicate(timeout=DEADLINE_S)
    assert client.returncode == 0


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
    """D26, M29: neither a limit, nor a pause between runs, nor a delay, a queue, or the order of what is recorded."""
    clock = tmp_path / "clock"
    _set(clock, 0)
    fakes = {"LD_PRELOAD": _faketime(), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    true_clocks = dict(cli.environment)
    (cli.cwd / "pool.yml").write_text("concurrency: {pools: {p: 1}}\n")
    cli.environment |= fakes | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    until = "touch r$JOBMAN_RUN_NUMBER; while [ ! -e go$JOBMAN_RUN_NUMBER ]; do sleep 0.02; done; [ -e go2 ]"
    flags = ("--retries", "1", "--retry-delay", "200ms", "--run-timeout", "10m", "--job-timeout", "20m")
    in_pool = ("--config", "pool.yml", "--pool", "p")
    job_id = cli.run("sh", "-c", until, flags=(*flags, *in_pool))
    eventually((cli.cwd / "r1").exists)
    later = [
        cli.run("true", flags=("--wait-delay", "1h", "--job-timeout", "2h")),
        cli.run("false", flags=("--retries", "1", "--retry-delay", "1h")),
    ]
    soon = [
        cli.run("true", flags=("--after-success", job_id, "--job-timeout", "2h")),
        cli.run("true", flags=in_pool),
        cli.run("true", flags=("--wait-delay", "500ms")),
    ]
    for number, days in enumerate((first, -first), 1):
        eventually((cli.cwd / f"r{number}").exists)
        _set(clock, days)
        (cli.cwd / f"go{number}").touch()
    # The library lets every ``time.sleep`` of this process fail, whatever the clock.
    cli.environment = true_clocks
    assert [cli.wait(each) for each in (job_id, *soon)] == ["success"] * 4
    assert [cli.phase(each) for each in later] == ["waiting", "backoff"]
    times = "SELECT reserved_at_ns, started_at_ns, completed_at_ns FROM runs WHERE job_id = ? ORDER BY number"
    flat = [time_ns for run in rows(cli.state, times, job_id) for time_ns in run]
    assert flat == sorted(flat)
    cli("cancel", "--wait", *later[:1])
    cli("cancel", "--wait", *later[1:])
    assert cli("doctor").out.startswith("healthy\t")
