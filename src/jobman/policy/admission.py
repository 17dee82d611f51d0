"""Who gets slots, and who waits for whom (contract, H.4; M16 to M20, D44).

Pure: the store reads limits, queue and usage in one transaction and asks; the answer is committed in the same one.
"""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BYPASS_BOUND = 3
IDLE_AFTER_NS = 5_000_000_000
"""A request that fits and does not take its slots for so long is skipped: its supervisor is hung or dead."""
STORE_WIDE = ""


class Limits(NamedTuple):
    """Finite capacities by scope: `STORE_WIDE`, or the name of a pool; a scope that is missing is unlimited."""

    capacities: Mapping[str, int]
    pools: frozenset[str] = frozenset()


class Request(NamedTuple):
    """A job that wants slots.

    ``eligible_at_ns`` orders the queue, the job's ID breaks ties. ``bypassed`` counts how often it was passed while it
    was the oldest. ``competes`` is false for a job that is not ``queued`` (paused, stopping): it keeps its place.
    ``fits_since_ns`` is when somebody first saw that it fits (boot-time clock), ``None`` if nobody has.
    """

    job_id: str
    pool: str | None
    slots: int
    eligible_at_ns: int = 0
    bypassed: int = 0
    competes: bool = True
    fits_since_ns: int | None = None

    def order(self) -> tuple[int, str]:
        """Return the place in the queue."""
        return self.eligible_at_ns, self.job_id

    def scopes(self) -> tuple[str, ...]:
        """Return the scopes from which it takes slots."""
        return (STORE_WIDE,) if self.pool is None else (STORE_WIDE, self.pool)


class View(NamedTuple):
    """One moment of the store: limits, slots in use by scope, and the whole queue."""

    limits: Limits
    used: Mapping[str, int]
    queue: tuple[Request, ...] = ()

    def free(self, scope: str) -> int | None:
        """Return the free slots of a scope, ``None`` if it is unlimited."""
        capacity = self.limits.capacities.get(scope)
        return None if capacity is None else capacity - self.used.get(scope, 0)


class Ruling(StrEnum):
    """What becomes of an attempt."""

    ADMIT = "admit"
    WAIT = "wait"
    IMPOSSIBLE = "impossible"


class Verdict(NamedTuple):
    """The ruling, and what has to be noted with it.

    ``passes`` is the older request that is passed by an admission; ``mark`` one that fits and has not been seen to yet;
    ``retry_ns`` how long until time alone may change the ruling. ``scope`` is the one that has no room, if any.
    ``returns`` says that the caller was skipped as idle: it is not, and competes again.
    """

    ruling: Ruling
    passes: str | None = None
    mark: str | None = None
    retry_ns: int | None = None
    scope: str | None = None
    returns: bool = False


def impossible_scope(limits: Limits, request: Request) -> str | None:
    """Return the scope that could never hold the request, ``None`` if all could; an unknown pool counts."""
    if request.pool is not None and request.pool not in limits.pools:
        return request.pool
    capacities = ((scope, limits.capacities.get(scope)) for scope in request.scopes())
    return next((scope for scope, capacity in capacities if capacity is not None and request.slots > capacity), None)


def judge(view: View, request: Request, now_ns: int) -> Verdict:
    """Rule on one attempt.

    An older competitor that fits is waited for (O.41), for at most `IDLE_AFTER_NS`; from then on it is skipped until it
    tries. The oldest that does not fit may be passed `BYPASS_BOUND` times. What an older one lacks only in scopes that
    ``request`` does not use holds nobody up (D44), and neither does one that fits but is itself kept waiting there.

    Args:
        view: limits, usage and queue, read in one transaction.
        request: the caller's, as it stands in the queue or would.
        now_ns: the boot-time clock.
    """
    return refuse(view, request, now_ns) or among_elders(view, request, now_ns)


def refuse(view: View, request: Request, now_ns: int) -> Verdict | None:
    """Rule on a request that does not even fit by itself; ``None`` if it does. The queue does not matter here."""
    if impossible_scope(view.limits, request) is not None:
        return Verdict(Ruling.IMPOSSIBLE)
    full = lacking(view, request)
    return Verdict(Ruling.WAIT, scope=full[0], returns=is_idle(request, now_ns)) if full else None


def among_elders(view: View, request: Request, now_ns: int) -> Verdict:
    """Rule on a request that fits by itself: only older ones can hold it up."""
    elders = [older for older in _competitors(view, request) if not is_idle(older, now_ns)]
    return _behind_one_that_fits(view, elders, now_ns) or _beside_those_that_do_not(view, elders)


def is_limited(limits: Limits, request: Request) -> bool:
    """Say whether any scope of the request has a capacity; without one it neither waits nor lets others wait."""
    return not limits.capacities.keys().isdisjoint(request.scopes())


