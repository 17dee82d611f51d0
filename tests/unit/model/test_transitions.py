"""The whole transition table, and what is true of every transition whichever it is (contract, F.2 and F.3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from jobman.errors import TransitionError
from jobman.model.events import EntityKind, Event, EventType, Transition
from jobman.model.invariants import check_snapshot
from jobman.model.state import Job, JobOutcome, JobPhase, Run, RunOutcome, Snapshot, Supervisor
from jobman.model.transitions._change import Now
from tests.moves import (
    EPOCH_NS,
    MOVES,
    PLAIN,
    SECOND_NS,
    SITUATIONS,
    instant,
    later,
    legal_moves,
    reload,
    submitted,
    walk,
)
from tests.strategies import choices, histories, instants_after, next_moves, snapshots

# --- The table -----------------------------------------------------------------------------------------------------

LEGAL = {
    "submitting": "claim withdraw",
    "starting, claimed": "await_prerequisites enqueue_full admit abort time_out_idle cancel lose",
    "waiting": "enqueue_satisfied abort time_out_idle cancel pause lose",
    "queued": "admit abort time_out_idle cancel pause lose",
    "starting, admitted": "reserve abort time_out_idle cancel lose",
    "starting, reserved": "start end cancel job_timeout run_timeout lose",
    "running": "end cancel job_timeout run_timeout pause lose",
    "backoff": "enqueue_elapsed abort time_out_idle cancel pause lose",
    "paused, waiting": "cancel resume lose",
    "paused, running": "end cancel job_timeout resume lose",
    "stopping, no run": "finish_cancelled lose",
    "stopping, cancelled": "end lose",
    "stopping, run timeout": "end cancel job_timeout lose",
    "stopping, job timeout": "end lose",
    "completed": "",
}
NOTHING_TO_DO = {
    ("stopping, no run", "cancel"),
    ("stopping, cancelled", "cancel"),
    ("stopping, job timeout", "cancel"),
    ("completed", "cancel"),
}
PAIRS = [(situation, move) for situation in SITUATIONS for move in MOVES]
SOON = instant(20)


def names(pairs: list[tuple[str, str]]) -> list[str]:
    return [f"{situation}: {move}" for situation, move in pairs]


@pytest.mark.parametrize(("situation", "move"), PAIRS, ids=names(PAIRS))
def test_every_transition_is_legal_only_where_the_table_says(situation: str, move: str) -> None:
    """Every pair of a phase and a transition (F.2; end from paused: D4; cancel in a run timeout: D10)."""
    before = SITUATIONS[situation]
    if move in LEGAL[situation].split():
        assert MOVES[move].apply(before, PLAIN, SOON) is not None
    elif (situation, move) in NOTHING_TO_DO:
        assert MOVES[move].apply(before, PLAIN, SOON) is None
    else:
        with pytest.raises(TransitionError):
            MOVES[move].apply(before, PLAIN, SOON)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_generated_histories_walk_the_same_table(situation: str) -> None:
    """What `tests.strategies` takes for legal is what the table above says."""
    nothing = {move for place, move in NOTHING_TO_DO if place == situation}
    assert set(legal_moves(SITUATIONS[situation], SOON)) == set(LEGAL[situation].split()) | nothing


EVENTS = {
    ("submitting", "claim"): "job:supervisor_claimed supervisor:supervisor_claimed",
    ("submitting", "withdraw"): "job:submission_failed",
    ("starting, claimed", "await_prerequisites"): "job:job_waiting",
    ("starting, claimed", "enqueue_full"): "job:job_queued",
    ("starting, claimed", "admit"): "",
    ("waiting", "enqueue_satisfied"): "job:job_queued",
    ("waiting", "abort"): "job:job_aborted supervisor:supervisor_released",
    ("waiting", "time_out_idle"): "job:timeout_requested supervisor:supervisor_released",
    ("waiting", "cancel"): "job:cancellation_requested",
    ("waiting", "pause"): "job:job_paused",
    ("waiting", "lose"): "job:ownership_lost supervisor:supervisor_released",
    ("queued", "admit"): "job:job_starting",
    ("backoff", "enqueue_elapsed"): "job:job_queued",
    ("starting, admitted", "reserve"): "job:run_reserved run:run_reserved",
    ("starting, reserved", "start"): "job:process_started run:process_started",
    ("starting, reserved", "end"): "job:job_completed run:run_completed supervisor:supervisor_released",
    ("running", "end"): "job:job_completed run:run_completed supervisor:supervisor_released",
    ("running", "cancel"): "job:cancellation_requested run:cancellation_requested",
    ("running", "job_timeout"): "job:timeout_requested run:timeout_requested",
    ("running", "run_timeout"): "job:timeout_requested run:timeout_requested",
    ("running", "pause"): "job:job_paused run:job_paused",
    ("running", "lose"): "job:job_completed run:ownership_lost supervisor:supervisor_released",
    ("paused, waiting", "resume"): "job:job_resumed",
    ("paused, running", "resume"): "job:job_resumed run:job_resumed",
    ("stopping, no run", "finish_cancelled"): "job:job_completed supervisor:supervisor_released",
    ("stopping, run timeout", "cancel"): "job:cancellation_requested",
}


@pytest.mark.parametrize(("situation", "move"), EVENTS, ids=names(list(EVENTS)))
def test_each_transition_records_the_events_of_the_table(situation: str, move: str) -> None:
    """The event types of F.2, and the entities that they are about."""
    change = MOVES[move].apply(SITUATIONS[situation], PLAIN, SOON)
    assert change is not None
    recorded = [f"{event.kind}:{event.type}" for event in change.events]
    assert recorded == EVENTS[situation, move].split()


def test_a_job_of_one_run_ends_at_the_typical_revisions() -> None:
    """F.2: job 5, run 3, supervisor 2."""
    job, run, supervisor, _ = walk("claim", "admit", "reserve", "start", "end")[-1].after
    assert run is not None
    assert supervisor is not None
    assert (job.revision, run.revision, supervisor.revision) == (5, 3, 2)


def test_a_job_with_a_dependency_ends_at_revision_eight() -> None:
    """F.2: waiting, queued and admitted come on top of a plain job's five."""
    moves = ("claim", "await_prerequisites", "enqueue_satisfied", "admit", "reserve", "start", "end")
    assert walk(*moves)[-1].after.job.revision == 8


