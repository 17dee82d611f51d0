"""Reading jobs, runs and what belongs to them."""

from __future__ import annotations

from jobman.errors import JobNotFoundError
from jobman.model.state import JobPhase, Snapshot
from jobman.store.rows import (
    ADMISSIONS,
    JOBS,
    RUNS,
    SUPERVISORS,
    admission_from,
    job_from,
    run_from,
    supervisor_from,
)
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from jobman.model.state import Admission, Job, Run, Supervisor
    from jobman.store.connection import Store

    Label = tuple[str, str]

_PAGE = 500
_FEW = 1000
_HAS_LABEL = "EXISTS (SELECT 1 FROM job_labels WHERE kind = ? AND label = ? AND job_id = jobs.id)"
# Sources of lists. The index of active jobs demands that its condition stands beside it, word by word.
ACTIVE = "completed_at_ns IS NULL"
ACTIVE_JOBS = "jobs INDEXED BY jobs_active"
_LABELLED_JOBS = "job_labels AS rare CROSS JOIN jobs ON jobs.id = rare.job_id AND rare.kind = ? AND rare.label = ?"


def load_job(store: Store, job_id: str) -> Job:
    """Return a job by its ID.

    Raises:
        JobNotFoundError: there is none.
    """
    rows = store.execute(f"SELECT {JOBS.select()} FROM jobs WHERE id = ?", (job_id,))
    if not rows:
        raise JobNotFoundError(selector=job_id)
    return job_from(rows[0])


def load_snapshot(store: Store, job_id: str) -> Snapshot:
    """Return a job with its active run, its supervisor and the admission that it holds.

    Raises:
        JobNotFoundError: there is no such job.
    """
    with store.read():
        return _read_snapshot(store, job_id)


def load_runs(store: Store, job_ids: Sequence[str]) -> dict[str, list[Run]]:
    """Return the runs of each of the jobs, by ascending number; a job without runs has no entry."""
    runs: dict[str, list[Run]] = {}
    marks = ", ".join("?" * len(job_ids))
    statement = f"SELECT {RUNS.select()} FROM runs WHERE job_id IN ({marks}) ORDER BY job_id, number"
    for row in store.execute(statement, job_ids):
        run = run_from(row)
        runs.setdefault(run.job_id, []).append(run)
    return runs


def load_run(store: Store, run_id: str) -> Run | None:
    """Return a run by its ID, ``None`` if there is none any more."""
    rows = store.execute(f"SELECT {RUNS.select()} FROM runs WHERE id = ?", (run_id,))
    return run_from(rows[0]) if rows else None


def first_run_from(store: Store, job_id: str, number: int) -> Run | None:
    """Return the first run of a job whose number is at least ``number``, ``None`` if there is none yet."""
    statement = f"SELECT {RUNS.select()} FROM runs WHERE job_id = ? AND number >= ? ORDER BY number LIMIT 1"
    rows = store.execute(statement, (job_id, number))
    return run_from(rows[0]) if rows else None


def load_supervisor(store: Store, job_id: str) -> Supervisor | None:
    """Return the owner of a job, present or past."""
    statement = f"SELECT {SUPERVISORS.select()} FROM supervisors WHERE job_id = ?"
    rows = store.execute(statement, (job_id,))
    return supervisor_from(rows[0]) if rows else None


def latest_admission(store: Store, job_id: str) -> Admission | None:
    """Return the newest admission of a job, released or not."""
    # Newest by insertion: times go backwards when the clock is set.
    statement = f"SELECT {ADMISSIONS.select()} FROM admissions WHERE job_id = ? ORDER BY rowid DESC LIMIT 1"
    rows = store.execute(statement, (job_id,))
    return admission_from(rows[0]) if rows else None


def load_ownership(store: Store) -> list[tuple[str, int | None, str | None, int | None, int | None]]:
    """Return what a cheap look at every owner needs: ID, claim deadline, boot, and lock (device, inode).

    Of jobs that are not completed, and of completed ones that still hold slots; a lost job has no lock to look at.
    """
    rows = store.execute(
        "SELECT jobs.id, claim_deadline_ns, boot_id, lock_device, lock_inode FROM jobs"
        " LEFT JOIN supervisors ON supervisors.job_id = jobs.id WHERE jobs.completed_at_ns IS NULL"
        # CROSS keeps the order: the planner would rather look at every job that there is.
        " UNION ALL SELECT admissions.job_id, NULL, NULL, NULL, NULL FROM admissions"
        " CROSS JOIN jobs ON jobs.id = admissions.job_id WHERE released_at_ns IS NULL AND jobs.phase = 'completed'"
    )
    return [(job_id, deadline, boot, device, inode) for job_id, deadline, boot, device, inode in rows]


def is_completed(store: Store, job_id: str) -> bool:
    """Say whether there is such a job and it is completed."""
    return bool(store.execute("SELECT 1 FROM jobs WHERE id = ? AND phase = 'completed'", (job_id,)))


def phases_of(store: Store, job_ids: Collection[str]) -> dict[str, str]:
    """Return the phases of jobs by ID, in one query however many they are; a job that does not exist has no entry."""
    from jobman.model.canonical import dump  # only who waits for jobs asks

    statement = "SELECT id, phase FROM jobs WHERE id IN (SELECT value FROM json_each(?))"
    return dict(store.execute(statement, (dump(list(job_ids)),)))


