"""Slots while supervisors are killed at random: what is held is what is alive (H.4, D42; M17, M20)."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from tests.support import Cli, eventually, processes_of, supervisor_pids

TARGET = str(Path(__file__).parent / "admission_target.py")
LIMITS = {"": 4, "gpu": 2, "disk": 3}
PATIENCE_S = 60.0


def _submit(cli: Cli, number: int) -> str:
    """Submit the job of that number: every fourth without a pool, every fifth with two slots, every eighth a long one.

    The long ones outlive the look at their dead supervisors.
    """
    pool = ("gpu", "disk", "gpu", "")[number % 4]
    slots = 2 if number % 5 == 0 else 1
    flags = ("--name", f"job-{number}", "--slots", str(slots), *(("--pool", pool) if pool else ()))
    words = (sys.executable, "-S", TARGET, f"job-{number}", str(slots), "1.5" if number % 8 == 1 else "0.05")
    return cli.run(*words, flags=flags, timeout=PATIENCE_S)


def _sights(cli: Cli) -> list[dict[str, Any]]:
    path = cli.cwd / "seen"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _owners_of_targets(cli: Cli) -> list[int]:
    """Return the supervisors whose targets are alive."""
    targets = [pid for pid, command in processes_of(cli.state).items() if TARGET in command]
    owners = set(supervisor_pids(cli.state))
    return [parent for parent in map(_parent, targets) if parent in owners]


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _kill_some(cli: Cli, chance: Random, *, deaths: int, until: Callable[[], bool]) -> int:
    """Kill supervisors, in turns any of them and one with a target; return how many died before all was over."""
    killed = 0
    while killed < deaths:
        over = until()
        pids = supervisor_pids(cli.state)
        # One death for each that has entered, so that they fall on all phases of many jobs.
        if over and not pids:
            break
        if pids and len(_sights(cli)) > killed:
            victims = (_owners_of_targets(cli) if killed % 2 else []) or pids
            os.kill(chance.choice(victims), signal.SIGKILL)
            killed += 1
        time.sleep(0.01)
    return killed


@contextmanager
def _somebody_looks(cli: Cli) -> Iterator[None]:
    """Look again and again meanwhile, which declares the dead lost; in a thread: the killing has its own pace."""
    over = Event()

    def look() -> None:
        while not over.wait(0.01):
            cli("list")

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            over.set()
        looking.result()


def _is_over(cli: Cli) -> bool:
    """Say whether every job has ended; to look at them all reconciles those whose owner is dead."""
    return bool(cli.json("list", "--active") == {"jobs": []})


@pytest.fixture
def limited(cli: Cli) -> Iterator[Cli]:
    (cli.cwd / "jobman.yml").write_text("concurrency: {max_active_slots: 4, pools: {gpu: 2, disk: 3}}\n")
    cli("config", "apply", "--config", "jobman.yml")
    yield cli
    (cli.cwd / "open").touch()


@pytest.mark.parametrize(("jobs", "submitters", "deaths"), [(24, 8, 6), (24, 8, 12), (64, 16, 10)])
def test_no_limit_is_exceeded_however_many_supervisors_are_killed(
    limited: Cli, jobs: int, submitters: int, deaths: int
) -> None:
    """D42: the targets of lost jobs count until they have ended; then everybody else gets in."""
    chance = Random(deaths)  # noqa: S311  # no secret
    with ThreadPoolExecutor(submitters) as pool, _somebody_looks(limited):
        submissions = [pool.submit(_submit, limited, number) for number in range(jobs)]
        killed = _kill_some(limited, chance, deaths=deaths, until=lambda: all(map(Future.done, submissions)))
        for submission in submissions:
            try:
                submission.result()
            except AssertionError:
                pass  # its supervisor was killed before it had acknowledged: the job is recorded as such, or lost
    eventually(lambda: _is_over(limited), "they do not all end", within=PATIENCE_S)
    assert killed > deaths // 2
    sights = _sights(limited)
    for scope, limit in LIMITS.items():
        held = [sum(one["slots"] for one in sight["alive"] if scope in ("", one["pool"])) for sight in sights]
        assert max(held) <= limit, f"{scope or 'the store'}: {max(held)} slots of {limit}"
    outcomes = [job["outcome"] for job in limited.json("list", "--all")["jobs"]]
    assert set(outcomes) <= {"success", "lost", "submission_failed"}
    assert outcomes.count("success") >= jobs - killed
    entered = [sight["label"] for sight in sights]
    assert len(entered) == len(set(entered)), "no job ran twice"
    eventually(lambda: not processes_of(limited.state), "something is left")


def test_what_survives_is_ended_by_cancelling_and_frees_its_slots(limited: Cli) -> None:
    """D42: with every supervisor dead and every target alive, nothing is admitted until they are stopped."""
    flags = ("--pool", "gpu", "--stop-grace", "2s")
    lost = [
        limited.run(sys.executable, "-S", TARGET, label, "1", flags=("--name", label, *flags))
        for label in ("lost-0", "lost-1")
    ]
    eventually(lambda: len(_sights(limited)) == 2)
    for pid in supervisor_pids(limited.state):
        os.kill(pid, signal.SIGKILL)
    waiting = [
        limited.run(sys.executable, "-S", TARGET, label, "1", "0", flags=("--name", label, *flags))
        for label in ("next-0", "next-1", "next-2")
    ]
    for job_id in waiting:
        eventually(lambda: limited.phase(job_id) == "queued")  # noqa: B023  # at once
    for job_id in waiting:
        eventually(lambda: "slot held by a surviving process" in limited("status", job_id).out)  # noqa: B023  # at once
    for job_id in lost:
        limited("cancel", job_id)
    assert [limited.wait(job_id) for job_id in waiting] == ["success"] * 3
    assert max(len(sight["alive"]) for sight in _sights(limited)) <= 2
    rows = limited.json("list", "--all", "--outcome", "lost")["jobs"]
    assert {row["id"] for row in rows} == set(lost)
