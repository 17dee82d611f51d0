"""How often a supervisor looks at the store without having been woken (architecture, Polling; M40, D41)."""

from __future__ import annotations

_PER_SUPERVISOR_NS = 5_000_000
_SHORTEST_NS = 100_000_000
_LONGEST_NS = 2_500_000_000
DRAW_RANGE = 1 << 16


def interval_ns(active_supervisors: int, draw: int) -> int:
    """Return the pause before the next look: 5 ms for each active supervisor, from 100 ms to 2.5 s, ± 10 %.

    ``draw`` is a uniform integer from ``[0, DRAW_RANGE)``; it spreads supervisors that were started together.
    """
    base_ns = min(_LONGEST_NS, max(_SHORTEST_NS, _PER_SUPERVISOR_NS * active_supervisors))
    return base_ns * 9 // 10 + base_ns * draw // (5 * DRAW_RANGE)
