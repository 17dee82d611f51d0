"""``jobman cancel``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import tell
from jobman.service.control import cancel, wait_for
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


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
    return 0