# --- Properties ----------------------------------------------------------------------------------------------------

Entity = Job | Run | Supervisor
HISTORIES = settings(max_examples=40, deadline=None)


def entities(snapshot: Snapshot | None) -> dict[tuple[EntityKind, str], Entity]:
    if snapshot is None:
        return {}
    found: dict[tuple[EntityKind, str], Entity] = {(EntityKind.JOB, snapshot.job.id): snapshot.job}
    if snapshot.run is not None:
        found[EntityKind.RUN, snapshot.run.id] = snapshot.run
    if snapshot.supervisor is not None:
        found[EntityKind.SUPERVISOR, snapshot.supervisor.id] = snapshot.supervisor
    return found


def stored_times(entity: Entity) -> dict[str, int]:
    times = {name: value for name, value in entity._asdict().items() if name.endswith("_at_ns") and value is not None}
    # These lie in the future by nature.
    times.pop("next_run_at_ns", None)
    times.pop("lease_expires_at_ns", None)
    if isinstance(entity, Run) and entity.exit is not None:
        times["exit"] = entity.exit.observed_at_ns
    if isinstance(entity, Job) and entity.pause is not None:
        times["pause"] = entity.pause.at_ns
    return times


@HISTORIES
@given(snapshots(), st.data())
def test_from_anywhere_exactly_the_legal_transitions_succeed(snapshot: Snapshot, data: st.DataObject) -> None:
    """F.2: what is legal gives a sound snapshot, anything else raises; the snapshot that was given stays as it was."""
    now = data.draw(instants_after(Now(snapshot.job.latest_ns(), SECOND_NS)))
    choice = data.draw(choices())
    kept = repr(snapshot)
    for move in MOVES.values():
        if move.legal(snapshot, now):
            change = move.apply(snapshot, choice, now)
            assert change is None or check_snapshot(reload(change.after)) is not None
        else:
            with pytest.raises(TransitionError):
                move.apply(snapshot, choice, now)
    assert repr(snapshot) == kept


@HISTORIES
@given(histories())
def test_every_change_is_one_revision_and_one_event(history: list[Transition]) -> None:
    """F.2: each changed entity goes up by exactly 1, and exactly one event carries the new revision."""
    for change in history:
        before, after = entities(change.before), entities(change.after)
        changed = {key: entity for key, entity in after.items() if entity != before.get(key)}
        expected = [(*key, before[key].revision + 1 if key in before else 1) for key in changed]
        assert [(*key, entity.revision) for key, entity in changed.items()] == expected
        assert sorted((event.kind, event.entity_id, event.revision) for event in change.events) == sorted(expected)
        assert {event.job_id for event in change.events} == {change.after.job.id} or not change.events


