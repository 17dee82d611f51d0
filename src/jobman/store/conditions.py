"""What was seen of wait conditions, one row each (M14)."""

from __future__ import annotations

from jobman.policy.conditions import ConditionState
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store


def load_evaluations(store: Store, job_ids: Sequence[str]) -> dict[str, list[ConditionState]]:
    """Return the conditions of each of the jobs that have been looked at, in their order."""
    rows = store.execute(
        "SELECT job_id, place, kind, attempts, evaluated_at_ns, satisfied_at_ns, code FROM wait_evaluations"
        f" WHERE job_id IN ({', '.join('?' * len(job_ids))}) ORDER BY job_id, place",
        job_ids,
    )
    found: dict[str, list[ConditionState]] = {}
    for job_id, *row in rows:
        found.setdefault(job_id, []).append(ConditionState(*row))
    return found


def record_evaluations(store: Store, job_id: str, states: Sequence[ConditionState]) -> None:
    """Write what is known of some conditions; the time at which one first held is kept."""
    statement = (
        "INSERT INTO wait_evaluations (job_id, place, kind, attempts, evaluated_at_ns, satisfied_at_ns, code)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job_id, place) DO UPDATE SET attempts = excluded.attempts,"
        " evaluated_at_ns = excluded.evaluated_at_ns, code = excluded.code,"
        " satisfied_at_ns = coalesce(satisfied_at_ns, excluded.satisfied_at_ns)"
    )
    with store.write():
        for state in states:
            row = (state.place, state.kind, state.attempts, state.evaluated_at_ns, state.satisfied_at_ns, state.code)
            store.execute(statement, (job_id, *row))
