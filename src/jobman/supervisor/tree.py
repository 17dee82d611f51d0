"""The processes of the active run, as its supervisor looks at them, signals them and reaps them."""

from __future__ import annotations

from jobman import process
from jobman.supervisor import stop
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.clock import Clock
    from jobman.model.identity import ProcessIdentity
    from jobman.process import Member, RunTree

_RESCAN_NS = 20_000_000
_DYING_NS = 1_000_000_000
_NAMED_AT_MOST = 10


class LivingTree:
    """The tree of one run, from the fork of its leader until that is reaped.

    Attributes:
        suspended_ns: monotonic time at which we stopped it with SIGSTOP; ``None`` while it may go on.
        usage: what the reaped used, the leader excepted.
    """

    def __init__(self, tree: RunTree, clock: Clock) -> None:
        self.suspended_ns: int | None = None
        self.usage = process.Usage()
        self._tree = tree
        self._clock = clock
        self._seen: tuple[Member, ...] | None = None
        self._looked_ns = 0
        self._killed_ns: dict[ProcessIdentity, int] = {}

    def outliving(self) -> tuple[Member, ...]:
        """Return what is left beside a leader that has ended, as of 20 ms ago at most."""
        now_ns = self._clock.monotonic_ns()
        if self._seen is None or now_ns - self._looked_ns >= _RESCAN_NS:
            self._looked_ns = now_ns
            self._seen = process.members(self._tree) if process.has_members(self._tree) else ()
        return self._seen

    def unkillable(self) -> str:
        """Name what is still there a second after it was sent SIGKILL: uninterruptible, or another user's; "" if none.

        Costs nothing until SIGKILL has been sent.
        """
        long_ago_ns = self._clock.monotonic_ns() - _DYING_NS
        overdue = {identity for identity, killed_ns in self._killed_ns.items() if killed_ns <= long_ago_ns}
        left = [member for member in process.members(self._tree) if member.identity in overdue] if overdue else []
        return f"{named(left)} survives SIGKILL" if left else ""

    def suspend(self) -> None:
        """Stop it with SIGSTOP, members that appear meanwhile included."""
        began_ns = self._clock.monotonic_ns()
        stop.suspend(lambda: process.members(self._tree))
        self.suspended_ns = began_ns

    def resume(self) -> None:
        """Let it go on."""
        stop.resume(process.members(self._tree))
        self.suspended_ns = None

    def ask(self) -> None:
        """Send it SIGTERM; a stopped member is continued, or it would not get the signal."""
        stop.ask(process.members(self._tree), suspended=self.suspended_ns is not None)
        self._seen = None

    def insist(self) -> None:
        """Send it SIGKILL; to be repeated until nothing is left."""
        process.kill_all(self._list_to_kill)
        self._seen = None

    def reap_adopted(self) -> None:
        """Reap what the target left to us, as it ends: a run of days may orphan thousands (field case 10)."""
        used = process.reap_adopted(self._tree)
        if used != process.Usage():
            self.usage = self.usage.plus(used)
            # It may have been the last: nothing else would make us look again before the next deadline.
            self._seen = None

    def _list_to_kill(self) -> tuple[Member, ...]:
        found = process.members(self._tree)
        now_ns = self._clock.monotonic_ns()
        for member in found:
            self._killed_ns.setdefault(member.identity, now_ns)
        return found


def named(members: Iterable[Member]) -> str:
    """Return names and PIDs for a person, at most ten of them."""
    found = [f"{member.name} (pid {member.identity.pid})" for member in members]
    shown = ", ".join(found[:_NAMED_AT_MOST])
    return shown if len(found) <= _NAMED_AT_MOST else f"{shown} and {len(found) - _NAMED_AT_MOST} more"
