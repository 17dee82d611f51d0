"""Snapshots to rows and back: the only place that knows the columns.

Every statement names its columns, so that a supervisor of an older version goes on working beside a store that a newer
one has added columns to.
"""

from __future__ import annotations

from jobman.errors import StoreFailureError
from jobman.model.identity import ProcessIdentity
from jobman.model.invariants import check_job, check_run, check_supervisor
from jobman.model.state import (
    Admission,
    Claim,
    Counters,
    Diagnostic,
    Job,
    JobOutcome,
    JobPhase,
    LockFile,
    LogIntegrity,
    Pause,
    Problem,
    Pruning,
    RecordingHealth,
    Run,
    RunExit,
    RunLogs,
    RunOutcome,
    RunPhase,
    RunUsage,
    StopReason,
    Supervisor,
    SupervisorPhase,
)
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from enum import StrEnum
    from typing import Any, TypeVar

    from jobman.model.events import Event

    Row = tuple[Any, ...]
    Word = TypeVar("Word", bound=StrEnum)


class Table(NamedTuple):
    """A table and the columns that a snapshot fills, the key first."""

    name: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, name: str, columns: str) -> Table:
        """Return a table whose columns are the words of a text."""
        return cls(name, tuple(columns.split()))

    def select(self, alias: str = "") -> str:
        """Return the column list of a SELECT, each prefixed with ``alias`` if given."""
        prefix = f"{alias}." if alias else ""
        return ", ".join(prefix + column for column in self.columns)

    def insert(self) -> str:
        """Return the statement that inserts a row."""
        marks = ", ".join("?" * len(self.columns))
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({marks})"

    def update(self, columns: tuple[str, ...], condition: str) -> str:
        """Return the statement that rewrites ``columns`` of a row by its key, if ``condition`` holds too."""
        changes = ", ".join(f"{column} = ?" for column in columns)
        return f"UPDATE {self.name} SET {changes} WHERE {self.columns[0]} = ? AND {condition}"


JOBS = Table.of(
    "jobs",
    "id name phase outcome revision submitted_at_ns claim_hash claim_deadline_ns supervisor_id "
    "claimed_at_ns started_at_ns completed_at_ns cancellation_requested_at_ns active_run_id intent "
    "run_count success_count failure_count total_paused_ns paused_from paused_at_ns paused_monotonic_ns "
    "waiting_reason next_run_at_ns prerequisites_satisfied_at_ns diagnostic_code diagnostic",
)

RUNS = Table.of(
    "runs",
    "id job_id number phase outcome revision reserved_at_ns resolved_executable pid creation_id boot_id "
    "pid_namespace started_at_ns stop_reason stop_requested_at_ns signalled_at_ns completed_at_ns "
    "exit_observed_at_ns exit_code exit_signal platform_reason log_integrity log_health "
    "log_diagnostic_code log_index_version stdout_bytes stderr_bytes max_rss_bytes user_cpu_ns "
    "system_cpu_ns diagnostic_code diagnostic pruned_at_ns pruned_files pruned_bytes",
)

SUPERVISORS = Table.of(
    "supervisors",
    "id job_id phase revision pid creation_id boot_id pid_namespace lock_device lock_inode claimed_at_ns "
    "lease_expires_at_ns released_at_ns",
)

ADMISSIONS = Table.of(
    "admissions",
    "id job_id run_id slots acquired_at_ns lease_expires_at_ns released_at_ns pool slot_scope slot_indexes",
)

EVENTS = Table.of(
    "state_events",
    "id kind entity_id job_id revision type at_ns reason diagnostic_code next_run_at_ns",
)


def member(vocabulary: type[Word], word: str) -> Word:
    """Return the member of a vocabulary that is stored as ``word``.

    Raises:
        StoreFailureError: it has none; only a damaged file can hold such a word, for `CHECK` refuses it.
    """
    try:
        return vocabulary(word)
    except ValueError:
        raise StoreFailureError(detail=f"it holds the unknown word {word!r}: the file is damaged") from None


def job_row(job: Job) -> Row:
    """Return the values of `JOBS` for ``job``."""
    claim, pause = job.claim or (None, None), job.pause or (None, None, None)
    return (
        job.id,
        job.name,
        job.phase,
        job.outcome,
        job.revision,
        job.submitted_at_ns,
        *claim,
        job.supervisor_id,
        job.claimed_at_ns,
        job.started_at_ns,
        job.completed_at_ns,
        job.cancellation_requested_at_ns,
        job.active_run_id,
        job.intent,
        *job.counters,
        job.total_paused_ns,
        *pause,
        job.waiting_reason,
        job.next_run_at_ns,
        job.prerequisites_satisfied_at_ns,
        *_problem_columns(job.problem),
    )


def job_from(row: Row) -> Job:
    """Return the job of a row of `JOBS`.

    Raises:
        InvariantError: the row contradicts itself.
    """
    (id_, name, phase, outcome, revision, submitted, hash_, deadline, supervisor, claimed, started, completed) = row[
        :12
    ]
    (cancelled, active, intent, runs, successes, failures, paused_total, paused_from, paused_at, paused_mono) = row[
        12:22
    ]
    reason, next_run, satisfied, code, diagnostic = row[22:]
    job = Job(
        id=id_,
        name=name,
        phase=member(JobPhase, phase),
        revision=revision,
        submitted_at_ns=submitted,
        outcome=member(JobOutcome, outcome) if outcome else None,
        claim=Claim(hash_, deadline) if hash_ is not None else None,
        supervisor_id=supervisor,
        claimed_at_ns=claimed,
        started_at_ns=started,
        completed_at_ns=completed,
        cancellation_requested_at_ns=cancelled,
        active_run_id=active,
        intent=member(StopReason, intent) if intent else None,
        counters=Counters(runs, successes, failures),
        total_paused_ns=paused_total,
        pause=Pause(member(JobPhase, paused_from), paused_at, paused_mono) if paused_from else None,
        waiting_reason=reason,
        next_run_at_ns=next_run,
        prerequisites_satisfied_at_ns=satisfied,
        problem=_problem(code, diagnostic),
    )
    return check_job(job)


