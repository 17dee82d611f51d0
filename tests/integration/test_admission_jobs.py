"""Slots with real supervisors and real targets, which count themselves (H.4; D9, D34, D42, D44; M16 to M21)."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import Cli, eventually, processes_of, supervisor_pids

TARGET = str(Path(__file__).parent / "admission_target.py")


class Ring:
    """Targets that enter a ring and stay until they are let go; see `admission_target`."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli

    def limit(self, text: str) -> None:
        """Put limits in force."""
        path = self.cli.cwd / "jobman.yml"
        path.write_text(f"concurrency: {{{text}}}\n")
        self.cli("config", "apply", "--config", str(path))

    def submit(self, label: str, *flags: str, pool: str = "gpu", slots: int = 1) -> str:
        """Submit a target; its label is its job's name."""
        named = ("--name", label, "--slots", str(slots), *(("--pool", pool) if pool else ()))
        return self.cli.run(sys.executable, "-S", TARGET, label, str(slots), flags=(*named, *flags))

    def seen(self) -> list[dict[str, Any]]:
        """Return what each target saw as it entered, in that order."""
        path = self.cli.cwd / "seen"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def entered(self) -> list[str]:
        """Return the labels of the targets, in the order in which they entered."""
        return [sight["label"] for sight in self.seen()]

    def await_entry(self, *labels: str) -> None:
        """Wait until all of these have entered."""
        eventually(lambda: set(labels) <= set(self.entered()), f"{labels} never enter: {self.entered()}")

    def let_go(self, label: str = "") -> None:
        """Let one target end, or all of them and those to come."""
        (self.cli.cwd / (f"open-{label}" if label else "open")).touch()

    def reason(self, label: str) -> str:
        """Return why a job waits."""
        return self.cli("status", label).out.rstrip("\n").rpartition("\t")[2]

    def await_queued(self, *labels: str) -> None:
        """Wait until all of these have their places in the queue."""
        for label in labels:
            eventually(lambda: self.reason(label).startswith("#"), f"{label} does not queue")  # noqa: B023  # at once

    def submit_queued(self, *labels: str, slots: int = 1) -> list[str]:
        """Submit targets one after the other, each once the one before it has its place; return their jobs' IDs."""
        job_ids = []
        for label in labels:
            job_ids.append(self.submit(label, slots=slots))
            self.await_queued(label)
        return job_ids


def most_at_once(sights: list[dict[str, Any]], pool: str | None = None) -> int:
    """Return the most slots that were held at once, in a pool or in all of them."""
    counts = [sum(one["slots"] for one in sight["alive"] if pool is None or one["pool"] == pool) for sight in sights]
    return max(counts, default=0)


def assert_indexes_are_disjoint(sights: list[dict[str, Any]]) -> None:
    """D34: no two that live at the same time share a slot of their pool."""
    for sight in sights:
        held = [(one["pool"], index) for one in sight["alive"] for index in one["indexes"].split(",")]
        assert len(held) == len(set(held)), sight


@pytest.fixture
def ring(cli: Cli) -> Iterator[Ring]:
    opened = Ring(cli)
    yield opened
    opened.let_go()


def _owner_of(ring: Ring, label: str, before: set[int]) -> int:
    """Return the PID of the supervisor that was not there ``before``."""
    (pid,) = set(supervisor_pids(ring.cli.state)) - before
    assert ring.cli.phase(label) != "completed"
    return pid


def test_a_pool_of_two_never_holds_more(ring: Ring) -> None:
    """M16, M17, D34: six jobs, each with one of two slots."""
    ring.limit("pools: {gpu: 2}")
    labels = [f"job-{number}" for number in range(6)]
    for label in labels:
        ring.submit(label)
    eventually(lambda: len(ring.entered()) == 2)
    queued = [label for label in labels if ring.cli.phase(label) == "queued"]
    assert len(queued) == 4
    ring.let_go()
    assert {ring.cli.wait(label) for label in labels} == {"success"}
    assert sorted(ring.entered()) == labels
    assert most_at_once(ring.seen()) == 2
    assert_indexes_are_disjoint(ring.seen())
    assert {(one["pool"], one["indexes"]) for sight in ring.seen() for one in sight["alive"]} == {
        ("gpu", "0"),
        ("gpu", "1"),
    }


