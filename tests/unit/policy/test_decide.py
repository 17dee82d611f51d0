"""What a supervisor does next: rows for every place a job and its child can be in (H.2, H.3, F.4, D3, D33)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.model.events import Transition
from jobman.model.spec import DEFAULT_DRAIN_TIMEOUT_NS, Dependency, StopPolicy
from jobman.model.state import Diagnostic, JobOutcome, JobPhase, Problem, Reason, RunPhase, Snapshot
from jobman.model.transitions import running, stopping
from jobman.model.waits import WaitCondition, WaitKind, Waits
from jobman.policy.admission import Ruling, Verdict
from jobman.policy.conditions import ConditionState
from jobman.policy.deadline import Budget
from jobman.policy.decide import ASKED_TO_END, decide
from jobman.policy.ladder import Ladder
from jobman.policy.observation import Act, Attempt, ChildView, Decision, Observation, Stage
from jobman.policy.waiting import DependencyState
from tests.moves import EXAMPLE_JOB_ID, PLAIN, SITUATIONS, derived_id, instant, reload, walk
from tests.stores import plain_spec
from tests.strategies import snapshots

NOW_NS = 1_000_000
GRACE_NS = 1_000
CANNOT = Diagnostic.TARGET_CANNOT_BE_KILLED
FORCE, PATIENT = StopPolicy(GRACE_NS), StopPolicy(GRACE_NS, force_after_grace=False)
NONE, SPENT, LATER = Budget(0, 0), Budget(10, NOW_NS - 10), Budget(10, NOW_NS - 3)
_DELAY = WaitCondition(WaitKind.DELAY, delay_ns=5)
HELD_BACK = plain_spec(waits=Waits(conditions=(_DELAY,)))
ABORTING = plain_spec(waits=Waits(conditions=(_DELAY._replace(abort_at_ns=10),)))
NEEDS_ONE = plain_spec(dependencies=(Dependency(derived_id(EXAMPLE_JOB_ID, "job", 9), "success"),))
_RUN = SITUATIONS["running"].run
assert _RUN is not None


def _walked(*moves: str) -> Snapshot:
    return reload(walk(*moves)[-1].after)


def _with_run(name: str, **changes: Any) -> Snapshot:
    found = SITUATIONS[name]
    assert found.run is not None
    return found._replace(run=found.run._replace(**changes))


RESERVED = SITUATIONS["starting, reserved"]
IDENTIFIED = _with_run("starting, reserved", identity=PLAIN.identity)
RUNNING = SITUATIONS["running"]
STOPPING = SITUATIONS["stopping, cancelled"]
SIGNALLED = _with_run("stopping, cancelled", signalled_at_ns=instant(9).wall_ns)
TIMING_OUT = SITUATIONS["stopping, run timeout"]
UNSTARTED = _walked("claim", "admit", "reserve", "cancel")
PAUSED = SITUATIONS["paused, running"]
HELD = PAUSED._replace(run=PAUSED.run and PAUSED.run._replace(signalled_at_ns=PAUSED.run.latest_ns()))
FULL = Attempt(Verdict(Ruling.WAIT, scope=""), enqueued=True)
MARKING = Attempt(Verdict(Ruling.WAIT, mark="somebody"), enqueued=True)
NEVER = Attempt(Verdict(Ruling.IMPOSSIBLE), enqueued=True)
ROOM = Attempt(Verdict(Ruling.ADMIT), enqueued=True)


def _seen(snapshot: Snapshot, child: ChildView | None = None, **changes: Any) -> Observation:
    seen = Observation(NOW_NS, snapshot, plain_spec(stop=FORCE), child or ChildView(), NONE, NONE, attempt=ROOM)
    return seen._replace(**changes)


def _child(stage: Stage, ladder: Ladder | None = None, **changes: Any) -> ChildView:
    return ChildView(stage, ladder or Ladder())._replace(**changes)


def _exited(ladder: Ladder | None = None, **changes: Any) -> ChildView:
    return _child(Stage.EXITED, ladder, **({"exited_ns": NOW_NS, "drained": True, "members": 0} | changes))


def _edge(outcome: JobOutcome | None = None, seen: JobOutcome | None = None) -> DependencyState:
    phase = JobPhase.RUNNING if outcome is None else JobPhase.COMPLETED
    return DependencyState(NEEDS_ONE.dependencies[0], "prepare", phase, 4, outcome, seen, 4 if seen else None)


ASKED = Ladder(NOW_NS - 1)
GRACE_OVER = Ladder(NOW_NS - GRACE_NS)
INSISTED = Ladder(NOW_NS - GRACE_NS, NOW_NS)
GATED, RELEASED, EXECUTED = _child(Stage.GATED), _child(Stage.RELEASED), _child(Stage.EXECUTED)
SUSPENDED = _child(Stage.EXECUTED, suspended=True)
DRAINING = _exited(drained=False, members=None)
LEAVING = plain_spec(stop=FORCE._replace(leave_descendants=True))
UNKILLABLE = _child(Stage.EXECUTED, INSISTED, unkillable="a survives")
STUCK = SIGNALLED._replace(run=SIGNALLED.run and SIGNALLED.run._replace(problem=Problem(CANNOT, "a survives")))
OVERDUE = _exited(drained=False, members=None, exited_ns=NOW_NS - DEFAULT_DRAIN_TIMEOUT_NS)

ROWS: dict[str, tuple[Observation, Act]] = {
    # --- before anything else
    "completed: leave": (_seen(SITUATIONS["completed"]), Act.LEAVE),
    "completed precedes being asked to end": (_seen(SITUATIONS["completed"], asked_to_end=True), Act.LEAVE),
    "asked to end while waiting": (_seen(SITUATIONS["waiting"], asked_to_end=True), Act.REQUEST_CANCEL),
    "asked to end while running": (_seen(RUNNING, EXECUTED, asked_to_end=True), Act.REQUEST_CANCEL),
    "asked to end while paused": (_seen(PAUSED, EXECUTED, asked_to_end=True), Act.REQUEST_CANCEL),
    "asked to end during a run timeout (D10)": (_seen(TIMING_OUT, EXECUTED, asked_to_end=True), Act.REQUEST_CANCEL),
    "asked to end precedes the job timeout": (
        _seen(RUNNING, EXECUTED, asked_to_end=True, job_budget=SPENT),
        Act.REQUEST_CANCEL,
    ),
    "asked to end twice: once is enough": (_seen(STOPPING, EXECUTED, asked_to_end=True), Act.ASK),
    # --- between runs
    "claimed, no prerequisites: admit": (_seen(SITUATIONS["starting, claimed"]), Act.ADMIT),
    "claimed, with prerequisites: wait for them": (
        _seen(SITUATIONS["starting, claimed"], spec=NEEDS_ONE),
        Act.AWAIT_PREREQUISITES,
    ),
    "prerequisites gate only the first run": (
        _seen(_walked("claim", "await_prerequisites", "enqueue_satisfied", "admit"), spec=NEEDS_ONE),
        Act.RESERVE_RUN,
    ),
    "admitted: reserve a run": (_seen(SITUATIONS["starting, admitted"]), Act.RESERVE_RUN),
    "queued, with room: admit": (_seen(SITUATIONS["queued"]), Act.ADMIT),
    "queued, no room: wait": (_seen(SITUATIONS["queued"], attempt=FULL), Act.WAIT),
    "queued, no place yet: take one": (_seen(SITUATIONS["queued"], attempt=FULL._replace(enqueued=False)), Act.ADMIT),
    "queued behind one that fits: note it": (_seen(SITUATIONS["queued"], attempt=MARKING), Act.ADMIT),
    "queued for what cannot be: abort": (_seen(SITUATIONS["queued"], attempt=NEVER), Act.FINISH),
    "claimed, no room: take a place": (_seen(SITUATIONS["starting, claimed"], attempt=FULL), Act.ADMIT),
    "claimed, with conditions: wait for them": (
        _seen(SITUATIONS["starting, claimed"], spec=HELD_BACK),
        Act.AWAIT_PREREQUISITES,
    ),
    "waiting, condition not met": (
        _seen(SITUATIONS["waiting"], spec=HELD_BACK, conditions=(ConditionState(0, "delay", 1),)),
        Act.WAIT,
    ),
    "waiting, condition met": (
        _seen(SITUATIONS["waiting"], spec=HELD_BACK, conditions=(ConditionState(0, "delay", 1, satisfied=True),)),
        Act.ENQUEUE,
    ),
    "waiting, evaluations are written first": (
        _seen(
            SITUATIONS["waiting"],
            spec=HELD_BACK,
            conditions=(ConditionState(0, "delay", 1, satisfied=True),),
            unwritten=(ConditionState(0, "delay", 1, satisfied=True),),
        ),
        Act.RECORD_EVALUATIONS,
    ),
    "waiting, condition failed for good": (
        _seen(SITUATIONS["waiting"], spec=HELD_BACK, conditions=(ConditionState(0, "probe", 1, fatal=True),)),
        Act.FINISH,
    ),
    "waiting past the wait deadline: abort": (_seen(SITUATIONS["waiting"], spec=ABORTING, wall_ns=10), Act.FINISH),
    "queued past the wait deadline: abort": (_seen(SITUATIONS["queued"], spec=ABORTING, wall_ns=10), Act.FINISH),
    "the wait deadline is over once a run has begun": (
        _seen(SITUATIONS["backoff"], spec=ABORTING, wall_ns=10, backoff_left_ns=5),
        Act.WAIT,
    ),
    "waiting, other job goes on": (_seen(SITUATIONS["waiting"], dependencies=(_edge(),)), Act.WAIT),
    "waiting, other job ended: record it first": (
        _seen(SITUATIONS["waiting"], dependencies=(_edge(JobOutcome.SUCCESS),)),
        Act.RECORD_OBSERVATIONS,
    ),
    "waiting, a failure is recorded before it is judged": (
        _seen(SITUATIONS["waiting"], dependencies=(_edge(JobOutcome.FAILURE),)),
        Act.RECORD_OBSERVATIONS,
    ),
    "waiting, satisfied: enqueue": (
        _seen(SITUATIONS["waiting"], dependencies=(_edge(JobOutcome.SUCCESS, JobOutcome.SUCCESS),)),
        Act.ENQUEUE,
    ),
    "waiting, impossible: finish": (
        _seen(SITUATIONS["waiting"], dependencies=(_edge(JobOutcome.FAILURE, JobOutcome.FAILURE),)),
        Act.FINISH,
    ),
    "backoff, not yet": (_seen(SITUATIONS["backoff"], backoff_left_ns=1), Act.WAIT),
    "backoff, elapsed": (_seen(SITUATIONS["backoff"]), Act.ENQUEUE),
    "paused: wait": (_seen(SITUATIONS["paused, waiting"]), Act.WAIT),
    "paused: no job timeout": (_seen(SITUATIONS["paused, waiting"], job_budget=SPENT), Act.WAIT),
    "stopping without a run: finish": (_seen(SITUATIONS["stopping, no run"]), Act.FINISH),
    "cancellation precedes the job timeout": (_seen(SITUATIONS["stopping, no run"], job_budget=SPENT), Act.FINISH),
    "job timeout while starting": (_seen(SITUATIONS["starting, admitted"], job_budget=SPENT), Act.FINISH),
    "job timeout while queued": (_seen(SITUATIONS["queued"], job_budget=SPENT), Act.FINISH),
    "job timeout while waiting": (_seen(SITUATIONS["waiting"], job_budget=SPENT), Act.FINISH),
    "job timeout precedes the next run": (_seen(SITUATIONS["backoff"], job_budget=SPENT), Act.FINISH),
    # --- deadlines during a run
    "job timeout with a run: stop it": (_seen(RUNNING, EXECUTED, job_budget=SPENT), Act.REQUEST_JOB_TIMEOUT),
    "job timeout precedes run timeout": (
        _seen(RUNNING, EXECUTED, job_budget=SPENT, run_budget=SPENT),
        Act.REQUEST_JOB_TIMEOUT,
    ),
    "job timeout during a run timeout": (_seen(TIMING_OUT, EXECUTED, job_budget=SPENT), Act.REQUEST_JOB_TIMEOUT),
    "job timeout during a cancellation: nothing new": (_seen(SIGNALLED, EXECUTED, job_budget=SPENT), Act.ASK),
    "job timeout in the drain (D33)": (_seen(RUNNING, DRAINING, job_budget=SPENT), Act.REQUEST_JOB_TIMEOUT),
    "job timeout while paused: not now": (_seen(HELD, SUSPENDED, job_budget=SPENT), Act.WAIT),
    "run timeout while running": (_seen(RUNNING, EXECUTED, run_budget=SPENT), Act.REQUEST_RUN_TIMEOUT),
    "run timeout while starting": (_seen(RESERVED, RELEASED, run_budget=SPENT), Act.REQUEST_RUN_TIMEOUT),
    "run timeout while paused: not now": (_seen(HELD, SUSPENDED, run_budget=SPENT), Act.WAIT),
    "run timeout ends with the leader (D33)": (_seen(RUNNING, DRAINING, run_budget=SPENT), Act.WAIT),
    "run timeout twice: once is enough": (_seen(TIMING_OUT, EXECUTED, run_budget=SPENT), Act.ASK),
    # --- the launch
    "reserved: launch": (_seen(RESERVED), Act.LAUNCH),
    "stopped before the launch: no process": (_seen(UNSTARTED), Act.END_RUN),
    "at the gate: record who it is": (_seen(RESERVED, GATED), Act.RECORD_IDENTITY),
    "at the gate, recorded: open": (_seen(IDENTIFIED, GATED), Act.OPEN_GATE),
    "stopped at the gate: close it": (_seen(UNSTARTED, GATED), Act.CLOSE_GATE),
    "released: wait for the exec": (_seen(IDENTIFIED, RELEASED), Act.WAIT),
    "stopped when released: ask": (_seen(UNSTARTED, RELEASED), Act.ASK),
    "executed: publish": (_seen(IDENTIFIED, EXECUTED), Act.PUBLISH_START),
    "exec failed: end": (_seen(IDENTIFIED, _child(Stage.FAILED)), Act.END_RUN),
    "exec failed when stopped: end": (_seen(UNSTARTED, _child(Stage.FAILED)), Act.END_RUN),
    "ended before it was published: publish first": (_seen(IDENTIFIED, _exited()), Act.PUBLISH_START),
    # --- running and stopping
    "running: wait": (_seen(RUNNING, EXECUTED), Act.WAIT),
    "paused, but still going: suspend": (_seen(PAUSED, EXECUTED), Act.SUSPEND),
    "paused and suspended: wait": (_seen(HELD, SUSPENDED), Act.WAIT),
    "paused again before the resumption was seen: say so": (_seen(PAUSED, SUSPENDED), Act.RECORD_SIGNALLED),
    "resumed before the pause was seen: say so": (
        _seen(SITUATIONS["running"], EXECUTED, run_budget=Budget(0, 0, paused_ns=1)),
        Act.RECORD_SIGNALLED,
    ),
    "resumed, but still suspended: continue": (_seen(RUNNING, SUSPENDED), Act.CONTINUE),
    "cancelled while suspended: ask, which continues it": (_seen(STOPPING, SUSPENDED), Act.ASK),
    "stopping: ask": (_seen(STOPPING, EXECUTED), Act.ASK),
    "stopping, asked: record it": (_seen(STOPPING, _child(Stage.EXECUTED, ASKED)), Act.RECORD_SIGNALLED),
    "stopping, asked and recorded: wait": (_seen(SIGNALLED, _child(Stage.EXECUTED, ASKED)), Act.WAIT),
    "stopping, grace over: insist": (_seen(SIGNALLED, _child(Stage.EXECUTED, GRACE_OVER)), Act.INSIST),
    "stopping, insisted: wait": (_seen(SIGNALLED, _child(Stage.EXECUTED, INSISTED)), Act.WAIT),
    "stopping without force: wait for ever (D3)": (
        _seen(SIGNALLED, _child(Stage.EXECUTED, GRACE_OVER), spec=plain_spec(stop=PATIENT)),
        Act.WAIT,
    ),
    # --- after the leader's exit (D33)
    "exited, not drained: drain": (_seen(RUNNING, DRAINING), Act.WAIT),
    "exited, drain over: close the pipes": (_seen(RUNNING, OVERDUE), Act.STOP_DRAINING),
    "exited, drained, tree empty: end": (_seen(RUNNING, _exited()), Act.END_RUN),
    "exited while paused: end (D4)": (_seen(PAUSED, _exited()), Act.END_RUN),
    "exited while paused, suspended members hold the pipe: ask them": (
        _seen(HELD, _exited(drained=False, members=1, suspended=True, exited_suspended=True)),
        Act.ASK,
    ),
    "exited while paused, suspended members are to be left: let them go on": (
        _seen(HELD, _exited(members=1, suspended=True, exited_suspended=True), spec=LEAVING),
        Act.CONTINUE,
    ),
    "exited while paused, members went on: leave them": (
        _seen(HELD, _exited(members=1, exited_suspended=True), spec=LEAVING),
        Act.END_RUN,
    ),
    "paused in the drain: suspend what is left": (_seen(PAUSED, _exited(drained=False, members=1)), Act.SUSPEND),
    "paused in the drain, which is over: suspend all the same": (
        _seen(PAUSED, OVERDUE._replace(members=1)),
        Act.SUSPEND,
    ),
    "paused when members were asked: suspend them": (_seen(PAUSED, _exited(ASKED, members=1)), Act.SUSPEND),
    "paused in the drain, suspended: wait": (_seen(HELD, OVERDUE._replace(members=1, suspended=True)), Act.WAIT),
    "paused in the drain, suspended members were killed: end": (_seen(HELD, _exited(suspended=True)), Act.END_RUN),
    "resumed in the drain: go on": (_seen(RUNNING, _exited(drained=False, members=1, suspended=True)), Act.CONTINUE),
    "cancelled when paused in the drain: ask": (
        _seen(STOPPING, _exited(drained=False, members=1, suspended=True)),
        Act.ASK,
    ),
    "exited while paused, nobody left: read to the end": (
        _seen(HELD, _exited(drained=False, suspended=True)),
        Act.WAIT,
    ),
    "exited, drained, members: ask them": (_seen(RUNNING, _exited(members=2)), Act.ASK),
    "exited, members asked: wait": (_seen(RUNNING, _exited(ASKED, members=2)), Act.WAIT),
    "exited, members' grace over: insist": (_seen(RUNNING, _exited(GRACE_OVER, members=2)), Act.INSIST),
    "exited, members insisted upon: wait": (_seen(RUNNING, _exited(INSISTED, members=2)), Act.WAIT),
    "exited, members are to be left: drain first": (
        _seen(RUNNING, _exited(drained=False, members=1), spec=LEAVING),
        Act.WAIT,
    ),
    "exited, drained, members are to be left: end": (_seen(RUNNING, _exited(members=1), spec=LEAVING), Act.END_RUN),
    "cancelled, members would have been left: ask": (_seen(STOPPING, _exited(members=1), spec=LEAVING), Act.ASK),
    "a shorter drain is over: close the pipes": (
        _seen(RUNNING, _exited(drained=False, exited_ns=NOW_NS - 5), spec=plain_spec(stop=FORCE._replace(drain_ns=5))),
        Act.STOP_DRAINING,
    ),
    "survives SIGKILL: say so": (_seen(SIGNALLED, UNKILLABLE), Act.RECORD_UNKILLABLE),
    "survives SIGKILL, as was said: wait": (_seen(STUCK, UNKILLABLE), Act.WAIT),
    "another one survives SIGKILL: say so": (
        _seen(STUCK, UNKILLABLE._replace(unkillable="b survives")),
        Act.RECORD_UNKILLABLE,
    ),
    "a member survives SIGKILL: say so": (
        _seen(RUNNING, _exited(INSISTED, members=1, unkillable="a survives")),
        Act.RECORD_UNKILLABLE,
    ),
    "exited, members without force: leave them": (
        _seen(RUNNING, _exited(GRACE_OVER, members=2), spec=plain_spec(stop=PATIENT)),
        Act.END_RUN,
    ),
    "cancelled in the drain: the tree is stopped at once": (
        _seen(STOPPING, _exited(drained=False, members=1)),
        Act.ASK,
    ),
    "cancelled, drain over: members may say their last words": (
        _seen(SIGNALLED, OVERDUE._replace(members=1, ladder=ASKED)),
        Act.WAIT,
    ),
    "cancelled in the drain, asked: wait": (_seen(SIGNALLED, _exited(ASKED, drained=False, members=1)), Act.WAIT),
    "cancelled in the drain, grace over: insist": (
        _seen(SIGNALLED, _exited(GRACE_OVER, drained=False, members=1)),
        Act.INSIST,
    ),
    "cancelled in the drain, its signal unrecorded: record it": (
        _seen(STOPPING, _exited(GRACE_OVER, drained=False, members=1)),
        Act.RECORD_SIGNALLED,
    ),
    "cancelled in the drain, nobody left: read to the end": (_seen(STOPPING, _exited(drained=False)), Act.WAIT),
    "cancelled, drain over: close the pipes": (_seen(STOPPING, OVERDUE), Act.STOP_DRAINING),
    "cancelled, all over: end": (_seen(STOPPING, _exited()), Act.END_RUN),
}


@pytest.mark.parametrize(("seen", "act"), ROWS.values(), ids=ROWS)
def test_what_is_due(seen: Observation, act: Act) -> None:
    assert decide(seen).act == act


def test_the_table_covers_every_phase_and_stage_that_go_together() -> None:
    """A phase, a run phase or a stage that joins needs rows."""
    covered = {(seen.snapshot.job.phase, _run_phase(seen), _stage(seen)) for seen, _ in ROWS.values()}
    phases = {phase for phase, _, _ in covered}
    assert phases == set(JobPhase) - {JobPhase.SUBMITTING}
    together = {(run, stage) for _, run, stage in covered if run is not None}
    launching = set(product((RunPhase.STARTING, RunPhase.STOPPING), Stage)) - {(RunPhase.STARTING, Stage.FAILED)}
    started = set(product((RunPhase.RUNNING, RunPhase.PAUSED), (Stage.EXECUTED, Stage.EXITED)))
    assert together >= launching | started | {(RunPhase.STARTING, Stage.FAILED)}


def _run_phase(seen: Observation) -> RunPhase | None:
    return None if seen.snapshot.run is None else seen.snapshot.run.phase


def _stage(seen: Observation) -> Stage:
    return seen.child.stage


# --- What a decision carries ----------------------------------------------------------------------------------------


def test_a_session_that_ends_is_named_as_the_reason() -> None:
    assert decide(_seen(RUNNING, EXECUTED, asked_to_end=True)) == Decision(Act.REQUEST_CANCEL, ASKED_TO_END)


def test_a_cancelled_job_keeps_the_reason_that_was_committed() -> None:
    stopped = stopping.request_cancel(SITUATIONS["waiting"], instant(9), ASKED_TO_END)
    assert stopped is not None
    finish = decide(_seen(stopped.after)).finish
    assert finish == running.Finish(JobOutcome.CANCELLED, ASKED_TO_END)


def test_a_job_timeout_without_a_run_finishes_as_timed_out() -> None:
    finish = decide(_seen(SITUATIONS["queued"], job_budget=SPENT)).finish
    assert finish is not None
    assert finish.problem is not None
    assert (finish.outcome, finish.reason) == (JobOutcome.TIMED_OUT, Reason.JOB_TIMEOUT)
    assert finish.problem.code == Diagnostic.JOB_TIMEOUT


def test_an_impossible_dependency_is_named_with_what_it_came_to() -> None:
    """D36."""
    edge = _edge(JobOutcome.FAILURE, JobOutcome.FAILURE)
    finish = decide(_seen(SITUATIONS["waiting"], dependencies=(edge,))).finish
    assert finish is not None
    assert finish.problem is not None
    assert finish.outcome == JobOutcome.ABORTED
    assert finish.problem.text == "dependency failed: prepare (ended as failure, success was required)"


def test_what_is_to_be_recorded_is_handed_over() -> None:
    edges = (_edge(JobOutcome.SUCCESS), _edge())
    assert decide(_seen(SITUATIONS["waiting"], dependencies=edges)).edges == edges[:1]


@pytest.mark.parametrize(
    ("situation", "reason"),
    [
        ("starting, claimed", Reason.ADMITTED),
        ("queued", Reason.ADMITTED),
        ("backoff", Reason.BACKOFF_ELAPSED),
        ("waiting", Reason.PREREQUISITES_SATISFIED),
    ],
)
def test_decisions_say_why(situation: str, reason: Reason) -> None:
    assert decide(_seen(SITUATIONS[situation])).reason == reason


@pytest.mark.parametrize(
    ("seen", "wait_ns"),
    [
        pytest.param(_seen(RUNNING, EXECUTED), None, id="nothing is due"),
        pytest.param(_seen(RUNNING, EXECUTED, run_budget=LATER), 7, id="run timeout"),
        pytest.param(_seen(RUNNING, EXECUTED, job_budget=LATER), 7, id="job timeout"),
        pytest.param(_seen(RUNNING, EXECUTED, run_budget=LATER, job_budget=Budget(5, NOW_NS)), 5, id="the nearer one"),
        pytest.param(_seen(IDENTIFIED, RELEASED, run_budget=LATER), 7, id="run timeout while starting"),
        pytest.param(_seen(RUNNING, DRAINING, run_budget=LATER), DEFAULT_DRAIN_TIMEOUT_NS, id="end of the drain"),
        pytest.param(_seen(RUNNING, DRAINING, job_budget=LATER), 7, id="job timeout in the drain"),
        pytest.param(_seen(SIGNALLED, _child(Stage.EXECUTED, ASKED)), GRACE_NS - 1, id="end of the grace"),
        pytest.param(
            _seen(SIGNALLED, _child(Stage.EXECUTED, ASKED), job_budget=LATER), GRACE_NS - 1, id="intent known"
        ),
        pytest.param(_seen(SITUATIONS["backoff"], backoff_left_ns=9), 9, id="next run"),
        pytest.param(_seen(SITUATIONS["backoff"], backoff_left_ns=9, job_budget=LATER), 7, id="job timeout in backoff"),
        pytest.param(_seen(SITUATIONS["waiting"], dependencies=(_edge(),), job_budget=LATER), 7, id="while waiting"),
        pytest.param(_seen(HELD, SUSPENDED, job_budget=SPENT, run_budget=SPENT), None, id="nothing while paused"),
        pytest.param(_seen(SITUATIONS["paused, waiting"], job_budget=SPENT), None, id="nothing while paused, no run"),
    ],
)
def test_a_wait_ends_when_the_next_thing_is_due(seen: Observation, wait_ns: int | None) -> None:
    assert decide(seen).act == Act.WAIT
    assert decide(seen).wait_ns == wait_ns


# --- Any observation ------------------------------------------------------------------------------------------------

_TIMES = st.integers(NOW_NS - 2 * GRACE_NS, NOW_NS)
_BUDGETS = st.sampled_from((NONE, SPENT, LATER))
_CHILDREN = st.builds(
    ChildView,
    st.sampled_from(list(Stage)),
    st.builds(Ladder, st.none() | _TIMES, st.none() | _TIMES),
    st.booleans(),
    _TIMES | st.just(NOW_NS - DEFAULT_DRAIN_TIMEOUT_NS),
    st.none() | st.integers(0, 3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(("", "a survives")),
)
_OBSERVATIONS = st.builds(
    Observation,
    st.just(NOW_NS),
    snapshots().filter(lambda snapshot: snapshot.job.phase != JobPhase.SUBMITTING),
    st.sampled_from((plain_spec(stop=FORCE), plain_spec(stop=PATIENT), LEAVING, NEEDS_ONE)),
    _CHILDREN,
    _BUDGETS,
    _BUDGETS,
    st.integers(-5, 5),
    st.lists(st.builds(_edge, st.none() | st.sampled_from(list(JobOutcome))), max_size=2).map(tuple),
    st.booleans(),
)


_NOTHING = running.Finish(JobOutcome.LOST, "never")
_COMMITS: dict[Act, Callable[[Snapshot, Decision], Transition | None]] = {
    Act.REQUEST_CANCEL: lambda snapshot, _: stopping.request_cancel(snapshot, instant(99)),
    Act.REQUEST_JOB_TIMEOUT: lambda snapshot, _: stopping.request_job_timeout(snapshot, instant(99)),
    Act.REQUEST_RUN_TIMEOUT: lambda snapshot, _: stopping.request_run_timeout(snapshot, instant(99)),
    Act.AWAIT_PREREQUISITES: lambda snapshot, _: running.await_prerequisites(snapshot, instant(99)),
    Act.ENQUEUE: lambda snapshot, one: running.enqueue(snapshot, Reason(one.reason), instant(99)),
    Act.RESERVE_RUN: lambda snapshot, _: running.reserve_run(snapshot, derived_id("x", "run", 1), instant(99)),
    Act.PUBLISH_START: lambda snapshot, _: running.start_run(snapshot, PLAIN.identity, "/bin/true", instant(99)),
    Act.FINISH: lambda snapshot, one: running.finish_without_run(snapshot, one.finish or _NOTHING, instant(99)),
}


@settings(max_examples=60)  # a history is costly to generate
@given(_OBSERVATIONS)
def test_something_legal_is_decided_whatever_is_seen(seen: Observation) -> None:
    """Never an exception, always one act, and one that the model allows; a wait never spins, a finish says how."""
    decision = decide(seen)
    assert decision.act in set(Act)
    assert (decision.finish is not None) == (decision.act == Act.FINISH)
    assert bool(decision.edges) == (decision.act == Act.RECORD_OBSERVATIONS)
    if decision.act == Act.WAIT:
        assert decision.wait_ns is None or decision.wait_ns > 0
    else:
        assert decision.wait_ns is None
    if decision.act in _COMMITS:
        assert _COMMITS[decision.act](seen.snapshot, decision) is not None
