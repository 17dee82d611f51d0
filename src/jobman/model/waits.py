"""Conditions that hold a first run back: a time, a delay, a path, a probe (contract, E.1 and E.3; M14)."""

from __future__ import annotations

from jobman.model.secrets import secrets_problem
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.secrets import SecretVariable

DEFAULT_POLL_NS = 250_000_000
DEFAULT_PROBE_POLL_NS = 1_000_000_000
DEFAULT_PROBE_TIMEOUT_NS = 30_000_000_000
DEFAULT_PROBE_OUTPUT = 65_536


class WaitKind(StrEnum):
    """What is waited for."""

    UNTIL = "until"
    DELAY = "delay"
    FILE_EXISTS = "file_exists"
    PROBE = "probe"


class FileKind(StrEnum):
    """What a path must be; a symbolic link is not followed."""

    ANY = "any"
    REGULAR = "regular"
    DIRECTORY = "directory"
    SYMLINK = "symlink"


class WaitMode(StrEnum):
    """How many of the conditions must hold."""

    ALL = "all"
    ANY = "any"


class Probe(NamedTuple):
    """A program whose exit status 0 says yes; executed without a shell.

    ``working_directory`` "" is the job's. ``assignments``, ``removals`` and ``secrets`` change the environment that the
    target would get. Its output is read and thrown away: ``output_limit`` says how much of it could be kept, and none
    is.
    """

    executable: str
    arguments: tuple[str, ...] = ()
    working_directory: str = ""
    assignments: tuple[tuple[str, str], ...] = ()
    removals: tuple[str, ...] = ()
    timeout_ns: int = DEFAULT_PROBE_TIMEOUT_NS
    output_limit: int = DEFAULT_PROBE_OUTPUT
    fatal_on_error: bool = False
    secrets: tuple[SecretVariable, ...] = ()


class WaitCondition(NamedTuple):
    """One condition; of ``until_ns``, ``delay_ns``, ``path`` with ``file_kind``, and ``probe`` only its kind's is set.

    A job whose first run has not begun at ``abort_at_ns`` is aborted, whatever the other conditions say.
    """

    kind: WaitKind
    until_ns: int | None = None
    delay_ns: int = 0
    path: str | None = None
    file_kind: FileKind | None = None
    probe: Probe | None = None
    poll_interval_ns: int = DEFAULT_POLL_NS
    abort_at_ns: int | None = None


class Waits(NamedTuple):
    """All conditions of a job, and how they are combined; no condition is no wait."""

    mode: WaitMode = WaitMode.ALL
    conditions: tuple[WaitCondition, ...] = ()


def condition_problem(condition: WaitCondition) -> str | None:
    """Return the first rule of E.3 that a condition breaks, in words, or ``None``."""
    if condition.poll_interval_ns <= 0:
        return "the poll interval of a wait condition must be positive"
    if condition.abort_at_ns is not None and condition.abort_at_ns < 0:
        return "a wait condition must not abort before 1970"
    if condition.delay_ns < 0:
        return "a delay must not be negative"
    if _parts_given(condition) != _PARTS[condition.kind]:
        return f"a wait condition of kind {condition.kind} needs exactly what belongs to it"
    if condition.path is not None and (not condition.path or "\0" in condition.path):
        return "the path of a wait condition must not be empty or contain NUL bytes"
    return None if condition.probe is None else _probe_problem(condition.probe)


_PARTS = {
    WaitKind.UNTIL: (True, False, False, False),
    WaitKind.DELAY: (False, False, False, False),
    WaitKind.FILE_EXISTS: (False, True, True, False),
    WaitKind.PROBE: (False, False, False, True),
}


def _parts_given(condition: WaitCondition) -> tuple[bool, ...]:
    parts = (condition.until_ns, condition.path, condition.file_kind, condition.probe)
    return tuple(part is not None for part in parts)


def _probe_problem(probe: Probe) -> str | None:
    if not probe.executable:
        return "a probe needs a command"
    words = (probe.executable, *probe.arguments, probe.working_directory, *(value for _, value in probe.assignments))
    if any("\0" in word for word in words):
        return "a probe must not contain NUL bytes"
    if probe.working_directory and not probe.working_directory.startswith("/"):
        return f"the working directory of a probe, {probe.working_directory!r}, is not absolute"
    if probe.timeout_ns <= 0 or probe.output_limit <= 0:
        return "the timeout and the output limit of a probe must be positive"
    return secrets_problem(probe.secrets, {*(name for name, _ in probe.assignments), *probe.removals})
