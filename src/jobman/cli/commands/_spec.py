"""From the flags of ``run`` to a job specification (contract, A.2 and E.2)."""

from __future__ import annotations

from jobman.cli.commands._waits import NO_WAITS, waits
from jobman.errors import UsageError
from jobman.model.scalars import INT64_MAX
from jobman.model.secrets import is_environment_name
from jobman.model.spec import (
    MAX_LOG_SEGMENTS,
    Backoff,
    Classification,
    Completion,
    Delay,
    Environment,
    ExitCodeRange,
    JobSpec,
    Limit,
    LogCapture,
    Logging,
    Predicate,
    StdinPolicy,
    StopPolicy,
    Timeouts,
)
from jobman.model.spec_rules import name_problem, validate
from jobman.service.submit import Requirement, check_admissible, resolve_dependencies
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.commands._waits import ConfiguredWaits
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


_PREDICATES = {
    "after-success": Predicate.SUCCESS,
    "after-finish": Predicate.FINISH,
    "after-failed": Predicate.FAILED,
}


def specify(
    parsed: Parsed, directory: str, stdin_path: str | None = None, *, configured: ConfiguredWaits = NO_WAITS
) -> JobSpec:
    """Return what the command line asks for, as far as it can be told without the store.

    Args:
        parsed: the command line.
        directory: the working directory of the job.
        stdin_path: the file that the command is to read, absolute and clean.
        configured: the wait conditions that a configuration adds.

    Raises:
        InvalidSpecError: the flags together break a rule of the specification.
        UsageError: a flag's value does.
    """
    executable, *arguments = parsed.trailing or ("",)
    name = parsed.value("name")
    if parsed.given("name") and (problem := name_problem("--name", name)):
        raise UsageError(detail=problem)
    spec = JobSpec(
        executable=executable,
        arguments=tuple(arguments),
        working_directory=directory,
        environment=_environment(parsed),
        name=name,
        stop=_stop(parsed),
        completion=_completion(parsed),
        classification=_classification(parsed),
        failure_delay=_delay(parsed, "retry-delay"),
        success_delay=_delay(parsed, "repeat-delay"),
        timeouts=Timeouts(parsed.value("run-timeout"), parsed.value("job-timeout")),
        tags=_labels(parsed, "tag"),
        groups=_labels(parsed, "group"),
        slots=parsed.value("slots"),
        pool=_pool(parsed),
        waits=waits(parsed, directory, configured),
        stdin=_stdin(parsed),
        stdin_path=stdin_path,
        logging=_logging(parsed),
    )
    return validate(spec)


def settle(parsed: Parsed, store: Store, spec: JobSpec) -> JobSpec:
    """Hold a specification to the limits of the store, and resolve what it depends on.

    Raises:
        ConflictError: the pool is unknown, the slots never fit, or dependencies contradict each other.
        JobNotFoundError: a dependency does not exist; and the other errors of `resolve_dependencies`.
    """
    check_admissible(store, spec)
    return spec._replace(dependencies=resolve_dependencies(store, _requirements(parsed)))


def _requirements(parsed: Parsed) -> list[Requirement]:
    named = [
        Requirement(selector, predicate) for flag, predicate in _PREDICATES.items() for selector in parsed.value(flag)
    ]
    return named + [Requirement(selector, predicate) for selector, predicate in parsed.value("after-outcome")]


def _stdin(parsed: Parsed) -> StdinPolicy:
    if parsed.given("stdin-file"):
        return StdinPolicy.FILE
    word, foreground = parsed.value("stdin"), parsed.value("foreground")
    if foreground and parsed.given("stdin") and word == "null":
        raise UsageError(detail="--stdin null and --foreground exclude each other: the input of the client is sent")
    if word == "inherit" and not foreground:
        raise UsageError(detail="--stdin inherit needs --foreground: a job in the background has no terminal")
    return StdinPolicy.LIVE if foreground or word == "live" else StdinPolicy.NULL


def _pool(parsed: Parsed) -> str | None:
    if not parsed.given("pool"):
        return None
    pool: str = parsed.value("pool")
    problem = name_problem("--pool", pool)
    if problem is not None:
        raise UsageError(detail=problem)
    return pool.strip()


