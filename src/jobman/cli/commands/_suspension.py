"""How ``pause`` and ``resume`` end: their line, and a word on stderr if the supervisor has not signalled yet."""

from __future__ import annotations

from jobman.cli.output import err, out
from jobman.service.control import confirm_signal
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.state import Job
    from jobman.store.connection import Store


def report(store: Store, job: Job, clock: Clock) -> int:
    """Print where the job is now; the request is durable, so a signal that is late is no failure."""
    confirmed = confirm_signal(store, job, clock)
    out(f"{job.id}\t{job.phase}\n")
    if not confirmed:
        err(f"job {job.id}: the request is recorded, but not yet confirmed by its supervisor")
    return 0
