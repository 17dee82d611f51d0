"""What is true of every snapshot (contract, F.3), checked whenever one is made or read.

Each rule is a sentence and a predicate; the sentence of the first broken one becomes the error.
"""

from __future__ import annotations

from jobman.errors import InvariantError
from jobman.model.state import (
    JobOutcome,
    JobPhase,
    LogIntegrity,
    RunOutcome,
    RunPhase,
    SupervisorPhase,
)
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.model.state import (
        Admission,
        Job,
        Run,
        Snapshot,
        Supervisor,
    )

_INTENT_OUTCOMES = frozenset((JobOutcome.CANCELLED, JobOutcome.TIMED_OUT, JobOutcome.LOST))
_EXITLESS_OUTCOMES = frozenset((RunOutcome.START_FAILED, RunOutcome.LOST))
_STOPPED_OUTCOMES = frozenset((RunOutcome.CANCELLED, RunOutcome.TIMED_OUT))
_JUDGED_OUTCOMES = frozenset((RunOutcome.SUCCESS, RunOutcome.FAILURE))


def _implies(condition: object, consequence: object) -> bool:
    return not condition or bool(consequence)


def _owned(job: Job) -> bool:
    return job.supervisor_id is not None and job.claimed_at_ns is not None


def _unclaimed(job: Job) -> bool:
    return job.supervisor_id is None and job.claimed_at_ns is None


JOB_RULES: tuple[tuple[str, Callable[[Job], bool]], ...] = (
    ("revision is at least 1", lambda j: j.revision >= 1),
    ("completed has an outcome, and nothing else has", lambda j: (j.phase == JobPhase.COMPLETED) == bool(j.outcome)),
    (
        "completed has a completion time, and nothing else has",
        lambda j: (j.phase == JobPhase.COMPLETED) == (j.completed_at_ns is not None),
    ),
    ("completed has no active run", lambda j: _implies(j.phase == JobPhase.COMPLETED, j.active_run_id is None)),
    (
        "submitting offers a claim, and nothing else does",
        lambda j: (j.phase == JobPhase.SUBMITTING) == (j.claim is not None),
    ),
    ("submitting has no supervisor", lambda j: _implies(j.phase == JobPhase.SUBMITTING, _unclaimed(j))),
    (
        "only a failed submission completes without a supervisor",
        lambda j: (
            j.phase == JobPhase.SUBMITTING
            or (_unclaimed(j) if j.outcome == JobOutcome.SUBMISSION_FAILED else _owned(j))
        ),
    ),
    (
        "running has an active run and a start",
        lambda j: _implies(j.phase == JobPhase.RUNNING, j.active_run_id and j.started_at_ns is not None),
    ),
    (
        "waiting, queued and backoff have no active run",
        lambda j: _implies(j.phase in (JobPhase.WAITING, JobPhase.QUEUED, JobPhase.BACKOFF), j.active_run_id is None),
    ),
    (
        "stopping has an active run or an intent",
        lambda j: _implies(j.phase == JobPhase.STOPPING, j.active_run_id or j.intent),
    ),
    (
        "an intent belongs to stopping or to the outcome it caused",
        lambda j: _implies(j.intent, j.phase == JobPhase.STOPPING or j.outcome in _INTENT_OUTCOMES),
    ),
    ("paused, and nothing else, has an open pause", lambda j: (j.phase == JobPhase.PAUSED) == (j.pause is not None)),
    (
        "backoff knows its next run",
        lambda j: _implies(j.phase == JobPhase.BACKOFF, j.next_run_at_ns is not None),
    ),
    (
        "counters add up",
        lambda j: min(j.counters) >= 0 and j.counters.runs == j.counters.successes + j.counters.failures,
    ),
    ("paused time is not negative", lambda j: j.total_paused_ns >= 0),
    ("no time precedes the submission", lambda j: all(time >= j.submitted_at_ns for time in j.later_times_ns())),
)