@pytest.mark.parametrize(
    ("limits", "asked", "told"),
    [
        ("pools: {gpu: 3}", ("gpu", 2), ("gpu", "0,1")),
        ("max_active_slots: 5, pools: {gpu: 3}", ("gpu", 1), ("gpu", "0")),
        ("max_active_slots: 5, pools: {gpu: unlimited}", ("gpu", 3), ("gpu", "0,1,2")),
        ("pools: {gpu: unlimited}", ("gpu", 2), ("gpu", "")),
        ("max_active_slots: 4", ("", 2), ("", "0,1")),
        ("max_active_slots: 1024", ("", 1), ("", "0")),
        ("max_active_slots: 1025", ("", 1), ("", "")),
        ("max_active_slots: 1, pools: {gpu: 4000}", ("gpu", 1), ("gpu", "")),
        ("", ("", 1), ("", "")),
    ],
)
def test_a_target_is_told_its_pool_and_its_slots(
    ring: Ring, limits: str, asked: tuple[str, int], told: tuple[str, str]
) -> None:
    """D34: of the pool if it is finite, else of the store; only up to 1,024 slots."""
    ring.limit(limits)
    ring.let_go()
    pool, slots = asked
    ring.cli.wait(ring.submit("one", pool=pool, slots=slots))
    ((one,),) = (sight["alive"] for sight in ring.seen())
    assert (one["pool"], one["indexes"]) == told


def test_the_queue_goes_by_the_time_of_eligibility(ring: Ring) -> None:
    """O.42, M18."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("first")
    ring.await_entry("first")
    ring.submit_queued("second", "third", "fourth")
    assert [ring.reason(label) for label in ("second", "fourth")] == [
        "#1 for pool gpu (1/1 slots busy)",
        "#3 for pool gpu (1/1 slots busy)",
    ]
    ring.let_go()
    for label in ("first", "second", "third", "fourth"):
        assert ring.cli.wait(label) == "success"
    assert ring.entered() == ["first", "second", "third", "fourth"]


def test_a_slot_is_free_while_its_job_backs_off(ring: Ring) -> None:
    """M21: and has to be won again after it."""
    ring.limit("pools: {gpu: 1}")
    ring.let_go("failing")
    ring.submit("failing", "--retries", "1", "--retry-delay", "1h")
    ring.cli.await_phase("failing", "backoff")
    ring.submit("other")
    ring.await_entry("other")
    assert ring.cli.phase("failing") == "backoff"
    ring.cli("cancel", "failing")
    ring.let_go()
    assert ring.cli.wait("other") == "success"


def test_who_comes_back_from_a_backoff_queues_behind_those_that_wait(ring: Ring) -> None:
    """M21, O.42: its place is of the time at which it may run again."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("failing", "--retries", "1", "--retry-delay", "300ms")
    ring.await_entry("failing")
    ring.submit_queued("second")
    ring.let_go("failing")
    ring.await_entry("second")
    ring.await_queued("failing")
    ring.let_go()
    assert ring.cli.wait("failing") == "failure"
    assert ring.entered() == ["failing", "second", "failing"]


def test_a_request_for_two_is_passed_three_times_and_no_more(ring: Ring) -> None:
    """M18, O.41."""
    ring.limit("pools: {gpu: 2}")
    ring.submit("holder")
    ring.await_entry("holder")
    ring.submit_queued("big", slots=2)
    for number in range(3):
        ring.let_go(f"small-{number}")
        assert ring.cli.wait(ring.submit(f"small-{number}")) == "success"
    ring.submit_queued("small-3")
    assert ring.reason("small-3") == "#2 for pool gpu (1/2 slots busy)"
    ring.let_go("holder")
    ring.await_entry("big")
    ring.let_go()
    assert ring.cli.wait("small-3") == "success"
    assert ring.entered() == ["holder", "small-0", "small-1", "small-2", "big", "small-3"]
    assert most_at_once(ring.seen()) == 2