@HISTORIES
@given(histories())
def test_no_time_of_an_entity_goes_back_when_the_clock_does(history: list[Transition]) -> None:
    """F.3, D26: whatever the wall clock shows, what is stored is never older than what was."""
    for change in history:
        before, after = entities(change.before), entities(change.after)
        for key in before.keys() & after.keys():
            old, new = stored_times(before[key]), stored_times(after[key])
            fresh = [time for name, time in new.items() if old.get(name) != time]
            latest_ns = max(old.values())
            assert before[key].latest_ns() == latest_ns
            assert all(time >= latest_ns for time in fresh)
            assert all(event.at_ns >= latest_ns for event in events_of(change, key))


def events_of(change: Transition, key: tuple[EntityKind, str]) -> list[Event]:
    return [event for event in change.events if (event.kind, event.entity_id) == key]


@HISTORIES
@given(histories(max_moves=30))
def test_counters_count_every_completed_run_once(history: list[Transition]) -> None:
    """F.4: success or not, lost and cancelled runs included; numbers are consecutive."""
    ended = [change.after.run for change in history if ended_a_run(change)]
    outcomes = [run.outcome for run in ended if run is not None]
    successes = outcomes.count(RunOutcome.SUCCESS)
    assert history[-1].after.job.counters == (len(outcomes), successes, len(outcomes) - successes)
    assert [run.number for run in ended if run is not None] == list(range(1, len(outcomes) + 1))


def ended_a_run(change: Transition) -> bool:
    return any(event.type in (EventType.RUN_COMPLETED, EventType.OWNERSHIP_LOST) for event in run_events(change))


def run_events(change: Transition) -> list[Event]:
    return [event for event in change.events if event.kind == EntityKind.RUN]


class OneJob(RuleBasedStateMachine):
    """Keeps its own books of paused time, slots and intents beside the model, through any interleaving of moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = Now(EPOCH_NS, SECOND_NS)
        self.snapshot = submitted("018f0000-0000-7000-8000-000000000001", now=self.now).after
        self.paused_ns = 0
        self.intended: str | None = None

    @rule(elapsed_ns=st.integers(0, 5 * SECOND_NS), jump_ns=st.sampled_from((0, 0, -SECOND_NS, SECOND_NS)))
    def wait(self, elapsed_ns: int, jump_ns: int) -> None:
        self.now = later(self.now, elapsed_ns, jump_ns)
        if self.snapshot.job.phase == JobPhase.PAUSED:
            self.paused_ns += elapsed_ns

    @precondition(lambda self: self.snapshot.job.phase != JobPhase.COMPLETED)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        name, choice = data.draw(next_moves(self.snapshot, self.now))
        change = MOVES[name].apply(self.snapshot, choice, self.now)
        if change is None:
            return
        if name in ("cancel", "job_timeout"):
            self.intended = self.intended or name
        self.check_slots(change.after)
        self.snapshot = reload(change.after)

    def check_slots(self, after: Snapshot) -> None:
        held = after.admission is not None and after.admission.released_at_ns is None
        if after.job.phase == JobPhase.BACKOFF or after.job.outcome not in (None, JobOutcome.LOST):
            assert not held
        if after.job.active_run_id is not None:
            assert held
            assert after.admission is not None
            assert after.admission.run_id == after.job.active_run_id

    @invariant()
    def only_the_monotonic_clock_measures_pauses(self) -> None:
        """D20, D26."""
        job = self.snapshot.job
        open_ns = 0 if job.pause is None else self.now.monotonic_ns - job.pause.monotonic_ns
        assert job.total_paused_ns + open_ns == self.paused_ns

    @invariant()
    def an_intent_decides_the_outcome(self) -> None:
        """D10, D22."""
        outcome = self.snapshot.job.outcome
        if self.intended is not None and outcome is not None:
            wanted = JobOutcome.CANCELLED if self.intended == "cancel" else JobOutcome.TIMED_OUT
            assert outcome in (wanted, JobOutcome.LOST)


TestOneJob = OneJob.TestCase
TestOneJob.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