RUN_RULES: tuple[tuple[str, Callable[[Run], bool]], ...] = (
    ("revision and number are at least 1", lambda r: r.revision >= 1 and r.number >= 1),
    ("completed has an outcome, and nothing else has", lambda r: (r.phase == RunPhase.COMPLETED) == bool(r.outcome)),
    (
        "completed has a completion time, and nothing else has",
        lambda r: (r.phase == RunPhase.COMPLETED) == (r.completed_at_ns is not None),
    ),
    (
        "running and paused have a process, its executable and a start",
        lambda r: _implies(
            r.phase in (RunPhase.RUNNING, RunPhase.PAUSED),
            r.identity and r.resolved_executable is not None and r.started_at_ns is not None,
        ),
    ),
    (
        "stopping has a time and a reason",
        lambda r: _implies(r.phase == RunPhase.STOPPING, r.stop_reason and r.stop_requested_at_ns is not None),
    ),
    (
        "a stop has both a time and a reason, or neither",
        lambda r: (r.stop_reason is None) == (r.stop_requested_at_ns is None),
    ),
    (
        "completed has final log integrity",
        lambda r: _implies(r.phase == RunPhase.COMPLETED, r.logs.integrity != LogIntegrity.PENDING),
    ),
    ("completed has an exit unless no process could have one", lambda r: _implies(_needs_exit(r), r.exit)),
    (
        "an exit states one fact",
        lambda r: r.exit is None or [r.exit.exit_code, r.exit.signal, r.exit.platform_reason].count(None) == 2,
    ),
    (
        "an exit code belongs to success or failure",
        lambda r: _implies(r.exit and r.exit.exit_code is not None, r.outcome in _JUDGED_OUTCOMES),
    ),
    ("no time precedes the reservation", lambda r: all(time >= r.reserved_at_ns for time in r.later_times_ns())),
    (
        "logs are pruned after the completion",
        lambda r: r.pruning is None or (r.completed_at_ns is not None and r.pruning.at_ns >= r.completed_at_ns),
    ),
)

SUPERVISOR_RULES: tuple[tuple[str, Callable[[Supervisor], bool]], ...] = (
    ("revision is at least 1", lambda s: s.revision >= 1),
    (
        "released has a time, and nothing else has",
        lambda s: (s.phase == SupervisorPhase.RELEASED) == (s.released_at_ns is not None),
    ),
    (
        "no time precedes the claim",
        lambda s: (
            s.claimed_at_ns <= s.lease_expires_at_ns
            and (s.released_at_ns is None or s.claimed_at_ns <= s.released_at_ns)
        ),
    ),
)


def _needs_exit(run: Run) -> bool:
    if run.phase != RunPhase.COMPLETED or run.outcome in _EXITLESS_OUTCOMES:
        return False
    return not (run.outcome in _STOPPED_OUTCOMES and run.started_at_ns is None)


def check_job(job: Job) -> Job:
    """Return ``job`` if every rule holds, else raise `InvariantError`."""
    for sentence, holds in JOB_RULES:
        if not holds(job):
            raise InvariantError(entity=f"job {job.id}", detail=f"{sentence} (phase {job.phase})")
    return job


def check_run(run: Run) -> Run:
    """Return ``run`` if every rule holds, else raise `InvariantError`."""
    for sentence, holds in RUN_RULES:
        if not holds(run):
            raise InvariantError(entity=f"run {run.number} of job {run.job_id}", detail=f"{sentence} ({run.phase})")
    return run


def check_supervisor(supervisor: Supervisor) -> Supervisor:
    """Return ``supervisor`` if every rule holds, else raise `InvariantError`."""
    for sentence, holds in SUPERVISOR_RULES:
        if not holds(supervisor):
            raise InvariantError(entity=f"supervisor {supervisor.id}", detail=sentence)
    return supervisor


def check_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return ``snapshot`` if each part is sound and the parts belong together, else raise `InvariantError`."""
    job, run, supervisor, admission = snapshot
    check_job(job)
    if run is not None:
        check_run(run)
    if supervisor is not None:
        check_supervisor(supervisor)
    _check_belonging(job, supervisor, admission)
    if job.active_run_id is not None and (run is None or (run.id, run.job_id) != (job.active_run_id, job.id)):
        raise InvariantError(entity=f"job {job.id}", detail="its active run is not its own")
    if run is not None and job.active_run_id is None and run.phase != RunPhase.COMPLETED:
        raise InvariantError(entity=f"job {job.id}", detail=f"run {run.number} goes on without being active")
    if admission is not None and job.phase == JobPhase.COMPLETED and admission.released_at_ns is None:
        held_by_survivors = job.outcome == JobOutcome.LOST
        if not held_by_survivors:
            raise InvariantError(entity=f"job {job.id}", detail="it completed without releasing its slots")
    return snapshot


def _check_belonging(job: Job, supervisor: Supervisor | None, admission: Admission | None) -> None:
    if supervisor is not None and (supervisor.id, supervisor.job_id) != (job.supervisor_id, job.id):
        raise InvariantError(entity=f"job {job.id}", detail="its supervisor is not its own")
    if admission is not None and admission.job_id != job.id:
        raise InvariantError(entity=f"job {job.id}", detail="its slots are not its own")
