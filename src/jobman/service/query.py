"""Reading jobs for people and programs: everything that ``status``, ``show``, ``list`` and ``wait`` need.

Each verb that names a job first reconciles that job, so that a dead owner is never shown as a live one (M4).
"""

from __future__ import annotations

from jobman import recovery
from jobman.errors import RunNotFoundError
from jobman.model.state import JobOutcome, JobPhase
from jobman.recovery import diagnostics_path
from jobman.service.notify import send_queued
from jobman.store.jobs import (
    latest_admission,
    list_jobs,
    load_job,
    load_runs,
    load_supervisor,
)
from jobman.store.live_input import load_live_input
from jobman.store.selectors import resolve
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.model.state import Admission, Job, Run, Supervisor
    from jobman.policy.conditions import ConditionState
    from jobman.policy.liveness import Verdict
    from jobman.policy.waiting import DependencyState
    from jobman.process import Member
    from jobman.store.connection import Store
    from jobman.store.deliveries import Attempt, Delivery
    from jobman.store.jobs import JobFilter
    from jobman.store.live_input import LiveInput

# Jobs whose end one look records, some seconds' work; the next look goes on.
_AT_MOST = 500


class Summary(NamedTuple):
    """A job, and in words why it is where it is (D36)."""

    job: Job
    reason: str


class Detail(NamedTuple):
    """Everything that is known of a job.

    ``survivors`` are living processes of a lost job, ``None`` if that cannot be told from here; ``diagnostics_path``
    is where its supervisor has noted its own troubles, "" if it had none.
    """

    summary: Summary
    spec: JobSpec
    runs: tuple[Run, ...]
    dependencies: tuple[DependencyState, ...]
    admission: Admission | None
    supervisor: Supervisor | None
    supervisor_state: Verdict | None
    conditions: tuple[ConditionState, ...] = ()
    live_input: LiveInput | None = None
    survivors: tuple[Member, ...] | None = ()
    diagnostics_path: str = ""
    deliveries: tuple[Delivery, ...] = ()
    attempts: tuple[Attempt, ...] = ()


class Listed(NamedTuple):
    """A row of a list; ``runs`` only when they were asked for."""

    summary: Summary
    runs: tuple[Run, ...]


def find(store: Store, selector: str, clock: Clock) -> str:
    """Return the ID that a selector means, after having reconciled that job."""
    job_id = resolve(store, selector)
    recovery.reconcile(store, job_id, clock)
    send_queued(store)
    return job_id


def summarize(store: Store, job_id: str, clock: Clock) -> Summary:
    """Return one job and its reason."""
    with store.read():
        return _summaries(store, [load_job(store, job_id)], clock)[0]


def describe(store: Store, job_id: str, clock: Clock) -> Detail:
    """Return everything that is known of one job, all of it of one moment."""
    with store.read():
        return _describe(store, job_id, clock)


def _describe(store: Store, job_id: str, clock: Clock) -> Detail:
    from jobman.store.deliveries import load_attempts, load_deliveries  # few jobs tell anybody
    from jobman.store.specs import load_spec  # the other verbs do not read specifications: 4 ms

    job, supervisor = load_job(store, job_id), load_supervisor(store, job_id)
    admission = latest_admission(store, job_id)
    owned = supervisor is not None and supervisor.released_at_ns is None
    return Detail(
        summary=_summaries(store, [job], clock)[0],
        spec=load_spec(store, job_id),
        runs=tuple(load_runs(store, [job_id]).get(job_id, ())),
        dependencies=tuple(_dependencies(store, [job_id]).get(job_id, ())),
        admission=admission,
        supervisor=supervisor,
        supervisor_state=recovery.owner_state(store, supervisor) if supervisor is not None and owned else None,
        conditions=tuple(_conditions(store, [job_id]).get(job_id, ())),
        live_input=load_live_input(store, job_id),
        survivors=_survivors(store, job, admission),
        diagnostics_path=diagnostics_path(store.root, job_id),
        deliveries=tuple(load_deliveries(store, job_id)),
        attempts=tuple(load_attempts(store, job_id)),
    )


def _survivors(store: Store, job: Job, admission: Admission | None) -> tuple[Member, ...] | None:
    """Return what is alive of a lost job, which keeps its slots as long as something is (D25, D42)."""
    if job.outcome != JobOutcome.LOST or admission is None or admission.released_at_ns is not None:
        return ()
    from jobman.service.survivors import survivors  # rarely needed

    return survivors(store, job.id)


