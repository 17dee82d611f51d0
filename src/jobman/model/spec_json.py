"""The canonical JSON document of a specification (contract, E.1): what the store keeps and ``show --json`` prints.

Reading is strict: unknown members, duplicate keys, missing members and trailing data are refused, because a document
that is half understood would run something that nobody asked for.
"""

from __future__ import annotations

from jobman.errors import InvalidSpecError, InvalidValueError
from jobman.model.canonical import dump, load
from jobman.model.scalars import format_duration, format_timestamp, parse_duration, parse_timestamp
from jobman.model.secrets import secrets_document, secrets_from
from jobman.model.spec import (
    DEFAULT_DRAIN_TIMEOUT_NS,
    Backoff,
    Classification,
    Completion,
    Delay,
    Dependency,
    Environment,
    ExitCodeRange,
    JobSpec,
    Limit,
    LogCapture,
    Logging,
    StdinPolicy,
    StopPolicy,
    Timeouts,
)
from jobman.model.spec_rules import validate
from jobman.model.strict import Reader, integers, strings, texts, unique
from jobman.model.waits_json import waits_from, waits_members
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.notifiers import Notifier, Subscription
    from jobman.model.strict import Document

SCHEMA_VERSION = 2


def encode(spec: JobSpec) -> str:
    """Return the canonical document as compact ASCII JSON; lone surrogates survive as escapes."""
    return dump(to_document(spec))


