"""Whether the wait conditions of a job hold (contract, H.2; M14, D7)."""

from __future__ import annotations

from jobman.model.waits import WaitMode
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.waits import WaitCondition, Waits

EVALUATION_ERROR = "wait_evaluation_error"
PROBE_TIMEOUT = "probe_timeout"
WRITE_EVERY_NS = 1_000_000_000


class Evaluation(NamedTuple):
    """What one look at a condition gave: whether it holds, a code if the look failed, and whether that is fatal."""

    satisfied: bool
    code: str | None = None
    fatal: bool = False


class ConditionState(NamedTuple):
    """What is known of a condition; times are wall-clock, ``satisfied_at_ns`` is kept once set."""

    place: int
    kind: str
    attempts: int = 0
    evaluated_at_ns: int | None = None
    satisfied_at_ns: int | None = None
    code: str | None = None
    satisfied: bool = False
    fatal: bool = False

    def after(self, evaluation: Evaluation, at_ns: int) -> ConditionState:
        """Return the state after another evaluation."""
        satisfied_at_ns = self.satisfied_at_ns or (at_ns if evaluation.satisfied else None)
        return self._replace(
            attempts=self.attempts + 1,
            evaluated_at_ns=at_ns,
            satisfied_at_ns=satisfied_at_ns,
            code=evaluation.code,
            satisfied=evaluation.satisfied,
            fatal=evaluation.fatal,
        )

    def worth_writing(self, written: ConditionState | None) -> bool:
        """Say whether the store should learn of this now: news at once, repetitions once a second (C4)."""
        if written is None or self.evaluated_at_ns is None or written.evaluated_at_ns is None:
            return self.attempts > 0
        news = (self.satisfied_at_ns, self.code, self.fatal) != (written.satisfied_at_ns, written.code, written.fatal)
        return news or self.evaluated_at_ns - written.evaluated_at_ns >= WRITE_EVERY_NS


def hold(waits: Waits, states: tuple[ConditionState, ...]) -> bool:
    """Say whether the conditions together hold; none at all do."""
    if not waits.conditions:
        return True
    combine = all if waits.mode == WaitMode.ALL else any
    return combine(state.satisfied for state in states)


def failed(states: tuple[ConditionState, ...]) -> ConditionState | None:
    """Return the first condition that can never hold any more, which overrides every other."""
    return next((state for state in states if state.fatal), None)


def abort_deadline_ns(waits: Waits) -> int | None:
    """Return the earliest wall-clock time at which a job that has not begun is aborted."""
    deadlines = [condition.abort_at_ns for condition in waits.conditions if condition.abort_at_ns is not None]
    return min(deadlines, default=None)


def elapsed(condition: WaitCondition, *, wall_ns: int, since_claim_ns: int) -> bool:
    """Say whether a condition of time holds; a delay runs from the claim, on the boot-time clock."""
    if condition.until_ns is not None:
        return wall_ns >= condition.until_ns
    return since_claim_ns >= condition.delay_ns
