"""Limits, the queue for slots, and who holds them (M16 to M19)."""

from __future__ import annotations

from jobman.policy.admission import (
    IDLE_AFTER_NS,
    STORE_WIDE,
    Limits,
    Request,
    View,
    among_elders,
    fits,
    fitting,
    is_limited,
    judge,
    refuse,
    slot_indexes,
)
from jobman.store.rows import parse_indexes
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.model.state import Admission
    from jobman.policy.admission import Verdict
    from jobman.store.connection import Store

MAX_INDEXED_CAPACITY = 1024
"""Slot indexes are kept for scopes up to this size (D34)."""
_FOREVER_NS = 2**63 - 1
_PAGE = 32
"""How much of the front of a queue is read first: nearly always it tells enough."""
_REQUEST = "job_id, pool, slots, eligible_at_ns, bypassed, fits_since_ns"


class Demand(NamedTuple):
    """What a job asks for, and from when its place in the queue counts."""

    job_id: str
    pool: str | None
    slots: int
    eligible_at_ns: int


class Ruled(NamedTuple):
    """What one moment of the store comes to for one request.

    ``placed`` says that the request has its place in the queue; one that has to wait for nobody is not asked.
    """

    verdict: Verdict
    request: Request
    limits: Limits
    placed: bool = False


def load_limits(store: Store) -> Limits:
    """Return the capacities that are in force."""
    rows = store.execute("SELECT scope, capacity FROM concurrency_limits")
    capacities = {scope: capacity for scope, capacity in rows if capacity is not None}
    return Limits(capacities, frozenset(scope for scope, _ in rows if scope != STORE_WIDE))


def load_view(store: Store, limits: Limits, *, with_queue: bool = True) -> View:
    """Return limits, usage and queue as of now; ask within a transaction, or the three may be of different moments."""
    used: dict[str, int] = {STORE_WIDE: 0}
    rows = store.execute("SELECT pool, sum(slots) FROM admissions WHERE released_at_ns IS NULL GROUP BY pool")
    for pool, slots in rows:
        used[STORE_WIDE] += slots
        if pool is not None:
            used[pool] = slots
    return View(limits, used, _load_queue(store) if with_queue else ())


def load_request(store: Store, job_id: str) -> Request | None:
    """Return the queue row of a job, if it has one."""
    rows = store.execute(f"SELECT {_REQUEST} FROM admission_requests WHERE job_id = ?", (job_id,))
    return _request(rows[0], competes=True) if rows else None


def rule(store: Store, demand: Demand, now_ns: int) -> Ruled:
    """Rule on one attempt from one moment of the store; reads only.

    The queue is read only if the request fits by itself, and then no further than needed: with a thousand requests an
    attempt costs as much as with a few. For one that takes slots of no limited scope nothing is read but the limits.
    """
    limits, request = load_limits(store), Request(*demand)
    if not is_limited(limits, request):
        return Ruled(judge(View(limits, {}), request, now_ns), request, limits)
    present = load_request(store, demand.job_id)
    request = present or request._replace(eligible_at_ns=_eligible_at_ns(store, demand.eligible_at_ns))
    view = load_view(store, limits, with_queue=False)
    verdict = refuse(view, request, now_ns) or _rule_in_queue(store, view, request, now_ns)
    return Ruled(verdict, request, limits, present is not None)


def _rule_in_queue(store: Store, view: View, request: Request, now_ns: int) -> Verdict:
    elders = _load_queue(store, before=request.order(), at_most=_PAGE)
    verdict = among_elders(view._replace(queue=elders), request, now_ns)
    # Whoever waits for an older one that fits waits whatever is between the two; anything else takes all of them.
    if len(elders) == _PAGE and verdict.retry_ns is None:
        elders = _load_queue(store, before=request.order())
        verdict = among_elders(view._replace(queue=elders), request, now_ns)
    return verdict


def enqueue(store: Store, request: Request) -> None:
    """Give a request its place in the queue; one that has a place keeps it (O.42)."""
    with store.write():
        store.execute(
            "INSERT INTO admission_requests (job_id, pool, slots, eligible_at_ns) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (job_id) DO NOTHING",
            (request.job_id, request.pool, request.slots, request.eligible_at_ns),
        )


def note_fitting(store: Store, job_id: str, now_ns: int) -> None:
    """Note that a request fits and is waited for; the first note of this boot counts (D44)."""
    statement = (
        "UPDATE admission_requests SET fits_since_ns = ?1"
        " WHERE job_id = ?2 AND (fits_since_ns IS NULL OR fits_since_ns > ?1)"
    )
    with store.write():
        store.execute(statement, (now_ns, job_id))


def forget_fitting(store: Store, job_id: str) -> None:
    """Take the note of a request back: it was skipped as idle, and tries (D44)."""
    with store.write():
        store.execute("UPDATE admission_requests SET fits_since_ns = NULL WHERE job_id = ?", (job_id,))


