"""A disk that is full while targets run: limits hold, nothing is lost (D23; field case 23)."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.injection import rows
from tests.support import (
    Cli,
    assert_no_process,
    eventually,
    installed_command,
    processes_of,
    require_tool,
    supervisor_pids,
)

SIZE = 2 << 20


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Cli]:
    """The command in a state directory on a file system of 2 MiB."""
    mount, state, work = require_tool("mount"), tmp_path / "disk", tmp_path / "work"
    state.mkdir()
    work.mkdir()
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(state)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("mounting a file system is not permitted here")
    cli = Cli(state / "state", work)
    try:
        yield cli
        assert_no_process(cli.state)
    finally:
        subprocess.run(["umount", "-l", str(state)], check=True)


def _fill(cli: Cli) -> Path:
    """Leave no room on the disk, nor in the store's log, which is used again from its beginning."""

    def empties_log() -> bool:
        rows(cli.state, "PRAGMA wal_checkpoint(TRUNCATE)")
        log = cli.state / "jobman.db-wal"
        return not log.exists() or log.stat().st_size == 0

    eventually(empties_log)
    filler = cli.state.parent / "fill"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def _target(cli: Cli, *flags: str) -> tuple[str, int]:
    """Start a job whose target writes its PID beside the disk; return both."""
    pid = cli.cwd / f"pid-{len(list(cli.cwd.iterdir()))}"
    job_id = cli.run("sh", "-c", f"echo $$ > {pid}; exec sleep 600", flags=flags)
    eventually(lambda: pid.exists() and pid.read_text().strip())
    return job_id, int(pid.read_text())


def _ended(pid: int) -> bool:
    return not os.path.exists(f"/proc/{pid}")


@pytest.mark.parametrize("flag", ["--run-timeout", "--job-timeout"])
def test_a_timeout_ends_its_target_although_nothing_can_be_written(small: Cli, flag: str) -> None:
    job_id, pid = _target(small, flag, "2s")
    filler = _fill(small)

    eventually(lambda: _ended(pid))

    filler.unlink()
    small("wait", job_id, status=1)
    detail = small.json("show", job_id)
    assert detail["runs"][0]["outcome"] == "timed_out"
    # D24: what its supervisor had trouble with, and that it is over.
    notes = Path(detail["diagnostics_path"]).read_text()
    assert re.search(r"store: works again, after \d+ failures?, the last: .*\bfull\b", notes)
    assert f"note      diagnostics: the supervisor of job {job_id} had trouble" in small("doctor").out


def test_a_supervisor_that_is_asked_to_end_stops_its_target_although_nothing_can_be_written(small: Cli) -> None:
    job_id, pid = _target(small)
    filler = _fill(small)
    (supervisor,) = supervisor_pids(small.state)
    os.kill(supervisor, signal.SIGTERM)

    eventually(lambda: _ended(pid))

    filler.unlink()
    assert small.wait(job_id) == "cancelled"


def test_a_result_that_could_not_be_written_is_written_when_there_is_room(small: Cli) -> None:
    job_id = small.run("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; exit 7")
    filler = _fill(small)
    (small.cwd / "go").touch()
    eventually(lambda: small("status", job_id, status=None).status is not None)
    filler.unlink()

    assert small.wait(job_id) == "failure"
    assert small.json("show", job_id)["runs"][0]["exit"]["exit_code"] == 7


def test_looks_work_on_a_full_disk_when_nobody_else_has_the_store_open(small: Cli) -> None:
    """Field case 23: SQLite's files beside the database have no room; nobody is told that it is damaged."""
    job_id = small.finish("echo", "text")
    eventually(lambda: not processes_of(small.state))
    filler = _fill(small)
    for look in (("list",), ("status", job_id), ("show", job_id), ("logs", job_id), ("doctor",)):
        assert small(*look).err == ""
    assert small("logs", job_id).out == "text\n"
    for words in (("run", "--", "true"), ("clean", "--all", "--force"), ("rerun", job_id)):
        small.refuses(*words, status=1, says="is on a disk that is full or broken")
    assert (
        "repair: nothing: the state directory is on a disk that is full or broken; "
        in small("doctor", "--repair", status=1).out
    )
    filler.unlink()
    assert small("doctor", "--repair").out.startswith("healthy\t")
    assert small.wait(small.run("true")) == "success"


def test_output_that_fills_the_disk_ends_its_record_and_nothing_else(small: Cli) -> None:
    """J.3; field case 23: no one has to make room before the result can be told."""
    job_id = small.run("sh", "-c", f"head -c {4 * SIZE} /dev/zero; echo done >&2")

    assert small.wait(job_id) == "success"
    run = small.json("show", job_id)["runs"][0]
    logs = run["logs"]
    assert (logs["integrity"], logs["recording_health"]) == ("partial", "degraded")
    assert logs["diagnostic_code"] == "log_capture_degraded"
    assert run["diagnostic"].startswith("cannot write to stdout.log: No space left on device; ")
    assert small("logs", job_id).raw == bytes(logs["stdout_size"]), "what was stored has its records"
    later = small.finish("echo", "later")
    assert small("logs", later).out == "later\n"


@pytest.mark.parametrize("blocks", ["2000", "100"])
def test_a_submitter_with_a_small_file_size_limit_gets_its_job_done(cli: Cli, blocks: str) -> None:
    """Field case 23: the limit is the target's, not the store's, which is larger."""
    cli("list")
    assert (cli.state / "jobman.db").stat().st_size > 100 * 1024
    words = ("sh", "-c", "ulimit -S -f")
    command = (installed_command(), "run", "--wait", "--name", "f", "--", *words)
    limited = subprocess.run(
        ["sh", "-c", 'ulimit -S -f "$0"; exec "$@"', blocks, *command],
        env=cli.environment,
        cwd=cli.cwd,
        capture_output=True,
        check=False,
        timeout=15,
    )
    assert limited.returncode == 0, limited.stderr
    assert cli("logs", "f").out == f"{blocks}\n"
