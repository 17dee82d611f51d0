"""The process that sends: what it takes, what it leaves, when it ends (architecture, Notifications; L.4; D5, D6)."""

from __future__ import annotations

import functools
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.clock import SystemClock
from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    CommandTarget,
    RetryPolicy,
)
from jobman.model.secrets import SecretVariable
from jobman.process.senders import PLACES, start_sender
from jobman.process.spawn import submitter_environment
from jobman.store import deliveries
from tests.outbox import EVENTS, MILLISECOND, SECOND, Outbox, reap
from tests.receivers import appender
from tests.support import DEADLINE_S, eventually


@pytest.fixture
def outbox(state: Path) -> Iterator[Outbox]:
    box = Outbox(state)
    yield box
    box.store.close()
    for pid in box.senders():
        os.kill(pid, signal.SIGKILL)
    reap()


def test_everything_that_is_due_is_sent_once_in_order_and_the_sender_ends(outbox: Outbox) -> None:
    jobs = [outbox.queue(outbox.hook(budget_ns=60 * SECOND)) for _ in range(6)]

    assert start_sender(outbox.store.root) is not None
    assert start_sender(outbox.store.root) is None, "the place is occupied from the start"
    outbox.finish()

    told: dict[str, list[str]] = {}
    for one in outbox.told():
        told.setdefault(one["job_id"], []).append(one["type"])
    assert told == {job_id: list(EVENTS) for job_id in jobs}, "of each job in the order of its events"
    assert {one.status for job_id in jobs for one in outbox.delivered(job_id)} == {"succeeded"}
    assert not (outbox.state / "run" / "deliver.log").exists()


def test_a_hook_that_fails_is_told_again_with_the_same_event_and_then_no_more(outbox: Outbox) -> None:
    words = appender(outbox.file)
    job_id = outbox.queue(outbox.hook(f"{words[2]}; exit 7"), events=[NotifyEvent.JOB_SUCCEEDED])

    start_sender(outbox.store.root)
    outbox.finish()

    [delivery] = outbox.delivered(job_id)
    assert (delivery.status, delivery.diagnostic_code, delivery.attempt_count) == ("failed", "rejected", 3)
    assert [one["id"] for one in outbox.told()] == [delivery.event_id] * 3
    attempts = deliveries.load_attempts(outbox.store, job_id)
    first, second = (
        (after.started_at_ns or 0) - (before.completed_at_ns or 0) for before, after in itertools.pairwise(attempts)
    )
    assert first >= 50 * MILLISECOND
    assert second >= 100 * MILLISECOND


def test_what_is_older_than_its_budget_is_never_sent(outbox: Outbox) -> None:
    job_id = outbox.queue(outbox.hook(), age_ns=3 * SECOND)

    start_sender(outbox.store.root)
    outbox.finish()

    assert outbox.told() == []
    assert {one.diagnostic_code for one in outbox.delivered(job_id)} == {"budget_exhausted"}


def test_a_hanging_hook_is_stopped_when_the_budget_ends_and_so_does_the_sender(outbox: Outbox) -> None:
    """D5: retries and timeout are cut by the budget."""
    hook = outbox.hook("exec /bin/sleep 60", budget_ns=300 * MILLISECOND, timeout_ns=60 * SECOND)
    job_id = outbox.queue(hook, events=[NotifyEvent.JOB_SUCCEEDED])

    start_sender(outbox.store.root)
    outbox.finish()

    [delivery] = outbox.delivered(job_id)
    assert (delivery.status, delivery.diagnostic_code) == ("failed", "budget_exhausted")
    assert [one.diagnostic_code for one in deliveries.load_attempts(outbox.store, job_id)] == ["timeout"]


def test_many_hanging_hooks_never_take_more_than_four_senders_and_none_is_left(outbox: Outbox) -> None:
    hook = outbox.hook("exec /bin/sleep 60", budget_ns=1500 * MILLISECOND, timeout_ns=60 * SECOND)
    jobs = [outbox.queue(hook) for _ in range(60)]

    start_sender(outbox.store.root)
    most = 0
    while occupied := outbox.occupied():
        most = max(most, occupied)
        reap()

    assert 2 <= most <= PLACES
    outbox.finish()
    recorded = [one for job_id in jobs for one in outbox.delivered(job_id)]
    assert {one.status for one in recorded} == {"failed"}
    assert {one.diagnostic_code for one in recorded} == {"budget_exhausted"}


def test_hundreds_of_failures_cost_a_bounded_number_of_senders_rows_and_bytes(outbox: Outbox) -> None:
    """Two attempts for each delivery and no more; the store's log is used again from its beginning."""
    retry = RetryPolicy(2, 50 * MILLISECOND, SECOND)
    absent = outbox.hook(command=CommandTarget("/nonexistent/hook"), retry=retry, budget_ns=60 * SECOND)
    jobs = [outbox.queue(absent) for _ in range(100)]
    outbox.store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (outbox.state / "jobman.db").stat().st_size

    start_sender(outbox.store.root)
    places: set[int] = set()
    memory: set[int] = set()

    def is_left() -> bool:
        places.add(outbox.occupied())
        memory.update(map(resident_bytes, outbox.senders()))
        return 0 in places

    eventually(is_left, within=60.0)

    assert max(places) <= PLACES
    assert 10 << 20 < max(memory) < 64 << 20
    outbox.finish()
    recorded = [one for job_id in jobs for one in outbox.delivered(job_id)]
    assert [(one.status, one.diagnostic_code, one.attempt_count) for one in recorded] == [
        ("failed", "rejected", 2)
    ] * 200
    assert outbox.store.execute("SELECT count(*) FROM notification_attempts") == [(400,)]
    assert (outbox.state / "jobman.db-wal").stat().st_size < 6 << 20
    outbox.store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (outbox.state / "jobman.db").stat().st_size - before < 400 * 1024


def resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def test_a_secret_of_another_environment_is_left_to_its_own_sender(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends has the variables of whoever started it; a job's own sender knows for certain."""
    words = appender(outbox.file)
    target = CommandTarget(words[0], tuple(words[1:]), secrets=(SecretVariable("TOKEN", "env", "MY_TOKEN"),))
    job_id = outbox.queue(outbox.hook(command=target), events=[NotifyEvent.JOB_SUCCEEDED])
    start_sender(outbox.store.root)
    outbox.finish()
    [delivery] = outbox.delivered(job_id)
    assert (delivery.status, delivery.attempt_count, outbox.told()) == ("pending", 0, [])

    monkeypatch.setenv("MY_TOKEN", "xyzzy")
    start_sender(outbox.store.root)
    outbox.finish()
    assert [one["job_id"] for one in outbox.told()] == [job_id]

    monkeypatch.delenv("MY_TOKEN")
    other = outbox.queue(outbox.hook(command=target), events=[NotifyEvent.JOB_SUCCEEDED])
    monkeypatch.setenv("JOBMAN_SUPERVISOR", other)
    start_sender(outbox.store.root)
    outbox.finish()
    [delivery] = outbox.delivered(other)
    assert (delivery.status, delivery.diagnostic_code, delivery.attempt_count) == ("failed", "invalid", 1)
    assert delivery.diagnostic == "secret missing: variable MY_TOKEN, for TOKEN, is not set"


def _is_over(outbox: Outbox, job_id: str) -> bool:
    return outbox.delivered(job_id)[0].completed_at_ns is not None


def test_what_is_committed_while_a_sender_leaves_is_seen(outbox: Outbox) -> None:
    """Whoever finds the place occupied starts nobody, and relies on a last look after the place was left."""
    for _ in range(5):
        job_id = outbox.queue(outbox.hook(), events=[NotifyEvent.JOB_SUCCEEDED])
        start_sender(outbox.store.root)
        eventually(functools.partial(_is_over, outbox, job_id))
    outbox.finish()
    assert len(outbox.told()) == 5


def test_a_sender_takes_over_what_another_left_while_it_lived(outbox: Outbox) -> None:
    """Its place was free, but nobody looked: whoever came by found the first place occupied."""
    started, go = outbox.state.parent / "started", outbox.state.parent / "go"
    script = f"PATH=/bin; touch {started}; until test -e {go}; do sleep 0.01; done"
    outbox.queue(outbox.hook(script, budget_ns=60 * SECOND), events=EVENTS[:1])
    start_sender(outbox.store.root)
    eventually(started.exists)
    with outbox.store.write():
        job_id = outbox.queue(outbox.hook(budget_ns=60 * SECOND), events=EVENTS[:1])
        now_ns = SystemClock().wall_ns()
        assert [one.job_id for one in deliveries.claim_due(outbox.store, ("dead", 1), now_ns, limit=9)] == [job_id]

    go.touch()
    outbox.finish()

    assert [one["job_id"] for one in outbox.told()] == [job_id]


def test_a_sender_of_a_store_that_was_removed_ends(outbox: Outbox) -> None:
    """D43."""
    outbox.queue(outbox.hook("exit 1", retry=RetryPolicy(9, SECOND, SECOND)), events=[NotifyEvent.JOB_SUCCEEDED])
    start_sender(outbox.store.root)
    eventually(lambda: outbox.store.execute("SELECT 1 FROM notification_attempts WHERE status = 'failed'"))

    for name in ("jobman.db", "jobman.db-wal", "jobman.db-shm"):
        (outbox.state / name).unlink()

    eventually(lambda: not outbox.senders(), within=1.5)


def test_a_sender_is_of_no_run_and_keeps_nothing_of_its_starter(outbox: Outbox) -> None:
    home = outbox.state.parent
    environment = submitter_environment() | {b"JOBMAN_RUN_ID": b"outer", b"JOBMAN_JOB_ID": b"outer"}
    environment[b"ROOT"] = outbox.store.root.encode()
    code = "import os; from jobman.process.senders import start_sender; start_sender(os.environ['ROOT'])"
    show = f"PATH=/bin; cd -P .; pwd > {home}/pwd; cp /proc/$PPID/environ {home}; ls -l /proc/$PPID/fd > {home}/fds"
    outbox.queue(outbox.hook(show), events=[NotifyEvent.JOB_SUCCEEDED])

    with (home / "kept by the starter").open("w") as kept:
        os.set_inheritable(kept.fileno(), True)
        argv = [sys.executable, "-c", code]
        subprocess.run(argv, env=environment, check=True, close_fds=False, timeout=DEADLINE_S)
    outbox.finish()

    assert (home / "pwd").read_text() == "/\n"
    assert b"JOBMAN_RUN_ID" not in (home / "environ").read_bytes()
    descriptors = (home / "fds").read_text()
    assert "deliver-0.lock" in descriptors
    assert "kept by the starter" not in descriptors
