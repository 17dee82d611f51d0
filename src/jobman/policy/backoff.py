"""How long to wait before another run (contract, H.3)."""

from __future__ import annotations

from jobman.model.scalars import INT64_MAX
from jobman.model.spec import Backoff
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.spec import Delay


def delay_ns(delay: Delay, completed_runs: int, jitter_draw_ns: int = 0) -> int:
    """Return the pause after ``completed_runs`` (at least 1), in nanoseconds.

    ``jitter_draw_ns`` is a uniform draw from ``[0, delay.jitter_ns]``; half of the jitter is taken off it, so that the
    mean is the delay itself. The result lies in ``[0, cap]``; arithmetic saturates at the largest 64-bit integer.
    """
    cap = INT64_MAX if delay.max_delay_ns is None else delay.max_delay_ns
    plain = min(cap, _grown(delay, completed_runs))
    return min(cap, max(0, plain + jitter_draw_ns - delay.jitter_ns // 2))


def _grown(delay: Delay, completed_runs: int) -> int:
    if delay.backoff == Backoff.LINEAR:
        return min(INT64_MAX, delay.base_ns * completed_runs)
    if delay.backoff == Backoff.EXPONENTIAL and delay.base_ns and delay.exponential_base > 1:
        # 2**63 is out of range for any base, so larger exponents need not be computed.
        exponent = min(completed_runs - 1, 63)
        factor: int = delay.exponential_base**exponent
        return min(INT64_MAX, delay.base_ns * factor)
    return delay.base_ns
