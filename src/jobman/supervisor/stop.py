"""Sending the signals of the stop ladder to a tree; when to send which is `jobman.policy.ladder`."""

from __future__ import annotations

import signal

from jobman import process
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_STOPPED = "T"


def ask(members: Iterable[process.Member]) -> None:
    """Send SIGTERM to every member, then SIGCONT to those that are stopped, which would not see it otherwise."""
    members = tuple(members)
    for member in members:
        process.signal_member(member, signal.SIGTERM)
    for member in members:
        if member.state == _STOPPED:
            process.signal_member(member, signal.SIGCONT)
