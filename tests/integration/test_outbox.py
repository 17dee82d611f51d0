"""The outbox: queued with its event or not at all, claimed by one, taken over from the dead, given up in time (L.4)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.model.events import NotifyEvent, Transition
from jobman.model.notifiers import (
    Subscription,
)
from jobman.policy.delivery import DeliveryStatus, FailureCode, Result, Verdict
from jobman.store import deliveries
from jobman.store.claim import Claimant as LeanClaimant
from jobman.store.claim import claim_job
from jobman.store.commit import commit, commit_submission
from jobman.store.connection import Store
from jobman.store.deliveries import Claimed, Delivery
from jobman.store.pruning import removable_jobs
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, PLAIN, SECOND_NS, walk
from tests.notifiers import HOOK, WEB
from tests.stores import dump, fast_store, plain_spec

RUNNING = ("claim", "admit", "reserve", "start")
SPEC = plain_spec(
    subscriptions=(
        Subscription("hook", (NotifyEvent.JOB_STARTED, NotifyEvent.RUN_SUCCEEDED, NotifyEvent.JOB_SUCCEEDED)),
        Subscription("web", (NotifyEvent.JOB_SUCCEEDED,)),
    ),
    notifiers=(HOOK, WEB),
)
US = ("ours", 0)
# The hook's budget is 5 s, and the job is claimed after one and ends after five; that waits for what was before.
NOW = EPOCH_NS + 5 * SECOND_NS
NO_LONGER_HELD = NOW + HOOK.budget_ns // 4
SENT = (Result(), Verdict(DeliveryStatus.SUCCEEDED))


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def commit_moves(store: Store, *moves: str) -> Transition:
    first, *others = walk(*moves)
    commit_submission(store, first, SPEC)
    for transition in others:
        commit(store, transition)
    return others[-1]


def told(store: Store) -> list[tuple[str, str, str]]:
    return [(one.event_type, one.notifier, one.status) for one in deliveries.load_deliveries(store, EXAMPLE_JOB_ID)]


def only(store: Store) -> Delivery:
    [found] = deliveries.load_deliveries(store, EXAMPLE_JOB_ID)
    return found


def claim(store: Store, now_ns: int = NOW, *, token: tuple[str, int] = US, limit: int = 1) -> list[Claimed]:
    return deliveries.claim_due(store, token, now_ns, limit=limit)


def test_what_is_subscribed_to_is_queued_with_its_event(store: Store) -> None:
    commit_moves(store, *RUNNING, "end")

    assert sorted(told(store)) == [
        ("job_started", "hook", "pending"),
        ("job_succeeded", "hook", "pending"),
        ("job_succeeded", "web", "pending"),
        ("run_succeeded", "hook", "pending"),
    ]
    assert store.has_queued
    events = {row[0] for row in store.execute("SELECT id FROM state_events")}
    for one in deliveries.load_deliveries(store, EXAMPLE_JOB_ID):
        assert one.event_id in events
        assert (one.run_id is not None) == (one.event_type == "run_succeeded")


def test_a_claim_without_the_model_queues_what_one_with_it_does(store: Store, tmp_path: Path) -> None:
    """The claim of a supervisor is written out as a statement (ADR 3)."""
    commit_submission(store, walk()[-1], SPEC)
    claimant = LeanClaimant("01a2293e-6e22-73c5-983f-fc23a7be4cb9", PLAIN.identity, PLAIN.lock)
    claim_job(
        store, EXAMPLE_JOB_ID, claimant=claimant, credential_hash=PLAIN.credential_hash, wall_ns=EPOCH_NS + SECOND_NS
    )
    other = fast_store(tmp_path / "other")
    try:
        commit_submission(other, walk()[-1], SPEC)
        commit(other, walk("claim")[-1])

        lean, plain = only(store), only(other)
        assert lean._replace(event_id="") == plain._replace(event_id="")
        assert _summaries(store) == _summaries(other)
        assert store.execute("SELECT type FROM state_events WHERE id = ?", (lean.event_id,)) == [
            ("supervisor_claimed",)
        ]
    finally:
        other.close()


def _summaries(store: Store) -> list[tuple[str]]:
    return store.execute("SELECT summary_json FROM notification_deliveries")


def test_what_is_rolled_back_is_not_told(store: Store) -> None:
    first, claimed = walk("claim")
    commit_submission(store, first, SPEC)
    before = dump(store)

    with pytest.raises(ZeroDivisionError), store.write():
        _fail_after(store, claimed)

    assert dump(store) == before


def _fail_after(store: Store, transition: Transition) -> None:
    commit(store, transition)
    raise ZeroDivisionError


def test_a_job_that_tells_nobody_queues_nothing(store: Store) -> None:
    for number, transition in enumerate(walk(*RUNNING, "end")):
        commit_submission(store, transition, plain_spec()) if number == 0 else commit(store, transition)
    assert told(store) == []
    assert not store.has_queued


def test_the_oldest_that_is_ready_is_claimed_first_and_by_one_only(store: Store) -> None:
    commit_moves(store, *RUNNING, "end")

    [first] = claim(store)
    others = claim(store, NO_LONGER_HELD, token=("theirs", 1), limit=9)

    assert first.event_type == "job_started"
    assert len(others) == 3
    assert first not in others
    assert claim(store, NO_LONGER_HELD, token=("third", 2), limit=9) == []
    attempts = deliveries.load_attempts(store, EXAMPLE_JOB_ID)
    assert [(one.number, one.status) for one in attempts] == [(1, "delivering")] * 4


def test_what_happened_later_is_told_later_to_each_notifier(store: Store) -> None:
    """The end of a run and that of its job are events of one instant, the run's first."""
    commit_moves(store, *RUNNING, "end")
    result, verdict = SENT
    order = []
    while claimed := claim(store, NOW, limit=9):
        order.append(sorted((one.event_type, one.notifier) for one in claimed))
        assert not deliveries.has_due(store, NOW)
        for one in claimed:
            deliveries.complete(store, one, result=result, verdict=verdict, now_ns=NOW)

    assert order == [
        [("job_started", "hook"), ("job_succeeded", "web")],
        [("run_succeeded", "hook")],
        [("job_succeeded", "hook")],
    ]


