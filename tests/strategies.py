"""Hypothesis strategies for specifications, facts, and snapshots reached by random legal histories."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jobman.model import spec as specs
from jobman.model.events import Transition
from jobman.model.identity import ProcessIdentity
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.scalars import INT64_MAX
from jobman.model.secrets import SecretVariable
from jobman.model.spec_rules import validate
from jobman.model.state import (
    Diagnostic,
    JobOutcome,
    JobPhase,
    LockFile,
    LogIntegrity,
    RecordingHealth,
    RunLogs,
    RunUsage,
    Snapshot,
)
from jobman.model.transitions._change import Now
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits
from tests.moves import (
    EPOCH_NS,
    HOUR_NS,
    MOVES,
    PLAIN,
    SECOND_NS,
    Choice,
    later,
    legal_moves,
    perform,
    reload,
    submitted,
)

# --- Text, numbers, identities -------------------------------------------------------------------------------------


def os_texts(*, min_size: int = 0, max_size: int = 12) -> st.SearchStrategy[str]:
    """Text as it comes from argv or the environment: bytes read with surrogate escapes, without NUL."""
    octets = st.binary(min_size=min_size, max_size=max_size)
    return octets.map(lambda raw: raw.replace(b"\0", b"/").decode("utf-8", "surrogateescape"))


def labels() -> st.SearchStrategy[str]:
    """Names, tags and groups: readable text without controls, not blank, without outer blanks."""
    text = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
    return text.map(str.strip).filter(bool)


def durations_ns(*, max_value: int = INT64_MAX) -> st.SearchStrategy[int]:
    """Nanoseconds, none, a few, and as many as 64 bits hold."""
    return st.one_of(st.just(0), st.integers(0, min(max_value, HOUR_NS)), st.integers(0, max_value))


def ids() -> st.SearchStrategy[str]:
    """Job, run and supervisor IDs."""
    millisecond = st.integers(EPOCH_NS, EPOCH_NS + HOUR_NS)
    return st.builds(new_id, millisecond, st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES))


def identities() -> st.SearchStrategy[ProcessIdentity]:
    """Processes on this and other boots, in this and other PID namespaces."""
    return st.builds(
        ProcessIdentity,
        pid=st.integers(1, 2**22),
        creation_id=st.integers(0, 2**40).map(str),
        boot_id=st.sampled_from((PLAIN.identity.boot_id, "0d6b7f0a-5a53-4c70-8d7c-5f1b1c7b2f5e")),
        pid_namespace=st.integers(4_026_531_836, 4_026_533_000).map(str),
    )


# --- Specifications ------------------------------------------------------------------------------------------------


def directories() -> st.SearchStrategy[str]:
    """Absolute paths in their shortest form."""
    part = os_texts(min_size=1).map(lambda text: text.replace("/", "_")).filter(lambda text: text not in (".", ".."))
    return st.lists(part, max_size=3).map(lambda parts: "/" + "/".join(parts))


@st.composite
def environments(draw: st.DrawFn) -> specs.Environment:
    """Changes to the environment in canonical order; no name is both set and removed."""
    name = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
    names = draw(st.lists(name, unique=True, max_size=5))
    border = draw(st.integers(0, len(names)))
    assignments = tuple((name, draw(os_texts())) for name in sorted(names[:border]))
    secret = st.builds(SecretVariable, name, st.just("env"), name) | st.builds(
        SecretVariable, name, st.just("file"), st.sampled_from(("/run/secret", "/a b/\u00e9"))
    )
    secrets = draw(st.lists(secret, unique_by=lambda one: one.name, max_size=2))
    free = sorted(one for one in secrets if one.name not in names)
    return specs.Environment(assignments, tuple(sorted(names[border:])), tuple(free))


def limits() -> st.SearchStrategy[specs.Limit]:
    """Positive limits, and none."""
    return st.builds(specs.Limit, st.none() | st.integers(1, 2**31))


def completions() -> st.SearchStrategy[specs.Completion]:
    """When a job has had enough."""
    abort_at = st.none() | st.integers(EPOCH_NS, EPOCH_NS + HOUR_NS)
    return st.builds(specs.Completion, limits(), limits(), limits(), abort_at)


@st.composite
def classifications(draw: st.DrawFn) -> specs.Classification:
    """Success codes, and ordered ranges of retryable codes that avoid them."""
    codes = draw(st.none() | st.lists(st.integers(0, 255), unique=True, max_size=3).map(tuple))
    ranges = None
    if draw(st.booleans()):
        edges = sorted(draw(st.sets(st.integers(0, 255), max_size=6)))
        pairs = [specs.ExitCodeRange(*pair) for pair in zip(edges[::2], edges[1::2], strict=False)]
        ranges = tuple(one for one in pairs if not any(one.first <= code <= one.last for code in codes or ()))
    signals = draw(st.none() | st.lists(st.sampled_from(("killed", "terminated")), unique=True).map(tuple))
    return specs.Classification(codes, ranges, draw(st.booleans()), draw(st.booleans()), signals)


def delays() -> st.SearchStrategy[specs.Delay]:
    """Delays of every shape."""
    return st.builds(
        specs.Delay,
        base_ns=durations_ns(),
        backoff=st.sampled_from(tuple(specs.Backoff)),
        exponential_base=st.integers(1, 2**31),
        max_delay_ns=st.none() | durations_ns(),
        jitter_ns=durations_ns(),
    )


def predicates() -> st.SearchStrategy[str]:
    """What E.4 allows a dependency to require."""
    several = st.sets(st.sampled_from(tuple(JobOutcome)), min_size=2).map(
        lambda some: "outcomes:" + ",".join(sorted(some))
    )
    return st.sampled_from(tuple(specs.Predicate)).map(str) | several


def dependencies() -> st.SearchStrategy[tuple[specs.Dependency, ...]]:
    """Edges to different jobs."""
    edge = st.builds(specs.Dependency, ids(), predicates())
    return st.lists(edge, unique_by=lambda one: one.job_id, max_size=3).map(tuple)


def loggings() -> st.SearchStrategy[specs.Logging]:
    """What is recorded of the output, and for how long."""
    return st.builds(
        specs.Logging,
        capture=st.sampled_from(tuple(specs.LogCapture)),
        segment_bytes=st.integers(0, 2**40),
        segments=st.integers(0, 65_535),
        retention_ns=st.none() | durations_ns(),
    )


def probes() -> st.SearchStrategy[Probe]:
    """Probes with every field varied."""
    return st.builds(
        Probe,
        executable=os_texts(min_size=1),
        arguments=st.lists(os_texts(), max_size=2).map(tuple),
        working_directory=st.just("") | directories(),
        assignments=environments().map(lambda environment: environment.assignments),
        removals=st.just(()),
        timeout_ns=st.integers(1, INT64_MAX),
        output_limit=st.integers(1, 2**31),
        fatal_on_error=st.booleans(),
    )


@st.composite
def wait_conditions(draw: st.DrawFn) -> WaitCondition:
    """Conditions of every kind."""
    kind = draw(st.sampled_from(tuple(WaitKind)))
    times = st.integers(0, 2**62)
    return WaitCondition(
        kind,
        until_ns=draw(times) if kind == WaitKind.UNTIL else None,
        delay_ns=draw(durations_ns()) if kind == WaitKind.DELAY else 0,
        path=draw(directories()) if kind == WaitKind.FILE_EXISTS else None,
        file_kind=draw(st.sampled_from(tuple(FileKind))) if kind == WaitKind.FILE_EXISTS else None,
        probe=draw(probes()) if kind == WaitKind.PROBE else None,
        poll_interval_ns=draw(st.integers(1, INT64_MAX)),
        abort_at_ns=draw(st.none() | times),
    )


def waits() -> st.SearchStrategy[Waits]:
    """Some conditions, combined either way."""
    return st.builds(
        Waits,
        mode=st.sampled_from(tuple(WaitMode)),
        conditions=st.lists(wait_conditions(), max_size=2).map(tuple),
    )


def job_specs() -> st.SearchStrategy[specs.JobSpec]:
    """Valid specifications in canonical order, every field varied."""
    tags = st.sets(labels(), max_size=3).map(lambda some: tuple(sorted(some)))
    return st.builds(
        specs.JobSpec,
        executable=os_texts(min_size=1),
        arguments=st.lists(os_texts(), max_size=4).map(tuple),
        working_directory=directories(),
        environment=environments(),
        name=st.just("") | labels(),
        stop=st.builds(specs.StopPolicy, durations_ns(), st.booleans(), durations_ns(), st.booleans()),
        stdin=st.sampled_from(tuple(specs.StdinPolicy)),
        completion=completions(),
        classification=classifications(),
        failure_delay=delays(),
        success_delay=delays(),
        timeouts=st.builds(specs.Timeouts, durations_ns(), durations_ns()),
        dependencies=dependencies(),
        slots=st.integers(1, INT64_MAX),
        pool=st.none() | labels(),
        waits=waits(),
        tags=tags,
        groups=tags,
        logging=loggings(),
        stdin_path=directories(),
    ).map(lambda spec: validate(_without_stray_path(spec)))


def _without_stray_path(spec: specs.JobSpec) -> specs.JobSpec:
    return spec if spec.stdin == specs.StdinPolicy.FILE else spec._replace(stdin_path=None)


# --- Facts that transitions need ------------------------------------------------------------------------------------


def final_logs() -> st.SearchStrategy[RunLogs]:
    """The record of a completed run's output."""
    sizes = st.none() | st.integers(0, 2**40)
    return st.builds(
        RunLogs,
        integrity=st.sampled_from((LogIntegrity.VALID, LogIntegrity.PARTIAL, LogIntegrity.CORRUPT)),
        health=st.sampled_from(tuple(RecordingHealth)),
        diagnostic_code=st.none() | st.just(Diagnostic.LOG_CAPTURE_DEGRADED.value),
        # Hypothesis fills every field of a named tuple, those with a default too.
        index_version=st.sampled_from((1, 2)),
        stdout_bytes=sizes,
        stderr_bytes=sizes,
    )


