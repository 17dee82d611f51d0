"""A client that dies, or is interrupted, at any moment of ``run`` leaves no job, or one that ends properly (case 5)."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from jobman.model.ids import is_id
from tests.faults.injection import (
    ALL_POINTS,
    assert_interrupted,
    injected,
    run_under,
    settled,
    started,
    traced,
)
from tests.support import Cli, eventually, installed_command

# How many calls of each kind a client makes, rounded up; a test holds that none is left out.
CALLS = {
    "fdatasync": 16,
    "write": 3,
    "flock": 8,
    "pipe2": 3,
    "vfork,clone,clone3,fork": 2,
    "poll": 2,
    "mkdir": 6,
    "unlink": 3,
    "ftruncate": 2,
    "chmod,fchmod,fchown": 10,
    "fcntl": 90,
    "pwrite64": 220,
    "openat": 220,
}
SAMPLE = {
    "fdatasync": (1, 2, 3, 4, 6, 8),
    "write": (1, 2),
    "flock": (1, 2),
    "pipe2": (2,),
    "poll": (1,),
    "pwrite64": (3, 20),
}
POINTS = (
    [(syscall, number) for syscall, count in CALLS.items() for number in range(1, count + 1)]
    if ALL_POINTS
    else [(syscall, number) for syscall, numbers in SAMPLE.items() for number in numbers]
)
LINE = ("run", "--", "sh", "-c", "echo ran >> ran")


def runs_of(cli: Cli) -> int:
    """How often the target ran."""
    ran = cli.cwd / "ran"
    return len(ran.read_text().splitlines()) if ran.exists() else 0


def assert_whole(cli: Cli, before: int = 0) -> None:
    """At most one more job; it ran if and only if it is a success."""
    found = settled(cli)
    assert len(found) - before in {0, 1}
    assert set(found.values()) <= {"success", "submission_failed"}
    assert list(found.values()).count("success") == runs_of(cli)
    assert cli.wait(cli.run("true")) == "success"


@pytest.mark.parametrize("store", ["new", "existing"])
@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_client_killed_at_a_system_call_leaves_no_half_job(cli: Cli, store: str, syscall: str, number: int) -> None:
    """Issue 2 and field case 5: SIGKILL on entry to the call, in a new store and in one that holds a job."""
    if store == "existing":
        cli.finish(*LINE[2:])

    done = run_under(cli, injected(syscall, number), *LINE)

    assert done.status in {0, -signal.SIGKILL}
    if done.out:
        assert is_id(done.out.strip())
    assert_whole(cli, before=int(store == "existing"))


@pytest.mark.parametrize("store", ["new", "existing"])
def test_no_call_of_a_client_is_left_out(cli: Cli, store: str, tmp_path: Path) -> None:
    """The table above covers what ``run`` does; a client that does more needs more points."""
    log = tmp_path / "log"
    if store == "existing":
        cli.finish("true")
    kinds = [name for syscall in CALLS for name in syscall.split(",")]

    assert run_under(cli, traced(*kinds, log=log), *LINE).status == 0

    eventually(lambda: "exit_group" in log.read_text() or "exited" in log.read_text() or log.stat().st_size > 0)
    made = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    for syscall, count in CALLS.items():
        assert sum(made.count(name) for name in syscall.split(",")) <= count, syscall
    settled(cli)


DELAYS = [number / 1000 for number in (range(0, 200, 2) if ALL_POINTS else range(0, 100, 8))]


def test_clients_killed_after_any_time_leave_nothing_stuck(cli: Cli) -> None:
    """Field case 5: ``timeout -s KILL`` with growing delays, in one store."""
    for delay in DELAYS:
        with started(cli, [installed_command(), *LINE]) as client:
            try:
                client.wait(delay)
            except subprocess.TimeoutExpired:
                client.kill()

    found = settled(cli)
    assert set(found.values()) <= {"success", "submission_failed"}
    assert list(found.values()).count("success") == runs_of(cli)


def test_a_client_whose_whole_group_is_killed_leaves_nothing_stuck(cli: Cli) -> None:
    """Field case 5: the process group of the shell, as a web server kills its workers; the supervisor is not in it."""
    for delay in DELAYS[::3]:
        with started(cli, [installed_command(), *LINE], start_new_session=True) as client:
            try:
                client.wait(delay)
            except subprocess.TimeoutExpired:
                subprocess.run(["kill", "-KILL", "--", f"-{client.pid}"], check=True)

    assert set(settled(cli).values()) <= {"success", "submission_failed"}


INTERRUPTIONS = [
    (syscall, number)
    for syscall, numbers in (CALLS.items() if ALL_POINTS else SAMPLE.items())
    for number in (range(1, numbers + 1) if isinstance(numbers, int) else numbers)
]


@pytest.mark.parametrize(("syscall", "number"), [*INTERRUPTIONS, ("openat", 5), ("openat", 40), ("openat", 90)])
def test_an_interrupted_client_says_so_in_one_line(cli: Cli, syscall: str, number: int) -> None:
    """Section C, A.0: Ctrl-C at any moment; the client has answered already, or says one line and exits 1."""
    cli.finish(*LINE[2:])

    done = run_under(cli, injected(syscall, number, "signal=INT"), *LINE)

    if done.out:
        assert is_id(done.out.strip())
    assert_interrupted(done)
    assert_whole(cli, before=1)
