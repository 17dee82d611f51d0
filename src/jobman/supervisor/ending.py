"""What a run came to, as its supervisor records it, and what follows from that."""

from __future__ import annotations

import os

from jobman.model.state import Reason
from jobman.model.transitions import running
from jobman.model.transitions.running import RunEnd
from jobman.policy.classify import recorded_exit, run_outcome
from jobman.policy.completion import EndedRun, after_run
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.spec import JobSpec
    from jobman.model.state import Job, Problem, Run, RunExit, RunLogs, RunUsage
    from jobman.model.transitions.running import Finish, Retry

_DRAW_BYTES = 8


class Ending(NamedTuple):
    """What a run came to, once its leader is reaped and its capture closed."""

    start_failed: bool
    exit: RunExit | None
    usage: RunUsage | None
    logs: RunLogs
    problem: Problem | None


def judge(job: Job, run: Run, ending: Ending, spec: JobSpec) -> RunEnd:
    """Return the end of an active run as it is recorded: what the system reported, and what that means."""
    rules = spec.classification
    outcome = run_outcome(job, run, start_failed=ending.start_failed, exit_=ending.exit, rules=rules)
    return RunEnd(outcome, recorded_exit(outcome, ending.exit), ending.logs, ending.usage, ending.problem)


def what_follows(job: Job, end: RunEnd, spec: JobSpec, completed_at_ns: int) -> Retry | Finish:
    """Return whether the job goes on after the end of its active run, and when."""
    ended = EndedRun(
        counters=running.count(job.counters, end.outcome),
        outcome=end.outcome,
        exit=end.exit,
        intent=job.intent,
        problem=end.problem,
        completed_at_ns=completed_at_ns,
        draw=int.from_bytes(os.urandom(_DRAW_BYTES), "little"),
        cancelled_because=job.waiting_reason or Reason.CANCELLATION,
    )
    return after_run(spec, ended)
