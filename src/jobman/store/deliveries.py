"""The outbox from the other side: claiming what is due, recording what came of it, reading both (contract, L.4, L.5).

A claim carries the token of the process that sends, the place that it occupies, and a lease. Whoever finds the place
empty, or the lease run out, may claim the same attempt again: an event is sent at least once, and once more for each
process that died between sending and recording.

What happened later to a job is told later, to each notifier, as long as that costs little: it waits for what is still
to be told of before, but not for long, so that no notifier that hangs and no retry keeps it from being told at all.
"""

from __future__ import annotations

import os

from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.policy.delivery import DeliveryStatus, FailureCode
from jobman.store.rows import member
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from jobman.policy.delivery import Result, Verdict
    from jobman.store.connection import Row, Store

CLAIM_LEASE_NS = 30_000_000_000
_LONGEST_HOLD_NS = 5_000_000_000
_OPEN = "status IN ('pending', 'delivering')"
# The order of the events of a job, whatever the clock said; a change has an event of the job and then one of its run,
# and the end of a run is told before that of the job.
_ORDER = "(SELECT 2 * sequence FROM state_events WHERE id = {0}.event_id) + 3 * ({0}.run_id IS NULL)"
# Something is still to be told of what happened to the job before, to the same notifier. What is older than the budget
# is over, so few rows are looked at, however many events a job has.
_BEHIND = (
    "EXISTS (SELECT 1 FROM notification_deliveries AS e WHERE e.job_id = d.job_id AND e.notifier = d.notifier"
    " AND e.status IN ('pending', 'delivering')"
    " AND e.created_at_ns BETWEEN 2 * d.created_at_ns - d.deadline_ns AND d.created_at_ns"
    f" AND {_ORDER.format('e')} < {_ORDER.format('d')})"
)
_HELD_UNTIL = f"d.created_at_ns + min({_LONGEST_HOLD_NS}, (d.deadline_ns - d.created_at_ns) / 4)"
_DUE = (
    f"FROM notification_deliveries AS d WHERE {_OPEN} AND next_attempt_at_ns <= ?1 AND deadline_ns > ?1"
    " AND (status = 'pending' OR claim_expires_at_ns <= ?1) AND job_id NOT IN (SELECT value FROM json_each(?2))"
    f" AND ({_HELD_UNTIL} <= ?1 OR NOT {_BEHIND})"
)
_MINE = "event_id = ? AND notifier = ? AND claim_token = ? AND attempt_count = ? AND status = 'delivering'"
_CLOSED = "next_attempt_at_ns = NULL, claim_token = NULL, claim_place = NULL, claim_expires_at_ns = NULL"


class Claimed(NamedTuple):
    """A delivery that this process holds: what to send, and which attempt it is (from 1)."""

    event_id: str
    notifier: str
    token: str
    attempt: int
    job_id: str
    event_type: str
    run_id: str | None
    summary_json: str
    occurred_at_ns: int
    deadline_ns: int


class Delivery(NamedTuple):
    """What is known of telling one notifier of one event."""

    job_id: str
    event_id: str
    notifier: str
    event_type: str
    status: DeliveryStatus
    occurred_at_ns: int
    created_at_ns: int
    max_attempts: int
    attempt_count: int
    run_id: str | None = None
    next_attempt_at_ns: int | None = None
    claimed_at_ns: int | None = None
    claim_expires_at_ns: int | None = None
    completed_at_ns: int | None = None
    diagnostic_code: str | None = None
    diagnostic: str | None = None


class Attempt(NamedTuple):
    """One attempt at a delivery; in the order of its columns and those of the delivery that it belongs to."""

    id: str
    job_id: str
    event_id: str
    notifier: str
    event_type: str
    number: int
    status: DeliveryStatus
    created_at_ns: int
    retryable: bool
    response_truncated: bool
    started_at_ns: int | None = None
    completed_at_ns: int | None = None
    next_attempt_at_ns: int | None = None
    diagnostic_code: str | None = None
    diagnostic: str | None = None
    response_status_code: int | None = None
    command_exit_code: int | None = None
    message_id: str | None = None


# --- Claiming ------------------------------------------------------------------------------------------------------


def claim_due(store: Store, token: tuple[str, int], now_ns: int, *, limit: int, without: str = "[]") -> list[Claimed]:
    """Claim the oldest deliveries that are ready, at most ``limit``; of one job in the order of its events.

    Args:
        store: the store.
        token: of this process, and the place it occupies.
        now_ns: the wall clock.
        limit: how many.
        without: a JSON list of jobs whose deliveries are left to others.
    """
    if not has_due(store, now_ns, without):
        return []  # whoever has nothing to claim stands in no queue of writers
    with store.write():
        rows = store.execute(
            "SELECT event_id, notifier, attempt_count + (status = 'pending'), job_id, event_type, run_id, summary_json,"
            f" occurred_at_ns, deadline_ns {_DUE}"
            " ORDER BY next_attempt_at_ns, created_at_ns, event_id, notifier LIMIT ?3",
            (now_ns, without, limit),
        )
        claimed = [Claimed(row[0], row[1], token[0], *row[2:]) for row in rows]
        for one in claimed:
            _claim(store, one, token[1], now_ns)
    return claimed


