"""What is alive of a job whose supervisor was killed, and how it is stopped (D25, D42; field case 4)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import apsw
import pytest

from tests.faults.injection import rows
from tests.support import Cli, eventually, supervisor_pids

STUBBORN = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done"


def _is_alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


@pytest.fixture
def orphan(cli: Cli) -> int:
    """A target that ignores SIGTERM and whose supervisor is dead; its PID."""
    cli.run("sh", "-c", STUBBORN, flags=("--name", "orphan", "--stop-grace", "200ms"))
    written = Path(cli.cwd) / "pid"
    eventually(lambda: written.exists() and written.read_text().strip())
    (supervisor,) = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not supervisor_pids(cli.state))
    return int(written.read_text())


def test_a_lost_job_says_what_is_still_alive(cli: Cli, orphan: int) -> None:
    assert cli("status", "orphan").out.split("\t")[2:4] == ["completed", "lost"]
    assert f"pid {orphan}" in cli("show", "orphan").out
    assert _is_alive(orphan)
    cli("cancel", "orphan")


def test_cancel_stops_the_survivors_of_a_lost_job_and_frees_its_slots(cli: Cli, orphan: int) -> None:
    cli("status", "orphan")
    assert "released_at" not in cli.json("show", "orphan")["admission"]

    cli("cancel", "orphan")

    eventually(lambda: not _is_alive(orphan))
    assert "released_at" in cli.json("show", "orphan")["admission"]


def test_a_stranger_who_has_got_the_number_of_a_lost_target_is_not_touched(cli: Cli, orphan: int) -> None:
    """Field case 8: a number alone is nobody; the record names another process than the one that has it now."""
    os.kill(orphan, signal.SIGKILL)
    eventually(lambda: not _is_alive(orphan))
    with subprocess.Popen(["sleep", "600"], cwd=cli.cwd) as stranger:
        database = apsw.Connection(str(cli.state / "jobman.db"))
        database.execute("UPDATE runs SET pid = ?", (stranger.pid,))
        database.close()
        assert cli("status", "orphan").out.split("\t")[2:4] == ["completed", "lost"]
        assert str(stranger.pid) not in cli.json("show", "orphan")["diagnostic"]
        cli("cancel", "orphan")
        assert stranger.poll() is None
        assert "released_at" in cli.json("show", "orphan")["admission"]
        stranger.kill()


def test_what_a_container_that_is_gone_has_left_is_given_up_by_name(cli: Cli, orphan: int) -> None:
    """D42: nobody can ever judge processes of a PID namespace that is no more; only the user knows that it is not."""
    database = apsw.Connection(str(cli.state / "jobman.db"))
    database.execute("UPDATE runs SET pid_namespace = '1'")
    database.close()
    assert "nothing was signalled" in cli("cancel", "orphan").err
    assert "jobman clean" in cli("doctor", status=1).out
    for words in (("--all",), ("orphan", "--older-than", "0s", "--dry-run=true"), ("orphan", "--older-than", "1h")):
        cli("clean", *words, "--force")
    assert "released_at" not in cli.json("show", "orphan")["admission"]
    assert _is_alive(orphan)

    assert cli.json("clean", "orphan")["jobs"] == cli.json("clean", "orphan", "--force")["jobs"] == 1

    assert cli.has_no_job()
    os.kill(orphan, signal.SIGKILL)


def test_slots_are_free_as_soon_as_the_survivor_has_ended_by_itself(cli: Cli, orphan: int) -> None:
    cli("status", "orphan")
    os.kill(orphan, signal.SIGKILL)
    eventually(lambda: not _is_alive(orphan))

    def is_released() -> bool:
        cli("list")
        return "released_at" in cli.json("show", "orphan")["admission"]

    eventually(is_released)


def test_after_a_reboot_jobs_are_lost_and_nothing_is_signalled(cli: Cli, orphan: int) -> None:
    """Issue 5, field case 8: whoever has the number of the target now is a stranger."""
    waiting = cli.run("true", flags=("--wait-delay", "1h"))
    (supervisor,) = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not supervisor_pids(cli.state))
    rows(cli.state, "UPDATE supervisors SET boot_id = 'another'; UPDATE runs SET boot_id = 'another'")

    done = cli("doctor", "--repair")

    assert "supervisors: 2 jobs without an owner settled" in done.out
    for job_id in ("orphan", waiting):
        assert cli.json("status", job_id)["outcome"] == "lost"
        assert cli.json("status", job_id)["reason"].startswith("the machine was restarted")
        cli("cancel", job_id)
        assert "survivors" not in cli.json("show", job_id)
    assert "released_at" in cli.json("show", "orphan")["admission"]
    assert _is_alive(orphan)
    os.kill(orphan, signal.SIGKILL)


def test_an_owner_that_cannot_be_verified_is_left_alone_and_that_is_said(cli: Cli) -> None:
    """Issue 5: of another PID namespace, and without its lock, nothing proves it dead."""
    job_id = cli.run("sleep", "60")
    cli.await_phase(job_id, "running")
    (supervisor,) = supervisor_pids(cli.state)
    rows(cli.state, "UPDATE supervisors SET pid_namespace = 'pid:[1]'")
    (cli.state / "run" / f"{job_id}.lock").unlink()

    for words in (("status", job_id), ("list",), ("doctor", "--repair"), ("doctor",)):
        said = cli(*words).out
    assert f"the supervisor (pid {supervisor}) of job {job_id} cannot be verified" in said
    assert "look from where the job was submitted" in said
    assert f"unverifiable, pid {supervisor}" in cli("show", job_id).out
    assert cli.phase(job_id) == "running"
    cli("cancel", "--wait", job_id)
