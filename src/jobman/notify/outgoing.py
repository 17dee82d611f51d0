"""What every way to send is given."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from jobman.notify.message import Message


class Outgoing(NamedTuple):
    """One attempt.

    Attributes:
        message: what happened.
        body: the same as a document, for programs and web hooks.
        secrets: what was looked up, by the names of variables or headers, ``signing_secret`` and ``password_secret``.
        timeout_s: for everything together.
        wall_ns: the time, for an answer that names one.
        fork_gate: held while a process is made: nothing may fork while the store is written.
    """

    message: Message
    body: bytes
    secrets: Mapping[str, bytes]
    timeout_s: float
    wall_ns: int
    fork_gate: AbstractContextManager[object]
