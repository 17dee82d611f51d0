"""Commits: compare-and-swap, one event for each revision, nothing lost that was recorded meanwhile (M7, F.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.errors import JobNotFoundError, StoreFailureError
from jobman.model.events import Transition
from jobman.model.spec import Dependency, JobSpec
from jobman.model.transitions import running, stopping
from jobman.store.commit import commit, commit_submission, record_identity, record_signalled, renew_lease
from jobman.store.connection import Store
from jobman.store.jobs import (
    count_active,
    latest_admission,
    load_job,
    load_ownership,
    load_runs,
    load_snapshot,
    load_supervisor,
)
from jobman.store.specs import load_spec
from tests.moves import EXAMPLE_JOB_ID, PLAIN, end_of, instant, reload, submitted, walk
from tests.stores import (
    await_line,
    commit_all,
    dump,
    fast_store,
    fresh_id,
    outputs,
    plain_spec,
    start_python,
    statements_of,
    tell,
)
from tests.strategies import histories, job_specs

PER_TEST_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def _events(store: Store, job_id: str) -> list[tuple[str, int]]:
    statement = "SELECT entity_id, revision FROM state_events WHERE job_id = ? ORDER BY sequence"
    return [(row[0], row[1]) for row in store.execute(statement, (job_id,))]


def _revisions(history: list[Transition]) -> list[tuple[str, int]]:
    """Return every revision of every entity in a history, each once, entity by entity."""
    seen: dict[str, set[int]] = {}
    for change in history:
        for entity in change.after[:3]:
            if entity is not None:
                seen.setdefault(entity.id, set()).add(entity.revision)
    return sorted((entity, revision) for entity, revisions in seen.items() for revision in revisions)


@PER_TEST_STORE
@given(data=st.data())
def test_what_is_loaded_is_what_was_committed_with_one_event_for_each_revision(
    store: Store, data: st.DataObject
) -> None:
    """M7 over random legal histories: after every commit the store reads as the transition says."""
    job_id = fresh_id()
    history: list[Transition] = data.draw(histories(job_id=job_id))
    for number, change in enumerate(history):
        if number == 0:
            commit_submission(store, change, plain_spec())
        else:
            commit(store, change)
        assert load_snapshot(store, job_id) == reload(change.after)
    events = _events(store, job_id)
    assert len(events) == len(set(events))
    assert sorted(events) == _revisions(history)


@PER_TEST_STORE
@given(data=st.data())
def test_ended_runs_supervisors_and_admissions_can_be_read_as_they_ended(store: Store, data: st.DataObject) -> None:
    job_id = fresh_id()
    history: list[Transition] = data.draw(histories(job_id=job_id))
    commit_all(store, history)
    runs = {change.after.run.id: change.after.run for change in history if change.after.run is not None}
    assert load_runs(store, [job_id]).get(job_id, []) == sorted(runs.values(), key=lambda run: run.number)
    assert load_supervisor(store, job_id) == history[-1].after.supervisor
    admissions = [change.after.admission for change in history if change.after.admission is not None]
    assert latest_admission(store, job_id) == (admissions[-1] if admissions else None)


@PER_TEST_STORE
@given(spec=job_specs())
def test_a_specification_is_stored_with_its_labels_and_edges_and_read_back(store: Store, spec: JobSpec) -> None:
    """Invalid UTF-8 in words and environment survives (traps for Python)."""
    for edge in spec.dependencies:
        if not store.execute("SELECT 1 FROM jobs WHERE id = ?", (edge.job_id,)):
            commit_submission(store, submitted(edge.job_id), plain_spec())
    job_id = fresh_id()
    commit_submission(store, submitted(job_id, spec.name), spec)
    assert load_spec(store, job_id) == spec
    labels = set(store.execute("SELECT kind, label FROM job_labels WHERE job_id = ?", (job_id,)))
    assert labels == {("group", one) for one in spec.groups} | {("tag", one) for one in spec.tags}
    edges = set(store.execute("SELECT depends_on, predicate FROM dependencies WHERE job_id = ?", (job_id,)))
    assert edges == set(spec.dependencies)


def test_a_dependency_that_does_not_exist_rolls_the_whole_submission_back(store: Store) -> None:
    """O.39."""
    before = dump(store)
    spec = plain_spec(tags=("a",), dependencies=(Dependency(fresh_id(), "success"),))
    with pytest.raises(StoreFailureError):
        commit_submission(store, submitted(EXAMPLE_JOB_ID), spec)
    assert dump(store) == before


_SAME_REVISION_AGAIN = (
    "INSERT INTO state_events (id, kind, entity_id, job_id, revision, type, at_ns)"
    " SELECT 'new', kind, entity_id, job_id, revision, type, at_ns FROM state_events WHERE sequence = 1"
)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE state_events SET reason = 'another'",
        "UPDATE state_events SET at_ns = at_ns + 1 WHERE sequence = 1",
        "UPDATE OR REPLACE state_events SET sequence = 9 WHERE sequence = 1",
        "DELETE FROM state_events WHERE sequence = 1",
        _SAME_REVISION_AGAIN,
    ],
)
def test_events_are_append_only(store: Store, statement: str) -> None:
    """One event per revision, never changed and, while its job exists, never removed."""
    commit_all(store, walk("claim"))
    before = dump(store)
    with pytest.raises(StoreFailureError):
        store.execute(statement)
    assert dump(store) == before


def test_the_events_of_a_job_go_with_the_job(store: Store) -> None:
    commit_all(store, walk("claim", "abort"))
    with store.write():
        store.execute("DELETE FROM jobs")
    assert not any(rows for name, rows in dump(store).items() if name != "schema_migrations")


# --- Facts without a revision ---------------------------------------------------------------------------------------


def test_a_cancel_that_was_decided_before_the_identity_was_recorded_does_not_erase_it(store: Store) -> None:
    """A client's snapshot may be older than what the supervisor has noted at the gate: the note must survive."""
    history = walk("claim", "admit", "reserve")
    commit_all(store, history)
    stale = load_snapshot(store, EXAMPLE_JOB_ID)
    assert stale.run is not None
    record_identity(store, stale.run, PLAIN.identity)
    cancel = stopping.request_cancel(stale, instant(9))
    assert cancel is not None
    commit(store, cancel)
    run = load_snapshot(store, EXAMPLE_JOB_ID).run
    assert run is not None
    assert run.identity == PLAIN.identity
    assert run.stop_requested_at_ns == instant(9).wall_ns


