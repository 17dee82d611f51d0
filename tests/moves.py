"""Every transition with the facts it needs, and the rules of when it is legal.

`MOVES` states section F.2 of the contract a second time, independently of the model. `walk` strings moves together;
`SITUATIONS` holds one snapshot for each place a job can be in, for tables of examples. `tests.strategies` generates
the same at random.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from jobman.model.events import Transition
from jobman.model.identity import ProcessIdentity
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.state import (
    Admission,
    Diagnostic,
    JobOutcome,
    JobPhase,
    LockFile,
    LogIntegrity,
    Problem,
    Reason,
    RunExit,
    RunLogs,
    RunOutcome,
    RunUsage,
    Snapshot,
    StopReason,
)
from jobman.model.transitions import recovery, running, stopping, submission
from jobman.model.transitions._change import Now

EPOCH_NS = 1_800_000_000_000_000_000
SECOND_NS = 1_000_000_000
HOUR_NS = 3_600 * SECOND_NS

# --- Facts that transitions need -----------------------------------------------------------------------------------


class Choice(NamedTuple):
    """Everything that a transition may need from outside, whichever it is.

    ``exit`` must state a code: what a run that ends otherwise keeps of it is worked out by `end_of`. A ``retry_ns`` of
    0 queues the next run at once, ``None`` completes the job. ``skew_ns`` moves the wall clock of an observation.
    """

    identity: ProcessIdentity = ProcessIdentity(4_711, "1234567", "5f3a8e1c-8a37-4f41-9c25-1b1e5cbb0c7e", "4026531836")
    lock: LockFile = LockFile(64_769, 9_001)
    credential_hash: bytes = b"\x17" * 32
    slots: int = 1
    exit_code: int = 0
    signal: str | None = None
    skew_ns: int = 0
    logs: RunLogs = RunLogs(LogIntegrity.VALID, stdout_bytes=3, stderr_bytes=0)
    usage: RunUsage | None = None
    retry_ns: int | None = None
    outcome: JobOutcome = JobOutcome.SUCCESS
    release_slots: bool = True
    detail: str = "the reason in words"


PLAIN = Choice()


def derived_id(job_id: str, kind: str, number: int) -> str:
    """Return an ID that belongs to a job and to nothing else, so that generated stores hold no duplicates."""
    digest = hashlib.sha256(f"{job_id} {kind} {number}".encode()).digest()
    return new_id(EPOCH_NS, digest[:RANDOM_BYTES])


def end_of(snapshot: Snapshot, choice: Choice, now: Now) -> running.RunEnd:
    """Return how the active run ended, its outcome by F.4, its exit without what F.4 drops."""
    assert snapshot.run is not None
    outcome = _run_outcome(snapshot, choice)
    exit_ = None
    if snapshot.run.started_at_ns is not None:
        observed_at_ns = now.wall_ns + choice.skew_ns
        judged = outcome in (RunOutcome.SUCCESS, RunOutcome.FAILURE)
        if choice.signal is not None:
            exit_ = RunExit(observed_at_ns, signal=choice.signal)
        elif judged:
            exit_ = RunExit(observed_at_ns, exit_code=choice.exit_code)
        else:
            exit_ = RunExit(observed_at_ns, platform_reason="process_terminated")
    failed = outcome == RunOutcome.START_FAILED
    problem = Problem(Diagnostic.TARGET_START_FAILED, choice.detail) if failed else None
    return running.RunEnd(outcome, exit_, choice.logs, choice.usage, problem)


def _run_outcome(snapshot: Snapshot, choice: Choice) -> RunOutcome:
    job, run = snapshot.job, snapshot.run
    assert run is not None
    if job.intent is not None:
        return RunOutcome.TIMED_OUT if job.intent == StopReason.TIMEOUT else RunOutcome.CANCELLED
    if run.stop_reason == StopReason.TIMEOUT:
        return RunOutcome.TIMED_OUT
    if run.started_at_ns is None:
        return RunOutcome.START_FAILED
    return RunOutcome.SUCCESS if choice.signal is None and choice.exit_code == 0 else RunOutcome.FAILURE


def following(snapshot: Snapshot, choice: Choice, now: Now) -> running.Retry | running.Finish:
    """Return what comes after the run: what an intent demands, else what was chosen."""
    if snapshot.job.intent == StopReason.CANCELLATION:
        return running.Finish(JobOutcome.CANCELLED, Reason.CANCELLATION)
    if snapshot.job.intent == StopReason.TIMEOUT:
        return running.Finish(JobOutcome.TIMED_OUT, Reason.JOB_TIMEOUT, Problem(Diagnostic.JOB_TIMEOUT, choice.detail))
    if choice.retry_ns is None:
        return running.Finish(choice.outcome, Reason.RUN_LIMIT)
    return running.Retry(now.wall_ns + choice.retry_ns if choice.retry_ns else None)


# --- Moves ---------------------------------------------------------------------------------------------------------


class Move(NamedTuple):
    """One transition: when section F.2 allows it, and how it is done.

    Attributes:
        name: What the rows of tables call it.
        legal: From this snapshot, at this time.
        apply: Performs it, legal or not; ``None`` means that there is nothing to do.
    """

    name: str
    legal: Callable[[Snapshot, Now], bool]
    apply: Callable[[Snapshot, Choice, Now], Transition | None]


def _claim(snapshot: Snapshot, choice: Choice, now: Now) -> Transition:
    owner = derived_id(snapshot.job.id, "supervisor", 1)
    claimant = submission.Claimant(owner, choice.identity, choice.lock, choice.credential_hash)
    return submission.claim(snapshot, claimant, now)


def _admit(snapshot: Snapshot, choice: Choice, now: Now) -> Transition:
    job = snapshot.job
    admission_id = derived_id(job.id, "admission", job.counters.runs + 1)
    acquired_at_ns = max(now.wall_ns, job.latest_ns())
    lease_ns = acquired_at_ns + submission.LEASE_NS
    return running.admit(snapshot, Admission(admission_id, job.id, choice.slots, acquired_at_ns, lease_ns), now)


def _reserve(snapshot: Snapshot, _choice: Choice, now: Now) -> Transition:
    return running.reserve_run(snapshot, derived_id(snapshot.job.id, "run", snapshot.job.counters.runs + 1), now)


def _end(snapshot: Snapshot, choice: Choice, now: Now) -> Transition:
    if snapshot.run is None:
        nothing = running.RunEnd(RunOutcome.START_FAILED, None, choice.logs)
        return running.end_run(snapshot, nothing, running.Retry(None), now)
    return running.end_run(snapshot, end_of(snapshot, choice, now), following(snapshot, choice, now), now)


def _finishing(outcome: JobOutcome, code: Diagnostic | None) -> Callable[[Snapshot, Choice, Now], Transition]:
    def apply(snapshot: Snapshot, choice: Choice, now: Now) -> Transition:
        problem = None if code is None else Problem(code, choice.detail)
        finish = running.Finish(outcome, Reason.CANCELLATION if code is None else code.value, problem)
        return running.finish_without_run(snapshot, finish, now)

    return apply


def _enqueueing(reason: Reason) -> Callable[[Snapshot, Choice, Now], Transition]:
    return lambda snapshot, _choice, now: running.enqueue(snapshot, reason, now)


def _lose(snapshot: Snapshot, choice: Choice, now: Now) -> Transition:
    return recovery.lose(snapshot, recovery.Loss(choice.detail, choice.logs, choice.release_slots), now)


def _in(*phases: JobPhase) -> Callable[[Snapshot, Now], bool]:
    return lambda snapshot, _now: snapshot.job.phase in phases


def _is_fresh(snapshot: Snapshot, _now: Now) -> bool:
    return snapshot.job.phase == JobPhase.STARTING and snapshot.run is None and snapshot.admission is None


def _is_reserved(snapshot: Snapshot, _now: Now) -> bool:
    return snapshot.job.phase == JobPhase.STARTING and snapshot.run is not None


def _is_idle(snapshot: Snapshot, _now: Now) -> bool:
    phases = (JobPhase.WAITING, JobPhase.QUEUED, JobPhase.BACKOFF, JobPhase.STARTING)
    return snapshot.job.phase in phases and snapshot.run is None


def _is_offered(snapshot: Snapshot, now: Now) -> bool:
    offer = snapshot.job.claim
    return offer is not None and max(now.wall_ns, snapshot.job.submitted_at_ns) < offer.deadline_ns


def _is_expired(snapshot: Snapshot, now: Now) -> bool:
    return snapshot.job.claim is not None and now.wall_ns >= snapshot.job.claim.deadline_ns


def _is_owned(snapshot: Snapshot, _now: Now) -> bool:
    return snapshot.job.phase not in (JobPhase.SUBMITTING, JobPhase.COMPLETED)


ABORT = _finishing(JobOutcome.ABORTED, Diagnostic.DEPENDENCY_UNSATISFIED)
TIME_OUT_IDLE = _finishing(JobOutcome.TIMED_OUT, Diagnostic.JOB_TIMEOUT)
_MOVES = (
    Move("claim", _is_offered, _claim),
    Move("expire", _is_expired, lambda s, _c, now: submission.expire_submission(s, now)),
    Move("withdraw", _in(JobPhase.SUBMITTING), lambda s, c, now: submission.withdraw_submission(s, c.detail, now)),
    Move(
        "await_prerequisites",
        lambda s, now: _is_fresh(s, now) and s.job.counters.runs == 0,
        lambda s, _c, now: running.await_prerequisites(s, now),
    ),
    Move("enqueue_satisfied", _in(JobPhase.WAITING), _enqueueing(Reason.PREREQUISITES_SATISFIED)),
    Move("enqueue_full", _is_fresh, _enqueueing(Reason.ADMISSION_CAPACITY)),
    Move("enqueue_elapsed", _in(JobPhase.BACKOFF), _enqueueing(Reason.BACKOFF_ELAPSED)),
    Move("admit", lambda s, now: _is_fresh(s, now) or s.job.phase == JobPhase.QUEUED, _admit),
    Move(
        "reserve",
        lambda s, _now: s.job.phase == JobPhase.STARTING and s.run is None and s.admission is not None,
        _reserve,
    ),
    Move("start", _is_reserved, lambda s, c, now: running.start_run(s, c.identity, "/bin/true", now)),
    Move("end", lambda s, _now: s.job.active_run_id is not None, _end),
    Move("abort", _is_idle, ABORT),
    Move("time_out_idle", _is_idle, TIME_OUT_IDLE),
    Move(
        "finish_cancelled",
        lambda s, _now: s.job.phase == JobPhase.STOPPING and s.run is None,
        _finishing(JobOutcome.CANCELLED, None),
    ),
    Move(
        "cancel",
        lambda s, _now: s.job.phase != JobPhase.SUBMITTING,
        lambda s, _c, now: stopping.request_cancel(s, now),
    ),
    Move(
        "job_timeout",
        lambda s, _now: s.job.active_run_id is not None and s.job.intent is None,
        lambda s, _c, now: stopping.request_job_timeout(s, now),
    ),
    Move(
        "run_timeout",
        lambda s, now: s.job.phase == JobPhase.RUNNING or _is_reserved(s, now),
        lambda s, _c, now: stopping.request_run_timeout(s, now),
    ),
    Move(
        "pause",
        _in(JobPhase.WAITING, JobPhase.QUEUED, JobPhase.BACKOFF, JobPhase.RUNNING),
        lambda s, _c, now: stopping.pause(s, now),
    ),
    Move("resume", _in(JobPhase.PAUSED), lambda s, _c, now: stopping.resume(s, now)),
    Move("lose", _is_owned, _lose),
)
MOVES = {move.name: move for move in _MOVES}
# --- Walks ----------------------------------------------------------------------------------------------------------


def reload(snapshot: Snapshot) -> Snapshot:
    """Return what a store would read after a transition: a completed run and released slots are no longer in it."""
    run = snapshot.run if snapshot.job.active_run_id is not None else None
    admission = snapshot.admission
    if admission is not None and admission.released_at_ns is not None:
        admission = None
    return snapshot._replace(run=run, admission=admission)


def submitted(job_id: str, name: str = "", now: Now = Now(EPOCH_NS, SECOND_NS)) -> Transition:  # noqa: B008  # immutable
    """Return the submission with which a history begins; `PLAIN` knows its credential."""
    return submission.submit(job_id, name, credential_hash=PLAIN.credential_hash, now=now)


def perform(history: list[Transition], name: str, now: Now, choice: Choice = PLAIN) -> None:
    """Append the move of that name, unless there is nothing to do."""
    change = MOVES[name].apply(reload(history[-1].after), choice, now)
    if change is not None:
        history.append(change)


def later(now: Now, elapsed_ns: int, jump_ns: int = 0) -> Now:
    """Return the instant ``elapsed_ns`` after ``now``, the wall clock set by ``jump_ns`` in between."""
    return Now(now.wall_ns + elapsed_ns + jump_ns, now.monotonic_ns + elapsed_ns)


def legal_moves(snapshot: Snapshot, now: Now) -> list[str]:
    """Return the names of the moves that F.2 allows."""
    return [move.name for move in MOVES.values() if move.legal(snapshot, now)]


# --- Examples ------------------------------------------------------------------------------------------------------

EXAMPLE_JOB_ID = new_id(EPOCH_NS, b"\x42" * RANDOM_BYTES)
_TO_ADMITTED = ("claim", "admit")
_TO_RESERVED = (*_TO_ADMITTED, "reserve")
_TO_RUNNING = (*_TO_RESERVED, "start")
_PATHS: dict[str, tuple[str, ...]] = {
    "submitting": (),
    "starting, claimed": ("claim",),
    "waiting": ("claim", "await_prerequisites"),
    "queued": ("claim", "enqueue_full"),
    "starting, admitted": _TO_ADMITTED,
    "starting, reserved": _TO_RESERVED,
    "running": _TO_RUNNING,
    "backoff": (*_TO_RUNNING, "end"),
    "paused, waiting": ("claim", "await_prerequisites", "pause"),
    "paused, running": (*_TO_RUNNING, "pause"),
    "stopping, no run": ("claim", "cancel"),
    "stopping, cancelled": (*_TO_RUNNING, "cancel"),
    "stopping, run timeout": (*_TO_RUNNING, "run_timeout"),
    "stopping, job timeout": (*_TO_RUNNING, "job_timeout"),
    "completed": ("claim", "abort"),
}


def walk(*moves: str, choice: Choice = PLAIN, job_id: str = EXAMPLE_JOB_ID) -> list[Transition]:
    """Return the history of a job after ``moves``, one second apart on both clocks."""
    history = [submitted(job_id)]
    for number, name in enumerate(moves, start=1):
        perform(history, name, instant(number), choice)
    return history


def instant(seconds: int) -> Now:
    """Return the time ``seconds`` after the submission of an example."""
    return later(Now(EPOCH_NS, SECOND_NS), seconds * SECOND_NS)


SITUATIONS = {
    name: reload(walk(*moves, choice=PLAIN._replace(retry_ns=SECOND_NS))[-1].after) for name, moves in _PATHS.items()
}
