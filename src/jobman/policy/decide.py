"""What a supervisor does next: one pure function of what it observes.

The order of the rules is the precedence of the contract (H.2, H.3, F.4); each decision names its reason. Nothing here
waits, signals or writes.
"""

from __future__ import annotations

from jobman.model.state import Diagnostic, JobOutcome, JobPhase, Problem, Reason, RunPhase
from jobman.model.transitions.running import Finish
from jobman.policy.admission import Ruling
from jobman.policy.conditions import abort_deadline_ns, failed, hold
from jobman.policy.ladder import Rung, next_step
from jobman.policy.observation import Act, Decision, Stage
from jobman.policy.waiting import evaluate
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.state import Job, Run
    from jobman.policy.ladder import Step
    from jobman.policy.observation import Observation

ASKED_TO_END = "supervisor was asked to end (SIGTERM)"


def decide(seen: Observation) -> Decision:
    """Return what is due now."""
    job = seen.snapshot.job
    if job.phase == JobPhase.COMPLETED:
        return Decision(Act.LEAVE, job.waiting_reason or "")
    if seen.asked_to_end and job.intent is None:
        return Decision(Act.REQUEST_CANCEL, ASKED_TO_END)
    if seen.snapshot.run is not None:
        return _with_run(seen, job, seen.snapshot.run)
    return _without_run(seen, job)


# --- Between runs --------------------------------------------------------------------------------------------------


def _without_run(seen: Observation, job: Job) -> Decision:
    timeable = job.phase not in (JobPhase.STOPPING, JobPhase.PAUSED)
    if timeable and seen.job_budget.is_spent(seen.now_ns):
        problem = Problem(Diagnostic.JOB_TIMEOUT, "the job used up its time before a run could end")
        return Decision(Act.FINISH, finish=Finish(JobOutcome.TIMED_OUT, Reason.JOB_TIMEOUT, problem))
    return _aborted_by_deadline(seen, job) or _BETWEEN_RUNS[job.phase](seen, job)


def _aborted_by_deadline(seen: Observation, job: Job) -> Decision | None:
    """A job whose first run has not begun by the deadline of a wait condition is aborted, queued or not (H.2)."""
    deadline_ns = abort_deadline_ns(seen.spec.waits)
    late = deadline_ns is not None and seen.wall_ns >= deadline_ns
    if not late or job.counters.runs or job.phase in (JobPhase.STOPPING, JobPhase.PAUSED):
        return None
    return _abort(Diagnostic.WAIT_ABORT_DEADLINE, "the first run had not begun by the wait deadline")


def _abort(code: Diagnostic, text: str) -> Decision:
    return Decision(Act.FINISH, finish=Finish(JobOutcome.ABORTED, code, Problem(code, text)))


def _stopped(_seen: Observation, job: Job) -> Decision:
    # Only a cancellation stops a job without a run: a timeout without one completes it at once.
    reason = job.waiting_reason or Reason.CANCELLATION
    return Decision(Act.FINISH, finish=Finish(JobOutcome.CANCELLED, reason))


def _paused(_seen: Observation, _job: Job) -> Decision:
    return Decision(Act.WAIT, "paused")


def _queued(seen: Observation, job: Job) -> Decision:
    if seen.attempt is None:
        return Decision(Act.WAIT, Reason.ADMISSION_CAPACITY, _soonest(seen))
    verdict = seen.attempt.verdict
    if verdict.ruling == Ruling.IMPOSSIBLE:
        code = Diagnostic.ADMISSION_CONFIGURATION_INVALID
        return _abort(code, "its pool is gone, or its slots do not fit into the limits any more")
    settled = seen.attempt.enqueued and job.phase == JobPhase.QUEUED and verdict.mark is None
    if verdict.ruling == Ruling.WAIT and settled:
        left = () if verdict.retry_ns is None else (verdict.retry_ns,)
        return Decision(Act.WAIT, Reason.ADMISSION_CAPACITY, _soonest(seen, *left))
    return Decision(Act.ADMIT, Reason.ADMITTED)


def _starting(seen: Observation, job: Job) -> Decision:
    if seen.snapshot.admission is not None:
        return Decision(Act.RESERVE_RUN, Reason.ADMITTED)
    first = not job.counters.runs and job.prerequisites_satisfied_at_ns is None
    if first and (seen.spec.dependencies or seen.spec.waits.conditions):
        return Decision(Act.AWAIT_PREREQUISITES, Reason.PREREQUISITES)
    return _queued(seen, job)


def _backing_off(seen: Observation, _job: Job) -> Decision:
    if seen.backoff_left_ns <= 0:
        return Decision(Act.ENQUEUE, Reason.BACKOFF_ELAPSED)
    return Decision(Act.WAIT, Reason.NEXT_RUN, _soonest(seen, seen.backoff_left_ns))


