"""Sending the signals of the stop ladder to a tree; when to send which is `jobman.policy.ladder`."""

from __future__ import annotations

import signal

from jobman import process
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_STOPPED = "T"
_ROUNDS = 50


def ask(members: Iterable[process.Member]) -> None:
    """Send SIGTERM to every member, then SIGCONT to those that are stopped, which would not see it otherwise."""
    members = tuple(members)
    for member in members:
        process.signal_member(member, signal.SIGTERM)
    for member in members:
        if member.state == _STOPPED:
            process.signal_member(member, signal.SIGCONT)


def suspend(list_members: Callable[[], Iterable[process.Member]]) -> None:
    """Send SIGSTOP to every member until a look finds none that runs: one may fork between the look and the signal."""
    for _ in range(_ROUNDS):
        running = [member for member in list_members() if member.state != _STOPPED]
        if not running:
            return
        for member in running:
            process.signal_member(member, signal.SIGSTOP)


def resume(members: Iterable[process.Member]) -> None:
    """Send SIGCONT to every member."""
    for member in members:
        process.signal_member(member, signal.SIGCONT)
