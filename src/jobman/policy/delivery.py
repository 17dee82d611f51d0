"""What becomes of a delivery after an attempt: done, tried again, or given up (contract, L.3 and L.4; D5)."""

from __future__ import annotations

from jobman.model.scalars import INT64_MAX
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.notifiers import Notifier, RetryPolicy

_MOST_DOUBLINGS = 62


class DeliveryStatus(StrEnum):
    """Where a delivery, or one attempt at it, is."""

    PENDING = "pending"
    DELIVERING = "delivering"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class FailureCode(StrEnum):
    """Why an attempt, or a delivery, failed."""

    INVALID = "invalid"
    CANCELED = "canceled"
    TIMEOUT = "timeout"
    TRANSPORT = "transport"
    REJECTED = "rejected"
    INTERNAL = "internal"
    BUDGET_EXHAUSTED = "budget_exhausted"


class Result(NamedTuple):
    """What one attempt came to; ``code`` ``None`` is success. ``text`` is for people, and names no secret.

    ``retry_after_ns`` is how long the other side asked to be left alone. ``elsewhere``: only a process with another
    environment can tell whether it could be sent. ``output`` is shown to who tests a notifier, and kept nowhere.
    """

    code: FailureCode | None = None
    text: str = ""
    retryable: bool = False
    retry_after_ns: int = 0
    response_status_code: int | None = None
    response_truncated: bool = False
    command_exit_code: int | None = None
    message_id: str | None = None
    elsewhere: bool = False
    output: bytes = b""


class Verdict(NamedTuple):
    """What a delivery becomes; a pending one has ``next_attempt_at_ns``, a failed one a ``code``."""

    status: DeliveryStatus
    next_attempt_at_ns: int | None = None
    code: FailureCode | None = None


def after_attempt(result: Result, attempt: int, retry: RetryPolicy, *, now_ns: int, deadline_ns: int) -> Verdict:
    """Decide what follows attempt number ``attempt`` (from 1); nothing begins at the deadline or after it."""
    if result.code is None:
        return Verdict(DeliveryStatus.SUCCEEDED)
    if not result.retryable or attempt >= retry.max_attempts:
        return Verdict(DeliveryStatus.FAILED, code=result.code)
    next_ns = now_ns + retry_delay_ns(retry, attempt, result.retry_after_ns)
    if next_ns >= deadline_ns:
        return Verdict(DeliveryStatus.FAILED, code=FailureCode.BUDGET_EXHAUSTED)
    return Verdict(DeliveryStatus.PENDING, next_ns)


def retry_delay_ns(retry: RetryPolicy, attempt: int, retry_after_ns: int = 0) -> int:
    """Return the pause after attempt number ``attempt``: doubled each time, at least what was asked for, capped."""
    cap_ns = retry.max_delay_ns or INT64_MAX
    doubled_ns = retry.delay_ns << min(attempt - 1, _MOST_DOUBLINGS)
    return min(max(doubled_ns, retry_after_ns), cap_ns)


def shortest_span_ns(retry: RetryPolicy) -> int:
    """Return how long all attempts take at the least: the pauses between them."""
    return sum(retry_delay_ns(retry, attempt) for attempt in range(1, retry.max_attempts))


def outlasts_budget(notifier: Notifier) -> bool:
    """Say whether the last attempts can never take place, because the budget ends before them."""
    return shortest_span_ns(notifier.retry) >= notifier.budget_ns
