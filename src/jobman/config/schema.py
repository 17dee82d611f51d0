"""The configuration as pydantic models: the single definition of its keys, types, ranges and defaults (contract, K.4).

Only what one value says by itself is checked here; what values say of each other is `jobman.config.check`, because a
file may state a part of what others complete. Pydantic costs 35 ms to import, so only a configuration that is read
anew, and ``config schema``, load this module.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jobman.config import scalars
from jobman.config.leaves import (
    MAX_SLOTS,
    UNIQUE,
    AbsolutePath,
    AnyPath,
    Bool,
    ByteLimit,
    Codes,
    Command,
    CountLimit,
    Duration,
    DurationLimit,
    EnvironmentName,
    Events,
    FilledText,
    Label,
    Leaf,
    Limit,
    Name,
    Names,
    Outcome,
    Pattern,
    PositiveDuration,
    RunLimit,
    SecretReference,
    SecretVariables,
    Signal,
    Size,
    SlotLimit,
    Text,
    Time,
    Variables,
    choice,
    integer,
    integer_limit,
    not_empty,
    unique,
)
from jobman.config.scalars import UNLIMITED
from jobman.config.trees import KEY

# What need not be given and has no default; not an optional type, which would take null for a value.
ABSENT: Any = Field(default_factory=lambda: None)
SENDER: Any = Field(alias="from", default_factory=lambda: None)


class Block(BaseModel):
    """A mapping with known keys only."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=False)


class Concurrency(Block):
    """How many slots may be taken at once."""

    max_active_slots: SlotLimit = UNLIMITED
    pools: dict[Name, SlotLimit] = {}


class Retention(Block):
    """What cleaning removes."""

    completed_metadata_max_age: DurationLimit = UNLIMITED
    completed_log_max_age: DurationLimit = "720h0m0s"
    max_jobs: CountLimit = UNLIMITED
    max_runs_per_job: CountLimit = UNLIMITED
    max_log_bytes_per_job: ByteLimit = UNLIMITED
    max_total_log_bytes: ByteLimit = UNLIMITED


class Redaction(Block):
    """What must not be shown, beside what looks sensitive by its key."""

    names: list[FilledText] = []
    patterns: list[Pattern] = []


class Environment(Block):
    """Changes to the submitter's environment."""

    set: Variables = {}
    unset: Annotated[list[EnvironmentName], unique, UNIQUE] = []
    secrets: SecretVariables = {}


class FileExists(Block):
    """A path that is waited for."""

    path: AnyPath = ABSENT
    type: Annotated[str, choice("any", "file", "directory", "symlink")] = "any"


class Probe(Block):
    """A program that is asked."""

    command: Command = ABSENT
    working_directory: AbsolutePath = ABSENT
    environment: Environment = Environment()
    timeout: PositiveDuration = "30s"
    poll_interval: PositiveDuration = "1s"
    output_limit: Size = 65536
    fatal_on_error: Bool = False


class WaitCondition(Block):
    """What a first run waits for; of the last four keys, exactly the one that belongs to ``type``."""

    model_config = ConfigDict(json_schema_extra={"required": ["type"]})
    type: Annotated[str, choice("until", "delay", "file-exists", "probe")] = ABSENT
    until: Time = ABSENT
    delay: Duration = ABSENT
    file_exists: FileExists = ABSENT
    probe: Probe = ABSENT


class Retry(Block):
    """How often a delivery is tried."""

    max_attempts: Annotated[int, integer(1, 100)] = 3
    delay: Duration = "1s"
    max_delay: Duration = "1m0s"


class CommandEnvironment(Block):
    """The whole environment of a notifier's command."""

    set: Variables = {}
    secrets: SecretVariables = {}


class CommandNotifier(Block):
    """A program that is told."""

    command: Command = ABSENT
    environment: CommandEnvironment = CommandEnvironment()
    output_limit: Size = 65536


class HttpNotifier(Block):
    """An address that is posted to."""

    url: FilledText = ABSENT
    headers: dict[FilledText, Text] = {}
    secret_headers: dict[FilledText, Name] = {}
    signing_secret: Name = ABSENT
    allow_http: Bool = False
    allow_private_hosts: Bool = False
    follow_redirects: Bool = False


class SmtpNotifier(Block):
    """Somebody who is written to."""

    address: FilledText = ABSENT
    tls: Annotated[str, choice("starttls", "implicit")] = ABSENT
    username: FilledText = ABSENT
    password_secret: Name = ABSENT
    sender: FilledText = SENDER
    to: Annotated[list[FilledText], not_empty] = ABSENT
    subject_prefix: Text = ABSENT


class Notifier(Block):
    """Who is told of events; of the last three keys, exactly the one that belongs to ``type``."""

    model_config = ConfigDict(json_schema_extra={"required": ["type"]})
    type: Annotated[str, choice("command", "http", "smtp")] = ABSENT
    events: Events = []
    timeout: PositiveDuration = "10s"
    budget: PositiveDuration = "1m0s"
    retry: Retry = Retry()
    command: CommandNotifier = ABSENT
    http: HttpNotifier = ABSENT
    smtp: SmtpNotifier = ABSENT


class Stop(Block):
    """How a process tree is ended."""

    grace_period: Duration = "10s"
    force_after_grace: Bool = True
    drain_timeout: Duration = "10s"
    leave_descendants: Bool = False


class Dependency(Block):
    """Another job, and how it has to have ended."""

    job: FilledText
    outcomes: Annotated[list[Outcome], not_empty, unique, UNIQUE]