def select_run(job_id: str, runs: Sequence[Run], number: int) -> Run:
    """Return the run that ``number`` means: positive is its number, negative counts from the last (-1).

    Raises:
        RunNotFoundError: there is no such run.
    """
    if number < 0 and -number <= len(runs):
        return runs[number]
    for run in runs:
        if run.number == number:
            return run
    raise RunNotFoundError(job=job_id, run=number)


def enumerate_jobs(
    store: Store, wanted: JobFilter, clock: Clock, *, limit: int | None, with_runs: bool
) -> Iterator[Listed]:
    """Yield the jobs that ``wanted`` describes, newest first, in a fixed number of queries for each page (C6).

    What is said of the jobs of a page is of one moment.
    """
    reconcile_active(store, clock)
    pages = list_jobs(store, wanted, limit)
    while listed := _next_page(store, pages, clock, with_runs=with_runs):
        yield from listed


def _next_page(store: Store, pages: Iterator[Sequence[Job]], clock: Clock, *, with_runs: bool) -> list[Listed]:
    with store.read():
        page = next(pages, ())
        if not page:
            return []
        runs = load_runs(store, [job.id for job in page]) if with_runs else {}
        return [Listed(summary, tuple(runs.get(summary.job.id, ()))) for summary in _summaries(store, page, clock)]


def reconcile_active(store: Store, clock: Clock) -> None:
    """Reconcile the jobs that are not completed, of very many a part."""
    if store.read_only:
        return
    recovery.reconcile_all(store, clock, at_most=_AT_MOST)
    send_queued(store)


def _summaries(store: Store, jobs: Sequence[Job], clock: Clock) -> list[Summary]:
    from jobman.policy.explain import Background, explain  # the other verbs give no reasons: 1 ms

    waiting = [job.id for job in jobs if job.phase == JobPhase.WAITING]
    told_by_run = [job.id for job in jobs if _is_told_by_run(job)]
    dependencies = _dependencies(store, waiting)
    runs = load_runs(store, told_by_run) if told_by_run else {}
    places, limits = _places(store, jobs), _run_limits(store, jobs)
    conditions = _conditions(store, waiting)
    now_ns = clock.wall_ns()

    def background(job: Job) -> Background:
        return Background(
            _last(runs.get(job.id, ())),
            tuple(dependencies.get(job.id, ())),
            tuple(conditions.get(job.id, ())),
            places.get(job.id, ""),
            limits.get(job.id),
        )

    return [Summary(job, explain(job, background(job), now_ns)) for job in jobs]


def _is_told_by_run(job: Job) -> bool:
    """Say whether the reason speaks of a run: how the last one ended, which comes next, or why one does not end."""
    ended = bool(job.counters.runs) and job.outcome != JobOutcome.SUCCESS
    return ended or (job.phase == JobPhase.STOPPING and job.active_run_id is not None)


def _run_limits(store: Store, jobs: Sequence[Job]) -> dict[str, int | None]:
    """Return how many runs the jobs that back off may have; nobody else's reason tells."""
    backing_off = [job.id for job in jobs if job.phase == JobPhase.BACKOFF]
    if not backing_off:
        return {}
    from jobman.store.specs import load_specs  # the other reasons do not need specifications: 4 ms

    return {job_id: spec.completion.max_runs.value for job_id, spec in load_specs(store, backing_off).items()}


def _conditions(store: Store, job_ids: Sequence[str]) -> dict[str, list[ConditionState]]:
    if not job_ids:
        return {}
    from jobman.store.conditions import load_evaluations  # only waiting jobs have any

    return load_evaluations(store, job_ids)


def _places(store: Store, jobs: Sequence[Job]) -> dict[str, str]:
    """Return what each queued job waits for, in words; one read of the queue for all of them."""
    if not any(job.phase == JobPhase.QUEUED for job in jobs):
        return {}
    from jobman.service.queue import places  # only a queue needs it

    return places(store, [job.id for job in jobs if job.phase == JobPhase.QUEUED])


def _dependencies(store: Store, job_ids: Sequence[str]) -> dict[str, list[DependencyState]]:
    if not job_ids:
        return {}
    from jobman.store.dependencies import load_dependencies  # loads the model of specifications: 2 ms

    return load_dependencies(store, job_ids)


def _last(runs: Sequence[Run]) -> Run | None:
    return runs[-1] if runs else None