def _at_the_gate(seen: Observation, _job: Job) -> Decision:
    gate = evaluate(seen.dependencies)
    if gate.to_record:
        return Decision(Act.RECORD_OBSERVATIONS, edges=gate.to_record)
    if seen.unwritten:
        return Decision(Act.RECORD_EVALUATIONS)
    if gate.impossible is not None:
        other = gate.impossible
        outcome = other.observed_outcome or other.outcome
        text = f"dependency failed: {other.label()} (ended as {outcome}, {other.edge.predicate} was required)"
        return _abort(Diagnostic.DEPENDENCY_UNSATISFIED, text)
    fatal = failed(seen.conditions)
    if fatal is not None:
        text = f"wait condition {fatal.place + 1} ({fatal.kind}) failed: {fatal.code}"
        return _abort(Diagnostic.WAIT_CONDITION_FAILED, text)
    if gate.satisfied and hold(seen.spec.waits, seen.conditions):
        return Decision(Act.ENQUEUE, Reason.PREREQUISITES_SATISFIED)
    return Decision(Act.WAIT, Reason.PREREQUISITES, _soonest(seen))


_BETWEEN_RUNS = {
    JobPhase.STOPPING: _stopped,
    JobPhase.PAUSED: _paused,
    JobPhase.WAITING: _at_the_gate,
    JobPhase.QUEUED: _queued,
    JobPhase.STARTING: _starting,
    JobPhase.BACKOFF: _backing_off,
}


# --- During a run --------------------------------------------------------------------------------------------------


def _with_run(seen: Observation, job: Job, run: Run) -> Decision:
    return _timed_out(seen, job, run) or _BY_STAGE[seen.child.stage](seen, job, run)


def _timed_out(seen: Observation, job: Job, run: Run) -> Decision | None:
    if job.phase == JobPhase.PAUSED:
        return None
    if job.intent is None and seen.job_budget.is_spent(seen.now_ns):
        return Decision(Act.REQUEST_JOB_TIMEOUT, Reason.JOB_TIMEOUT)
    # The run timeout ends with the leader (D33); what it left behind is bounded by the drain and the grace.
    timeable = run.phase in (RunPhase.STARTING, RunPhase.RUNNING) and seen.child.stage != Stage.EXITED
    if timeable and job.phase != JobPhase.STOPPING and seen.run_budget.is_spent(seen.now_ns):
        return Decision(Act.REQUEST_RUN_TIMEOUT, Reason.RUN_TIMEOUT)
    return None


def _absent(_seen: Observation, _job: Job, run: Run) -> Decision:
    # Stopped between reservation and launch: the run completes without a process.
    return Decision(Act.END_RUN if run.phase == RunPhase.STOPPING else Act.LAUNCH)


def _gated(_seen: Observation, _job: Job, run: Run) -> Decision:
    if run.phase == RunPhase.STOPPING:
        return Decision(Act.CLOSE_GATE, "stopped before the target began")
    return Decision(Act.RECORD_IDENTITY if run.identity is None else Act.OPEN_GATE)


def _released(seen: Observation, job: Job, run: Run) -> Decision:
    if run.phase == RunPhase.STOPPING:
        return _stopping(seen, job, run)
    return Decision(Act.WAIT, "starting", _soonest(seen))


def _executed(seen: Observation, job: Job, run: Run) -> Decision:
    if run.phase == RunPhase.STARTING:
        return Decision(Act.PUBLISH_START)
    if run.phase == RunPhase.STOPPING:
        return _stopping(seen, job, run)
    return _paused_or_resumed(seen, run) or Decision(Act.WAIT, "running", _soonest(seen))


def _paused_or_resumed(seen: Observation, run: Run) -> Decision | None:
    """Return what makes the tree stand still, or go on, as the run is said to; ``None`` if it does."""
    if run.phase == RunPhase.PAUSED and not seen.child.suspended:
        return Decision(Act.SUSPEND, "paused")
    if run.phase == RunPhase.RUNNING and seen.child.suspended:
        return Decision(Act.CONTINUE, "resumed")
    return Decision(Act.RECORD_SIGNALLED) if _pause_is_unrecorded(seen, run) else None


def _pause_is_unrecorded(seen: Observation, run: Run) -> bool:
    """Say whether a client waits to hear of a pause or a resumption that was undone before we saw it."""
    paused = run.phase == RunPhase.PAUSED or (run.phase == RunPhase.RUNNING and seen.run_budget.paused_ns > 0)
    return paused and run.signalled_at_ns is None


def _failed(_seen: Observation, _job: Job, _run: Run) -> Decision:
    return Decision(Act.END_RUN)


