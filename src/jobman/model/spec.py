"""What a job is to do: the immutable specification (contract, section E).

Values only; `jobman.model.spec_rules` says which are valid, `jobman.model.spec_json` reads and writes the canonical
document. Strings that come from the command line or the environment are bytes read as UTF-8 with surrogate escapes, so
they may hold lone surrogates; names, groups and tags may not. Durations are integers of nanoseconds, 0 meaning "none"
for timeouts.
"""

from __future__ import annotations

from jobman.model.state import JobOutcome
from jobman.model.waits import Waits
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.notifiers import Notifier, Subscription
    from jobman.model.secrets import SecretVariable

DEFAULT_GRACE_NS = 10_000_000_000
DEFAULT_DRAIN_TIMEOUT_NS = 10_000_000_000
DEFAULT_LOG_RETENTION_NS = 30 * 24 * 3_600_000_000_000
MAX_LOG_SEGMENTS = 65_535


class Backoff(StrEnum):
    """How a delay grows with the number of completed runs."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


class StdinPolicy(StrEnum):
    """Where the target reads from."""

    NULL = "null"
    LIVE = "live"
    FILE = "file"


class LogCapture(StrEnum):
    """Which streams are recorded."""

    BOTH = "both"
    STDOUT = "stdout"
    STDERR = "stderr"
    NONE = "none"


class Predicate(StrEnum):
    """What a dependency requires of the other job's outcome (contract, E.4)."""

    SUCCESS = "success"
    FINISH = "finish"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    ABORTED = "aborted"
    LOST = "lost"
    SUBMISSION_FAILED = "submission_failed"


class Limit(NamedTuple):
    """A positive number, or ``None`` for unlimited."""

    value: int | None

    def reached_by(self, number: int) -> bool:
        """Say whether ``number`` uses the limit up."""
        return self.value is not None and number >= self.value


ONCE = Limit(1)


class StopPolicy(NamedTuple):
    """How a process tree is ended: ask, wait, insist; and what becomes of what outlives the leader (D33).

    ``drain_ns`` is how long the output of others is read after the leader's exit. ``leave_descendants`` leaves them
    alone then, unless somebody wants the run to end.
    """

    grace_ns: int = DEFAULT_GRACE_NS
    force_after_grace: bool = True
    drain_ns: int = DEFAULT_DRAIN_TIMEOUT_NS
    leave_descendants: bool = False


class Environment(NamedTuple):
    """Changes to the submitter's environment: removals first, then settings, then secrets."""

    assignments: tuple[tuple[str, str], ...] = ()
    removals: tuple[str, ...] = ()
    secrets: tuple[SecretVariable, ...] = ()


class ExitCodeRange(NamedTuple):
    """Exit codes from ``first`` to ``last``, both included."""

    first: int
    last: int


class Classification(NamedTuple):
    """Which ends are successes, and which failures may be retried.

    ``retryable_codes`` ``None`` means every other code. ``retryable_signals`` are the words in which an exit names its
    signal, such as ``terminated``.
    """

    success_codes: tuple[int, ...] | None = (0,)
    retryable_codes: tuple[ExitCodeRange, ...] | None = None
    retry_timeout: bool = False
    retry_start_failure: bool = False
    retryable_signals: tuple[str, ...] | None = None


class Completion(NamedTuple):
    """When a job has had enough runs."""

    max_runs: Limit = ONCE
    success_target: Limit = ONCE
    failure_limit: Limit = ONCE
    retry_abort_at_ns: int | None = None


class Delay(NamedTuple):
    """The pause before another run, before jitter and cap."""

    base_ns: int = 0
    backoff: Backoff = Backoff.CONSTANT
    exponential_base: int = 2
    max_delay_ns: int | None = None
    jitter_ns: int = 0


class Dependency(NamedTuple):
    """An edge to another job; ``predicate`` is a `Predicate` or ``outcomes:a,b``."""

    job_id: str
    predicate: str

    def accepts(self, outcome: JobOutcome) -> bool:
        """Say whether the other job's ``outcome`` satisfies this edge."""
        if self.predicate == Predicate.FINISH:
            return True
        if self.predicate == Predicate.FAILED:
            return outcome == JobOutcome.FAILURE
        kind, _, names = self.predicate.partition(":")
        return outcome.value in names.split(",") if names else outcome.value == kind


class Timeouts(NamedTuple):
    """Budgets of one run and of the whole job; 0 is none."""

    run_ns: int = 0
    job_ns: int = 0


class Logging(NamedTuple):
    """What is recorded of the output, and for how long.

    A retention that was stated for this job counts instead of the configured age, any other one beside it (D11).
    """

    capture: LogCapture = LogCapture.BOTH
    segment_bytes: int = 0
    segments: int = 0
    retention_ns: int | None = DEFAULT_LOG_RETENTION_NS
    retention_stated: bool = False


class JobSpec(NamedTuple):
    """Everything that decides what a job does; copied whole by a rerun (M8)."""

    executable: str
    arguments: tuple[str, ...]
    working_directory: str
    environment: Environment = Environment()
    name: str = ""
    stop: StopPolicy = StopPolicy()
    stdin: StdinPolicy = StdinPolicy.NULL
    completion: Completion = Completion()
    classification: Classification = Classification()
    failure_delay: Delay = Delay()
    success_delay: Delay = Delay()
    timeouts: Timeouts = Timeouts()
    dependencies: tuple[Dependency, ...] = ()
    slots: int = 1
    pool: str | None = None
    waits: Waits = Waits()
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    logging: Logging = Logging()
    stdin_path: str | None = None
    subscriptions: tuple[Subscription, ...] = ()
    notifiers: tuple[Notifier, ...] = ()
