"""Changing the capacities of a store (contract, H.4; D9): states what is stated, refuses what would strand somebody."""

from __future__ import annotations

from jobman.errors import LimitConflictError
from jobman.policy.admission import STORE_WIDE
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobman.policy.limits import StatedLimits
    from jobman.store.connection import Store


def apply_stated(store: Store, stated: StatedLimits) -> bool:
    """Set the limits that are stated and leave the others alone, as ``run`` does (D9); return whether any changed.

    Raises:
        LimitConflictError: a queued request would never fit.
    """
    wanted = dict(stated.pools)
    if stated.states_store_wide:
        wanted[STORE_WIDE] = stated.store_wide
    return _change(store, wanted, frozenset())


def apply_all(store: Store, stated: StatedLimits) -> bool:
    """Make the limits exactly what is stated, as ``config apply`` does: others are lifted or removed (D9).

    Raises:
        LimitConflictError: a pool that would go is in use or waited for, or a queued request would never fit.
    """
    wanted = {**stated.pools, STORE_WIDE: stated.store_wide}
    present = {row[0] for row in store.execute("SELECT scope FROM concurrency_limits")}
    return _change(store, wanted, frozenset(present - wanted.keys()))


def _change(store: Store, wanted: Mapping[str, int | None], removed: frozenset[str]) -> bool:
    present: dict[str, int | None] = dict(store.execute("SELECT scope, capacity FROM concurrency_limits"))
    changes = {scope: capacity for scope, capacity in wanted.items() if present.get(scope, -1) != capacity}
    if changes.keys() == {STORE_WIDE} and changes[STORE_WIDE] is None and STORE_WIDE not in present:
        changes = {}  # unlimited is what a store without the row has
    if not changes and not removed:
        return False
    with store.write():
        for scope in sorted(removed):
            _require_unused(store, scope)
            store.execute("DELETE FROM concurrency_limits WHERE scope = ?", (scope,))
        for scope, capacity in sorted(changes.items()):
            if capacity is not None:
                _require_room(store, scope, capacity)
            store.execute(
                "INSERT INTO concurrency_limits (scope, capacity) VALUES (?, ?)"
                " ON CONFLICT (scope) DO UPDATE SET capacity = excluded.capacity",
                (scope, capacity),
            )
    return True


def _require_unused(store: Store, pool: str) -> None:
    rows = store.execute(
        "SELECT job_id FROM admissions WHERE released_at_ns IS NULL AND pool = ?"
        " UNION SELECT job_id FROM admission_requests WHERE pool = ? ORDER BY 1",
        (pool, pool),
    )
    if rows:
        raise LimitConflictError(scope=f"pool {pool}", detail="it is in use", jobs=_named(rows))


def _require_room(store: Store, scope: str, capacity: int) -> None:
    condition, bindings = ("", ()) if scope == STORE_WIDE else (" AND pool = ?", (scope,))
    rows = store.execute(
        f"SELECT job_id FROM admission_requests WHERE slots > ?{condition} ORDER BY job_id", (capacity, *bindings)
    )
    if rows:
        where = "the store-wide limit" if scope == STORE_WIDE else f"pool {scope}"
        raise LimitConflictError(scope=where, detail=f"{counted(capacity, 'slot')} would be too few", jobs=_named(rows))


def _named(rows: list[tuple[str, ...]]) -> str:
    shown = ", ".join(row[0] for row in rows[:3])
    return shown if len(rows) <= 3 else f"{shown} and {len(rows) - 3} more"
