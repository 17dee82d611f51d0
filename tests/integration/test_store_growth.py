"""What costs as much with a hundred thousand jobs as with ten: found by index, in a fixed number of statements (C6)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman import recovery
from jobman.clock import SystemClock
from jobman.model.identity import ProcessIdentity
from jobman.model.spec import Dependency
from jobman.model.state import LockFile
from jobman.process.liveness import LivenessLock
from jobman.process.own import own_identity_fields
from jobman.service.query import reconcile_active
from jobman.store import deliveries
from jobman.store import jobs as jobs_module
from jobman.store.connection import Store
from jobman.store.jobs import JobFilter, count_active, has_open_deliveries, list_jobs
from tests.in_process import InProcess
from tests.integration.outbox_rows import OUTBOX_ROWS, OVER
from tests.integration.stepped_supervisor import tell
from tests.moves import EXAMPLE_JOB_ID, Choice, derived_id, walk
from tests.stores import commit_all, count_statements, executed, fast_store, full_scans, multiply, plain_spec, steps
from tests.support import SUCCEED, Cli

WAITING = derived_id("growth", "job", 1)
MANY = 2_000
# "done" and "waits" stand for IDs. Jobs of these names and labels are few, or there are none.
COMMANDS = (
    "list --active",
    "list --active --name night --submitted-before 2030-01-01T00:00:00Z",
    "list --phase running,waiting --json --show-runs",
    "list --outcome failure,lost",
    "list --outcome failure --submitted-after 2020-01-01T00:00:00Z",
    "list --name other",
    "list --group rare",
    "list --tag t --group rare --submitted-after 2020-01-01T00:00:00Z",
    "status done",
    "status night",
    "show done --json",
    "show waits",
    "wait done",
    "logs done",
    "pause done",
    "resume done",
    "rerun done",
    "run --after-success waits --pool small --group rare -- true",
    "cancel waits",
    "__complete cancel a",
    "__complete status nig",
    "__complete list --name ni",
    "__complete list --group r",
    "__complete logs --run= done",
)


class Grown(NamedTuple):
    """A store with one job that has succeeded and one that waits, whose supervisor we are."""

    store: Store
    lock: LivenessLock

    def multiply(self, count: int) -> None:
        """Add so many copies of both, each of which has a lock that is held."""
        with self.store.write():
            multiply(self.store, count)
        for (job_id,) in self.store.execute("SELECT id FROM jobs WHERE phase <> 'completed' AND id <> ?", (WAITING,)):
            os.link(f"{self.store.root}/run/{WAITING}.lock", f"{self.store.root}/run/{job_id}.lock")


@pytest.fixture
def grown(state: Path) -> Iterator[Grown]:
    store = fast_store(state)
    spec = plain_spec(name="night", groups=("g",), tags=("t",))
    commit_all(store, walk(*SUCCEED), spec)
    lock = LivenessLock.acquire(f"{store.root}/run/{WAITING}.lock")
    owner = Choice(identity=ProcessIdentity(*own_identity_fields()), lock=LockFile(lock.device, lock.inode))
    history = walk("claim", "await_prerequisites", choice=owner, job_id=WAITING)
    commit_all(store, history, plain_spec(dependencies=(Dependency(EXAMPLE_JOB_ID, "success"),)))
    yield Grown(store, lock)
    lock.close()
    store.close()


def test_no_command_looks_at_every_job_that_ever_was(grown: Grown, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    grown.multiply(20)
    jobman = InProcess(cli, monkeypatch, {"done": EXAMPLE_JOB_ID, "waits": WAITING})
    with executed() as statements:
        for command in COMMANDS:
            assert jobman(*command.split()).status != 2, command

    assert len(statements) > 10 * len(COMMANDS)
    assert full_scans(grown.store, statements) == set()


def test_a_supervisor_looks_at_its_job_and_at_what_is_active(state: Path) -> None:
    """H.1 to H.5, from its claim to its end."""
    store = fast_store(state)
    commit_all(store, walk("claim", "admit", "reserve", "start"))
    store.close()
    tell("tests.integration.stepped_growth", "whole_life", state)


def test_who_sends_notifications_looks_at_what_is_to_be_sent(state: Path) -> None:
    with executed() as statements:
        for number, (_, arrange, _) in enumerate(OUTBOX_ROWS):
            store = fast_store(state / str(number))
            arrange(store)(store)
            for ask in (deliveries.next_due_ns, deliveries.longest_budget, has_open_deliveries, count_active):
                ask(store)
            deliveries.has_pending(store, EXAMPLE_JOB_ID)
            deliveries.claim_due(store, ("ours", 0), OVER, limit=3)
            store.close()
    opened = fast_store(state)
    assert full_scans(opened, statements) == set()
    opened.close()


def test_commands_and_reconciliation_execute_as_many_statements_whatever_the_store_holds(
    grown: Grown, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C6: the original asked once per job."""
    jobman = InProcess(cli, monkeypatch, {"done": EXAMPLE_JOB_ID, "waits": WAITING})
    commands = ("list", "list --json --show-runs", "list --active", "list --tag t", "show waits", "show done --json")

    def counted() -> dict[str, int]:
        found = {"": count_statements(grown.store, partial(reconcile_active, grown.store, SystemClock()))}
        for command in commands:
            with executed() as statements:
                assert jobman(*command.split()).status == 0
            found[command] = len(statements)
        return found

    grown.multiply(10)
    few = counted()
    grown.store.execute("DELETE FROM jobs WHERE id NOT IN (?, ?)", (EXAMPLE_JOB_ID, WAITING))
    for path in Path(grown.store.root, "run").glob("*00000???.lock"):
        path.unlink()
    grown.multiply(MANY)
    assert counted() == few
    assert few[""] <= 3
    assert max(few.values()) <= 25
    assert recovery.suspects(grown.store, SystemClock()) == []
    assert count_active(grown.store) == MANY + 1


def test_jobs_with_a_label_are_the_same_however_they_are_found(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with a rare label are looked up; for one that many have, the list is walked through in its order."""
    grown.multiply(9)
    wanted = JobFilter(group="g", tags=("t",))
    found, ways = [], []
    for few in (1_000, 10):
        monkeypatch.setattr(jobs_module, "_FEW", few)
        with executed() as statements:
            found.append(list(list_jobs(grown.store, wanted, 7)))
        ways.append(" ".join(steps(grown.store, statements)))

    assert found[0] == found[1]
    assert len(found[0][0]) == 7
    assert ["SEARCH rare" in way for way in ways] == [True, False]
    assert ["SCAN jobs USING INDEX jobs_by_submission" in way for way in ways] == [False, True]
