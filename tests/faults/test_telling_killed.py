"""A supervisor killed, or refused a process, while it has something to tell: nothing is lost, nothing told twice.

An event and what is to be told of it are one commit (L.1); who sends it comes after, and may come later (D6).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.injection import (
    ALL_POINTS,
    assert_sound,
    expire_offers,
    injected,
    rows,
    run_with,
    traced,
    wrapped_interpreter,
)
from tests.receivers import appender
from tests.support import Cli, eventually, processes_of

# How many calls of each kind a supervisor makes that tells of everything, rounded up.
CALLS = {"fdatasync": 26, "flock": 60, "clone,clone3,fork,vfork": 8, "fchmod": 12}
SAMPLE = {"fdatasync": (2, 4), "clone,clone3,fork,vfork": (1,)}
POINTS = [
    (syscall, number)
    for syscall, count in CALLS.items()
    for number in (range(1, count + 1) if ALL_POINTS else SAMPLE.get(syscall, ()))
]
TOLD = ("job_started", "run_started", "run_succeeded", "run_lost", "job_succeeded", "job_lost", "job_submission_failed")
FLAGS = ("--notify", "hook", *(word for event in TOLD for word in ("--notify-on", event)), "--", "true")


class Told(NamedTuple):
    """What the store says that happened, and what has arrived at the other side: the types of events, sorted."""

    happened: list[str]
    arrived: list[str]


@pytest.fixture
def telling(cli: Cli, tmp_path: Path) -> Cli:
    """The command, with a hook that appends what it is told to a file."""
    path = Path(cli.environment["HOME"]) / ".config" / "jobman" / "jobman.yml"
    path.parent.mkdir(parents=True)
    hook = {"type": "command", "command": {"command": appender(tmp_path / "told")}}
    path.write_text(json.dumps({"notifiers": {"hook": hook}}))
    return cli


def settle(cli: Cli, tmp_path: Path) -> Told:
    """Come by as a user does, until everything is told and everybody has gone."""
    ((job_id, phase),) = rows(cli.state, "SELECT id, phase FROM jobs")
    if phase == "submitting":
        expire_offers(cli.state)
    cli("list")
    cli("wait", job_id, status=None)
    open_ = "SELECT 1 FROM notification_deliveries WHERE completed_at_ns IS NULL"
    eventually(lambda: not rows(cli.state, open_) and not processes_of(cli.state), "something is not told")
    assert_sound(cli.state)
    file = tmp_path / "told"
    events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    assert len({event["id"] for event in events}) == len(events), "told twice"
    return Told(sorted(happened(cli.state)), sorted(event["type"] for event in events))


def happened(state: Path) -> list[str]:
    """Return what there is to tell of, by the tables of jobs and runs and the history of claims and starts."""
    names = {"supervisor_claimed": "job_started", "process_started": "run_started"}
    found = [names[kind] for (kind,) in rows(state, "SELECT DISTINCT type FROM state_events") if kind in names]
    ends = {"success": "succeeded", "lost": "lost", "submission_failed": "submission_failed"}
    for table in ("job", "run"):
        found += [f"{table}_{ends[how]}" for (how,) in rows(state, f"SELECT outcome FROM {table}s")]  # noqa: S608  # ours
    return found


@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_supervisor_killed_at_a_system_call_loses_nothing_that_is_to_be_told(
    telling: Cli, tmp_path: Path, syscall: str, number: int
) -> None:
    """L.1: neither the event without its delivery nor the other way round, and each is told once."""
    run_with(telling, wrapped_interpreter(tmp_path / "python", injected(syscall, number)), *FLAGS)
    eventually(lambda: not processes_of(telling.state))

    told = settle(telling, tmp_path)

    assert told.arrived == told.happened


@pytest.mark.parametrize("error", ["EAGAIN", "ENOMEM"] if ALL_POINTS else ["EAGAIN"])
def test_what_no_process_can_be_made_for_waits_for_whoever_comes_next(telling: Cli, tmp_path: Path, error: str) -> None:
    """D6: the job goes its way; the target is forked by another call than the one that starts a sender."""
    python = wrapped_interpreter(tmp_path / "python", injected("clone3", 1, f"error={error}", every="+"))

    job_id = run_with(telling, python, *FLAGS).out.strip()

    eventually(lambda: not processes_of(telling.state))
    pending = rows(telling.state, "SELECT status, count(*) FROM notification_deliveries GROUP BY status")
    assert (pending, (tmp_path / "told").exists()) == ([("pending", 4)], False)
    assert telling.json("status", job_id)["outcome"] == "success"
    told = settle(telling, tmp_path)
    assert told.arrived == told.happened == ["job_started", "job_succeeded", "run_started", "run_succeeded"]


def test_no_call_of_a_supervisor_that_tells_is_left_out(telling: Cli, tmp_path: Path) -> None:
    log = tmp_path / "log"
    kinds = [name for syscall in CALLS for name in syscall.split(",")]

    run_with(telling, wrapped_interpreter(tmp_path / "python", traced(*kinds, log=log)), "--wait", *FLAGS)

    assert settle(telling, tmp_path).arrived
    made = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    for syscall, count in CALLS.items():
        assert 0 < sum(made.count(name) for name in syscall.split(",")) <= count, syscall
