"""What the end of a run means (contract, F.4 and H.3)."""

from __future__ import annotations

from jobman.model.state import RunExit, RunOutcome, StopReason
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.spec import Classification
    from jobman.model.state import Job, Run

_PROCESS_TERMINATED = "process_terminated"


def run_outcome(job: Job, run: Run, *, start_failed: bool, exit_: RunExit | None, rules: Classification) -> RunOutcome:
    """Return the outcome of a run that has ended, in the fixed order of F.4: intent, stop, failed start, exit."""
    if job.intent is not None:
        return RunOutcome.TIMED_OUT if job.intent == StopReason.TIMEOUT else RunOutcome.CANCELLED
    if run.stop_reason == StopReason.TIMEOUT:
        return RunOutcome.TIMED_OUT
    if start_failed or exit_ is None:
        return RunOutcome.START_FAILED
    return RunOutcome.SUCCESS if is_success(exit_, rules) else RunOutcome.FAILURE


def is_success(exit_: RunExit, rules: Classification) -> bool:
    """Say whether an exit counts as success: a code in the list, ``(0,)`` when there is none."""
    codes = (0,) if rules.success_codes is None else rules.success_codes
    return exit_.exit_code is not None and exit_.exit_code in codes


def recorded_exit(outcome: RunOutcome, exit_: RunExit | None) -> RunExit | None:
    """Return what is stored of an exit: a stopped run keeps no exit code (F.4, O.47), but says that it was stopped."""
    if exit_ is None or exit_.exit_code is None or outcome in (RunOutcome.SUCCESS, RunOutcome.FAILURE):
        return exit_
    return RunExit(exit_.observed_at_ns, platform_reason=_PROCESS_TERMINATED)


def is_retryable(outcome: RunOutcome, exit_: RunExit | None, rules: Classification) -> bool:
    """Say whether another run may follow this failure."""
    if outcome == RunOutcome.TIMED_OUT:
        return rules.retry_timeout
    if outcome == RunOutcome.START_FAILED:
        return rules.retry_start_failure
    if outcome != RunOutcome.FAILURE or exit_ is None:
        return False
    if exit_.exit_code is None:
        return exit_.signal is not None and exit_.signal in (rules.retryable_signals or ())
    if rules.retryable_codes is None:
        return exit_.exit_code != 0
    return any(first <= exit_.exit_code <= last for first, last in rules.retryable_codes)