def test_the_store_wide_limit_is_shared_by_all_pools(ring: Ring) -> None:
    """M16, D44: a full pool does not let the slots of the store idle."""
    ring.limit("max_active_slots: 2, pools: {gpu: 1, disk: 5}")
    ring.submit("gpu-0")
    ring.await_entry("gpu-0")
    ring.submit_queued("gpu-1")
    ring.submit("disk-0", pool="disk")
    ring.await_entry("disk-0")
    ring.submit("plain", pool="")
    eventually(lambda: "for the store-wide limit (2/2 slots busy)" in ring.reason("plain"))
    ring.let_go()
    assert {ring.cli.wait(label) for label in ("gpu-0", "gpu-1", "disk-0", "plain")} == {"success"}
    assert most_at_once(ring.seen()) == 2
    assert most_at_once(ring.seen(), "gpu") == 1


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--pool", "nowhere"), "there is no pool 'nowhere'"),
        (("--pool", "gpu", "--slots", "3"), "3 slots never fit into pool gpu with its 2"),
        (("--slots", "5"), "5 slots never fit into the store-wide limit with its 4"),
    ],
)
def test_what_could_never_fit_is_refused_and_nothing_is_stored(ring: Ring, flags: tuple[str, ...], says: str) -> None:
    """M16, O.40."""
    ring.limit("max_active_slots: 4, pools: {gpu: 2}")
    ring.cli.refuses("run", *flags, "--", "true", status=5, says=says)
    assert ring.cli.has_no_job()


def test_a_run_whose_configuration_states_nothing_changes_no_limit(ring: Ring) -> None:
    """D9."""
    ring.limit("max_active_slots: 4, pools: {gpu: 2}")
    other = ring.cli.cwd / "other.yml"
    other.write_text("concurrency: {pools: {disk: 7}}\n")
    ring.cli.finish("true", flags=("--config", str(other), "--pool", "disk"))
    ring.cli.finish("true")
    ring.cli.refuses("run", "--slots", "5", "--", "true", status=5, says="the store-wide limit with its 4")
    ring.cli.refuses("run", "--pool", "gpu", "--slots", "3", "--", "true", status=5, says="pool gpu with its 2")


def test_a_pool_that_is_waited_for_stays(ring: Ring) -> None:
    """D9: the job that would be stranded is named."""
    ring.limit("max_active_slots: 1, pools: {gpu: 1}")
    holder = ring.submit("holder", pool="")
    ring.await_entry("holder")
    (waiting,) = ring.submit_queued("waiting")
    (ring.cli.cwd / "none.yml").write_text("schema_version: 1\n")
    ring.cli.refuses("config", "apply", "--config", "none.yml", status=5, says=f"it is in use (job {waiting})")
    assert ring.cli.phase(holder) == "running"
    ring.let_go()
    assert ring.cli.wait("waiting") == "success"
    ring.cli("config", "apply", "--config", "none.yml")
    ring.cli.refuses("run", "--pool", "gpu", "--", "true", status=5, says="there is no pool 'gpu'")


def test_a_raised_limit_lets_the_queue_in(ring: Ring) -> None:
    """Polling finds it; nobody has to be told."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("first")
    ring.await_entry("first")
    ring.submit_queued("second", "third")
    ring.limit("pools: {gpu: 3}")
    ring.await_entry("second", "third")
    ring.let_go()
    assert ring.cli.wait("third") == "success"


def test_a_job_that_is_paused_in_the_queue_keeps_its_place_and_blocks_nobody(ring: Ring) -> None:
    """D44."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("first")
    ring.await_entry("first")
    ring.submit_queued("paused", "third", "fourth")
    ring.cli("pause", "paused")
    ring.let_go("first")
    ring.await_entry("third")
    ring.cli("resume", "paused")
    ring.await_queued("paused")
    assert ring.reason("paused").startswith("#1 ")
    assert ring.reason("fourth").startswith("#2 ")
    ring.let_go()
    assert {ring.cli.wait(label) for label in ("paused", "fourth")} == {"success"}
    assert ring.entered() == ["first", "third", "paused", "fourth"]


