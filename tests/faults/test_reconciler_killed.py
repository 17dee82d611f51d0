"""A client that is killed while it settles an abandoned job leaves the rest to the next one (H.6, D1)."""

from __future__ import annotations

import os
import signal

import pytest

from tests.faults.injection import (
    ALL_POINTS,
    assert_sound,
    expire_offers,
    injected,
    outcomes,
    rows,
    run_under,
)
from tests.support import Cli, eventually, processes_of

CALLS = {"fdatasync": 6, "fsync": 4, "unlink,unlinkat": 6, "flock": 4, "fcntl": 80, "pwrite64": 60, "openat": 200}
SAMPLE = {"fdatasync": (1, 2, 3), "unlink,unlinkat": (1, 2, 3, 4), "flock": (1, 2), "pwrite64": (4, 12)}
POINTS = (
    [(syscall, number) for syscall, count in CALLS.items() for number in range(1, count + 1)]
    if ALL_POINTS
    else [(syscall, number) for syscall, numbers in SAMPLE.items() for number in numbers]
)


@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_list_killed_while_it_declares_a_job_lost(cli: Cli, syscall: str, number: int) -> None:
    """D1: the next look completes what is left to do, and no marker of a dead capture stays."""
    job_id = cli.run("sh", "-c", "echo text; exec sleep 60")
    eventually(lambda: cli("logs", job_id, status=None).out == "text\n")
    dependent = cli.run("true", flags=["--after-success", job_id])
    for (pid,) in rows(cli.state, "SELECT pid FROM runs UNION SELECT pid FROM supervisors WHERE job_id = ?", job_id):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not [text for text in processes_of(cli.state).values() if "sleep 60" in text])

    done = run_under(cli, injected(syscall, number), "list")

    assert done.status in {0, -signal.SIGKILL}
    cli("list")
    assert outcomes(cli) == {job_id: "lost", dependent: "aborted"}
    assert_sound(cli.state)
    assert not list((cli.state / "logs").rglob(".active"))
    assert cli("logs", job_id).out == "text\n"
    assert rows(cli.state, "SELECT count(*) FROM state_events WHERE type = 'ownership_lost'") == [(1,)]


@pytest.mark.parametrize(("syscall", "number"), [("fdatasync", 1), ("fdatasync", 2), ("flock", 1), ("unlink", 1)])
def test_a_list_killed_while_it_fails_a_submission(cli: Cli, syscall: str, number: int) -> None:
    """O.65."""
    done = run_under(cli, injected("write", 1), "run", "--", "true")
    assert done.status == -signal.SIGKILL
    eventually(lambda: not processes_of(cli.state))
    expire_offers(cli.state)

    run_under(cli, injected(syscall, number), "list")

    cli("list")
    assert list(outcomes(cli).values()) == ["submission_failed"]
    assert_sound(cli.state)
