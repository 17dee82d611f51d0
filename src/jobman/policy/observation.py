"""What a decision of a supervisor is made of, and what it comes to: the words between seeing and doing."""

from __future__ import annotations

from jobman.policy.ladder import Ladder
from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from jobman.model.spec import JobSpec
    from jobman.model.state import Snapshot
    from jobman.model.transitions.running import Finish
    from jobman.policy.admission import Verdict
    from jobman.policy.conditions import ConditionState
    from jobman.policy.deadline import Budget
    from jobman.policy.waiting import DependencyState


class Act(StrEnum):
    """What to commit or perform."""

    LEAVE = "leave"
    WAIT = "wait"
    REQUEST_CANCEL = "request_cancel"
    REQUEST_JOB_TIMEOUT = "request_job_timeout"
    REQUEST_RUN_TIMEOUT = "request_run_timeout"
    AWAIT_PREREQUISITES = "await_prerequisites"
    RECORD_OBSERVATIONS = "record_observations"
    RECORD_EVALUATIONS = "record_evaluations"
    ENQUEUE = "enqueue"
    ADMIT = "admit"
    RESERVE_RUN = "reserve_run"
    LAUNCH = "launch"
    RECORD_IDENTITY = "record_identity"
    OPEN_GATE = "open_gate"
    CLOSE_GATE = "close_gate"
    PUBLISH_START = "publish_start"
    SUSPEND = "suspend"
    CONTINUE = "continue"
    ASK = "ask"
    INSIST = "insist"
    RECORD_SIGNALLED = "record_signalled"
    RECORD_UNKILLABLE = "record_unkillable"
    STOP_DRAINING = "stop_draining"
    END_RUN = "end_run"
    FINISH = "finish"


class Decision(NamedTuple):
    """One act and why.

    ``wait_ns`` belongs to `Act.WAIT`: when something will be due, relative to now; ``None`` if nothing is known to be.
    """

    act: Act
    reason: str = ""
    wait_ns: int | None = None
    finish: Finish | None = None
    edges: tuple[DependencyState, ...] = ()


class Stage(StrEnum):
    """How far the child of the active run has come."""

    ABSENT = "absent"
    GATED = "gated"
    RELEASED = "released"
    EXECUTED = "executed"
    FAILED = "failed"
    EXITED = "exited"


class ChildView(NamedTuple):
    """The child of the active run as seen now.

    ``exited_ns`` is the monotonic time at which the leader's exit was seen; ``members`` counts what is left of the tree
    beside the leader, ``None`` while that has not been looked at. ``suspended`` says that we have stopped the tree,
    ``exited_suspended`` that we had when the leader ended. ``unkillable`` names what survives SIGKILL.
    """

    stage: Stage = Stage.ABSENT
    ladder: Ladder = Ladder()
    drained: bool = False
    exited_ns: int | None = None
    members: int | None = None
    suspended: bool = False
    exited_suspended: bool = False
    unkillable: str = ""


class Attempt(NamedTuple):
    """What an attempt to get slots would come to now, and whether the job has its place in the queue already."""

    verdict: Verdict
    enqueued: bool


class Observation(NamedTuple):
    """Everything that a decision may depend on.

    ``now_ns`` and the budgets are of the monotonic clock, ``wall_ns`` of the wall clock, ``backoff_left_ns`` is a
    duration. ``unwritten`` are the conditions whose last evaluation the store should learn of. ``attempt`` is ``None``
    unless the job could get slots now.
    """

    now_ns: int
    snapshot: Snapshot
    spec: JobSpec
    child: ChildView
    job_budget: Budget
    run_budget: Budget
    backoff_left_ns: int = 0
    dependencies: tuple[DependencyState, ...] = ()
    asked_to_end: bool = False
    wall_ns: int = 0
    conditions: tuple[ConditionState, ...] = ()
    unwritten: tuple[ConditionState, ...] = ()
    attempt: Attempt | None = None
