"""Fakes for programs that test against Jobman."""

from __future__ import annotations


class FakeClock:
    """A clock that stands still until it is told to go on; satisfies ``jobman.clock.Clock``.

    Args:
        wall_ns: what the wall clock shows at first, in nanoseconds since the Unix epoch.
        monotonic_ns: what the monotonic and the boot-time clock show at first, in nanoseconds.
    """

    def __init__(self, *, wall_ns: int = 1_800_000_000_000_000_000, monotonic_ns: int = 1_000_000_000) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._asleep_ns = 0

    def wall_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._wall_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds that stand still during ``sleep``."""
        return self._monotonic_ns

    def boottime_ns(self) -> int:
        """Nanoseconds that go on during ``sleep``."""
        return self._monotonic_ns + self._asleep_ns

    def advance(self, ns: int) -> None:
        """Let ``ns`` nanoseconds pass on all three clocks; never negative."""
        if ns < 0:
            raise ValueError("only the wall clock goes back: use set_wall")
        self._wall_ns += ns
        self._monotonic_ns += ns

    def sleep(self, ns: int) -> None:
        """Suspend the machine for ``ns`` nanoseconds: the monotonic clock stands still."""
        self._wall_ns += ns
        self._asleep_ns += ns

    def set_wall(self, wall_ns: int) -> None:
        """Set the wall clock, forward or back, as an administrator does; the other clocks do not move."""
        self._wall_ns = wall_ns
