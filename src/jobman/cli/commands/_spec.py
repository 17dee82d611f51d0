"""From the flags of ``run`` to a job specification (contract, A.2 and E.2)."""

from __future__ import annotations

from jobman.errors import UsageError
from jobman.model.scalars import INT64_MAX
from jobman.model.spec import (
    Classification,
    Completion,
    Delay,
    Environment,
    ExitCodeRange,
    JobSpec,
    Limit,
    StopPolicy,
    Timeouts,
    is_environment_name,
    name_problem,
)
from jobman.service.submit import Requirement, resolve_dependencies
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


def specify(parsed: Parsed, store: Store, directory: str) -> JobSpec:
    """Return what the command line asks for.

    Raises:
        UsageError: a flag's value breaks a rule of the specification.
        JobNotFoundError: a dependency does not exist; and the other errors of `resolve_dependencies`.
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
        stop=StopPolicy(grace_ns=parsed.value("stop-grace")),
        completion=_completion(parsed.value("retries")),
        classification=_classification(parsed),
        failure_delay=Delay(base_ns=parsed.value("retry-delay")),
        timeouts=Timeouts(parsed.value("run-timeout"), parsed.value("job-timeout")),
        tags=_labels(parsed, "tag"),
        groups=_labels(parsed, "group"),
    )
    requirements = [Requirement(selector) for selector in parsed.value("after-success")]
    return spec._replace(dependencies=resolve_dependencies(store, requirements))


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


def _completion(retries: int) -> Completion:
    if retries >= INT64_MAX:
        raise UsageError(detail=f"--retries: {retries} runs and the first one are more than can be counted")
    return Completion(max_runs=Limit(retries + 1), success_target=Limit(1), failure_limit=Limit(retries + 1))


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
    return Classification(success_codes=accepted, retryable_codes=ranges or None)


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
