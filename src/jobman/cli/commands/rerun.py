"""``jobman rerun``, and ``jobman run --rerun``."""

from __future__ import annotations

from jobman.cli.commands.run import announce, apply_limits, await_outcome, submitted
from jobman.cli.flags import load as load_table
from jobman.clock import SystemClock
from jobman.errors import UsageError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.model.spec import JobSpec
    from jobman.store.connection import Store

_MAY_ACCOMPANY = ("rerun", "name", "wait")


def run(parsed: Parsed) -> int:
    """Submit a job again."""
    return _again(parsed, parsed.operand("JOB"))


def run_rerun(parsed: Parsed) -> int:
    """Do the same for ``run --rerun``, which takes nothing else that would change the job.

    Raises:
        UsageError: it was given all the same.
    """
    if parsed.trailing:
        raise UsageError(detail="run --rerun takes no command: that of the old job is run again")
    for _, group in load_table("run").groups:
        for flag in group:
            if parsed.given(flag.name) and flag.name not in _MAY_ACCOMPANY:
                raise UsageError(detail=f"run --rerun takes only --name and --wait, not --{flag.name}")
    return _again(parsed, parsed.value("rerun"))


def _again(parsed: Parsed, selector: str) -> int:
    name = parsed.value("name")
    if name:
        from jobman.model.spec_rules import name_problem

        if problem := name_problem("--name", name):
            raise UsageError(detail=problem)
    store, job_id = submitted(parsed, lambda store: _specification(parsed, store, selector, name))
    announce(job_id)
    return await_outcome(parsed, store, job_id) if parsed.value("wait") else 0


def _specification(parsed: Parsed, store: Store, selector: str, name: str) -> JobSpec:
    from jobman.config.load import load
    from jobman.service.query import find
    from jobman.service.submit import repeat

    clock = SystemClock()
    job_id = find(store, selector, clock)
    apply_limits(load(parsed.value("config"), store.root, clock), store)
    return repeat(store, job_id, name)
