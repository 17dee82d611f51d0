"""When an owner is provably dead: the whole truth table (architecture, Liveness; M20)."""

from __future__ import annotations

from itertools import product

import pytest

from jobman.model.identity import Presence
from jobman.policy.liveness import Verdict, judge

ALIVE, GONE, UNKNOWN = Presence.ALIVE, Presence.GONE, Presence.UNKNOWN
TAKEN, HELD, NO_FILE = True, False, None
SAME_BOOT = {
    (TAKEN, ALIVE): Verdict.LIVE,  # it may have lost its lock, but it is there
    (TAKEN, GONE): Verdict.GONE,
    (TAKEN, UNKNOWN): Verdict.GONE,  # in another PID namespace the lock alone speaks
    (HELD, ALIVE): Verdict.LIVE,
    (HELD, GONE): Verdict.LIVE,
    (HELD, UNKNOWN): Verdict.LIVE,
    (NO_FILE, ALIVE): Verdict.LIVE,
    (NO_FILE, GONE): Verdict.GONE,  # a missing file proves nothing: the identity decides
    (NO_FILE, UNKNOWN): Verdict.UNVERIFIABLE,
}


@pytest.mark.parametrize(("evidence", "verdict"), SAME_BOOT.items(), ids=str)
def test_on_the_same_boot(evidence: tuple[bool | None, Presence], verdict: Verdict) -> None:
    lock_taken, presence = evidence
    assert judge(same_boot=True, lock_taken=lock_taken, presence=presence) == verdict


def test_the_table_is_complete() -> None:
    assert set(SAME_BOOT) == set(product((TAKEN, HELD, NO_FILE), Presence))


@pytest.mark.parametrize("evidence", SAME_BOOT, ids=str)
def test_nothing_outlives_a_boot(evidence: tuple[bool | None, Presence]) -> None:
    lock_taken, presence = evidence
    assert judge(same_boot=False, lock_taken=lock_taken, presence=presence) == Verdict.GONE