@pytest.mark.parametrize("retried", [False, True], ids=["hangs", "is tried again"])
def test_what_happened_later_does_not_wait_for_long(store: Store, *, retried: bool) -> None:
    """A quarter of the hook's budget of 5 s, and 5 s at the most: what is late is better than what is lost."""
    commit_moves(store, *RUNNING, "end")
    first, _ = claim(store, limit=2)
    if retried:
        refused = Result(FailureCode.TIMEOUT, "no", retryable=True)
        verdict = Verdict(DeliveryStatus.PENDING, NO_LONGER_HELD)
        deliveries.complete(store, first, result=refused, verdict=verdict, now_ns=NOW)

    assert deliveries.next_due_ns(store) == (first.deadline_ns if retried else NO_LONGER_HELD)
    assert claim(store, NO_LONGER_HELD - 1, limit=9) == []
    late = [one.event_type for one in claim(store, NO_LONGER_HELD, limit=9)]
    assert sorted(late) == ["job_succeeded", "run_succeeded"]


def test_an_attempt_of_a_dead_sender_is_taken_over_under_its_number(store: Store) -> None:
    """O.60: its lease has run out, or its place is empty; and the dead one cannot record anything any more."""
    commit_moves(store, "claim")
    [dead] = claim(store)
    assert claim(store) == []
    deliveries.release_place(store, 1, NOW)
    assert claim(store) == []

    deliveries.release_place(store, 0, NOW)
    [taken] = claim(store, token=("heir", 0))

    assert taken[3:] == dead[3:]
    assert taken.token == "heir"  # noqa: S105  # the name of a process
    assert len(deliveries.load_attempts(store, EXAMPLE_JOB_ID)) == 1
    result, verdict = SENT
    assert not deliveries.complete(store, dead, result=result, verdict=verdict, now_ns=NOW)
    assert deliveries.complete(store, taken, result=result, verdict=verdict, now_ns=NOW)
    assert not deliveries.complete(store, taken, result=result, verdict=verdict, now_ns=NOW)
    assert only(store).status == DeliveryStatus.SUCCEEDED


