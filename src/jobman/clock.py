"""The only place that reads a clock.

Three clocks, three purposes: the wall clock for display and absolute deadlines, the monotonic clock for timeouts, and
the boot-time clock (which goes on while a laptop sleeps) for delays and backoff. Readings are integers of nanoseconds.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from typing import Protocol

    class Clock(Protocol):
        """Reads the three clocks; ``jobman.testing.FakeClock`` is the other implementation."""

        def wall_ns(self) -> int:
            """Nanoseconds since the Unix epoch."""
            ...

        def monotonic_ns(self) -> int:
            """Nanoseconds that never jump and stand still during system sleep."""
            ...

        def boottime_ns(self) -> int:
            """Nanoseconds that never jump and go on during system sleep."""
            ...

else:
    Clock = object  # a name for annotations, nothing to inherit from


class SystemClock:
    """The clocks of this machine."""

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return time.time_ns()  # noqa: TID251  # the one place it is allowed

    def monotonic_ns(self) -> int:
        """Nanoseconds of ``CLOCK_MONOTONIC``."""
        return time.monotonic_ns()

    def boottime_ns(self) -> int:
        """Nanoseconds of ``CLOCK_BOOTTIME``, or of the monotonic clock where there is none."""
        return _boottime_ns()


def _boottime_ns() -> int:
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic_ns() if boottime is None else time.clock_gettime_ns(boottime)
