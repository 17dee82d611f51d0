"""What a configuration adds to the flags of ``run``: job specs, profiles, wait conditions, secrets (A.2, K.5).

A job of the configuration is laid under the command line as values of flags, so that the flags' rules are the only
ones: a new key that has a flag is a row of `_TEXTS` or `_LISTS`. What has no flag is added to the specification at the
end (`Request.complete`). Loaded only by those who name something of the configuration, or have retention there.
"""

from __future__ import annotations

import os

from jobman.cli.commands._waits import ConfiguredWaits
from jobman.config.select import look_up, select_job
from jobman.errors import UsageError
from jobman.model.scalars import parse_duration, parse_timestamp
from jobman.model.secrets import SecretVariable, is_environment_name
from jobman.model.spec_rules import validate
from jobman.model.waits import DEFAULT_PROBE_POLL_NS, FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jobman.cli.parser import Parsed
    from jobman.config.subscribing import Told
    from jobman.model.spec import JobSpec

    Block = Mapping[str, Any]

UNLIMITED = "unlimited"
_TEXTS = (
    ("name", "name"),
    ("stdin", "stdin"),
    ("stop.grace_period", "stop-grace"),
    ("stop.force_after_grace", "force-after-grace"),
    ("stop.drain_timeout", "drain-timeout"),
    ("stop.leave_descendants", "leave-descendants"),
    ("admission.pool", "pool"),
    ("admission.slots", "slots"),
    ("completion.max_runs", "max-runs"),
    ("completion.success_target", "success-target"),
    ("completion.failure_limit", "failure-limit"),
    ("completion.retry_timeouts", "retry-timeouts"),
    ("completion.retry_start_failures", "retry-start-failures"),
    ("delay.strategy", "retry-backoff"),
    ("delay.initial", "retry-delay"),
    ("delay.initial", "repeat-delay"),
    ("delay.max_delay", "retry-max-delay"),
    ("delay.jitter", "retry-jitter"),
    ("timeouts.run", "run-timeout"),
    ("timeouts.job", "job-timeout"),
    ("logging.capture", "log-capture"),
    ("logging.segment_bytes", "log-segment-bytes"),
    ("logging.segments_per_run", "log-segments"),
    ("logging.completed_log_max_age", "log-retention"),
)
_LISTS = (
    ("tags", "tag"),
    ("groups", "group"),
    ("environment.unset", "unset-env"),
    ("completion.success_exit_codes", "success-exit-code"),
    ("completion.retryable_exit_codes", "retryable-exit-code"),
    ("completion.retryable_signals", "retry-signal"),
    ("notification.notifiers", "notify"),
    ("notification.events", "notify-on"),
)
# Flags for which "unlimited" is a word; for the others no limit is what they are without a value.
_TAKE_UNLIMITED = frozenset(("max-runs", "success-target", "failure-limit", "log-retention"))
# What --retries decides itself.
_BY_RETRIES = ("max-runs", "failure-limit", "success-target", "retryable-exit-code")
# What --foreground decides itself.
_BY_CLIENT = ("stdin",)
# What was configured for other notifiers than those of --notify.
_BY_NOTIFIERS = ("notify-on",)
_FILE_KINDS = {"file": FileKind.REGULAR}


class Request(NamedTuple):
    """A command line over what is configured: its flags, its wait conditions, and what has no flag."""

    flags: Parsed
    waits: ConfiguredWaits
    job: Block
    retention: Block
    secrets: tuple[SecretVariable, ...]
    told: Told | None = None

    def complete(self, spec: JobSpec) -> JobSpec:
        """Return ``spec`` with what no flag can say.

        Raises:
            InvalidSpecError: the whole breaks a rule.
        """
        base = _member(self.job, "delay.base")
        if base is not None:
            spec = spec._replace(
                failure_delay=spec.failure_delay._replace(exponential_base=base),
                success_delay=spec.success_delay._replace(exponential_base=base),
            )
        # A flag cannot say that no exit code at all is a success.
        if _member(self.job, "completion.success_exit_codes") == [] and not self.flags.given("success-exit-code"):
            spec = spec._replace(classification=spec.classification._replace(success_codes=()))
        if "working_directory" in self.job and not self.flags.given("cwd"):
            spec = spec._replace(working_directory=self.job["working_directory"])
        age = self.retention.get("completed_log_max_age")
        if age is not None and not self.flags.given("log-retention"):
            age_ns = None if age == UNLIMITED else parse_duration(age)
            spec = spec._replace(logging=spec.logging._replace(retention_ns=age_ns))
        if self.told is not None:
            spec = spec._replace(subscriptions=self.told.subscriptions, notifiers=self.told.notifiers)
        return validate(spec._replace(environment=spec.environment._replace(secrets=self.secrets)))


