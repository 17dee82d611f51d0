"""The vocabulary of phases and outcomes, and the snapshots of everything that has a life cycle.

Sections E.4 and F.1 of the contract name the words; values are stored and printed exactly as spelled here. All times
are integer Unix nanoseconds, all durations integer nanoseconds. Snapshots are never edited: a transition returns new
ones.
"""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.identity import ProcessIdentity


class JobPhase(StrEnum):
    """Where a job is."""

    SUBMITTING = "submitting"
    WAITING = "waiting"
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"
    PAUSED = "paused"
    STOPPING = "stopping"
    COMPLETED = "completed"


class JobOutcome(StrEnum):
    """How a job ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    ABORTED = "aborted"
    LOST = "lost"
    SUBMISSION_FAILED = "submission_failed"


class RunPhase(StrEnum):
    """Where a run is."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    COMPLETED = "completed"


class RunOutcome(StrEnum):
    """How a run ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    START_FAILED = "start_failed"
    LOST = "lost"


class SupervisorPhase(StrEnum):
    """Whether a supervisor still owns its job."""

    CLAIMED = "claimed"
    RELEASED = "released"


class StopReason(StrEnum):
    """Why somebody wants a job or run to end."""

    CANCELLATION = "cancellation"
    TIMEOUT = "timeout"


class Stream(StrEnum):
    """One of the two output streams of a run."""

    STDOUT = "stdout"
    STDERR = "stderr"


class LogIntegrity(StrEnum):
    """What the log files of a run are worth."""

    PENDING = "pending"
    VALID = "valid"
    PARTIAL = "partial"
    CORRUPT = "corrupt"


class RecordingHealth(StrEnum):
    """Whether everything that the target wrote was recorded."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"


class Reason(StrEnum):
    """Why a job is where it is (``runtime.waiting_reason``, contract F.5)."""

    PREREQUISITES = "prerequisites"
    PREREQUISITES_SATISFIED = "prerequisites_satisfied"
    ADMISSION_CAPACITY = "admission_capacity"
    BACKOFF_ELAPSED = "backoff_elapsed"
    ADMITTED = "admitted"
    NEXT_RUN = "next_run"
    CANCELLATION = "cancellation"
    JOB_TIMEOUT = "job_timeout"
    RUN_TIMEOUT = "run_timeout"
    SUCCESS_TARGET = "success_target"
    NON_RETRYABLE_FAILURE = "non_retryable_failure"
    FAILURE_LIMIT = "failure_limit"
    RUN_LIMIT = "run_limit"
    RETRY_DEADLINE = "retry_deadline"


class Diagnostic(StrEnum):
    """Codes that name what went wrong (contract F.6 and A.16)."""

    SUPERVISOR_CLAIM_EXPIRED = "supervisor_claim_expired"
    SUPERVISOR_LEASE_EXPIRED = "supervisor_lease_expired"
    PROCESS_START_PUBLISH_FAILED = "process_start_publish_failed"
    TARGET_START_FAILED = "target_start_failed"
    JOB_TIMEOUT = "job_timeout"
    WAIT_CONDITION_FAILED = "wait_condition_failed"
    WAIT_ABORT_DEADLINE = "wait_abort_deadline"
    ADMISSION_CONFIGURATION_INVALID = "admission_configuration_invalid"
    DEPENDENCY_UNSATISFIED = "dependency_unsatisfied"
    LOG_CAPTURE_DEGRADED = "log_capture_degraded"
    LOG_FILE_REMOVED = "log_file_removed"
    DESCENDANT_HOLDS_OUTPUT = "descendant_holds_output"
    TARGET_CANNOT_BE_KILLED = "target_cannot_be_killed"
    DESCENDANTS_LEFT = "descendants_left"
    EXECUTABLE_NOT_FOUND = "executable_not_found"
    PERMISSION_DENIED = "permission_denied"
    WORKING_DIRECTORY_MISSING = "working_directory_missing"
    STDIN_UNAVAILABLE = "stdin_unavailable"
    SECRET_UNAVAILABLE = "secret_unavailable"  # noqa: S105  # a code, not a password


class Problem(NamedTuple):
    """A diagnostic as stored and shown: a stable code, and the reason in words for a person."""

    code: Diagnostic
    text: str


class Counters(NamedTuple):
    """Completed runs of a job: all, the successful ones, and the others."""

    runs: int = 0
    successes: int = 0
    failures: int = 0


class Pause(NamedTuple):
    """An open pause: the phase to return to, and when it began on two clocks."""

    paused_from: JobPhase
    at_ns: int
    monotonic_ns: int


class Claim(NamedTuple):
    """The one-time offer of a job to whoever knows the credential."""

    credential_hash: bytes
    deadline_ns: int


