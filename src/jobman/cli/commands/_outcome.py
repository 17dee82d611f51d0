"""How a command that waited for a job ends: its line, its message, its status (contract, A.10; D37)."""

from __future__ import annotations

from jobman.cli.output import err
from jobman.errors import OutcomeError
from jobman.model.state import JobOutcome, RunOutcome
from jobman.store.jobs import load_runs
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.state import Job, Run
    from jobman.store.connection import Store

_NO_EXIT = 1
_SIGNALLED = 128
# Those that an exit of the target decided.
_JOBS_DECIDED = (JobOutcome.SUCCESS, JobOutcome.FAILURE)
_RUNS_DECIDED = (RunOutcome.SUCCESS, RunOutcome.FAILURE)


def report(job: Job) -> bool:
    """Say on stderr if a job did not succeed; return whether it did."""
    if job.outcome == JobOutcome.SUCCESS:
        return True
    err(str(OutcomeError(job=job.id, outcome=job.outcome)))
    return False


def exit_code(store: Store, job: Job) -> int:
    """Return the exit code of a completed job's last run, 128 and the number of a signal, or 1 if neither decided.

    It is 0 only for a job that succeeded.
    """
    runs = load_runs(store, [job.id]).get(job.id, [])
    # A job can fail because its last run was stopped: then the signal is ours and says nothing of the target.
    decided = job.outcome in _JOBS_DECIDED and bool(runs) and runs[-1].outcome in _RUNS_DECIDED
    code = _from_exit(runs[-1]) if decided else _NO_EXIT
    # A failed job is none, although its last run did what it should (run limit), or 0 is not among its success codes.
    return code if code or job.outcome == JobOutcome.SUCCESS else _NO_EXIT


def _from_exit(run: Run) -> int:
    if run.exit is None:
        return _NO_EXIT
    if run.exit.exit_code is not None:
        return run.exit.exit_code
    from jobman.process import signal_names

    named = {name: number for number, name in signal_names().items()}
    name = run.exit.signal or ""
    number = named.get(name) or (int(name.removeprefix("signal ")) if name.startswith("signal ") else None)
    return _NO_EXIT if number is None else _SIGNALLED + number