def _stopping(seen: Observation, _job: Job, run: Run) -> Decision:
    if _signal_is_unrecorded(seen, run):
        return Decision(Act.RECORD_SIGNALLED)
    step = next_step(seen.child.ladder, seen.spec.stop, seen.now_ns, leader_alive=True)
    return _climb(seen, step)


def _signal_is_unrecorded(seen: Observation, run: Run) -> bool:
    stopping = run.phase == RunPhase.STOPPING and seen.child.ladder.asked_ns is not None
    return stopping and run.signalled_at_ns is None


def _exited(seen: Observation, _job: Job, run: Run) -> Decision:
    """The leader has ended: drain, then stop what is left of the tree, then collect (D33)."""
    child = seen.child
    if run.phase == RunPhase.STARTING:
        # Its start is a fact that the history must tell before its end.
        return Decision(Act.PUBLISH_START)
    if _signal_is_unrecorded(seen, run):
        return Decision(Act.RECORD_SIGNALLED)
    first = (_held_in_the_drain(seen, run) if child.members else None) or _draining(seen, run)
    if first is not None:
        return first
    if not child.members or _leaves_the_rest(seen, run):
        return Decision(Act.END_RUN)
    step = next_step(child.ladder, seen.spec.stop, seen.now_ns, leader_alive=False)
    return Decision(Act.END_RUN) if step.rung == Rung.LEAVE else _climb(seen, step)


def _draining(seen: Observation, run: Run) -> Decision | None:
    child = seen.child
    # A stop does not wait for a descendant that holds the pipe: ending the tree closes it, and its last words are read
    # until then. Nor is there anything to wait for if we have suspended it: it can neither write nor end (D4).
    if child.drained or (child.members and (run.phase == RunPhase.STOPPING or child.suspended)):
        return None
    left_ns = (child.exited_ns or 0) + seen.spec.stop.drain_ns - seen.now_ns
    return Decision(Act.WAIT, "draining", _soonest(seen, left_ns)) if left_ns > 0 else Decision(Act.STOP_DRAINING)


def _held_in_the_drain(seen: Observation, run: Run) -> Decision | None:
    """A pause that comes after the leader's exit holds what is left, until it is resumed.

    A leader that ends while it is suspended is another matter: its run completes (D4).
    """
    if run.phase == RunPhase.STOPPING:
        return None
    if seen.child.exited_suspended:
        # What is to be left alone must not stay as we have stopped it.
        left = _leaves_the_rest(seen, run) and seen.child.suspended
        return Decision(Act.CONTINUE, "left running") if left else None
    paused = Decision(Act.WAIT, "paused") if run.phase == RunPhase.PAUSED else None
    return _paused_or_resumed(seen, run) or paused


def _leaves_the_rest(seen: Observation, run: Run) -> bool:
    """Say whether what outlives the leader is left alone: it is to be, and nobody wants the run to end (D33)."""
    return seen.spec.stop.leave_descendants and run.phase != RunPhase.STOPPING


def _climb(seen: Observation, step: Step) -> Decision:
    run, unkillable = seen.snapshot.run, seen.child.unkillable
    if unkillable and run is not None and (run.problem is None or run.problem.text != unkillable):
        return Decision(Act.RECORD_UNKILLABLE, unkillable)
    if step.rung == Rung.ASK:
        return Decision(Act.ASK)
    if step.rung == Rung.INSIST:
        return Decision(Act.INSIST)
    return Decision(Act.WAIT, "stopping", _soonest(seen) if step.wait_ns is None else _soonest(seen, step.wait_ns))


_BY_STAGE = {
    Stage.ABSENT: _absent,
    Stage.GATED: _gated,
    Stage.RELEASED: _released,
    Stage.EXECUTED: _executed,
    Stage.FAILED: _failed,
    Stage.EXITED: _exited,
}


def _soonest(seen: Observation, *others_ns: int) -> int | None:
    """Return how long until the nearest deadline, from now; ``None`` without one."""
    phase = seen.snapshot.job.phase
    if phase == JobPhase.PAUSED:
        # Nothing fires while paused; a deadline that has passed meanwhile would make the loop spin.
        return min(others_ns) if others_ns else None
    running = seen.snapshot.run is not None and phase in (JobPhase.STARTING, JobPhase.RUNNING)
    due = [seen.job_budget.due_ns() if seen.snapshot.job.intent is None else None]
    due.append(seen.run_budget.due_ns() if running and seen.child.stage != Stage.EXITED else None)
    left = [time - seen.now_ns for time in due if time is not None]
    abort_at_ns = abort_deadline_ns(seen.spec.waits)
    if abort_at_ns is not None and not seen.snapshot.job.counters.runs and seen.snapshot.run is None:
        left.append(abort_at_ns - seen.wall_ns)
    return max(0, min((*left, *others_ns))) if left or others_ns else None
