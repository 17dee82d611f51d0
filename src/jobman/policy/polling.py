"""How often a supervisor looks at the store without having been woken (architecture, Polling; M40, D41; ADR 9)."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PER_SUPERVISOR_NS = 15_000_000
_SHORTEST_NS = 100_000_000
_LONGEST_NS = 2_500_000_000
_LONGEST_TICK_NS = 750_000_000
DRAW_RANGE = 1 << 16


def interval_ns(active_supervisors: int) -> int:
    """Return the pause between two looks: 15 ms for each active supervisor, from 100 ms to 2.5 s."""
    return min(_LONGEST_NS, max(_SHORTEST_NS, _PER_SUPERVISOR_NS * active_supervisors))


def next_look_ns(now_ns: int, active_supervisors: int, draw: Callable[[], int]) -> int:
    """Return when to look next: at a tick that all supervisors share, about an interval from now.

    Those that share a tick find in the processor's caches what the first of them has loaded, and cost less than half.
    Ticks are an interval apart, but at most 750 ms, so that hundreds do not all wake at once; a longer interval is
    varied by ± 10 % and ends at the nearest tick: only then is ``draw`` asked for a uniform integer from
    ``[0, DRAW_RANGE)``.
    """
    interval = interval_ns(active_supervisors)
    if interval <= _LONGEST_TICK_NS:
        return (now_ns // interval + 1) * interval
    due_ns = now_ns + interval * 9 // 10 + interval * draw() // (5 * DRAW_RANGE)
    return (due_ns + _LONGEST_TICK_NS // 2) // _LONGEST_TICK_NS * _LONGEST_TICK_NS
