"""Edges between jobs, and what was seen at their other end (M11, M12)."""

from __future__ import annotations

from jobman.model.spec import Dependency
from jobman.model.state import JobOutcome, JobPhase
from jobman.policy.waiting import DependencyState
from jobman.store.rows import member
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store

_COLUMNS = (
    "edge.job_id, edge.depends_on, edge.predicate, other.name, other.phase, other.revision, other.outcome,"
    " edge.observed_outcome, edge.observed_revision, edge.satisfied_at_ns"
)
_WAKE_BATCH = 32


def load_dependencies(store: Store, job_ids: Sequence[str]) -> dict[str, list[DependencyState]]:
    """Return the edges of each of the jobs, by the ID they point to; a job without edges has no entry."""
    marks = ", ".join("?" * len(job_ids))
    statement = (
        f"SELECT {_COLUMNS} FROM dependencies AS edge JOIN jobs AS other ON other.id = edge.depends_on"
        f" WHERE edge.job_id IN ({marks}) ORDER BY edge.job_id, edge.depends_on"
    )
    found: dict[str, list[DependencyState]] = {}
    for job_id, depends_on, predicate, name, phase, revision, outcome, seen, seen_revision, at_ns in store.execute(
        statement, job_ids
    ):
        state = DependencyState(
            Dependency(depends_on, predicate),
            name,
            member(JobPhase, phase),
            revision,
            member(JobOutcome, outcome) if outcome else None,
            member(JobOutcome, seen) if seen else None,
            seen_revision,
            at_ns,
        )
        found.setdefault(job_id, []).append(state)
    return found


def record_observations(store: Store, job_id: str, states: Sequence[DependencyState], at_ns: int) -> None:
    """Write what completed dependencies came to, once and for ever: an edge that has an observation keeps it."""
    statement = (
        "UPDATE dependencies SET observed_revision = ?, observed_outcome = ?, satisfied_at_ns = ?"
        " WHERE job_id = ? AND depends_on = ? AND observed_outcome IS NULL"
    )
    with store.write():
        for state in states:
            if state.outcome is None:
                continue
            satisfied_at_ns = at_ns if state.edge.accepts(state.outcome) else None
            row = (state.revision, state.outcome, satisfied_at_ns, job_id, state.edge.job_id)
            store.execute(statement, row)


def has_news(store: Store, job_id: str) -> bool:
    """Say whether a job that ``job_id`` depends on has completed without that having been recorded."""
    statement = (
        "SELECT 1 FROM dependencies AS edge JOIN jobs AS other ON other.id = edge.depends_on"
        " WHERE edge.job_id = ? AND edge.observed_outcome IS NULL AND other.phase = 'completed' LIMIT 1"
    )
    return bool(store.execute(statement, (job_id,)))


def dependents_to_wake(store: Store, job_id: str) -> list[str]:
    """Return the first waiting jobs that depend on ``job_id``; the rest find out by polling (architecture, Writers)."""
    statement = (
        "SELECT edge.job_id FROM dependencies AS edge JOIN jobs ON jobs.id = edge.job_id"
        " WHERE edge.depends_on = ? AND jobs.phase = 'waiting' ORDER BY edge.job_id LIMIT ?"
    )
    return [row[0] for row in store.execute(statement, (job_id, _WAKE_BATCH))]
