"""Wait conditions as members of the canonical specification (contract, E.1: WAIT and PROBE)."""

from __future__ import annotations

from jobman.model.scalars import format_duration, format_timestamp, parse_duration, parse_timestamp
from jobman.model.secrets import secrets_document, secrets_from
from jobman.model.strict import Reader, strings, texts
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.strict import Document


def waits_members(waits: Waits) -> Document:
    """Return ``wait_mode`` and ``wait_conditions``."""
    return {
        "wait_mode": waits.mode.value,
        "wait_conditions": [_condition_document(condition) for condition in waits.conditions],
    }


def waits_from(policy: Reader) -> Waits:
    """Take ``wait_mode`` and ``wait_conditions`` from an execution policy."""
    mode = WaitMode(policy.take("wait_mode", str))
    return Waits(mode, tuple(_condition(item) for item in policy.take("wait_conditions", list)))


def _condition_document(condition: WaitCondition) -> Document:
    optional = {
        "until": None if condition.until_ns is None else format_timestamp(condition.until_ns),
        "path": condition.path,
        "file_kind": condition.file_kind,
        "probe": None if condition.probe is None else _probe_document(condition.probe),
        "abort_at": None if condition.abort_at_ns is None else format_timestamp(condition.abort_at_ns),
    }
    return {
        "kind": condition.kind.value,
        "delay": format_duration(condition.delay_ns),
        "poll_interval": format_duration(condition.poll_interval_ns),
        **{name: value for name, value in optional.items() if value is not None},
    }


def _probe_document(probe: Probe) -> Document:
    return {
        "executable": probe.executable,
        "arguments": list(probe.arguments),
        "working_directory": probe.working_directory,
        "environment": dict(probe.assignments),
        "unset_environment": sorted(probe.removals),
        "secret_environment": secrets_document(probe.secrets),
        "timeout": format_duration(probe.timeout_ns),
        "output_limit": probe.output_limit,
        "fatal_on_error": probe.fatal_on_error,
    }


def _condition(value: object) -> WaitCondition:
    with Reader(value) as reader:
        until = reader.take_optional("until", str)
        abort_at = reader.take_optional("abort_at", str)
        file_kind = reader.take_optional("file_kind", str)
        probe = reader.take_optional("probe", dict)
        return WaitCondition(
            kind=WaitKind(reader.take("kind", str)),
            until_ns=None if until is None else parse_timestamp(until),
            delay_ns=parse_duration(reader.take("delay", str)),
            path=reader.take_optional("path", str),
            file_kind=None if file_kind is None else FileKind(file_kind),
            probe=None if probe is None else _probe(probe),
            poll_interval_ns=parse_duration(reader.take("poll_interval", str)),
            abort_at_ns=None if abort_at is None else parse_timestamp(abort_at),
        )


def _probe(value: object) -> Probe:
    with Reader(value) as reader:
        return Probe(
            executable=reader.take("executable", str),
            arguments=strings(reader.take("arguments", list)),
            working_directory=reader.take("working_directory", str),
            assignments=texts(reader.take("environment", dict)),
            removals=strings(reader.take("unset_environment", list)),
            timeout_ns=parse_duration(reader.take("timeout", str)),
            output_limit=reader.take("output_limit", int),
            fatal_on_error=reader.take("fatal_on_error", bool),
            secrets=secrets_from(reader.take("secret_environment", dict)),
        )