def decode(text: str) -> JobSpec:
    """Return the specification that `encode` wrote.

    Raises:
        InvalidSpecError: the text is not such a document.
    """
    try:
        return validate(_from_document(load(text, unique)))
    except InvalidSpecError:
        raise
    except (AttributeError, InvalidValueError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise InvalidSpecError(detail=f"stored document: {error}") from error


def to_document(spec: JobSpec) -> Document:
    """Return the members of E.1 as plain JSON values."""
    document: Document = {
        "schema_version": SCHEMA_VERSION,
        "executable": spec.executable,
        "arguments": list(spec.arguments),
        "working_directory": spec.working_directory,
        "environment": {
            "inheritance": "submission",
            "set": dict(spec.environment.assignments),
            "unset": sorted(spec.environment.removals),
        },
        "stop_policy": _stop_document(spec.stop),
        "stdin_policy": spec.stdin.value,
        "execution_policy": _policy_document(spec),
    }
    if spec.name:
        document["name"] = spec.name
    return document


def _stop_document(stop: StopPolicy) -> Document:
    document: Document = {
        "grace_period": format_duration(stop.grace_ns),
        "force_after_grace": stop.force_after_grace,
    }
    # Members of our own are there only where they are used (contract, E.1 and A.16).
    if stop.drain_ns != DEFAULT_DRAIN_TIMEOUT_NS:
        document["drain_timeout"] = format_duration(stop.drain_ns)
    if stop.leave_descendants:
        document["leave_descendants"] = True
    return document


def _policy_document(spec: JobSpec) -> Document:
    # A member that is there only where its feature is used.
    stdin = {} if spec.stdin_path is None else {"stdin_path": spec.stdin_path}
    return {
        **stdin,
        "completion": _completion_document(spec.completion),
        "classification": _classification_document(spec.classification),
        "failure_delay": _delay_document(spec.failure_delay),
        "success_delay": _delay_document(spec.success_delay),
        "run_timeout": format_duration(spec.timeouts.run_ns),
        "job_timeout": format_duration(spec.timeouts.job_ns),
        "dependencies": [{"job_id": edge.job_id, "predicate": edge.predicate} for edge in spec.dependencies],
        "concurrency": {"slots": spec.slots} if spec.pool is None else {"pool": spec.pool, "slots": spec.slots},
        "tags": sorted(spec.tags),
        "groups": sorted(spec.groups),
        "log_capture": spec.logging.capture.value,
        "log_rotate_size": spec.logging.segment_bytes,
        "log_max_segments_per_stream": spec.logging.segments,
        "log_retention_max_age": format_duration(spec.logging.retention_ns or 0),
        "log_retention_unlimited": spec.logging.retention_ns is None,
        "log_retention_configured": True,
        # A member of our own: those of E.1 cannot tell a stated age from one that was configured (D11).
        **({"log_retention_stated": True} if spec.logging.retention_stated else {}),
        "secret_environment": secrets_document(spec.environment.secrets),
        **waits_members(spec.waits),
        **_notifications(spec),
        **_unused(),
    }


def _notifications(spec: JobSpec) -> Document:
    if not (spec.subscriptions or spec.notifiers):
        return {"notifications": [], "notifier_definitions": []}
    from jobman.model.notifiers_json import notifier_documents, subscription_documents  # few jobs tell anybody

    return {
        "notifications": subscription_documents(spec.subscriptions),
        "notifier_definitions": notifier_documents(spec.notifiers),
    }


def _unused() -> Document:
    """Members of E.1 whose features are not offered yet, at the value that means "not used"."""
    return {
        "foreground": False,
    }


def _limit_document(limit: Limit) -> Document:
    return {"unlimited": True} if limit.value is None else {"value": limit.value, "unlimited": False}


def _completion_document(completion: Completion) -> Document:
    document: Document = {
        "max_runs": _limit_document(completion.max_runs),
        "success_target": _limit_document(completion.success_target),
        "failure_limit": _limit_document(completion.failure_limit),
    }
    if completion.retry_abort_at_ns is not None:
        document["retry_abort_at"] = format_timestamp(completion.retry_abort_at_ns)
    return document


def _classification_document(classification: Classification) -> Document:
    codes, ranges = classification.success_codes, classification.retryable_codes
    signals = classification.retryable_signals
    return {
        "success_exit_codes": None if codes is None else list(codes),
        "retryable_exit_codes": None if ranges is None else [{"First": one.first, "Last": one.last} for one in ranges],
        "retryable_signals": None if signals is None else list(signals),
        "retryable_platform_reasons": None,
        "retry_timeout": classification.retry_timeout,
        "retry_start_failure": classification.retry_start_failure,
        "retry_cancellation": False,
    }


def _delay_document(delay: Delay) -> Document:
    return {
        "base": format_duration(delay.base_ns),
        "backoff": delay.backoff.value,
        "exponential_base": delay.exponential_base,
        "max_delay": None if delay.max_delay_ns is None else format_duration(delay.max_delay_ns),
        "jitter": format_duration(delay.jitter_ns),
    }


def _from_document(value: object) -> JobSpec:
    with Reader(value) as reader:
        reader.expect({"schema_version": SCHEMA_VERSION})
        with Reader(reader.take("execution_policy", dict)) as policy:
            policy.expect(_unused())
            return _specification(reader, policy)


def _specification(reader: Reader, policy: Reader) -> JobSpec:
    subscriptions, notifiers = _told(policy.take("notifications", list), policy.take("notifier_definitions", list))
    pool, slots = _concurrency(policy.take("concurrency", dict))
    return JobSpec(
        executable=reader.take("executable", str),
        arguments=strings(reader.take("arguments", list)),
        working_directory=reader.take("working_directory", str),
        environment=_environment(reader.take("environment", dict), policy.take("secret_environment", dict)),
        name=reader.take_optional("name", str) or "",
        stop=_stop(reader.take("stop_policy", dict)),
        stdin=StdinPolicy(reader.take("stdin_policy", str)),
        completion=_completion(policy.take("completion", dict)),
        classification=_classification(policy.take("classification", dict)),
        failure_delay=_delay(policy.take("failure_delay", dict)),
        success_delay=_delay(policy.take("success_delay", dict)),
        timeouts=Timeouts(
            run_ns=parse_duration(policy.take("run_timeout", str)),
            job_ns=parse_duration(policy.take("job_timeout", str)),
        ),
        dependencies=tuple(_dependency(item) for item in policy.take("dependencies", list)),
        slots=slots,
        pool=pool,
        waits=waits_from(policy),
        tags=strings(policy.take("tags", list)),
        groups=strings(policy.take("groups", list)),
        logging=_logging(policy),
        stdin_path=policy.take_optional("stdin_path", str),
        subscriptions=subscriptions,
        notifiers=notifiers,
    )


def _concurrency(value: object) -> tuple[str | None, int]:
    with Reader(value) as reader:
        return reader.take_optional("pool", str), reader.take("slots", int)


def _told(
    subscriptions: list[object], notifiers: list[object]
) -> tuple[tuple[Subscription, ...], tuple[Notifier, ...]]:
    if not (subscriptions or notifiers):
        return (), ()
    from jobman.model.notifiers_json import notifiers_from, subscriptions_from  # few jobs tell anybody

    return subscriptions_from(subscriptions), notifiers_from(notifiers)


def _environment(value: object, secrets: Document) -> Environment:
    with Reader(value) as reader:
        reader.expect({"inheritance": "submission"})
        settings = texts(reader.take("set", dict))
        return Environment(settings, strings(reader.take("unset", list)), secrets_from(secrets))


def _stop(value: object) -> StopPolicy:
    with Reader(value) as reader:
        drain = reader.take_optional("drain_timeout", str)
        return StopPolicy(
            grace_ns=parse_duration(reader.take("grace_period", str)),
            force_after_grace=reader.take("force_after_grace", bool),
            drain_ns=DEFAULT_DRAIN_TIMEOUT_NS if drain is None else parse_duration(drain),
            leave_descendants=reader.take_optional("leave_descendants", bool) or False,
        )


def _limit(value: object) -> Limit:
    with Reader(value) as reader:
        unlimited = reader.take("unlimited", bool)
        return Limit(None if unlimited else reader.take("value", int))


def _completion(value: object) -> Completion:
    with Reader(value) as reader:
        abort_at = reader.take_optional("retry_abort_at", str)
        return Completion(
            max_runs=_limit(reader.take("max_runs", dict)),
            success_target=_limit(reader.take("success_target", dict)),
            failure_limit=_limit(reader.take("failure_limit", dict)),
            retry_abort_at_ns=None if abort_at is None else parse_timestamp(abort_at),
        )


def _classification(value: object) -> Classification:
    with Reader(value) as reader:
        reader.expect({"retryable_platform_reasons": None, "retry_cancellation": False})
        codes = reader.take("success_exit_codes", (list, type(None)))
        ranges = reader.take("retryable_exit_codes", (list, type(None)))
        signals = reader.take("retryable_signals", (list, type(None)))
        return Classification(
            success_codes=None if codes is None else integers(codes),
            retryable_codes=None if ranges is None else tuple(_range(one) for one in ranges),
            retry_timeout=reader.take("retry_timeout", bool),
            retry_start_failure=reader.take("retry_start_failure", bool),
            retryable_signals=None if signals is None else strings(signals),
        )


def _range(value: object) -> ExitCodeRange:
    with Reader(value) as reader:
        return ExitCodeRange(reader.take("First", int), reader.take("Last", int))


def _delay(value: object) -> Delay:
    with Reader(value) as reader:
        cap = reader.take("max_delay", (str, type(None)))
        return Delay(
            base_ns=parse_duration(reader.take("base", str)),
            backoff=Backoff(reader.take("backoff", str)),
            exponential_base=reader.take("exponential_base", int),
            max_delay_ns=None if cap is None else parse_duration(cap),
            jitter_ns=parse_duration(reader.take("jitter", str)),
        )


def _dependency(value: object) -> Dependency:
    with Reader(value) as reader:
        return Dependency(reader.take("job_id", str), reader.take("predicate", str))


def _logging(policy: Reader) -> Logging:
    policy.expect({"log_retention_configured": True})
    unlimited = policy.take("log_retention_unlimited", bool)
    retention_ns = parse_duration(policy.take("log_retention_max_age", str))
    if unlimited and retention_ns:
        raise InvalidSpecError(detail="stored document: log retention is both unlimited and finite")
    return Logging(
        capture=LogCapture(policy.take("log_capture", str)),
        segment_bytes=policy.take("log_rotate_size", int),
        segments=policy.take("log_max_segments_per_stream", int),
        retention_ns=None if unlimited else retention_ns,
        retention_stated=bool(policy.take_optional("log_retention_stated", bool)),
    )
