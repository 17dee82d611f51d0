"""What a job is to do: the immutable specification (contract, section E).

Values only; `jobman.model.spec_json` reads and writes the canonical document. Strings that come from the command line
or the environment are bytes read as UTF-8 with surrogate escapes, so they may hold lone surrogates; names, groups and
tags may not. Durations are integers of nanoseconds, 0 meaning "none" for timeouts.
"""

from __future__ import annotations

from itertools import pairwise

from jobman.errors import InvalidSpecError
from jobman.model.ids import is_id
from jobman.model.scalars import INT64_MAX
from jobman.model.secrets import is_environment_name, secrets_problem
from jobman.model.state import JobOutcome
from jobman.model.waits import Waits, condition_problem
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from collections.abc import Callable

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


def validate(spec: JobSpec) -> JobSpec:
    """Return ``spec`` if it keeps every rule of section E.3.

    Raises:
        InvalidSpecError: with the first broken rule in words.
    """
    for check in _CHECKS:
        problem = check(spec)
        if problem is not None:
            raise InvalidSpecError(detail=problem)
    return spec


def name_problem(what: str, text: str) -> str | None:
    """Return what is wrong with ``text`` as a name that people see, or ``None``.

    Such names are stored as text, so bytes that are not UTF-8 are refused rather than replaced.
    """
    if not text.strip():
        return f"{what} must contain a character that is not a space"
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in text):
        return f"{what} must not contain control characters"
    if any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        return f"{what} must be valid UTF-8"
    return None


def _check_command(spec: JobSpec) -> str | None:
    if not spec.executable:
        return "the command is empty"
    words = (spec.executable, *spec.arguments, spec.working_directory)
    if any("\0" in word for word in words):
        return "the command and its directory must not contain NUL bytes"
    if not all(_stands_for_bytes(word) for word in words):
        return "the command and its directory must be text that stands for bytes"
    if not spec.working_directory.startswith("/"):
        return f"working directory {spec.working_directory!r} is not absolute"
    if not _is_clean(spec.working_directory):
        return f"working directory {spec.working_directory!r} is not in its shortest form"
    return None


def _check_stdin(spec: JobSpec) -> str | None:
    path = spec.stdin_path
    if (spec.stdin == StdinPolicy.FILE) != (path is not None):
        return "a path for standard input belongs to the policy file, and to no other"
    if path is not None and not (path.startswith("/") and _is_clean(path)):
        return f"standard input {path!r} is not an absolute path in its shortest form"
    if path is not None and ("\0" in path or not _stands_for_bytes(path)):
        return "the path of standard input must be text that stands for bytes, without NUL"
    return None


def _stands_for_bytes(text: str) -> bool:
    """Say whether ``text`` can be given to the system: of the surrogates, only escaped bytes can."""
    return not any(0xD800 <= ord(char) <= 0xDFFF and not 0xDC80 <= ord(char) <= 0xDCFF for char in text)


def _is_clean(path: str) -> bool:
    return path == "/" or not any(part in ("", ".", "..") for part in path[1:].split("/"))


def _check_environment(spec: JobSpec) -> str | None:
    names = [name for name, _ in spec.environment.assignments]
    for name in (*names, *spec.environment.removals):
        if not is_environment_name(name):
            return f"environment variable name {name!r} is not of the form [A-Za-z_][A-Za-z0-9_]*"
    if any("\0" in value or not _stands_for_bytes(value) for _, value in spec.environment.assignments):
        return "environment values must be text that stands for bytes, without NUL"
    if len(set(names)) != len(names) or len(set(spec.environment.removals)) != len(spec.environment.removals):
        return "an environment variable is given twice"
    both = sorted(set(names).intersection(spec.environment.removals))
    if both:
        return f"environment variable {both[0]} is both set and unset"
    return secrets_problem(spec.environment.secrets, {*names, *spec.environment.removals})