def _claim(store: Store, claimed: Claimed, place: int, now_ns: int) -> None:
    key = (claimed.event_id, claimed.notifier)
    store.execute(
        "UPDATE notification_deliveries SET status = 'delivering', attempt_count = ?, claim_token = ?, claim_place = ?,"
        " claimed_at_ns = ?, claim_expires_at_ns = ? WHERE event_id = ? AND notifier = ?",
        (claimed.attempt, claimed.token, place, now_ns, now_ns + CLAIM_LEASE_NS, *key),
    )
    # An attempt that is taken over keeps its row: it is the same one.
    attempt_id = new_id(now_ns, os.urandom(RANDOM_BYTES))
    store.execute(
        "INSERT INTO notification_attempts (id, event_id, notifier, number, status, created_at_ns, started_at_ns)"
        " VALUES (?, ?, ?, ?, 'delivering', ?, ?)"
        " ON CONFLICT (event_id, notifier, number) DO UPDATE SET started_at_ns = excluded.started_at_ns",
        (attempt_id, *key, claimed.attempt, now_ns, now_ns),
    )


def renew_claims(store: Store, token: str, now_ns: int) -> None:
    """Extend the lease of everything that this process holds."""
    with store.write():
        store.execute(
            f"UPDATE notification_deliveries SET claim_expires_at_ns = ? WHERE {_OPEN} AND claim_token = ?",
            (now_ns + CLAIM_LEASE_NS, token),
        )


def release_place(store: Store, place: int, now_ns: int) -> bool:
    """End the leases of whoever occupied a place: its lock is ours now, so it is dead; say whether it held any."""
    condition = "status IN ('pending', 'delivering') AND claim_place = ? AND claim_expires_at_ns > ?"
    if not store.execute(f"SELECT 1 FROM notification_deliveries WHERE {condition} LIMIT 1", (place, now_ns)):
        return False
    with store.write():
        store.execute(
            f"UPDATE notification_deliveries SET claim_expires_at_ns = ? WHERE {condition}", (now_ns, place, now_ns)
        )
    return True


def complete(store: Store, claimed: Claimed, *, result: Result, verdict: Verdict, now_ns: int) -> bool:
    """Record what an attempt came to; ``False`` if the claim is not ours any more, and nothing is recorded."""
    code = verdict.code
    with store.write():
        if verdict.status == DeliveryStatus.PENDING:
            changes = "status = 'pending', next_attempt_at_ns = ?, claim_token = NULL, claim_place = NULL"
            changes += ", claim_expires_at_ns = NULL"
            values: tuple[object, ...] = (verdict.next_attempt_at_ns,)
        else:
            changes = f"status = ?, completed_at_ns = ?, diagnostic_code = ?, diagnostic = ?, {_CLOSED}"
            values = (verdict.status, now_ns, code, result.text or None if code else None)
        store.execute(f"UPDATE notification_deliveries SET {changes} WHERE {_MINE}", (*values, *_key(claimed)))
        if store.changes() != 1:
            return False
        _complete_attempt(store, claimed, result=result, verdict=verdict, now_ns=now_ns)
    return True


def hand_back(store: Store, claimed: Claimed) -> None:
    """Undo a claim: the attempt has not taken place, and another process may make it."""
    with store.write():
        store.execute(
            "UPDATE notification_deliveries SET status = 'pending', attempt_count = attempt_count - 1,"
            f" claim_token = NULL, claim_place = NULL, claim_expires_at_ns = NULL WHERE {_MINE}",
            _key(claimed),
        )
        if store.changes() == 1:
            store.execute(
                "DELETE FROM notification_attempts WHERE event_id = ? AND notifier = ? AND number = ?",
                (claimed.event_id, claimed.notifier, claimed.attempt),
            )


def give_up(store: Store, now_ns: int, *, latest_deadline_ns: int | None = None) -> None:
    """End what nobody holds and whose budget is over; nothing of it is sent any more (D5).

    Args:
        store: the store.
        now_ns: the wall clock.
        latest_deadline_ns: counts as now for deadlines, where it is known that the wall clock was set back.
    """
    until_ns = now_ns if latest_deadline_ns is None else latest_deadline_ns
    overdue = f"{_OPEN} AND deadline_ns <= ?1 AND (status = 'pending' OR claim_expires_at_ns <= ?2)"
    if not store.execute(f"SELECT 1 FROM notification_deliveries WHERE {overdue} LIMIT 1", (until_ns, now_ns)):
        return
    with store.write():
        # What was tried last, and never recorded, has no result that anybody could know.
        store.execute(
            "UPDATE notification_attempts SET status = 'failed', completed_at_ns = ?2, diagnostic_code = ?3"
            " WHERE status = 'delivering' AND (event_id, notifier) IN"
            f" (SELECT event_id, notifier FROM notification_deliveries WHERE {overdue})",
            (until_ns, now_ns, FailureCode.INTERNAL),
        )
        store.execute(
            f"UPDATE notification_deliveries SET status = 'failed', completed_at_ns = ?2, diagnostic_code = ?3,"
            f" {_CLOSED}"
            f" WHERE {overdue}",
            (until_ns, now_ns, FailureCode.BUDGET_EXHAUSTED),
        )


