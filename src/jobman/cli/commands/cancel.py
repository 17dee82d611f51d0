"""``jobman cancel``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import err, tell
from jobman.model.state import JobOutcome
from jobman.service.control import cancel, wait_for
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


def run(parsed: Parsed) -> int:
    """Ask a job to end; its supervisor does the rest."""
    store, now = store_of(parsed), clock()
    job_id = find(store, parsed.operand("JOB"), now)
    number = parsed.operand("RUN") if parsed.command[1:] == ("run",) else None
    job = cancel(store, job_id, now, run_number=number)
    tell(f"{job.id}\t{job.phase}\n")
    if parsed.value("wait"):
        from jobman.cli.commands._interrupt import Interruptible

        with Interruptible("wait for job"):
            for _ in wait_for(store, [job_id], now):
                pass
    if job.outcome == JobOutcome.LOST:
        _warn_if_unknown(store, job_id)
    return 0


def _warn_if_unknown(store: Store, job_id: str) -> None:
    from jobman.service.survivors import are_unknown  # rarely needed

    if are_unknown(store, job_id):
        text = "nothing was signalled, for what is alive of it cannot be told from here; see jobman doctor"
        err(f"job {job_id}: {text}")
