"""Which specifications are valid (contract, section E.3): one check for each concern, which names the broken rule."""

from __future__ import annotations

from itertools import pairwise

from jobman.errors import InvalidSpecError
from jobman.model.ids import is_id
from jobman.model.scalars import INT64_MAX
from jobman.model.secrets import is_environment_name, secrets_problem
from jobman.model.spec import MAX_LOG_SEGMENTS, Predicate, StdinPolicy
from jobman.model.state import JobOutcome
from jobman.model.waits import condition_problem
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.model.spec import JobSpec


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