def _check_labels(spec: JobSpec) -> str | None:
    if spec.name and (problem := name_problem("name", spec.name)):
        return problem
    for what, labels in (("group", spec.groups), ("tag", spec.tags)):
        for label in labels:
            if problem := name_problem(what, label):
                return problem
            if label != label.strip():
                return f"{what} {label!r} begins or ends with a space"
        if len(set(labels)) != len(labels):
            return f"a {what} is given twice"
    return None


def _check_numbers(spec: JobSpec) -> str | None:
    durations = (
        spec.stop.grace_ns,
        spec.stop.drain_ns,
        *spec.timeouts,
        *(value for delay in (spec.failure_delay, spec.success_delay) for value in (delay.base_ns, delay.jitter_ns)),
        *(delay.max_delay_ns or 0 for delay in (spec.failure_delay, spec.success_delay)),
        spec.logging.retention_ns or 0,
    )
    if min(durations) < 0 or max(durations) > INT64_MAX:
        return "durations must not be negative or longer than 292 years"
    if not 1 <= spec.slots <= INT64_MAX:
        return "slots must be at least 1 and fit into 64 bits"
    if min(spec.failure_delay.exponential_base, spec.success_delay.exponential_base) < 1:
        return "the exponential base must be at least 1"
    if not 0 <= spec.logging.segments <= MAX_LOG_SEGMENTS or spec.logging.segment_bytes < 0:
        return f"log segments must be from 0 to {MAX_LOG_SEGMENTS}, of a size that is not negative"
    limits = (spec.completion.max_runs, spec.completion.success_target, spec.completion.failure_limit)
    if any(limit.value is not None and limit.value < 1 for limit in limits):
        return "limits must be positive or unlimited"
    return None


def _check_exit_codes(spec: JobSpec) -> str | None:
    successes = spec.classification.success_codes or ()
    ranges = spec.classification.retryable_codes or ()
    if any(code < 0 for code in successes) or any(not 0 <= first <= last for first, last in ranges):
        return "exit codes must not be negative"
    if len(set(successes)) != len(successes):
        return "a success exit code is given twice"
    if any(later.first <= earlier.last for earlier, later in pairwise(ranges)):
        return "retryable exit codes must be in order and given once"
    for code in successes:
        if any(first <= code <= last for first, last in ranges):
            return f"exit code {code} is both a success and retryable"
    return None


def _check_dependencies(spec: JobSpec) -> str | None:
    ids = [dependency.job_id for dependency in spec.dependencies]
    for job_id, predicate in spec.dependencies:
        if not is_id(job_id):
            return f"dependency {job_id!r} is not a job ID"
        if not _is_predicate(predicate):
            return f"dependency predicate {predicate!r} is not known"
    return "a dependency is given twice" if len(set(ids)) != len(ids) else None


def _check_waiting(spec: JobSpec) -> str | None:
    if spec.pool is not None and (problem := name_problem("pool", spec.pool)):
        return problem
    if spec.pool is not None and spec.pool != spec.pool.strip():
        return f"pool {spec.pool!r} begins or ends with a space"
    problems = (condition_problem(condition) for condition in spec.waits.conditions)
    return next((problem for problem in problems if problem is not None), None)


def _is_predicate(text: str) -> bool:
    kind, separator, names = text.partition(":")
    if not separator:
        return kind in frozenset(Predicate)
    outcomes = names.split(",")
    return kind == "outcomes" and outcomes == sorted(set(outcomes)) and frozenset(JobOutcome).issuperset(outcomes)


def _check_notifications(spec: JobSpec) -> str | None:
    if not (spec.subscriptions or spec.notifiers):
        return None
    from jobman.model.notifiers import subscriptions_problem  # few jobs tell anybody

    return subscriptions_problem(spec.subscriptions, spec.notifiers)


_CHECKS: tuple[Callable[[JobSpec], str | None], ...] = (
    _check_command,
    _check_stdin,
    _check_environment,
    _check_labels,
    _check_numbers,
    _check_exit_codes,
    _check_dependencies,
    _check_waiting,
    _check_notifications,
)
