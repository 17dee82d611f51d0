"""Every rule of F.3 refuses a snapshot that breaks it, and names itself."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.errors import InvariantError
from jobman.model import invariants
from jobman.model.state import (
    Claim,
    Counters,
    Job,
    JobOutcome,
    JobPhase,
    Pause,
    Pruning,
    Run,
    RunExit,
    RunLogs,
    RunOutcome,
    RunPhase,
    Snapshot,
    StopReason,
    Supervisor,
)
from tests.moves import EPOCH_NS, PLAIN, SITUATIONS, instant, walk

EARLY = EPOCH_NS - 1
AT = instant(20).wall_ns
KILLED = RunExit(AT, signal="killed")
COMPLETED = walk("claim", "admit", "reserve", "start", "end")[-1].after
FAILED_SUBMISSION = walk("withdraw")[-1].after
SNAPSHOTS = SITUATIONS | {"completed, run": COMPLETED, "failed submission": FAILED_SUBMISSION}
OTHER_ID = "018f2b6c-7d1e-7abc-9def-0123456789ab"

Broken = tuple[str, str, dict[str, Any]]
"""Which rule, starting from which situation, by which change."""

JOB_BREAKS: list[Broken] = [
    ("revision is at least 1", "running", {"revision": 0}),
    ("completed has an outcome, and nothing else has", "running", {"outcome": JobOutcome.SUCCESS}),
    ("completed has an outcome, and nothing else has", "completed", {"outcome": None}),
    ("completed has a completion time, and nothing else has", "running", {"completed_at_ns": AT}),
    ("completed has a completion time, and nothing else has", "completed", {"completed_at_ns": None}),
    ("completed has no active run", "completed", {"active_run_id": OTHER_ID}),
    ("submitting offers a claim, and nothing else does", "submitting", {"claim": None}),
    ("submitting offers a claim, and nothing else does", "waiting", {"claim": Claim(b"", AT)}),
    ("submitting has no supervisor", "submitting", {"supervisor_id": OTHER_ID}),
    ("submitting has no supervisor", "submitting", {"claimed_at_ns": AT}),
    ("only a failed submission completes without a supervisor", "completed", {"supervisor_id": None}),
    ("only a failed submission completes without a supervisor", "starting, claimed", {"claimed_at_ns": None}),
    ("only a failed submission completes without a supervisor", "stopping, cancelled", {"supervisor_id": None}),
    ("only a failed submission completes without a supervisor", "failed submission", {"supervisor_id": OTHER_ID}),
    ("only a failed submission completes without a supervisor", "failed submission", {"claimed_at_ns": AT}),
    ("running has an active run and a start", "running", {"active_run_id": None}),
    ("running has an active run and a start", "running", {"started_at_ns": None}),
    ("waiting, queued and backoff have no active run", "waiting", {"active_run_id": OTHER_ID}),
    ("waiting, queued and backoff have no active run", "queued", {"active_run_id": OTHER_ID}),
    ("waiting, queued and backoff have no active run", "backoff", {"active_run_id": OTHER_ID}),
    ("stopping has an active run or an intent", "stopping, no run", {"intent": None}),
    ("stopping has an active run or an intent", "stopping, run timeout", {"active_run_id": None}),
    ("an intent belongs to stopping or to the outcome it caused", "running", {"intent": StopReason.TIMEOUT}),
    ("an intent belongs to stopping or to the outcome it caused", "completed", {"intent": StopReason.CANCELLATION}),
    ("paused, and nothing else, has an open pause", "paused, running", {"pause": None}),
    ("paused, and nothing else, has an open pause", "running", {"pause": Pause(JobPhase.RUNNING, AT, 1)}),
    ("backoff knows its next run", "backoff", {"next_run_at_ns": None}),
    ("counters add up", "running", {"counters": Counters(2, 1, 0)}),
    ("counters add up", "running", {"counters": Counters(0, 1, -1)}),
    ("paused time is not negative", "running", {"total_paused_ns": -1}),
    ("no time precedes the submission", "running", {"claimed_at_ns": EARLY}),
    ("no time precedes the submission", "running", {"started_at_ns": EARLY}),
    ("no time precedes the submission", "completed", {"completed_at_ns": EARLY}),
    ("no time precedes the submission", "stopping, cancelled", {"cancellation_requested_at_ns": EARLY}),
    ("no time precedes the submission", "queued", {"prerequisites_satisfied_at_ns": EARLY}),
    ("no time precedes the submission", "paused, running", {"pause": Pause(JobPhase.RUNNING, EARLY, 1)}),
]
RUN_BREAKS: list[Broken] = [
    ("revision and number are at least 1", "running", {"revision": 0}),
    ("revision and number are at least 1", "running", {"number": 0}),
    ("completed has an outcome, and nothing else has", "running", {"outcome": RunOutcome.LOST}),
    ("completed has an outcome, and nothing else has", "completed, run", {"outcome": None, "exit": KILLED}),
    ("completed has a completion time, and nothing else has", "running", {"completed_at_ns": AT}),
    ("completed has a completion time, and nothing else has", "completed, run", {"completed_at_ns": None}),
    ("running and paused have a process, its executable and a start", "running", {"identity": None}),
    ("running and paused have a process, its executable and a start", "running", {"resolved_executable": None}),
    ("running and paused have a process, its executable and a start", "paused, running", {"started_at_ns": None}),
    (
        "stopping has a time and a reason",
        "stopping, cancelled",
        {"stop_reason": None, "stop_requested_at_ns": None},
    ),
    ("a stop has both a time and a reason, or neither", "completed, run", {"stop_reason": StopReason.TIMEOUT}),
    ("a stop has both a time and a reason, or neither", "running", {"stop_requested_at_ns": AT}),
    ("completed has final log integrity", "completed, run", {"logs": RunLogs()}),
    ("completed has an exit unless no process could have one", "completed, run", {"exit": None}),
    (
        "completed has an exit unless no process could have one",
        "completed, run",
        {"exit": None, "outcome": RunOutcome.CANCELLED},
    ),
    ("an exit states one fact", "completed, run", {"exit": RunExit(AT)}),
    ("an exit states one fact", "completed, run", {"exit": RunExit(AT, exit_code=1, signal="killed")}),
    ("an exit code belongs to success or failure", "completed, run", {"outcome": RunOutcome.CANCELLED}),
    ("an exit code belongs to success or failure", "completed, run", {"outcome": RunOutcome.LOST}),
    ("no time precedes the reservation", "running", {"started_at_ns": EARLY}),
    ("no time precedes the reservation", "stopping, cancelled", {"stop_requested_at_ns": EARLY}),
    ("no time precedes the reservation", "running", {"signalled_at_ns": EARLY}),
    ("no time precedes the reservation", "completed, run", {"completed_at_ns": EARLY}),
    ("no time precedes the reservation", "completed, run", {"exit": RunExit(EARLY, exit_code=0)}),
    ("logs are pruned after the completion", "completed, run", {"pruning": Pruning(EARLY, 1, 1)}),
    ("logs are pruned after the completion", "running", {"pruning": Pruning(AT, 1, 1)}),
]
SUPERVISOR_BREAKS: list[Broken] = [
    ("revision is at least 1", "running", {"revision": 0}),
    ("released has a time, and nothing else has", "running", {"released_at_ns": AT}),
    ("released has a time, and nothing else has", "completed", {"released_at_ns": None}),
    ("no time precedes the claim", "completed", {"released_at_ns": EARLY}),
    ("no time precedes the claim", "running", {"lease_expires_at_ns": EARLY}),
]


def labels(breaks: list[Broken]) -> list[str]:
    return [f"{sentence}: {situation}, {'+'.join(changes)}" for sentence, situation, changes in breaks]


@pytest.mark.parametrize(("sentence", "situation", "changes"), JOB_BREAKS, ids=labels(JOB_BREAKS))
def test_a_job_that_breaks_one_rule_is_refused_for_it(sentence: str, situation: str, changes: dict[str, Any]) -> None:
    """F.3: and the rest of the snapshot being sound does not help."""
    before = SNAPSHOTS[situation]
    broken = before.job._replace(**changes)
    assert broken_rules(invariants.JOB_RULES, broken) == [sentence]
    with pytest.raises(InvariantError, match=sentence):
        invariants.check_snapshot(before._replace(job=broken))


@pytest.mark.parametrize(("sentence", "situation", "changes"), RUN_BREAKS, ids=labels(RUN_BREAKS))
def test_a_run_that_breaks_one_rule_is_refused_for_it(sentence: str, situation: str, changes: dict[str, Any]) -> None:
    """F.3."""
    before = SNAPSHOTS[situation]
    assert before.run is not None
    broken = before.run._replace(**changes)
    assert broken_rules(invariants.RUN_RULES, broken) == [sentence]
    with pytest.raises(InvariantError, match=sentence):
        invariants.check_snapshot(before._replace(run=broken))


@pytest.mark.parametrize(("sentence", "situation", "changes"), SUPERVISOR_BREAKS, ids=labels(SUPERVISOR_BREAKS))
def test_a_supervisor_that_breaks_one_rule_is_refused_for_it(
    sentence: str, situation: str, changes: dict[str, Any]
) -> None:
    """F.3."""
    before = SNAPSHOTS[situation]
    assert before.supervisor is not None
    broken = before.supervisor._replace(**changes)
    assert broken_rules(invariants.SUPERVISOR_RULES, broken) == [sentence]
    with pytest.raises(InvariantError, match=sentence):
        invariants.check_snapshot(before._replace(supervisor=broken))


def broken_rules(rules: Any, entity: Job | Run | Supervisor) -> list[str]:
    return [sentence for sentence, holds in rules if not holds(entity)]


@pytest.mark.parametrize(
    ("rules", "breaks"),
    [
        pytest.param(invariants.JOB_RULES, JOB_BREAKS, id="job"),
        pytest.param(invariants.RUN_RULES, RUN_BREAKS, id="run"),
        pytest.param(invariants.SUPERVISOR_RULES, SUPERVISOR_BREAKS, id="supervisor"),
    ],
)
def test_every_rule_has_a_snapshot_that_breaks_it(rules: tuple[tuple[str, object], ...], breaks: list[Broken]) -> None:
    """A rule that nothing can break is no rule; a new one needs a row above."""
    assert {sentence for sentence, _ in rules} == {sentence for sentence, _, _ in breaks}


def changed(part: str, **changes: Any) -> Snapshot:
    before = SITUATIONS["running"]
    return before._replace(**{part: getattr(before, part)._replace(**changes)})


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(SITUATIONS["running"]._replace(run=None), id="the active run is missing"),
        pytest.param(changed("run", id=OTHER_ID), id="another run is active"),
        pytest.param(changed("run", job_id=OTHER_ID), id="the run of another job"),
        pytest.param(changed("supervisor", id=OTHER_ID), id="another supervisor"),
        pytest.param(changed("supervisor", job_id=OTHER_ID), id="the supervisor of another job"),
        pytest.param(changed("admission", job_id=OTHER_ID), id="the slots of another job"),
        pytest.param(SITUATIONS["queued"]._replace(run=SITUATIONS["running"].run), id="a run that nobody follows"),
        pytest.param(COMPLETED._replace(admission=SITUATIONS["running"].admission), id="slots kept by a completed job"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(snapshot: Snapshot) -> None:
    """F.3: the active run belongs to the job; capacity is never leaked."""
    with pytest.raises(InvariantError):
        invariants.check_snapshot(snapshot)


@pytest.mark.parametrize("outcome", [RunOutcome.CANCELLED, RunOutcome.TIMED_OUT, RunOutcome.START_FAILED])
def test_a_run_that_never_had_a_process_needs_no_exit(outcome: RunOutcome) -> None:
    """F.3."""
    assert COMPLETED.run is not None
    run = COMPLETED.run._replace(identity=None, started_at_ns=None, exit=None, outcome=outcome)
    assert invariants.check_run(run) == run


def test_slots_of_a_lost_job_may_stay_held() -> None:
    """D42: by survivors."""
    kept = walk("claim", "admit", "reserve", "start", "lose", choice=PLAIN._replace(release_slots=False))[-1].after
    assert kept.admission is not None
    assert kept.admission.released_at_ns is None


def test_the_error_names_the_entity_and_its_phase() -> None:
    """A damaged store must be found."""
    job = SITUATIONS["running"].job
    with pytest.raises(InvariantError, match=rf"job {job.id}: paused time is not negative \(phase {RunPhase.RUNNING}"):
        invariants.check_job(job._replace(total_paused_ns=-1))