_COUNTS = st.integers(0, 2**40)
_FACTS: dict[str, st.SearchStrategy[Any]] = {
    "identity": identities(),
    "lock": st.builds(LockFile, _COUNTS, _COUNTS),
    "slots": st.integers(1, 8),
    "exit_code": st.integers(0, 255),
    "signal": st.none() | st.sampled_from(("killed", "terminated", "segmentation fault")),
    "skew_ns": st.integers(-HOUR_NS, HOUR_NS),
    "logs": final_logs(),
    "usage": st.none() | st.builds(RunUsage, _COUNTS, _COUNTS, _COUNTS),
    "retry_ns": st.just(0) | st.integers(0, HOUR_NS) | st.none(),
    "outcome": st.sampled_from((JobOutcome.SUCCESS, JobOutcome.FAILURE, JobOutcome.ABORTED)),
    "release_slots": st.booleans(),
    "detail": st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8),
}


def choices(*facts: str) -> st.SearchStrategy[Choice]:
    """Generated facts, all or those named, the others as in `PLAIN`; the credential is always the right one."""
    chosen = {name: _FACTS[name] for name in facts or _FACTS}
    return st.fixed_dictionaries(chosen).map(lambda values: PLAIN._replace(**values))


# --- Histories ------------------------------------------------------------------------------------------------------