def _environment(parsed: Parsed) -> Environment:
    # The last of a name wins; the parser has seen to it that there is a name and a "=".
    assignments = dict(text.split("=", 1) for text in parsed.value("env"))
    removals = tuple(sorted(set(parsed.value("unset-env"))))
    for flag, names in (("--env", assignments), ("--unset-env", removals)):
        for name in names:
            if not is_environment_name(name):
                raise UsageError(detail=f"{flag}: invalid name {name!r}: expected letters, digits and underscores")
    both = sorted(assignments.keys() & set(removals))
    if both:
        raise UsageError(detail=f"--env and --unset-env both name {both[0]}")
    return Environment(tuple(sorted(assignments.items())), removals)


def _completion(parsed: Parsed) -> Completion:
    retries = parsed.value("retries")
    if retries >= INT64_MAX:
        raise UsageError(detail=f"--retries: {retries} runs and the first one are more than can be counted")
    again = Limit(retries + 1)
    by_retries = parsed.given("retries")
    return Completion(
        max_runs=again if by_retries else _limit(parsed.value("max-runs")),
        success_target=_limit(parsed.value("success-target")),
        failure_limit=again if by_retries else _limit(parsed.value("failure-limit")),
        retry_abort_at_ns=parsed.value("retry-abort-at"),
    )


def _limit(value: int | str) -> Limit:
    return Limit(value if isinstance(value, int) else None)


def _delay(parsed: Parsed, flag: str) -> Delay:
    return Delay(
        base_ns=parsed.value(flag),
        backoff=Backoff(parsed.value("retry-backoff")),
        max_delay_ns=parsed.value("retry-max-delay") if parsed.given("retry-max-delay") else None,
        jitter_ns=parsed.value("retry-jitter"),
    )


def _classification(parsed: Parsed) -> Classification:
    successes, retryable = parsed.value("success-exit-code"), parsed.value("retryable-exit-code")
    if len(set(successes)) != len(successes):
        raise UsageError(detail="--success-exit-code: a code is given twice")
    if len(set(retryable)) != len(retryable):
        raise UsageError(detail="--retryable-exit-code: a code is given twice")
    accepted = successes or (0,)
    overlap = sorted(set(accepted) & set(retryable))
    if overlap:
        raise UsageError(detail=f"--retryable-exit-code: {overlap[0]} already counts as success")
    ranges = tuple(ExitCodeRange(code, code) for code in sorted(retryable))
    signals = tuple(dict.fromkeys(parsed.value("retry-signal")))
    return Classification(
        success_codes=accepted,
        retryable_codes=ranges or None,
        retry_timeout=parsed.value("retry-timeouts"),
        retry_start_failure=parsed.value("retry-start-failures"),
        retryable_signals=signals or None,
    )


def _stop(parsed: Parsed) -> StopPolicy:
    return StopPolicy(
        grace_ns=parsed.value("stop-grace"),
        force_after_grace=parsed.value("force-after-grace"),
        drain_ns=parsed.value("drain-timeout"),
        leave_descendants=parsed.value("leave-descendants"),
    )


def _labels(parsed: Parsed, flag: str) -> tuple[str, ...]:
    labels: tuple[str, ...] = parsed.value(flag)
    for label in labels:
        problem = name_problem(f"--{flag}", label)
        if problem is None and label != label.strip():
            problem = f"--{flag}: {label!r} begins or ends with a space"
        if problem is None and labels.count(label) > 1:
            problem = f"--{flag}: {label!r} is given twice"
        if problem is not None:
            raise UsageError(detail=problem)
    return tuple(sorted(labels))


def _logging(parsed: Parsed) -> Logging:
    size, segments, age = (parsed.value(f"log-{name}") for name in ("segment-bytes", "segments", "retention"))
    if segments is not None and segments > MAX_LOG_SEGMENTS:
        raise UsageError(detail=f"--log-segments: {segments} is more than {MAX_LOG_SEGMENTS}")
    if segments is not None and size == 0:
        # It would have no effect (D14).
        raise UsageError(detail="--log-segments needs a size: give --log-segment-bytes too")
    return Logging(
        capture=LogCapture(parsed.value("log-capture")),
        segment_bytes=size,
        segments=segments or 0,
        retention_ns=None if age == "unlimited" else age,
        retention_stated=parsed.given("log-retention"),
    )
