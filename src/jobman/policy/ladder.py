"""How a process tree is ended: ask, wait, insist (contract, I.3; M28)."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.spec import StopPolicy

INSIST_EVERY_NS = 100_000_000
"""SIGKILL is repeated over the tree, because a member may have forked between the look and the signal."""


class Rung(StrEnum):
    """What to do to the tree now."""

    ASK = "ask"
    INSIST = "insist"
    WAIT = "wait"
    LEAVE = "leave"


class Ladder(NamedTuple):
    """When the tree was asked (SIGTERM) and last insisted upon (SIGKILL), on the monotonic clock."""

    asked_ns: int | None = None
    insisted_ns: int | None = None


class Step(NamedTuple):
    """A rung, and for `Rung.WAIT` how long nothing more will be due."""

    rung: Rung
    wait_ns: int | None = None


def next_step(ladder: Ladder, stop: StopPolicy, now_ns: int, *, leader_alive: bool) -> Step:
    """Return the step that is due for a tree that is to end and still has members.

    Without force, a stubborn leader is waited for (D3), while what it left behind is given up after the grace (D33).
    """
    if ladder.asked_ns is None:
        return Step(Rung.ASK)
    grace_left = ladder.asked_ns + stop.grace_ns - now_ns
    if grace_left > 0:
        return Step(Rung.WAIT, grace_left)
    if not stop.force_after_grace:
        return Step(Rung.WAIT) if leader_alive else Step(Rung.LEAVE)
    if ladder.insisted_ns is None or now_ns - ladder.insisted_ns >= INSIST_EVERY_NS:
        return Step(Rung.INSIST)
    return Step(Rung.WAIT, ladder.insisted_ns + INSIST_EVERY_NS - now_ns)