def settle(store: Store, request: Request, passes: str | None, *, now_ns: int) -> None:
    """Remove the request that was admitted, and count the pass of the older one that was not.

    Whoever was seen to fit a moment ago and does not any more has to be seen again. Who was found idle stays so until
    it tries: a dead head of the queue would otherwise cost everybody the same time after each admission.

    Args:
        store: within the transaction in which the admission was committed.
        request: the one that was admitted.
        passes: the older one, if any.
        now_ns: the boot-time clock.
    """
    with store.write():
        store.execute("DELETE FROM admission_requests WHERE job_id = ?", (request.job_id,))
        if passes is not None:
            store.execute("UPDATE admission_requests SET bypassed = bypassed + 1 WHERE job_id = ?", (passes,))
        statement = f"SELECT {_REQUEST} FROM admission_requests WHERE fits_since_ns > ?"
        noted = [_request(row, competes=True) for row in store.execute(statement, (now_ns - IDLE_AFTER_NS,))]
        view = load_view(store, load_limits(store), with_queue=False) if noted else None
        for other in noted:
            if view is not None and not fits(view, other):
                forget_fitting(store, other.job_id)


def with_indexes(store: Store, admission: Admission, limits: Limits) -> Admission:
    """Return the admission with the lowest free slot indexes of its finite scope, if that is not too large (D34)."""
    scope = next((scope for scope in (admission.pool, STORE_WIDE) if scope in limits.capacities), None)
    if scope is None or limits.capacities[scope] > MAX_INDEXED_CAPACITY:
        return admission
    rows = store.execute(
        "SELECT slot_indexes FROM admissions WHERE released_at_ns IS NULL AND slot_scope = ?", (scope,)
    )
    taken = [index for row in rows for index in parse_indexes(row[0])]
    indexes = slot_indexes(limits.capacities[scope], taken, admission.slots)
    return admission._replace(slot_scope=scope, slot_indexes=indexes)


def held_jobs(store: Store) -> list[str]:
    """Return the jobs that hold slots, oldest admission first."""
    rows = store.execute("SELECT job_id FROM admissions WHERE released_at_ns IS NULL ORDER BY acquired_at_ns, id")
    return [row[0] for row in rows]


def slots_held_by_lost_jobs(store: Store) -> list[tuple[str, str | None]]:
    """Return the lost jobs that still hold slots, and their pools: something of their runs was alive (D42)."""
    rows = store.execute(
        # CROSS keeps the order: the planner would rather look at every job that there is.
        "SELECT admissions.job_id, admissions.pool FROM admissions CROSS JOIN jobs ON jobs.id = admissions.job_id"
        " WHERE admissions.released_at_ns IS NULL AND jobs.phase = 'completed'"
    )
    return [(job_id, pool) for job_id, pool in rows]


def is_first(store: Store, job_id: str) -> bool:
    """Say whether no older request of a queued job competes for the same pool, or, without one, for the store."""
    request = load_request(store, job_id)
    if request is None:
        return True
    rows = store.execute(
        "SELECT 1 FROM admission_requests AS request JOIN jobs ON jobs.id = request.job_id"
        " WHERE (request.eligible_at_ns, request.job_id) < (?, ?) AND jobs.phase = 'queued' AND request.pool IS ?"
        " LIMIT 1",
        (request.eligible_at_ns, job_id, request.pool),
    )
    return not rows


def next_ahead(store: Store, job_id: str) -> str | None:
    """Return the queued job whose request is directly before this one's, in whatever pool."""
    request = load_request(store, job_id)
    if request is None:
        return None
    rows = store.execute(
        "SELECT request.job_id FROM admission_requests AS request JOIN jobs ON jobs.id = request.job_id"
        " WHERE (request.eligible_at_ns, request.job_id) < (?, ?) AND jobs.phase = 'queued'"
        " ORDER BY request.eligible_at_ns DESC, request.job_id DESC LIMIT 1",
        (request.eligible_at_ns, job_id),
    )
    return rows[0][0] if rows else None


def requests_to_wake(store: Store, freed: int) -> list[str]:
    """Return whom a release of ``freed`` slots should wake: those that fit now, in queue order, and one to spare."""
    limits = load_limits(store)
    if not limits.capacities:
        return []
    view, wanted = load_view(store, limits, with_queue=False), freed + 1
    front = _load_queue(store, at_most=_PAGE)
    found = fitting(view._replace(queue=front), wanted)
    if len(found) == wanted or len(front) < _PAGE:
        return found
    return fitting(view._replace(queue=_load_queue(store)), wanted)


def _load_queue(store: Store, *, before: tuple[int, str] = (_FOREVER_NS, ""), at_most: int = -1) -> tuple[Request, ...]:
    columns = ", ".join(f"request.{name}" for name in _REQUEST.split(", "))
    rows = store.execute(
        f"SELECT {columns}, jobs.phase = 'queued' FROM admission_requests AS request"
        " CROSS JOIN jobs ON jobs.id = request.job_id WHERE (request.eligible_at_ns, request.job_id) < (?, ?)"
        " ORDER BY request.eligible_at_ns, request.job_id LIMIT ?",
        (*before, at_most),
    )
    return tuple(_request(row[:-1], competes=bool(row[-1])) for row in rows)


def _request(row: Sequence[object], *, competes: bool) -> Request:
    job_id, pool, slots, eligible_at_ns, bypassed, fits_since_ns = row
    return Request(job_id, pool, slots, eligible_at_ns, bypassed, competes, fits_since_ns)  # type: ignore[arg-type]  # typed by the schema


def _eligible_at_ns(store: Store, wanted_ns: int) -> int:
    """Never before the newest place in the queue: a clock set back must not let newcomers to the front.

    Not beside it either: IDs are made of the same clock, and the lower ID wins a tie.
    """
    newest_ns = store.execute("SELECT max(eligible_at_ns) FROM admission_requests")[0][0]
    return wanted_ns if newest_ns is None or wanted_ns >= newest_ns else int(newest_ns) + 1