def request(parsed: Parsed, stated: Block, directory: str) -> Request:
    """Lay the command line over the job that it names in the configuration.

    Args:
        parsed: the command line.
        stated: what the sources state.
        directory: where relative paths of conditions begin (D32).

    Raises:
        UsageError: a name is not configured, names contradict each other, or nothing says what to run.
    """
    if parsed.trailing and parsed.given("job-spec"):
        raise UsageError(detail="run: --job-spec and a command exclude each other; --profile changes a command")
    if parsed.given("job-spec") and not parsed.value("job-spec"):
        raise UsageError(detail="--job-spec: the name is empty")
    job = select_job(stated, parsed.value("job-spec"), parsed.value("profile"))
    if not (parsed.trailing or job.get("command")):
        raise UsageError(detail="run: nothing says what to run: give a command, or a profile with one")
    flags = parsed.over(_flag_values(parsed, job))
    flags.trailing = parsed.trailing or tuple(job["command"])
    named = tuple(
        _condition(look_up(stated.get("wait_conditions", {}), "--wait-condition", name), stated, directory, None)
        for name in parsed.value("wait-condition")
    )
    waits = ConfiguredWaits(_waits(job, stated, directory), named)
    told = _told(flags, stated)
    return Request(flags, waits, job, stated.get("retention", {}), _secrets(parsed, stated, job), told)


def _told(flags: Parsed, stated: Block) -> Told | None:
    names, events = flags.value("notify"), flags.value("notify-on")
    if not (names or events):
        return None
    from jobman.config.subscribing import told  # few jobs tell anybody

    return told(stated, names, events)


def _flag_values(parsed: Parsed, job: Block) -> dict[str, str | tuple[str, ...]]:
    values: dict[str, str | tuple[str, ...]] = {}
    for path, flag in _TEXTS:
        value = _member(job, path)
        if value is not None and (value != UNLIMITED or flag in _TAKE_UNLIMITED):
            values[flag] = str(value).lower() if isinstance(value, bool) else str(value)
    for path, flag in _LISTS:
        items = _member(job, path)
        if items:
            values[flag] = tuple(map(str, items))
    settings = job.get("environment", {}).get("set", {})
    if settings:
        values["env"] = tuple(f"{name}={value}" for name, value in settings.items())
    dependencies = [f"{one['job']}={','.join(one['outcomes'])}" for one in job.get("dependencies", ())]
    if dependencies:
        values["after-outcome"] = tuple(dependencies)
    decided = (
        *(_BY_RETRIES if parsed.given("retries") else ()),
        *(_BY_CLIENT if parsed.value("foreground") else ()),
        *(_BY_NOTIFIERS if parsed.given("notify") else ()),
    )
    return {flag: text for flag, text in values.items() if flag not in decided}


def _member(block: Block, path: str) -> Any:  # the schema decides
    value: Any = block
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _secrets(parsed: Parsed, stated: Block, job: Block) -> tuple[SecretVariable, ...]:
    wanted = dict(job.get("environment", {}).get("secrets", {}))
    for text in parsed.value("secret-env"):
        name, _, secret = text.partition("=")
        if not is_environment_name(name):
            raise UsageError(detail=f"--secret-env: invalid name {name!r}: expected letters, digits and underscores")
        look_up(stated.get("secrets", {}), "--secret-env", secret)
        wanted[name] = secret
    return _resolved(wanted, stated)


def _resolved(wanted: Block, stated: Block) -> tuple[SecretVariable, ...]:
    """Return where each secret lies; what it is, only the supervisor asks."""
    places = {name: str(stated["secrets"][secret]).partition(":") for name, secret in sorted(wanted.items())}
    return tuple(SecretVariable(name, provider, locator) for name, (provider, _, locator) in places.items())


def _waits(job: Block, stated: Block, directory: str) -> Waits:
    wait = job.get("wait", {})
    abort_at_ns = parse_timestamp(wait["abort_at"]) if "abort_at" in wait else None
    conditions = (stated["wait_conditions"][name] for name in wait.get("conditions", ()))
    found = tuple(_condition(condition, stated, directory, abort_at_ns) for condition in conditions)
    return Waits(WaitMode(wait.get("mode", WaitMode.ALL)), found)


def _condition(condition: Block, stated: Block, directory: str, abort_at_ns: int | None) -> WaitCondition:
    made = WaitCondition(WaitKind(condition["type"].replace("-", "_")), abort_at_ns=abort_at_ns)
    if made.kind == WaitKind.UNTIL:
        return made._replace(until_ns=parse_timestamp(condition["until"]))
    if made.kind == WaitKind.DELAY:
        return made._replace(delay_ns=parse_duration(condition["delay"]))
    if made.kind == WaitKind.FILE_EXISTS:
        named = condition["file_exists"]
        path = "/" + os.path.normpath(os.path.join(directory, named["path"])).lstrip("/")
        word = named.get("type", "any")
        return made._replace(path=path, file_kind=_FILE_KINDS.get(word) or FileKind(word))
    probe = condition["probe"]
    poll_ns = parse_duration(probe["poll_interval"]) if "poll_interval" in probe else DEFAULT_PROBE_POLL_NS
    return made._replace(probe=_probe(probe, stated), poll_interval_ns=poll_ns)


def _probe(probe: Block, stated: Block) -> Probe:
    executable, *arguments = probe["command"]
    environment = probe.get("environment", {})
    made = Probe(
        executable,
        tuple(arguments),
        working_directory=probe.get("working_directory", ""),
        assignments=tuple(sorted(environment.get("set", {}).items())),
        removals=tuple(sorted(environment.get("unset", ()))),
        fatal_on_error=probe.get("fatal_on_error", False),
        secrets=_resolved(environment.get("secrets", {}), stated),
    )
    return made._replace(
        timeout_ns=parse_duration(probe["timeout"]) if "timeout" in probe else made.timeout_ns,
        output_limit=probe.get("output_limit", made.output_limit),
    )
