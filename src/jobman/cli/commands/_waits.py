"""From the wait flags of ``run`` to wait conditions (contract, A.2; D32)."""

from __future__ import annotations

import os

from jobman.errors import UsageError
from jobman.model.waits import DEFAULT_POLL_NS, FileKind, WaitCondition, WaitKind, WaitMode, Waits
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


class ConfiguredWaits(NamedTuple):
    """Conditions that a configuration gives: those of the job, and those that ``--wait-condition`` names."""

    job: Waits = Waits()
    named: tuple[WaitCondition, ...] = ()


NO_WAITS = ConfiguredWaits()


def waits(parsed: Parsed, directory: str, configured: ConfiguredWaits = NO_WAITS) -> Waits:
    """Return the conditions of the job: configured, named, then those of the flags: times, delays, paths.

    Args:
        parsed: the command line.
        directory: the job's working directory; relative paths are of the submitter's, or of ``--cwd`` if given (D32).
        configured: what a configuration adds; ``--wait-abort-at`` is for what this command line names, ``--wait-poll``
            for everything.

    Raises:
        UsageError: a flag needs a condition and there is none, or a value is out of range.
    """
    poll_ns = parsed.value("wait-poll") if parsed.given("wait-poll") else DEFAULT_POLL_NS
    if poll_ns <= 0:
        raise UsageError(detail="--wait-poll: the interval must be positive")
    abort_at_ns = parsed.value("wait-abort-at")
    if abort_at_ns is not None and abort_at_ns < 0:
        raise UsageError(detail="--wait-abort-at: the time must not lie before 1970")
    common = {"poll_interval_ns": poll_ns, "abort_at_ns": abort_at_ns}
    conditions = [WaitCondition(WaitKind.UNTIL, until_ns=time, **common) for time in parsed.value("wait-until")]
    conditions += [WaitCondition(WaitKind.DELAY, delay_ns=delay, **common) for delay in parsed.value("wait-delay")]
    for path in parsed.value("wait-file"):
        absolute = _absolute(path, directory)
        conditions.append(WaitCondition(WaitKind.FILE_EXISTS, path=absolute, file_kind=FileKind.ANY, **common))
    if not (conditions or configured.job.conditions or configured.named):
        _refuse_without_condition(parsed)
    mode = WaitMode(parsed.value("wait-mode")) if parsed.given("wait-mode") else configured.job.mode
    named = configured.named
    if abort_at_ns is not None:
        named = tuple(condition._replace(abort_at_ns=abort_at_ns) for condition in named)
    before = (*configured.job.conditions, *named)
    if parsed.given("wait-poll"):
        before = tuple(condition._replace(poll_interval_ns=poll_ns) for condition in before)
    return Waits(mode, (*before, *conditions))


def _absolute(path: str, directory: str) -> str:
    if not path or "\0" in path:
        raise UsageError(detail=f"--wait-file: invalid path {path!r}")
    return "/" + os.path.normpath(os.path.join(directory, path)).lstrip("/")


def _refuse_without_condition(parsed: Parsed) -> None:
    for flag in ("wait-abort-at", "wait-poll", "wait-mode"):
        if parsed.given(flag):
            raise UsageError(detail=f"--{flag} needs a wait condition, such as --wait-file")
