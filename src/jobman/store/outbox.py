"""Queueing what somebody is to be told, in the transaction of the event that it is about (contract, L.1 and L.4).

Loaded by whoever changes a job that has an owner; a submission has nobody to tell yet.
"""

from __future__ import annotations

from jobman.model.canonical import dump
from jobman.model.scalars import format_timestamp
from jobman.policy.notices import notices, summary
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.model.events import Transition
    from jobman.model.spec import JobSpec
    from jobman.store.connection import Store

    # Event ID, type, job ID, run ID, when it happened.
    Happened = tuple[str, str, str, str | None, int]
    # Notifier, how often to try, for how long.
    Subscriber = tuple[str, int, int]

_SUBSCRIPTION = (
    "INSERT INTO notification_subscriptions (job_id, event_type, notifier, max_attempts, budget_ns)"
    " VALUES (?, ?, ?, ?, ?)"
)
_SUBSCRIBERS = (
    "SELECT event_type, notifier, max_attempts, budget_ns FROM notification_subscriptions"
    " WHERE job_id = ? ORDER BY notifier"
)
_DELIVERY = (
    "INSERT INTO notification_deliveries (event_id, event_type, job_id, run_id, occurred_at_ns, created_at_ns,"
    " notifier, max_attempts, deadline_ns, next_attempt_at_ns, summary_json, status)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')"
)


def subscribe(store: Store, job_id: str, spec: JobSpec) -> None:
    """Store who is to be told of what happens to a new job; inside the transaction of its submission."""
    notifiers = {notifier.name: notifier for notifier in spec.notifiers}
    for subscription in spec.subscriptions:
        notifier = notifiers[subscription.notifier]
        for event in subscription.events:
            row = (job_id, event, notifier.name, notifier.retry.max_attempts, notifier.budget_ns)
            store.execute(_SUBSCRIPTION, row)


def queue(store: Store, transition: Transition, event_ids: Sequence[str]) -> None:
    """Queue what there is to tell of a transition; inside its transaction.

    Args:
        store: the store.
        transition: what is being committed.
        event_ids: the IDs of its events, in their order.
    """
    to_tell = notices(transition)
    # Most jobs tell nobody: one query says so for all that happens at once.
    told = _subscribers(store, transition.after.job.id) if to_tell else {}
    for notice in to_tell:
        event, subscribers = transition.events[notice.place], told.get(notice.type)
        if subscribers:
            happened = (event_ids[notice.place], notice.type, event.job_id, notice.run_id, event.at_ns)
            _queue(store, happened, subscribers, dump(summary(notice, transition.after)))


def queue_claim(store: Store, job_id: str, event_id: str, at_ns: int) -> None:
    """Queue what there is to tell of a claim, which is committed without the model."""
    rows = store.execute("SELECT name, submitted_at_ns FROM jobs WHERE id = ?", (job_id,))
    name, submitted_at_ns = rows[0]
    said = {"submitted_at": format_timestamp(submitted_at_ns)} | ({"job_name": name} if name else {})
    subscribers = _subscribers(store, job_id).get("job_started", [])
    _queue(store, (event_id, "job_started", job_id, None, at_ns), subscribers, dump(said))


def _subscribers(store: Store, job_id: str) -> dict[str, list[Subscriber]]:
    """Return by event who wants to be told of a job."""
    found: dict[str, list[Subscriber]] = {}
    for event_type, *subscriber in store.execute(_SUBSCRIBERS, (job_id,)):
        found.setdefault(event_type, []).append(tuple(subscriber))
    return found


def _queue(store: Store, happened: Happened, subscribers: Sequence[Subscriber], said: str) -> None:
    *_, at_ns = happened
    for notifier, max_attempts, budget_ns in subscribers:
        row = (*happened, at_ns, notifier, max_attempts, at_ns + budget_ns, at_ns, said)
        store.execute(_DELIVERY, row)
    store.has_queued = True
