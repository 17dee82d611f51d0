"""What cleaning reads and writes (contract, J.7): runs with logs, tombstones of logs that are gone, jobs that go.

A plan costs a fixed number of queries, whatever the store holds (C6).
"""

from __future__ import annotations

from jobman.errors import RevisionConflictError
from jobman.model.scalars import parse_duration
from jobman.policy.retention import PrunableRun
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.model.state import Pruning
    from jobman.store.connection import Store

_RETENTION = "$.execution_policy.log_retention_"
# Why a job has to stay: somebody still needs to see how it ended, or it still holds slots, or
# something of it has yet to be told (O.54).
_WAITED_FOR = (
    "EXISTS (SELECT 1 FROM dependencies AS edge JOIN jobs AS other ON other.id = edge.job_id"
    " WHERE edge.depends_on = jobs.id AND edge.satisfied_at_ns IS NULL AND other.phase <> 'completed')"
)
_HOLDS_SLOTS = "EXISTS (SELECT 1 FROM admissions WHERE admissions.job_id = jobs.id AND released_at_ns IS NULL)"
_TELLS = (
    "EXISTS (SELECT 1 FROM notification_deliveries AS told WHERE told.job_id = jobs.id"
    " AND told.status IN ('pending', 'delivering'))"
)
_NEEDED = (_WAITED_FOR, _HOLDS_SLOTS, _TELLS)
_HAS_LOGS = (
    "EXISTS (SELECT 1 FROM runs WHERE runs.job_id = jobs.id AND (pruned_at_ns IS NULL OR pruning_unfinished = 1))"
)


def prunable_runs(store: Store, job_id: str | None = None) -> list[PrunableRun]:
    """Return the completed runs, of one completed job or of all, whose logs have not been removed."""
    statement = (
        "SELECT runs.id, runs.job_id, number, runs.completed_at_ns,"
        " coalesce(stdout_bytes, 0) + coalesce(stderr_bytes, 0), jobs.completed_at_ns,"
        f" json_extract(spec_json, '{_RETENTION}max_age'), json_extract(spec_json, '{_RETENTION}unlimited'),"
        f" json_extract(spec_json, '{_RETENTION}stated')"
        " FROM runs JOIN jobs ON jobs.id = runs.job_id JOIN job_specs ON job_specs.job_id = jobs.id"
        " WHERE jobs.phase = 'completed' AND runs.phase = 'completed' AND pruned_at_ns IS NULL"
    )
    one = ("", ()) if job_id is None else (" AND runs.job_id = ?", (job_id,))
    ages: dict[str, int] = {}  # few differ
    runs = []
    for row in store.execute(statement + one[0], one[1]):
        run_id, owner, number, at_ns, size, job_at_ns, age, unlimited, stated = row
        if age not in ages:
            ages[age] = parse_duration(age)
        own_age_ns = None if unlimited else ages[age]
        runs.append(PrunableRun(run_id, owner, number, at_ns, size, job_at_ns, own_age_ns, bool(stated)))
    return runs


def removable_jobs(store: Store, job_id: str | None = None, *, holding: bool = False) -> list[tuple[str, int]]:
    """Return the completed jobs, or the one, that nobody needs any more, and when each completed; logs do not count.

    With ``holding`` nor do slots that they hold: these are about to be given up.
    """
    needed = (_WAITED_FOR, _TELLS) if holding else _NEEDED
    one = ("", ()) if job_id is None else (" AND jobs.id = ?", (job_id,))
    statement = f"SELECT id, completed_at_ns FROM jobs WHERE {_removable(needed)}{one[0]} ORDER BY completed_at_ns, id"
    return [(found, at_ns) for found, at_ns in store.execute(statement, one[1])]


def record_pruned(store: Store, run: PrunableRun, pruning: Pruning) -> None:
    """Write the tombstone of a run's logs; a last piece may still lie on disk, see `unfinished_prunings`.

    Raises:
        RevisionConflictError: the run is gone, or its logs have been pruned by somebody else.
    """
    statement = (
        "UPDATE runs SET pruned_at_ns = max(?, completed_at_ns), pruned_files = ?, pruned_bytes = ?,"
        " pruning_unfinished = 1 WHERE id = ? AND phase = 'completed' AND pruned_at_ns IS NULL"
    )
    with store.write():
        store.execute(statement, (*pruning, run.id))
        if store.changes() != 1:
            raise RevisionConflictError(entity=f"run {run.number} of job {run.job_id}")


def unfinished_prunings(store: Store) -> list[tuple[str, str, int]]:
    """Return the runs (ID, job, number) that have a tombstone although something of them may be left on disk."""
    statement = "SELECT id, job_id, number FROM runs WHERE pruning_unfinished = 1 ORDER BY job_id, number"
    return [(run_id, job_id, number) for run_id, job_id, number in store.execute(statement)]


def finish_prunings(store: Store, run_ids: Sequence[str]) -> None:
    """Record that nothing of these runs' logs is left on disk."""
    with store.write():
        store.execute(f"UPDATE runs SET pruning_unfinished = NULL WHERE id IN ({_marks(run_ids)})", run_ids)


def remove_jobs(store: Store, job_ids: Sequence[str]) -> list[str]:
    """Remove those of the jobs that still may go, with everything that is known of them; return their IDs.

    A job that still has logs stays (O.54). Jobs that depended on one lose that edge.
    """
    statement = f"SELECT id FROM jobs WHERE {_removable(_NEEDED)} AND NOT {_HAS_LOGS} AND id IN ({_marks(job_ids)})"
    with store.write():
        gone = [row[0] for row in store.execute(statement, job_ids)]
        store.execute(f"DELETE FROM dependencies WHERE depends_on IN ({_marks(gone)})", gone)
        store.execute(f"DELETE FROM jobs WHERE id IN ({_marks(gone)})", gone)
    return gone


def _removable(needed: Sequence[str]) -> str:
    return f"jobs.phase = 'completed' AND NOT ({' OR '.join(needed)})"


def _marks(ids: Sequence[str]) -> str:
    return ", ".join("?" * len(ids))