# Most moves would end a job early, and its history with it: these come up seldom.
_SELDOM = frozenset(("expire", "withdraw", "abort", "time_out_idle", "lose", "cancel", "job_timeout"))
# Only what a move looks at is generated for it: that halves the cost of a history.
_CHOICES = dict.fromkeys(MOVES, st.just(PLAIN)) | {
    "claim": choices("identity", "lock"),
    "withdraw": choices("detail"),
    "admit": choices("slots"),
    "start": choices("identity"),
    "end": choices("exit_code", "signal", "skew_ns", "logs", "usage", "retry_ns", "outcome", "detail"),
    "lose": choices("logs", "release_slots", "detail"),
}


@st.composite
def instants_after(draw: st.DrawFn, now: Now) -> Now:
    """Later instants: soon, rarely much later, and now and then with the wall clock set forward or back."""
    kind = draw(st.integers(0, 15))
    elapsed_ns = draw(st.integers(0, HOUR_NS if kind == 15 else SECOND_NS))
    return later(now, elapsed_ns, draw(st.integers(-HOUR_NS, HOUR_NS)) if kind in (13, 14) else 0)


@st.composite
def next_moves(draw: st.DrawFn, snapshot: Snapshot, now: Now) -> tuple[str, Choice]:
    """A legal move and its facts; ``snapshot`` must not be completed."""
    legal = legal_moves(snapshot, now)
    usual = [name for name in legal if name not in _SELDOM]
    name = draw(st.sampled_from(usual if usual and draw(st.integers(0, 9)) != 9 else legal))
    return name, draw(_CHOICES[name])


@st.composite
def histories(draw: st.DrawFn, *, max_moves: int = 20, job_id: str | None = None) -> list[Transition]:
    """Random legal histories of one job: its submission, then up to ``max_moves`` transitions.

    The ``before`` of each is the `reload` of the one before it.
    """
    now = Now(EPOCH_NS, draw(st.integers(0, HOUR_NS)))
    history = [submitted(job_id or draw(ids()), draw(st.just("") | labels()), now)]
    for _ in range(max_moves):
        now = draw(instants_after(now))
        snapshot = reload(history[-1].after)
        if snapshot.job.phase == JobPhase.COMPLETED:
            break
        name, choice = draw(next_moves(snapshot, now))
        perform(history, name, now, choice)
    return history


def snapshots(*, max_moves: int = 20) -> st.SearchStrategy[Snapshot]:
    """Snapshots as a store reads them, somewhere in a random legal history."""
    return histories(max_moves=max_moves).flatmap(st.sampled_from).map(lambda change: reload(change.after))
