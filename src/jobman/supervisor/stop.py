"""Sending the signals of the stop ladder to a tree; when to send which is `jobman.policy.ladder`."""

from __future__ import annotations

from jobman import process, signals
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jobman.model.identity import ProcessIdentity

# The second one: by a debugger, which may be a member itself, and stopped too.
_STOPPED = frozenset("Tt")
_WAITING = "D"
_ROUNDS = 50


def ask(members: Iterable[process.Member], *, suspended: bool = False) -> None:
    """Send SIGTERM to every member, then SIGCONT to those that are stopped, which would not see it otherwise.

    Args:
        members: the tree.
        suspended: we have stopped it, so that every member gets SIGCONT: one that waits in the kernel, such as for a
            child between ``vfork`` and ``exec``, does not look stopped yet and would stop before it handled SIGTERM.
    """
    members = tuple(members)
    for member in members:
        process.signal_member(member, signals.SIGTERM)
    for member in members:
        if suspended or member.state in _STOPPED:
            process.signal_member(member, signals.SIGCONT)


def suspend(list_members: Callable[[], Iterable[process.Member]]) -> None:
    """Send SIGSTOP to every member until a look finds none that runs: one may fork between the look and the signal.

    One that may not be signalled, such as another user's, goes on.
    """
    signalled: set[ProcessIdentity] = set()
    refused: set[ProcessIdentity] = set()
    for _ in range(_ROUNDS):
        # One that waits in the kernel stops before its next instruction, which may be as late as the resumption: a
        # parent waits for its stopped child between vfork and exec.
        members = [member for member in list_members() if member.state not in _STOPPED]
        waiting = {member.identity for member in members if member.state == _WAITING} & signalled
        running = [member for member in members if member.identity not in waiting | refused]
        if not running:
            return
        for member in running:
            sent = process.signal_member(member, signals.SIGSTOP)
            (signalled if sent else refused).add(member.identity)


def resume(members: Iterable[process.Member]) -> None:
    """Send SIGCONT to every member."""
    for member in members:
        process.signal_member(member, signals.SIGCONT)
