"""Jobs in a store that have something to tell, the senders of it, and what arrives."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobman.clock import SystemClock
from jobman.model.events import NotifyEvent
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.notifiers import CommandTarget, Notifier, RetryPolicy, Subscription
from jobman.model.transitions._change import Now
from jobman.process.senders import ANY, take_place
from jobman.store import deliveries
from jobman.store.connection import Store
from jobman.store.deliveries import Delivery
from tests.moves import PLAIN, Choice, later, perform, submitted
from tests.receivers import appender
from tests.stores import commit_all, fast_store, plain_spec
from tests.support import eventually, processes_of

MILLISECOND = 1_000_000
SECOND = 1000 * MILLISECOND
EVENTS = (NotifyEvent.JOB_STARTED, NotifyEvent.JOB_SUCCEEDED)


class Outbox:
    """A store, the file that its hooks write to, and senders of it."""

    def __init__(self, state: Path) -> None:
        self.store: Store = fast_store(state)
        self.state = state
        self.file = state.parent / "told"

    def hook(self, script: str = "", **changes: Any) -> Notifier:
        """Return a hook that appends what it is told to the file, or runs ``script``."""
        executable, *arguments = ["/bin/sh", "-c", script] if script else appender(self.file)
        retry = RetryPolicy(3, 50 * MILLISECOND, SECOND)
        target = CommandTarget(executable, tuple(arguments))
        return Notifier("hook", command=target, retry=retry, budget_ns=2 * SECOND)._replace(**changes)

    def queue(self, notifier: Notifier, *, events: Sequence[NotifyEvent] = EVENTS, age_ns: int = 0) -> str:
        """Put a job into the store that has succeeded and tells of it; return its ID."""
        now = Now(SystemClock().wall_ns() - age_ns, SECOND)
        job_id = new_id(now.wall_ns, os.urandom(RANDOM_BYTES))
        history = [submitted(job_id, now=now)]
        for move in ("claim", "admit", "reserve", "start", "end"):
            perform(history, move, later(now, 0), Choice() if move == "claim" else PLAIN)
        spec = plain_spec(subscriptions=(Subscription(notifier.name, tuple(events)),), notifiers=(notifier,))
        with self.store.write():
            commit_all(self.store, history, spec)
        return job_id

    def finish(self) -> None:
        """Wait until no sender is left, and reap ours."""
        eventually(lambda: not self.occupied() and not self.senders(), "a sender is left")

    def occupied(self) -> int:
        """Return how many places are occupied; a process that has just been made has no environment to be found by."""
        taken = [take_place(self.store.root, (place,)) for place in ANY]
        for one in taken:
            if one is not None:
                os.close(one[1])
        return taken.count(None)

    def senders(self) -> list[int]:
        """Return the senders that live."""
        reap()
        found = processes_of(self.state).items()
        return [pid for pid, command in found if "delivery/__main__.py" in command]

    def told(self) -> list[dict[str, Any]]:
        """Return what the hooks have received."""
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []

    def delivered(self, job_id: str) -> list[Delivery]:
        """Return what is recorded of a job."""
        return deliveries.load_deliveries(self.store, job_id)


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