def run_row(run: Run) -> Row:
    """Return the values of `RUNS` for ``run``."""
    executable = run.resolved_executable
    return (
        run.id,
        run.job_id,
        run.number,
        run.phase,
        run.outcome,
        run.revision,
        run.reserved_at_ns,
        # A path is bytes; SQLite text refuses lone surrogates.
        None if executable is None else executable.encode("utf-8", "surrogateescape"),
        *(run.identity or (None, None, None, None)),
        run.started_at_ns,
        run.stop_reason,
        run.stop_requested_at_ns,
        run.signalled_at_ns,
        run.completed_at_ns,
        *(run.exit or (None, None, None, None)),
        *run.logs,
        *(run.usage or (None, None, None)),
        *_problem_columns(run.problem),
        *(run.pruning or (None, None, None)),
    )


def run_from(row: Row) -> Run:
    """Return the run of a row of `RUNS`.

    Raises:
        InvariantError: the row contradicts itself.
    """
    id_, job_id, number, phase, outcome, revision, reserved, executable = row[:8]
    identity, (started, stop_reason, stop_requested, signalled, completed) = row[8:12], row[12:17]
    exit_, logs, usage, (code, diagnostic), pruning = row[17:21], row[21:27], row[27:30], row[30:32], row[32:]
    integrity, health, *rest = logs
    run = Run(
        id=id_,
        job_id=job_id,
        number=number,
        phase=member(RunPhase, phase),
        revision=revision,
        reserved_at_ns=reserved,
        outcome=member(RunOutcome, outcome) if outcome else None,
        resolved_executable=None if executable is None else executable.decode("utf-8", "surrogateescape"),
        identity=ProcessIdentity(*identity) if identity[0] is not None else None,
        started_at_ns=started,
        stop_reason=member(StopReason, stop_reason) if stop_reason else None,
        stop_requested_at_ns=stop_requested,
        signalled_at_ns=signalled,
        completed_at_ns=completed,
        exit=RunExit(*exit_) if exit_[0] is not None else None,
        logs=RunLogs(member(LogIntegrity, integrity), member(RecordingHealth, health), *rest),
        usage=RunUsage(*usage) if usage[0] is not None else None,
        problem=_problem(code, diagnostic),
        pruning=Pruning(*pruning) if pruning[0] is not None else None,
    )
    return check_run(run)


def supervisor_row(supervisor: Supervisor) -> Row:
    """Return the values of `SUPERVISORS` for ``supervisor``."""
    return (
        supervisor.id,
        supervisor.job_id,
        supervisor.phase,
        supervisor.revision,
        *supervisor.identity,
        *supervisor.lock,
        supervisor.claimed_at_ns,
        supervisor.lease_expires_at_ns,
        supervisor.released_at_ns,
    )


def supervisor_from(row: Row) -> Supervisor:
    """Return the supervisor of a row of `SUPERVISORS`.

    Raises:
        InvariantError: the row contradicts itself.
    """
    id_, job_id, phase, revision = row[:4]
    identity, lock, times = ProcessIdentity(*row[4:8]), LockFile(*row[8:10]), row[10:]
    return check_supervisor(Supervisor(id_, job_id, member(SupervisorPhase, phase), revision, identity, lock, *times))


def admission_row(admission: Admission) -> Row:
    """Return the values of `ADMISSIONS` for ``admission``."""
    return (
        admission.id,
        admission.job_id,
        admission.run_id,
        admission.slots,
        admission.acquired_at_ns,
        admission.lease_expires_at_ns,
        admission.released_at_ns,
        admission.pool,
        admission.slot_scope,
        ",".join(map(str, admission.slot_indexes)) or None,
    )


def admission_from(row: Row) -> Admission:
    """Return the admission of a row of `ADMISSIONS`."""
    id_, job_id, run_id, slots, acquired, lease, released, pool, scope, indexes = row
    return Admission(id_, job_id, slots, acquired, lease, run_id, released, pool, scope, parse_indexes(indexes))


def parse_indexes(text: str | None) -> tuple[int, ...]:
    """Return the slot indexes of a stored ``0,1``."""
    return tuple(int(word) for word in text.split(",")) if text else ()


def event_row(event: Event, event_id: str) -> Row:
    """Return the values of `EVENTS` for ``event``."""
    return (
        event_id,
        event.kind,
        event.entity_id,
        event.job_id,
        event.revision,
        event.type,
        event.at_ns,
        event.reason,
        event.diagnostic_code,
        event.next_run_at_ns,
    )


def _problem_columns(problem: Problem | None) -> tuple[str | None, str | None]:
    if problem is None:
        return None, None
    # The text may quote a path that is not UTF-8.
    return problem.code, problem.text.encode("utf-8", "backslashreplace").decode("utf-8")


def _problem(code: str | None, text: str | None) -> Problem | None:
    return None if code is None else Problem(member(Diagnostic, code), text or "")
