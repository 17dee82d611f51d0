"""Jobs submitted from inside a job are independent of it (D40)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.faults.injection import outcomes, owner_of, rows
from tests.support import Cli, eventually, installed_command

HOLD = "sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo done'"


def inner_jobs(cli: Cli, outer: str) -> list[str]:
    """The jobs that are not ``outer``, oldest first."""
    found = rows(cli.state, "SELECT id FROM jobs WHERE id <> ? ORDER BY id", outer)
    return [row[0] for row in found]


def start_outer(cli: Cli, script: str, *flags: str) -> str:
    """Submit an outer job that can call ``jobman``."""
    return cli.run("sh", "-c", f'jobman() {{ "{installed_command()}" "$@"; }}; {script}', flags=flags)


def carried_by_supervisor(cli: Cli, job_id: str) -> dict[str, str]:
    """The environment with which the supervisor of a job was executed."""
    owner = owner_of(cli.state, job_id)
    assert owner is not None
    entries = Path(f"/proc/{owner.identity.pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(entry).partition("=")[::2] for entry in entries if entry)


def release(cli: Cli) -> None:
    """Let the inner jobs end."""
    (cli.cwd / "go").touch()


def test_inner_jobs_outlive_the_outer_one(cli: Cli) -> None:
    """Issue 2: three inner jobs; the outer run ends as soon as it has submitted them."""
    outer = start_outer(cli, f"for i in 1 2 3; do jobman run -- {HOLD}; done")

    assert cli.wait(outer) == "success"
    inner = inner_jobs(cli, outer)
    assert cli("logs", "--stream", "stdout", outer).out.split() == inner
    assert len(inner) == 3
    assert {cli.phase(job_id) for job_id in inner} <= {"starting", "running"}
    release(cli)
    assert [cli.wait(job_id) for job_id in inner] == ["success"] * 3


def test_a_cancelled_outer_job_leaves_its_inner_jobs_alone(cli: Cli) -> None:
    """D40, Process tree: neither SIGTERM nor SIGKILL to the outer tree reaches them."""
    twice = f"jobman run -- {HOLD}; jobman run -- {HOLD}"
    stubborn = f"trap '' TERM; {twice}; sleep 60 & sleep 60 & wait; wait"
    outer = start_outer(cli, stubborn, "--stop-grace", "100ms")
    eventually(lambda: len(inner_jobs(cli, outer)) == 2)
    inner, other = inner_jobs(cli, outer)
    cli.await_phase(inner, "running")
    cli.await_phase(other, "running")

    cli("cancel", outer)

    assert cli.wait(outer) == "cancelled"
    assert cli.phase(inner) == cli.phase(other) == "running"
    carried = carried_by_supervisor(cli, inner)
    assert carried["JOBMAN_SUPERVISOR"] == inner
    assert sorted(name for name in carried if name.startswith("JOBMAN_")) == ["JOBMAN_STATE_DIR", "JOBMAN_SUPERVISOR"]
    release(cli)
    assert cli.wait(inner) == cli.wait(other) == "success"
    assert cli("logs", "--stream", "stdout", inner).out == "done\n"


def test_a_timeout_of_the_outer_job_leaves_its_inner_jobs_alone(cli: Cli) -> None:
    """D40."""
    outer = start_outer(cli, f"jobman run -- {HOLD}; sleep 60", "--run-timeout", "1500ms", "--stop-grace", "100ms")

    assert cli.wait(outer) == "failure"
    assert cli.json("show", outer)["runs"][0]["outcome"] == "timed_out"
    (inner,) = inner_jobs(cli, outer)
    assert cli.phase(inner) in {"starting", "running"}
    release(cli)
    assert cli.wait(inner) == "success"


def test_an_inner_job_outlives_the_death_of_the_outer_supervisor(cli: Cli) -> None:
    """D40, H.6: and is not taken for a survivor of the lost run."""
    outer = start_outer(cli, f"jobman run -- {HOLD}; exec sleep 60")
    eventually(lambda: len(inner_jobs(cli, outer)) == 1)
    (inner,) = inner_jobs(cli, outer)
    cli.await_phase(inner, "running")
    owner = owner_of(cli.state, outer)
    assert owner is not None
    ((target,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ?", outer)
    ((inner_target,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ?", inner)

    os.kill(owner.identity.pid, signal.SIGKILL)
    eventually(lambda: not Path(f"/proc/{owner.identity.pid}").exists())

    told = cli.json("show", outer)["diagnostic"]
    assert str(target) in told
    assert str(inner_target) not in told
    os.kill(target, signal.SIGKILL)
    release(cli)
    assert cli.wait(inner) == "success"


def test_an_inner_job_sees_no_mark_of_the_outer_run(cli: Cli) -> None:
    """D40: its own marks, and no name where it has none."""
    outer = start_outer(cli, "jobman run -- env", "--name", "outer")

    assert cli.wait(outer) == "success"
    (inner,) = inner_jobs(cli, outer)
    assert cli.wait(inner) == "success"
    lines = cli("logs", "--stream", "stdout", inner).out.splitlines()
    marked = sorted(line.partition("=")[0] for line in lines if line.startswith("JOBMAN_"))
    assert marked == ["JOBMAN_JOB_ID", "JOBMAN_RUN_ID", "JOBMAN_RUN_NUMBER", "JOBMAN_STATE_DIR"]
    assert f"JOBMAN_JOB_ID={inner}" in lines
    assert not [line for line in lines if outer in line]


def test_jobs_three_levels_deep_all_complete(cli: Cli) -> None:
    """D40: whoever submits, everybody is looked after by a supervisor of their own."""
    command = installed_command()
    innermost = f"{command} run --name c -- true"
    outer = start_outer(cli, f"{command} run --name b -- sh -c '{innermost}'")

    assert cli.wait(outer) == "success"
    assert cli.wait("b") == "success"
    assert cli.wait("c") == "success"
    assert set(outcomes(cli).values()) == {"success"}