def test_a_change_that_was_decided_before_the_signal_was_noted_does_not_erase_the_note(store: Store) -> None:
    commit_all(store, walk("claim", "admit", "reserve", "start", "run_timeout"))
    stale = load_snapshot(store, EXAMPLE_JOB_ID)
    assert stale.run is not None
    record_signalled(store, stale.run, instant(9).wall_ns)
    commit(store, running.end_run(stale, end_of(stale, PLAIN, instant(10)), running.Retry(None), instant(10)))
    assert load_runs(store, [EXAMPLE_JOB_ID])[EXAMPLE_JOB_ID][0].signalled_at_ns == instant(9).wall_ns


def test_a_signal_is_never_noted_before_anything_that_is_known_of_the_run(store: Store) -> None:
    """F.3: a clock that was set back must not make an order check refuse the note."""
    commit_all(store, walk("claim", "admit", "reserve", "start", "cancel"))
    run = load_snapshot(store, EXAMPLE_JOB_ID).run
    assert run is not None
    assert record_signalled(store, run, 5).signalled_at_ns == run.latest_ns()


def test_a_completion_keeps_a_lease_that_was_renewed_meanwhile(store: Store) -> None:
    """O.17: a renewal never breaks the completion, nor is it undone by it."""
    commit_all(store, walk("claim", "admit", "reserve"))
    stale = load_snapshot(store, EXAMPLE_JOB_ID)
    renew_lease(store, stale, instant(500).wall_ns)
    commit(store, running.start_run(stale, PLAIN.identity, "/bin/true", instant(4)))
    fresh = load_snapshot(store, EXAMPLE_JOB_ID)
    assert fresh.supervisor is not None
    assert fresh.admission is not None
    assert fresh.supervisor.lease_expires_at_ns == fresh.admission.lease_expires_at_ns == instant(500).wall_ns
    assert fresh.supervisor.revision == 1