def _complete_attempt(store: Store, claimed: Claimed, *, result: Result, verdict: Verdict, now_ns: int) -> None:
    status = DeliveryStatus.SUCCEEDED if result.code is None else DeliveryStatus.FAILED
    store.execute(
        "UPDATE notification_attempts SET status = ?, completed_at_ns = ?, next_attempt_at_ns = ?, retryable = ?,"
        " response_truncated = ?, diagnostic_code = ?, diagnostic = ?, response_status_code = ?, command_exit_code = ?,"
        " message_id = ? WHERE event_id = ? AND notifier = ? AND number = ?",
        (
            *(status, now_ns, verdict.next_attempt_at_ns, result.retryable, result.response_truncated, result.code),
            *(result.text or None, result.response_status_code, result.command_exit_code, result.message_id),
            *(claimed.event_id, claimed.notifier, claimed.attempt),
        ),
    )


def _key(claimed: Claimed) -> tuple[str, str, str, int]:
    return claimed.event_id, claimed.notifier, claimed.token, claimed.attempt


# --- Reading -------------------------------------------------------------------------------------------------------


def has_pending(store: Store, job_id: str) -> bool:
    """Say whether anything of one job waits to be sent."""
    statement = f"SELECT 1 FROM notification_deliveries WHERE {_OPEN} AND status = 'pending' AND job_id = ? LIMIT 1"
    return bool(store.execute(statement, (job_id,)))


def has_due(store: Store, now_ns: int, without: str = "[]") -> bool:
    """Say whether anything could be claimed now."""
    return bool(store.execute(f"SELECT 1 {_DUE} LIMIT 1", (now_ns, without)))


def next_due_ns(store: Store, without: str = "[]") -> int | None:
    """Return when the next pending delivery is ready or over, as a wall clock time; ``None`` if none is pending."""
    ready = f"max(next_attempt_at_ns, CASE WHEN {_BEHIND} THEN {_HELD_UNTIL} ELSE 0 END)"
    rows = store.execute(
        f"SELECT min(min({ready}, deadline_ns)) FROM notification_deliveries AS d"
        f" WHERE {_OPEN} AND status = 'pending' AND job_id NOT IN (SELECT value FROM json_each(?))",
        (without,),
    )
    due_ns: int | None = rows[0][0]
    return due_ns


def longest_budget(store: Store) -> tuple[int, int]:
    """Return the longest budget, in nanoseconds, and the latest deadline of what is pending; 0 and 0 without any."""
    rows = store.execute(
        "SELECT coalesce(max(deadline_ns - created_at_ns), 0), coalesce(max(deadline_ns), 0)"
        f" FROM notification_deliveries WHERE {_OPEN} AND status = 'pending'"
    )
    return rows[0][0], rows[0][1]


def load_deliveries(store: Store, job_id: str) -> list[Delivery]:
    """Return the deliveries of a job by creation, event and notifier."""
    rows = store.execute(
        "SELECT job_id, event_id, notifier, event_type, status, occurred_at_ns, created_at_ns, max_attempts,"
        " attempt_count, run_id, next_attempt_at_ns, claimed_at_ns, claim_expires_at_ns, completed_at_ns,"
        " diagnostic_code, diagnostic FROM notification_deliveries WHERE job_id = ?"
        " ORDER BY created_at_ns, event_id, notifier",
        (job_id,),
    )
    return [Delivery(*row)._replace(status=member(DeliveryStatus, row[4])) for row in rows]


def load_attempts(store: Store, job_id: str) -> list[Attempt]:
    """Return the attempts at the deliveries of a job by creation, event, notifier and number."""
    rows = store.execute(
        "SELECT a.id, d.job_id, a.event_id, a.notifier, d.event_type, a.number, a.status, a.created_at_ns, a.retryable,"
        " a.response_truncated, a.started_at_ns, a.completed_at_ns, a.next_attempt_at_ns, a.diagnostic_code,"
        " a.diagnostic, a.response_status_code, a.command_exit_code, a.message_id"
        " FROM notification_deliveries AS d JOIN notification_attempts AS a USING (event_id, notifier)"
        " WHERE d.job_id = ? ORDER BY a.created_at_ns, a.event_id, a.notifier, a.number",
        (job_id,),
    )
    return [_attempt(row) for row in rows]


def _attempt(row: Row) -> Attempt:
    attempt, status = Attempt(*row), member(DeliveryStatus, row[6])
    return attempt._replace(status=status, retryable=bool(row[8]), response_truncated=bool(row[9]))


def all_jobs(job_ids: Collection[str]) -> str:
    """Return job IDs as the JSON list that `claim_due` and `next_due_ns` take."""
    return "[" + ",".join(f'"{job_id}"' for job_id in sorted(job_ids)) + "]"
