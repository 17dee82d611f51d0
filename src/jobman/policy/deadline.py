"""How much time is left (contract, H.5): monotonic, paused time deducted, nothing fires while paused."""

from __future__ import annotations

from jobman.values import NamedTuple


class Budget(NamedTuple):
    """A time limit that has been running since ``started_ns`` (monotonic), with ``paused_ns`` taken off.

    ``limit_ns`` 0 is no limit.
    """

    limit_ns: int
    started_ns: int
    paused_ns: int = 0

    def due_ns(self) -> int | None:
        """Return the monotonic time at which the budget is used up, or ``None`` if there is no limit."""
        return self.started_ns + self.limit_ns + self.paused_ns if self.limit_ns else None

    def is_spent(self, now_ns: int) -> bool:
        """Say whether the limit has been reached at the monotonic time ``now_ns``."""
        due_ns = self.due_ns()
        return due_ns is not None and now_ns >= due_ns
