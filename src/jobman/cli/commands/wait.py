"""``jobman wait``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.commands._interrupt import Interruptible
from jobman.cli.commands._outcome import exit_code, report
from jobman.cli.output import tell
from jobman.errors import UsageError
from jobman.service.control import wait_for
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Wait until jobs have ended; print a line for each, and let the status tell how they did."""
    selectors = parsed.operand("JOB")
    if parsed.value("exit-code") and len(selectors) != 1:
        raise UsageError(detail="wait --exit-code takes exactly one job")
    store, now = store_of(parsed), clock()
    job_ids = [find(store, selector, now) for selector in selectors]
    timeout_ns = parsed.value("timeout") if parsed.given("timeout") else None
    status = 0
    with Interruptible("wait for job"):
        for job in wait_for(store, job_ids, now, timeout_ns=timeout_ns):
            tell(f"{job.id}\t{job.outcome}\n")
            succeeded = report(job)
            if parsed.value("exit-code"):
                return exit_code(store, job)
            status = status or (0 if succeeded else 1)
            if parsed.value("any"):
                break
    return status