def revision_of(store: Store, job_id: str) -> int:
    """Return the revision of a job, 0 if there is no such job."""
    rows = store.execute("SELECT revision FROM jobs WHERE id = ?", (job_id,))
    return rows[0][0] if rows else 0


def count_active(store: Store) -> int:
    """Return how many jobs are not completed; that many supervisors share the polling budget."""
    return int(store.execute("SELECT count(*) FROM jobs WHERE completed_at_ns IS NULL")[0][0])


def has_open_deliveries(store: Store) -> bool:
    """Say whether a notification waits to be sent, or is being sent."""
    statement = "SELECT 1 FROM notification_deliveries WHERE status IN ('pending', 'delivering') LIMIT 1"
    return bool(store.execute(statement))


# SQLite's own limit.
LONGEST_PATTERN = 50_000


class JobFilter(NamedTuple):
    """Which jobs a list shows; every field that is set must hold.

    ``before`` is a job: only those that stand after it in the list's order (newest first) are shown.
    """

    phases: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    active: bool | None = None
    name: str | None = None
    name_glob: str | None = None
    group: str | None = None
    tags: tuple[str, ...] = ()
    submitted_after_ns: int | None = None
    submitted_before_ns: int | None = None
    before: Job | None = None

    def labels(self) -> list[Label]:
        """Return kind and text of each label that must be there."""
        groups = [] if self.group is None else [("group", self.group)]
        return [*groups, *(("tag", tag) for tag in self.tags)]


def list_jobs(store: Store, wanted: JobFilter, limit: int | None) -> Iterator[list[Job]]:
    """Yield pages of jobs, newest first (submission time, then ID); filters come before the limit.

    Each page is one query, so a list of any length is streamed in constant memory.
    """
    rare = _rare_label(store, wanted)
    left = limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(_PAGE, left)
        page = _page(store, wanted, size, rare)
        if page:
            yield page
        if len(page) < size:
            return
        wanted = wanted._replace(before=page[-1])
        left = None if left is None else left - len(page)


def _page(store: Store, wanted: JobFilter, size: int, rare: Label | None) -> list[Job]:
    conditions, bindings = _conditions(wanted)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # The planner would rather walk through all jobs in the order of the list than sort a few.
    source = ACTIVE_JOBS if _is_of_active(wanted) else "jobs" if rare is None else _LABELLED_JOBS
    statement = f"SELECT {JOBS.select()} FROM {source}{where} ORDER BY submitted_at_ns DESC, id DESC LIMIT ?"
    return [job_from(row) for row in store.execute(statement, (*(rare or ()), *bindings, size))]


def _conditions(wanted: JobFilter) -> tuple[list[str], list[object]]:
    parts: list[tuple[str, tuple[object, ...]]] = []
    for column, values in (("phase", wanted.phases), ("outcome", wanted.outcomes)):
        if values:
            parts.append((f"{column} IN ({', '.join('?' * len(values))})", values))
    if _is_of_active(wanted):
        parts.append((ACTIVE, ()))  # beside phases, too
    elif wanted.active is not None:
        parts.append(("phase = 'completed'", ()))
    if wanted.name:
        parts.append(("name <> ''", ()))  # the index of names demands it
    for condition, value in (
        ("name = ?", wanted.name),
        # Shells negate a set with "!" as well as "^"; SQLite knows the latter only.
        ("name GLOB ?", wanted.name_glob and wanted.name_glob.replace("[!", "[^")),
        ("submitted_at_ns > ?", wanted.submitted_after_ns),
        ("submitted_at_ns < ?", wanted.submitted_before_ns),
    ):
        if value is not None:
            parts.append((condition, (value,)))
    parts += [(_HAS_LABEL, label) for label in wanted.labels()]
    if wanted.before is not None:
        parts.append(("(submitted_at_ns, id) < (?, ?)", (wanted.before.submitted_at_ns, wanted.before.id)))
    return [condition for condition, _ in parts], [value for _, values in parts for value in values]


def _is_of_active(wanted: JobFilter) -> bool:
    """Say whether only jobs that have not ended are wanted; those are never many."""
    if wanted.active is None:
        return bool(wanted.phases) and JobPhase.COMPLETED not in wanted.phases
    return wanted.active


def _rare_label(store: Store, wanted: JobFilter) -> Label | None:
    """Return a wanted label that few jobs have: then it is better to look at those than at all until enough have it."""
    if _is_of_active(wanted):
        return None
    statement = "SELECT count(*) FROM (SELECT 1 FROM job_labels WHERE kind = ? AND label = ? LIMIT ?)"
    counts = ((store.execute(statement, (*label, _FEW))[0][0], label) for label in wanted.labels())
    count, rarest = min(counts, default=(_FEW, None))
    return rarest if count < _FEW else None


def _read_snapshot(store: Store, job_id: str) -> Snapshot:
    job = load_job(store, job_id)
    if job.phase == JobPhase.SUBMITTING:
        return Snapshot(job)
    run = None if job.active_run_id is None else load_run(store, job.active_run_id)
    statement = (
        f"SELECT {ADMISSIONS.select()} FROM admissions WHERE job_id = ? AND released_at_ns IS NULL"  # our own columns
    )
    held = store.execute(statement, (job_id,))
    return Snapshot(job, run, load_supervisor(store, job_id), admission_from(held[0]) if held else None)
