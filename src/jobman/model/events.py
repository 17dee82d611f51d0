"""What is recorded of each change: one event per new revision of an entity (contract, F.2)."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.state import Snapshot


class EntityKind(StrEnum):
    """What an event is about."""

    JOB = "job"
    RUN = "run"
    SUPERVISOR = "supervisor"


class EventType(StrEnum):
    """What happened."""

    JOB_SUBMITTED = "job_submitted"
    SUPERVISOR_CLAIMED = "supervisor_claimed"
    SUBMISSION_FAILED = "submission_failed"
    JOB_WAITING = "job_waiting"
    JOB_QUEUED = "job_queued"
    JOB_STARTING = "job_starting"
    RUN_RESERVED = "run_reserved"
    PROCESS_STARTED = "process_started"
    RETRY_SCHEDULED = "retry_scheduled"
    RUN_COMPLETED = "run_completed"
    JOB_COMPLETED = "job_completed"
    JOB_ABORTED = "job_aborted"
    SUPERVISOR_RELEASED = "supervisor_released"
    CANCELLATION_REQUESTED = "cancellation_requested"
    TIMEOUT_REQUESTED = "timeout_requested"
    JOB_PAUSED = "job_paused"
    JOB_RESUMED = "job_resumed"
    OWNERSHIP_LOST = "ownership_lost"


class NotifyEvent(StrEnum):
    """What somebody can be told of (contract, K.4)."""

    JOB_STARTED = "job_started"
    RUN_STARTED = "run_started"
    RUN_SUCCEEDED = "run_succeeded"
    RUN_FAILED = "run_failed"
    RUN_TIMED_OUT = "run_timed_out"
    RUN_CANCELLED = "run_cancelled"
    RUN_LOST = "run_lost"
    RETRY_SCHEDULED = "retry_scheduled"
    JOB_SUCCEEDED = "job_succeeded"
    JOB_FAILED = "job_failed"
    JOB_TIMED_OUT = "job_timed_out"
    JOB_CANCELLED = "job_cancelled"
    JOB_ABORTED = "job_aborted"
    JOB_LOST = "job_lost"
    JOB_SUBMISSION_FAILED = "job_submission_failed"


class Event(NamedTuple):
    """One entry of the append-only history; the store gives it an ID when it commits it.

    ``revision`` is that of the entity after the change. ``reason``, ``diagnostic_code`` and ``next_run_at_ns`` are the
    details that F.2 names.
    """

    kind: EntityKind
    entity_id: str
    job_id: str
    revision: int
    type: EventType
    at_ns: int
    reason: str | None = None
    diagnostic_code: str | None = None
    next_run_at_ns: int | None = None


class Transition(NamedTuple):
    """A legal change, not yet durable: the store compares ``before``, writes ``after`` and appends ``events``.

    ``before`` is ``None`` for a submission.
    """

    before: Snapshot | None
    after: Snapshot
    events: tuple[Event, ...]