class Job(NamedTuple):
    """The state of one durable submission, without its specification."""

    id: str
    name: str
    phase: JobPhase
    revision: int
    submitted_at_ns: int
    outcome: JobOutcome | None = None
    claim: Claim | None = None
    supervisor_id: str | None = None
    claimed_at_ns: int | None = None
    started_at_ns: int | None = None
    completed_at_ns: int | None = None
    cancellation_requested_at_ns: int | None = None
    active_run_id: str | None = None
    intent: StopReason | None = None
    counters: Counters = Counters()
    total_paused_ns: int = 0
    pause: Pause | None = None
    waiting_reason: str | None = None
    next_run_at_ns: int | None = None
    prerequisites_satisfied_at_ns: int | None = None
    problem: Problem | None = None

    def later_times_ns(self) -> tuple[int, ...]:
        """The times stored in this job after its submission; none of them may precede that."""
        return _known(
            self.claimed_at_ns,
            self.started_at_ns,
            self.completed_at_ns,
            self.cancellation_requested_at_ns,
            self.prerequisites_satisfied_at_ns,
            self.pause.at_ns if self.pause else None,
        )

    def latest_ns(self) -> int:
        """The latest time stored in this job; no transition may be dated before it."""
        return max((self.submitted_at_ns, *self.later_times_ns()))


class RunExit(NamedTuple):
    """What the system reported of the leader's end; exactly one of the three facts is set."""

    observed_at_ns: int
    exit_code: int | None = None
    signal: str | None = None
    platform_reason: str | None = None


class RunLogs(NamedTuple):
    """The record of a run's output, apart from how the process ended."""

    integrity: LogIntegrity = LogIntegrity.PENDING
    health: RecordingHealth = RecordingHealth.HEALTHY
    diagnostic_code: str | None = None
    index_version: int = 1
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


class RunUsage(NamedTuple):
    """What the reaped processes of a run used: the largest resident set of one process, and CPU time of all."""

    max_rss_bytes: int
    user_cpu_ns: int
    system_cpu_ns: int


class Pruning(NamedTuple):
    """That the logs of a run were removed: when, and how much went."""

    at_ns: int
    files: int
    bytes: int


class Run(NamedTuple):
    """The state of one invocation of a job's command."""

    id: str
    job_id: str
    number: int
    phase: RunPhase
    revision: int
    reserved_at_ns: int
    outcome: RunOutcome | None = None
    resolved_executable: str | None = None
    identity: ProcessIdentity | None = None
    started_at_ns: int | None = None
    stop_reason: StopReason | None = None
    stop_requested_at_ns: int | None = None
    signalled_at_ns: int | None = None
    completed_at_ns: int | None = None
    exit: RunExit | None = None
    logs: RunLogs = RunLogs()
    usage: RunUsage | None = None
    problem: Problem | None = None
    pruning: Pruning | None = None

    def later_times_ns(self) -> tuple[int, ...]:
        """The times stored in this run after its reservation; none of them may precede that."""
        return _known(
            self.started_at_ns,
            self.stop_requested_at_ns,
            self.signalled_at_ns,
            self.completed_at_ns,
            self.exit.observed_at_ns if self.exit else None,
        )

    def latest_ns(self) -> int:
        """The latest time stored in this run; no transition may be dated before it."""
        return max((self.reserved_at_ns, *self.later_times_ns()))


class LockFile(NamedTuple):
    """Which file carries a supervisor's liveness lock; a path alone could name a later file."""

    device: int
    inode: int


class Supervisor(NamedTuple):
    """The owner of a job."""

    id: str
    job_id: str
    phase: SupervisorPhase
    revision: int
    identity: ProcessIdentity
    lock: LockFile
    claimed_at_ns: int
    lease_expires_at_ns: int
    released_at_ns: int | None = None

    def latest_ns(self) -> int:
        """The latest time stored in this supervisor, the lease aside (it lies in the future)."""
        return max((self.claimed_at_ns, *_known(self.released_at_ns)))


class Admission(NamedTuple):
    """Slots that a job holds or held; bound to a run at its reservation.

    ``slot_indexes`` are those held in ``slot_scope``: the pool if that is finite, else the store-wide limit (""), else
    none (D34).
    """

    id: str
    job_id: str
    slots: int
    acquired_at_ns: int
    lease_expires_at_ns: int
    run_id: str | None = None
    released_at_ns: int | None = None
    pool: str | None = None
    slot_scope: str | None = None
    slot_indexes: tuple[int, ...] = ()


class Snapshot(NamedTuple):
    """Everything about one job that transitions compare and change together.

    ``run`` is the active run; ``admission`` the one that is not yet released.
    """

    job: Job
    run: Run | None = None
    supervisor: Supervisor | None = None
    admission: Admission | None = None


def _known(*times_ns: int | None) -> tuple[int, ...]:
    return tuple(time for time in times_ns if time is not None)