class Wait(Block):
    """What the first run waits for."""

    mode: Annotated[str, choice("all", "any")] = "all"
    conditions: Names = []
    abort_at: Time = ABSENT


class Admission(Block):
    """Which slots a run takes."""

    pool: Name = ABSENT
    slots: Annotated[int, integer(1, MAX_SLOTS, "a number of slots")] = 1


class Completion(Block):
    """When a job has had enough runs."""

    max_runs: RunLimit = 1
    success_target: RunLimit = 1
    failure_limit: RunLimit = 1
    success_exit_codes: Codes = [0]
    retryable_exit_codes: Codes = []
    retryable_signals: Annotated[list[Signal], unique, UNIQUE] = []
    retry_timeouts: Bool = False
    retry_start_failures: Bool = False


class Delay(Block):
    """The pause before another run."""

    strategy: Annotated[str, choice("constant", "linear", "exponential")] = "constant"
    initial: Duration = "0s"
    max_delay: DurationLimit = UNLIMITED
    base: Annotated[int, integer(1)] = 2
    jitter: Duration = "0s"


class Timeouts(Block):
    """Budgets of one run and of the whole job."""

    run: DurationLimit = UNLIMITED
    job: DurationLimit = UNLIMITED


class Logging(Block):
    """What is recorded of the output, and for how long."""

    capture: Annotated[str, choice("both", "stdout", "stderr", "none")] = "both"
    segment_bytes: ByteLimit = UNLIMITED
    segments_per_run: Annotated[Limit, integer_limit(1, 65535)] = UNLIMITED
    completed_log_max_age: DurationLimit = ABSENT


class Notification(Block):
    """Who is told of what happens to the job."""

    notifiers: Names = []
    events: Events = []


class Job(Block):
    """Everything that a job may be configured with."""

    command: Command = ABSENT
    name: Label = ABSENT
    tags: Names = []
    groups: Names = []
    working_directory: AbsolutePath = ABSENT
    environment: Environment = Environment()
    stdin: Annotated[str, Leaf(scalars.stdin, enum=["null", "live", None])] = "null"
    stop: Stop = Stop()
    dependencies: list[Dependency] = []
    wait: Wait = Wait()
    admission: Admission = Admission()
    completion: Completion = Completion()
    delay: Delay = Delay()
    timeouts: Timeouts = Timeouts()
    logging: Logging = Logging()
    notification: Notification = Notification()


class JobSpec(Job):
    """A job under a name."""

    model_config = ConfigDict(json_schema_extra={"required": ["command"]})


class Profile(Block):
    """Changes to a job under a name: what is not stated stays what it is."""

    job_spec: Name = ABSENT
    overrides: Job = Job()


class Configuration(Block):
    """A configuration file of Jobman."""

    schema_version: Annotated[int, integer(1, 1)] = 1
    trusted_project_roots: Annotated[list[AbsolutePath], unique, UNIQUE] = []
    concurrency: Concurrency = Concurrency()
    retention: Retention = Retention()
    secrets: dict[Name, SecretReference] = {}
    redaction: Redaction = Redaction()
    wait_conditions: dict[Name, WaitCondition] = {}
    notifiers: dict[Name, Notifier] = {}
    job_specs: dict[Name, JobSpec] = {}
    profiles: dict[Name, Profile] = {}


Path = tuple[str | int, ...]


class Finding(Exception):  # noqa: N818  # a step on the way to InvalidConfigError, which knows the place
    """What is wrong, and at which keys; several, in no order."""

    def __init__(self, problems: list[tuple[Path, str]]) -> None:
        super().__init__(problems)
        self.problems = problems


def validated(content: object) -> Configuration:
    """Return a configuration from plain values.

    Raises:
        Finding: it breaks the definition.
    """
    try:
        return Configuration.model_validate(content)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise Finding([_problem(one["loc"], one["type"], one.get("ctx", {})) for one in found]) from None


def stated(configuration: Configuration) -> dict[str, Any]:
    """Return what the sources have said, in canonical form, without defaults."""
    return configuration.model_dump(by_alias=True, exclude_unset=True)


def effective(configuration: Configuration) -> dict[str, Any]:
    """Return everything, defaults included; of profiles what they state, since the rest is not theirs."""
    document = configuration.model_dump(by_alias=True, exclude_none=True)
    document["profiles"] = stated(configuration).get("profiles", {})
    for spec in document["job_specs"].values():
        spec["logging"].setdefault("completed_log_max_age", None)
    return document


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file."""
    schema = Configuration.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _problem(location: tuple[int | str, ...], kind: str, context: dict[str, Any]) -> tuple[Path, str]:
    path = tuple(location)
    if kind == "value_error":
        return path, str(context["error"])
    if kind == "extra_forbidden":
        return (*path, KEY), f"unknown key: expected {scalars.one_of(_keys(path[:-1]))}"
    if kind == "list_type":
        return path, "expected a list"
    if kind == "missing":
        return path, "must be given"
    keys = _keys(path)
    return path, f"expected a mapping with the keys {', '.join(keys)}" if keys else "expected a mapping"


def _keys(path: Path) -> tuple[str, ...]:
    """Return the known keys of the mapping at ``path``, none if any will do."""
    kind: Any = Configuration
    for part in path:
        model = _model(kind)
        if model is not None:
            fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
            kind = fields.get(str(part))
        else:
            kind = (get_args(kind) or (None,))[-1]
    model = _model(kind)
    return () if model is None else tuple(field.alias or name for name, field in model.model_fields.items())


def _model(kind: Any) -> type[Block] | None:
    return kind if isinstance(kind, type) and issubclass(kind, Block) else None
