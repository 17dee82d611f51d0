"""The writers of the outbox, as rows of the matrix: the function, what it writes into, and who gets in first."""

from __future__ import annotations

from collections.abc import Callable

from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    Subscription,
)
from jobman.policy.delivery import DeliveryStatus, Result, Verdict
from jobman.store import deliveries
from jobman.store.connection import Store
from jobman.store.deliveries import Claimed
from tests.moves import instant, walk
from tests.notifiers import HOOK
from tests.stores import commit_all, plain_spec

Arrange = Callable[[Store], Callable[[Store], object]]
SPEC = plain_spec(subscriptions=(Subscription("hook", (NotifyEvent.JOB_STARTED,)),), notifiers=(HOOK,))
NOW, OVER = instant(2).wall_ns, instant(99).wall_ns
US = ("ours", 0)
TAKEN = "UPDATE notification_deliveries SET status = 'delivering', claim_token = 'theirs', claim_place = 1"
TAKEN += f", claim_expires_at_ns = {OVER + 1}"


def _queued(store: Store) -> None:
    commit_all(store, walk("claim"), SPEC)


def _claimed(store: Store) -> Claimed:
    _queued(store)
    return deliveries.claim_due(store, US, NOW, limit=1)[0]


def _claim(store: Store) -> Callable[[Store], object]:
    _queued(store)
    return lambda one: deliveries.claim_due(one, US, NOW, limit=1)


def _renew(store: Store) -> Callable[[Store], object]:
    _claimed(store)
    return lambda one: deliveries.renew_claims(one, US[0], OVER)


def _release(store: Store) -> Callable[[Store], object]:
    _claimed(store)
    return lambda one: deliveries.release_place(one, US[1], NOW)


def _complete(store: Store) -> Callable[[Store], object]:
    claimed = _claimed(store)
    verdict = Verdict(DeliveryStatus.SUCCEEDED)
    return lambda one: deliveries.complete(one, claimed, result=Result(), verdict=verdict, now_ns=NOW)


def _hand_back(store: Store) -> Callable[[Store], object]:
    claimed = _claimed(store)
    return lambda one: deliveries.hand_back(one, claimed)


def _give_up(store: Store) -> Callable[[Store], object]:
    _queued(store)
    return lambda one: deliveries.give_up(one, OVER)


OUTBOX_ROWS: tuple[tuple[Callable[..., object], Arrange, str], ...] = (
    (deliveries.claim_due, _claim, TAKEN),
    (deliveries.renew_claims, _renew, TAKEN),
    (deliveries.release_place, _release, TAKEN),
    (deliveries.complete, _complete, TAKEN),
    (deliveries.hand_back, _hand_back, TAKEN),
    (deliveries.give_up, _give_up, TAKEN),
)