def is_idle(request: Request, now_ns: int) -> bool:
    """Say whether a request was seen to fit, and has left its slots lying for too long."""
    return request.fits_since_ns is not None and now_ns - request.fits_since_ns >= IDLE_AFTER_NS


def lacking(view: View, request: Request) -> list[str]:
    """Return the scopes that have no room for the request now."""
    frees = ((scope, view.free(scope)) for scope in request.scopes())
    return [scope for scope, free in frees if free is not None and free < request.slots]


def fits(view: View, request: Request) -> bool:
    """Say whether every scope of the request has room for it now."""
    return not lacking(view, request)


def _behind_one_that_fits(view: View, elders: Sequence[Request], now_ns: int) -> Verdict | None:
    barriers: dict[str | None, Request | None] = {}
    for older in elders:
        if lacking(view, older):
            continue
        if older.pool not in barriers:
            barriers[older.pool] = _barrier(view, older, now_ns)
        barrier = barriers[older.pool]
        if barrier is not None and barrier.order() < older.order():
            continue
        # A note from the future is of an earlier boot.
        if older.fits_since_ns is None or older.fits_since_ns > now_ns:
            return Verdict(Ruling.WAIT, mark=older.job_id, retry_ns=IDLE_AFTER_NS)
        return Verdict(Ruling.WAIT, retry_ns=older.fits_since_ns + IDLE_AFTER_NS - now_ns)
    return None


def _barrier(view: View, like: Request, now_ns: int) -> Request | None:
    """Return the request that keeps everybody behind it out of the scopes of ``like``: passed often enough already."""
    shared = _finite_scopes(view, like)
    waiting = (other for other in view.queue if other.competes and not is_idle(other, now_ns))
    blocked = (other for other in waiting if lacking(view, other) and _competes(view, other, shared))
    first = min(blocked, key=Request.order, default=None)
    return first if first is not None and first.bypassed >= BYPASS_BOUND else None


def _beside_those_that_do_not(view: View, elders: Sequence[Request]) -> Verdict:
    oldest = next((older for older in elders if lacking(view, older)), None)
    if oldest is None:
        return Verdict(Ruling.ADMIT)
    if oldest.bypassed >= BYPASS_BOUND:
        return Verdict(Ruling.WAIT, scope=lacking(view, oldest)[0])
    return Verdict(Ruling.ADMIT, passes=oldest.job_id)


def positions(view: View) -> dict[str, int]:
    """Return the place of each request, by its job, among those that compete for the same scopes, from 1.

    All at once: each by itself would be compared with the whole queue.
    """
    ordered = sorted(view.queue, key=Request.order)
    found: dict[str, int] = {}
    for like in {request.pool: request for request in ordered}.values():
        shared, ahead = _finite_scopes(view, like), 0
        for request in ordered:
            if request.pool == like.pool:
                found[request.job_id] = 1 + ahead
            ahead += request.competes and _competes(view, request, shared)
    return found


def describe(view: View, request: Request, position: int) -> str:
    """Return why a request waits, for a person: its place, and how busy the scope is that has no room."""
    full = lacking(view, request)
    finite = [scope for scope in reversed(request.scopes()) if scope in view.limits.capacities]
    if not finite:
        return "waiting for slots"
    scope = full[-1] if full else finite[0]
    where = "the store-wide limit" if scope == STORE_WIDE else f"pool {scope}"
    busy = f"{view.used.get(scope, 0)}/{view.limits.capacities[scope]} slots busy"
    return f"#{position} for {where} ({busy})"


def fitting(view: View, limit: int) -> list[str]:
    """Return the jobs whose requests fit now, in queue order, at most ``limit``: those that a release should wake."""
    ordered = sorted((other for other in view.queue if other.competes), key=Request.order)
    return [other.job_id for other in ordered if not lacking(view, other)][:limit]


def slot_indexes(capacity: int, taken: Sequence[int], wanted: int) -> tuple[int, ...]:
    """Return the lowest free slot indexes of a finite scope."""
    busy = frozenset(taken)
    return tuple(index for index in range(capacity) if index not in busy)[:wanted]


def _competitors(view: View, request: Request) -> list[Request]:
    """Return the older requests that share a finite scope and are not held up elsewhere, oldest first."""
    shared = _finite_scopes(view, request)
    older = sorted((other for other in view.queue if other.order() < request.order()), key=Request.order)
    return [other for other in older if other.competes and _competes(view, other, shared)]


def _finite_scopes(view: View, request: Request) -> frozenset[str]:
    return frozenset(scope for scope in request.scopes() if scope in view.limits.capacities)


def _competes(view: View, other: Request, shared: frozenset[str]) -> bool:
    if not shared.intersection(other.scopes()):
        return False
    full = lacking(view, other)
    return not full or bool(shared.intersection(full))