def test_a_queued_job_that_is_cancelled_leaves_the_queue(ring: Ring) -> None:
    """O.42."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("first")
    ring.await_entry("first")
    ring.submit_queued("second", "third")
    ring.cli("cancel", "second")
    assert ring.cli.wait("second") == "cancelled"
    assert ring.reason("third").startswith("#1 ")
    ring.let_go()
    assert ring.cli.wait("third") == "success"
    assert ring.entered() == ["first", "third"]


def test_a_head_whose_supervisor_hangs_is_passed_after_five_seconds(ring: Ring) -> None:
    """D44, once in real time."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("first")
    ring.await_entry("first")
    before = set(supervisor_pids(ring.cli.state))
    ring.submit_queued("hung")
    owner = _owner_of(ring, "hung", before)
    os.kill(owner, signal.SIGSTOP)
    try:
        ring.submit_queued("third")
        ring.let_go("first")
        ring.await_entry("third")
    finally:
        os.kill(owner, signal.SIGCONT)
    ring.let_go()
    assert ring.cli.wait("hung") == "success"
    assert ring.entered() == ["first", "third", "hung"]


def test_a_dead_head_that_does_not_fit_keeps_nobody_out(ring: Ring) -> None:
    """D44: it was passed as often as is allowed, and its place goes when the one behind it finds its owner dead."""
    ring.limit("pools: {gpu: 2}")
    ring.submit("holder")
    ring.await_entry("holder")
    before = set(supervisor_pids(ring.cli.state))
    ring.submit_queued("big", slots=2)
    os.kill(_owner_of(ring, "big", before), signal.SIGKILL)
    labels = [f"small-{number}" for number in range(5)]
    for label in labels:
        ring.let_go(label)
        ring.submit(label)
    ring.await_entry(*labels)
    assert ring.cli.json("status", "big")["outcome"] == "lost"
    ring.let_go()


def test_a_survivor_keeps_its_slot_and_is_named_to_whoever_waits(ring: Ring) -> None:
    """D42: until it ends; nobody has to look for that."""
    ring.limit("max_active_slots: 1, pools: {gpu: 1, disk: 1}")
    ring.submit("lost")
    ring.await_entry("lost")
    (owner,) = supervisor_pids(ring.cli.state)
    os.kill(owner, signal.SIGKILL)
    (survivor,) = (pid for pid, command in processes_of(ring.cli.state).items() if TARGET in command)
    ring.submit("waiting")
    ring.submit("other", pool="disk")
    lost = ring.cli.json("status", "lost")["id"]  # names need not be unique, nor fit for a shell
    words = f"slot held by a surviving process of lost job lost (pid {survivor}); jobman cancel {lost}"
    for label in ("waiting", "other"):
        eventually(lambda: ring.reason(label) == words, f"{label}: {ring.reason(label)}")  # noqa: B023  # at once
    assert ring.cli.phase("lost") == "completed"
    assert ring.entered() == ["lost"]
    ring.let_go()
    assert {ring.cli.wait(label) for label in ("waiting", "other")} == {"success"}
    assert most_at_once(ring.seen()) == 1


def test_cancelling_a_lost_job_frees_the_slot_that_its_survivor_keeps(ring: Ring) -> None:
    """D42: as the reason for waiting says."""
    ring.limit("pools: {gpu: 1}")
    ring.submit("lost", "--stop-grace", "1s")
    ring.await_entry("lost")
    (owner,) = supervisor_pids(ring.cli.state)
    os.kill(owner, signal.SIGKILL)
    ring.submit("waiting")
    eventually(lambda: "surviving process of lost job lost" in ring.reason("waiting"), "it is not named")
    ring.cli("cancel", "lost")
    ring.await_entry("waiting")
    ring.let_go()
    assert ring.cli.wait("waiting") == "success"
    assert most_at_once(ring.seen()) == 1