def test_a_lease_is_renewed_even_if_the_clock_was_set_back_before_the_claim(store: Store) -> None:
    commit_all(store, walk("claim", "admit"))
    snapshot = load_snapshot(store, EXAMPLE_JOB_ID)
    renew_lease(store, snapshot, instant(-3_600).wall_ns)
    renewed = load_snapshot(store, EXAMPLE_JOB_ID)
    assert renewed.supervisor is not None
    assert renewed.supervisor.lease_expires_at_ns == renewed.supervisor.claimed_at_ns


def test_no_lease_is_renewed_without_an_admission(store: Store) -> None:
    """D41: renewals only while slots are held."""
    commit_all(store, walk("claim"))
    before = dump(store)
    renew_lease(store, load_snapshot(store, EXAMPLE_JOB_ID), instant(500).wall_ns)
    assert dump(store) == before


# --- Reading ---------------------------------------------------------------------------------------------------------


def test_a_job_that_does_not_exist_is_not_found(store: Store) -> None:
    for load in (load_job, load_snapshot, load_spec):
        with pytest.raises(JobNotFoundError):
            load(store, EXAMPLE_JOB_ID)
    assert load_supervisor(store, EXAMPLE_JOB_ID) is None
    assert latest_admission(store, EXAMPLE_JOB_ID) is None
    assert load_runs(store, [EXAMPLE_JOB_ID]) == {}
    assert not store.in_transaction()


@pytest.mark.parametrize(
    ("move", "untouched"),
    [
        ("start", {"jobs_active", "jobs_by_active_run", "one_active_run_per_job"}),
        ("end", {"jobs_by_submission", "admissions_by_run", "one_supervisor_per_job"}),
    ],
)
def test_a_change_writes_no_index_of_what_stays_as_it_is(store: Store, move: str, untouched: set[str]) -> None:
    """Each one would be another page of every such commit."""
    path = ("claim", "admit", "reserve", "start", "end")
    *before, change = walk(*path[: path.index(move) + 1])
    commit_all(store, before)
    updates = [text for text in statements_of(store, lambda: commit(store, change)) if text.startswith("UPDATE")]
    steps = [step for text in updates for step in store.execute(f"EXPLAIN {text}", (None,) * text.count("?"))]
    written = {root for _, code, _, root, *_ in steps if code == "OpenWrite"}
    names = {name for root, name in store.execute("SELECT rootpage, name FROM sqlite_schema") if root in written}
    assert names >= {"jobs", "runs"}
    assert not names & untouched


def test_active_jobs_are_those_that_are_not_completed_newest_first(store: Store) -> None:
    ids = [fresh_id() for _ in range(3)]
    for number, job_id in enumerate(ids):
        commit_all(store, [submitted(job_id, now=instant(number))])
    commit_all(store, walk("claim", "abort"))
    assert sorted(row[0] for row in load_ownership(store)) == sorted(ids)
    assert count_active(store) == 3


# --- Races between processes -----------------------------------------------------------------------------------------

_RACER = """
import sys
from jobman.errors import RevisionConflictError
from jobman.model.transitions import running, stopping
from jobman.model.transitions._change import Now
from jobman.store.commit import commit
from jobman.store.connection import open_store
from jobman.store.jobs import load_snapshot
root, job_id = sys.argv[1:]
store = open_store(root)
snapshot = load_snapshot(store, job_id)
change = stopping.request_cancel(snapshot, Now(2_000_000_000_000_000_000, 1))
print("ready", flush=True)
sys.stdin.readline()
try:
    commit(store, change)
    print("won")
except RevisionConflictError:
    print("lost")
"""


def test_of_processes_that_race_for_one_transition_exactly_one_wins(store: Store, state: Path) -> None:
    """O.43."""
    commit_all(store, walk("claim", "admit", "reserve", "start"))
    racers = [start_python(state, _RACER, str(state), EXAMPLE_JOB_ID) for _ in range(4)]
    for racer in racers:
        await_line(racer)
    for racer in racers:
        tell(racer)
    assert sorted(outputs(racers)) == ["lost\n", "lost\n", "lost\n", "won\n"]
    job = load_job(store, EXAMPLE_JOB_ID)
    assert job.revision == 5
    assert len([event for event in _events(store, EXAMPLE_JOB_ID) if event == (EXAMPLE_JOB_ID, 5)]) == 1