def test_a_lease_that_is_renewed_is_not_taken_over(store: Store) -> None:
    commit_moves(store, *RUNNING, "end")
    claimed = claim(store, limit=9)
    web = next(one for one in claimed if one.notifier == "web")
    later_ns = NOW + deliveries.CLAIM_LEASE_NS
    deliveries.renew_claims(store, US[0], later_ns - SECOND_NS)
    assert claim(store, later_ns, limit=9) == []
    [taken] = claim(store, later_ns + deliveries.CLAIM_LEASE_NS - SECOND_NS, token=("heir", 0), limit=9)
    assert (taken.notifier, taken.attempt) == (web.notifier, 1)


def test_a_failed_attempt_waits_for_the_next_one(store: Store) -> None:
    commit_moves(store, "claim")
    [first] = claim(store, EPOCH_NS + 2 * SECOND_NS)
    refused = Result(FailureCode.REJECTED, "no", retryable=True, command_exit_code=3)
    verdict = Verdict(DeliveryStatus.PENDING, EPOCH_NS + 4 * SECOND_NS)

    deliveries.complete(store, first, result=refused, verdict=verdict, now_ns=EPOCH_NS + 3 * SECOND_NS)

    assert deliveries.next_due_ns(store) == EPOCH_NS + 4 * SECOND_NS
    assert claim(store, EPOCH_NS + 4 * SECOND_NS - 1) == []
    [second] = claim(store, EPOCH_NS + 4 * SECOND_NS)
    assert second.attempt == 2
    told_of = deliveries.load_attempts(store, EXAMPLE_JOB_ID)
    assert [(one.number, one.status, one.diagnostic_code, one.command_exit_code) for one in told_of] == [
        (1, "failed", "rejected", 3),
        (2, "delivering", None, None),
    ]


def test_a_claim_that_is_handed_back_was_no_attempt(store: Store) -> None:
    commit_moves(store, "claim")
    before = dump(store)
    [claimed] = claim(store)
    deliveries.hand_back(store, claimed)

    after = dump(store)
    assert only(store)._replace(claimed_at_ns=None).attempt_count == 0
    assert after["notification_attempts"] == before["notification_attempts"]
    assert deliveries.claim_due(store, US, NOW, limit=1, without=deliveries.all_jobs([EXAMPLE_JOB_ID])) == []
    assert claim(store)[0].attempt == 1


@pytest.mark.parametrize("claimed", [False, True], ids=["never tried", "tried by somebody who died"])
def test_nothing_is_sent_after_its_budget(store: Store, *, claimed: bool) -> None:
    """D5: the budget of the hook is 5 s from the event, one second after the submission."""
    commit_moves(store, "claim")
    if claimed:
        claim(store, EPOCH_NS + 2 * SECOND_NS)
    over_ns = EPOCH_NS + 6 * SECOND_NS
    deliveries.give_up(store, over_ns - 1)
    assert only(store).completed_at_ns is None

    after_lease_ns = over_ns + deliveries.CLAIM_LEASE_NS
    assert claim(store, after_lease_ns) == []
    deliveries.give_up(store, after_lease_ns)

    found = only(store)
    assert (found.status, found.diagnostic_code) == (DeliveryStatus.FAILED, FailureCode.BUDGET_EXHAUSTED)
    assert [one.status for one in deliveries.load_attempts(store, EXAMPLE_JOB_ID)] == (["failed"] if claimed else [])
    assert deliveries.next_due_ns(store) is None


def test_a_job_stays_until_it_is_told(store: Store) -> None:
    """O.54: cleaning removes no job of which something is pending or being sent."""
    commit_moves(store, "claim", "abort")
    assert removable_jobs(store) == []
    [claimed] = claim(store)
    assert removable_jobs(store) == []

    result, verdict = SENT
    deliveries.complete(store, claimed, result=result, verdict=verdict, now_ns=NOW)

    assert [job_id for job_id, _ in removable_jobs(store)] == [EXAMPLE_JOB_ID]


def test_deliveries_go_with_their_job(store: Store) -> None:
    commit_moves(store, *RUNNING, "end")
    claim(store, limit=9)

    store.execute("DELETE FROM jobs")

    counts = {name: len(rows) for name, rows in dump(store).items() if name.startswith("notification_")}
    assert set(counts.values()) == {0}
