"""What the invariants refuse, the schema refuses: no writer, ours or another, can store it (F.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.errors import StoreFailureError
from jobman.model.invariants import JOB_RULES, RUN_RULES, SUPERVISOR_RULES
from jobman.store.connection import Store
from tests.moves import EXAMPLE_JOB_ID, PLAIN, SECOND_NS, derived_id, walk
from tests.stores import commit_all, dump, fast_store

_RUNNING = ("claim", "admit", "reserve", "start")
_ENDED = (*_RUNNING, "end")
_CANCELLED = (*_RUNNING, "cancel", "end")
RUN_ID = derived_id(EXAMPLE_JOB_ID, "run", 1)

# Each row: where the job is, what somebody tries to make of it. The first group is named after the invariants.
JOBS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "revision is at least 1": [((), "revision = 0")],
    "completed has an outcome, and nothing else has": [
        (("claim", "abort"), "outcome = NULL"),
        (("claim",), "outcome = 'success'"),
    ],
    "completed has a completion time, and nothing else has": [
        (("claim", "abort"), "completed_at_ns = NULL"),
        (("claim",), "completed_at_ns = submitted_at_ns"),
    ],
    "completed has no active run": [(_ENDED, f"active_run_id = '{RUN_ID}'")],
    "submitting offers a claim, and nothing else does": [
        ((), "claim_hash = NULL, claim_deadline_ns = NULL"),
        ((), "claim_deadline_ns = NULL"),
        ((), "claim_hash = zeroblob(31)"),
        (("claim",), "claim_hash = zeroblob(32), claim_deadline_ns = 1"),
        (("claim",), "claim_deadline_ns = 1"),
    ],
    "submitting has no supervisor": [
        ((), "supervisor_id = 'x', claimed_at_ns = submitted_at_ns"),
        ((), "claimed_at_ns = submitted_at_ns"),
    ],
    "only a failed submission completes without a supervisor": [
        (("claim",), "supervisor_id = NULL, claimed_at_ns = NULL"),
        (("claim",), "claimed_at_ns = NULL"),
        (("claim", "abort"), "supervisor_id = NULL, claimed_at_ns = NULL"),
        (("claim", "abort"), "outcome = 'submission_failed'"),
        (("withdraw",), "outcome = 'lost'"),
    ],
    "running has an active run and a start": [
        (_RUNNING, "active_run_id = NULL"),
        (_RUNNING, "started_at_ns = NULL"),
    ],
    "waiting, queued and backoff have no active run": [
        (_RUNNING, "phase = 'waiting'"),
        (_RUNNING, "phase = 'queued'"),
        (_RUNNING, "phase = 'backoff', next_run_at_ns = submitted_at_ns"),
    ],
    "stopping has an active run or an intent": [(("claim", "cancel"), "intent = NULL")],
    "an intent belongs to stopping or to the outcome it caused": [
        (("claim",), "intent = 'cancellation'"),
        (_CANCELLED, "outcome = 'success'"),
    ],
    "paused, and nothing else, has an open pause": [
        (
            ("claim", "await_prerequisites", "pause"),
            "paused_from = NULL, paused_at_ns = NULL, paused_monotonic_ns = NULL",
        ),
        (("claim", "await_prerequisites", "pause"), "paused_at_ns = NULL"),
        (("claim", "await_prerequisites", "pause"), "paused_monotonic_ns = NULL"),
        (("claim",), "paused_from = 'running', paused_at_ns = submitted_at_ns, paused_monotonic_ns = 1"),
        (("claim", "await_prerequisites", "pause"), "paused_from = 'starting'"),
    ],
    "backoff knows its next run": [((*_RUNNING, "retry"), "next_run_at_ns = NULL")],
    "counters add up": [
        (_ENDED, "run_count = 2"),
        (_ENDED, "run_count = 0, success_count = -1, failure_count = 1"),
        (_ENDED, "run_count = 0, success_count = 1, failure_count = -1"),
    ],
    "paused time is not negative": [(("claim",), "total_paused_ns = -1")],
    "no time precedes the submission": [
        (_ENDED, "claimed_at_ns = submitted_at_ns - 1"),
        (_ENDED, "started_at_ns = submitted_at_ns - 1"),
        (_ENDED, "completed_at_ns = submitted_at_ns - 1"),
        (_CANCELLED, "cancellation_requested_at_ns = submitted_at_ns - 1"),
        (("claim", "await_prerequisites", "enqueue_satisfied"), "prerequisites_satisfied_at_ns = submitted_at_ns - 1"),
        (("claim", "await_prerequisites", "pause"), "paused_at_ns = submitted_at_ns - 1"),
    ],
    "words of the vocabulary": [
        (("claim",), "phase = 'asleep'"),
        (("claim", "abort"), "outcome = 'meh'"),
        (("claim", "cancel"), "intent = 'boredom'"),
        ((), "id = 'short'"),
        ((), "name = NULL"),
        ((), "revision = 'one'"),
    ],
    "what is referred to exists": [
        (("claim",), "supervisor_id = 'nobody'"),
        (_RUNNING, "active_run_id = 'nothing'"),
    ],
}
RUNS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "revision and number are at least 1": [(_RUNNING, "revision = 0"), (_RUNNING, "number = 0")],
    "completed has an outcome, and nothing else has": [
        (_ENDED, "outcome = NULL"),
        (_RUNNING, "outcome = 'lost'"),
    ],
    "completed has a completion time, and nothing else has": [
        (_ENDED, "completed_at_ns = NULL"),
        (_RUNNING, "completed_at_ns = started_at_ns"),
    ],
    "running and paused have a process, its executable and a start": [
        (_RUNNING, "pid = NULL, creation_id = NULL, boot_id = NULL, pid_namespace = NULL"),
        (_RUNNING, "resolved_executable = NULL"),
        (_RUNNING, "started_at_ns = NULL"),
        ((*_RUNNING, "pause"), "started_at_ns = NULL"),
    ],
    "stopping has a time and a reason": [
        ((*_RUNNING, "cancel"), "stop_reason = NULL, stop_requested_at_ns = NULL"),
    ],
    "a stop has both a time and a reason, or neither": [
        ((*_RUNNING, "cancel"), "stop_requested_at_ns = NULL"),
        (_ENDED, "stop_requested_at_ns = started_at_ns"),
        (_ENDED, "stop_reason = 'timeout'"),
    ],
    "completed has final log integrity": [(_ENDED, "log_integrity = 'pending'")],
    "completed has an exit unless no process could have one": [
        (_ENDED, "exit_observed_at_ns = NULL, exit_code = NULL"),
        (_CANCELLED, "exit_observed_at_ns = NULL, platform_reason = NULL"),
    ],
    "an exit states one fact": [
        (_ENDED, "exit_signal = 'killed'"),
        (_ENDED, "exit_code = NULL"),
        (_ENDED, "exit_observed_at_ns = NULL"),
    ],
    "logs are pruned after the completion": [
        (_ENDED, "pruned_at_ns = completed_at_ns - 1, pruned_files = 0, pruned_bytes = 0"),
        (_RUNNING, "pruned_at_ns = started_at_ns, pruned_files = 0, pruned_bytes = 0"),
        (_ENDED, "pruned_at_ns = completed_at_ns, pruned_bytes = 0"),
        (_ENDED, "pruned_at_ns = completed_at_ns, pruned_files = 0"),
        (_ENDED, "pruned_files = 0, pruned_bytes = 0"),
        (_ENDED, "pruned_at_ns = completed_at_ns, pruned_files = -1, pruned_bytes = 0"),
        (_ENDED, "pruning_unfinished = 1"),
    ],
    "an exit code belongs to success or failure": [
        (_CANCELLED, "exit_code = 1, platform_reason = NULL"),
        (_RUNNING, "exit_code = 1, exit_observed_at_ns = started_at_ns"),
    ],
    "no time precedes the reservation": [
        (_RUNNING, "started_at_ns = reserved_at_ns - 1"),
        ((*_RUNNING, "cancel"), "stop_requested_at_ns = reserved_at_ns - 1"),
        ((*_RUNNING, "cancel"), "signalled_at_ns = reserved_at_ns - 1"),
        (_ENDED, "completed_at_ns = reserved_at_ns - 1"),
        (_ENDED, "exit_observed_at_ns = reserved_at_ns - 1"),
    ],
    "words of the vocabulary": [
        (_RUNNING, "phase = 'asleep'"),
        (_ENDED, "outcome = 'aborted'"),
        ((*_RUNNING, "cancel"), "stop_reason = 'boredom'"),
        (_RUNNING, "log_integrity = 'fine'"),
        (_RUNNING, "log_health = 'fine'"),
        (_RUNNING, "log_index_version = 3"),
    ],
    "an identity is whole": [
        (_RUNNING, "creation_id = NULL"),
        (_RUNNING, "boot_id = NULL"),
        (_RUNNING, "pid_namespace = NULL"),
    ],
    "what is referred to exists": [(_ENDED, "job_id = 'nothing'")],
}
SUPERVISORS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "revision is at least 1": [(("claim",), "revision = 0")],
    "released has a time, and nothing else has": [
        (("claim",), "released_at_ns = claimed_at_ns"),
        (("claim", "abort"), "released_at_ns = NULL"),
    ],
    "no time precedes the claim": [
        (("claim",), "lease_expires_at_ns = claimed_at_ns - 1"),
        (("claim", "abort"), "released_at_ns = claimed_at_ns - 1"),
    ],
    "words of the vocabulary": [(("claim",), "phase = 'asleep'")],
    "an identity is whole": [
        (("claim",), f"{column} = NULL")
        for column in ("pid", "creation_id", "boot_id", "pid_namespace", "lock_device", "lock_inode")
    ],
}
OTHERS: dict[str, list[tuple[tuple[str, ...], str]]] = {
    "an admission has slots": [(_RUNNING, "UPDATE admissions SET slots = 0")],
    "an admission is not released before it is given": [
        (_RUNNING, "UPDATE admissions SET released_at_ns = acquired_at_ns - 1")
    ],
    "a job holds one admission": [
        (
            _RUNNING,
            (
                "INSERT INTO admissions (id, job_id, slots, acquired_at_ns, lease_expires_at_ns)"
                " SELECT 'x', job_id, 1, 1, 1 FROM admissions"
            ),
        )
    ],
    "a job has one active run": [
        (
            _RUNNING,
            (
                "INSERT INTO runs (id, job_id, number, phase, revision, reserved_at_ns, log_integrity, log_health,"
                " log_index_version) SELECT 'x', job_id, 2, 'starting', 1, 1, 'pending', 'healthy', 1 FROM runs"
            ),
        )
    ],
    "a number is given once": [
        (
            _ENDED,
            (
                "INSERT INTO runs (id, job_id, number, phase, revision, reserved_at_ns, log_integrity, log_health,"
                " log_index_version) SELECT 'x', job_id, 1, 'starting', 1, 1, 'pending', 'healthy', 1 FROM runs"
            ),
        )
    ],
    "a job has one supervisor, present or past": [
        (
            ("claim", "abort"),
            (
                "INSERT INTO supervisors SELECT 'x', job_id, phase, revision, pid, creation_id, boot_id, pid_namespace,"
                " lock_device, lock_inode, claimed_at_ns, lease_expires_at_ns, released_at_ns FROM supervisors"
            ),
        )
    ],
    "no job depends on itself": [
        ((), "INSERT INTO dependencies (job_id, depends_on, predicate) SELECT id, id, 'success' FROM jobs")
    ],
    "a label is a group or a tag": [((), "INSERT INTO job_labels SELECT id, 'mood', 'good' FROM jobs")],
    "events speak of jobs, runs and supervisors": [
        (
            (),
            (
                "INSERT INTO state_events (id, kind, entity_id, job_id, revision, type, at_ns)"
                " SELECT 'x', 'pool', 'x', id, 1, 'x', 1 FROM jobs"
            ),
        )
    ],
}


def _cases() -> Iterator[tuple[str, tuple[str, ...], str]]:
    for table, rules in (("jobs", JOBS), ("runs", RUNS), ("supervisors", SUPERVISORS)):
        for rule, rows in rules.items():
            for moves, change in rows:
                yield f"{table}: {rule}: {change}", moves, f"UPDATE {table} SET {change}"  # noqa: S608  # our own table
    for rule, rows in OTHERS.items():
        for moves, statement in rows:
            yield rule, moves, statement


CASES = {name: (moves, statement) for name, moves, statement in _cases()}


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


@pytest.mark.parametrize(("moves", "statement"), CASES.values(), ids=CASES)
def test_the_schema_refuses(store: Store, moves: tuple[str, ...], statement: str) -> None:
    retry = PLAIN._replace(retry_ns=SECOND_NS)
    names = tuple("end" if move == "retry" else move for move in moves)
    commit_all(store, walk(*names, choice=retry if "retry" in moves else PLAIN))
    before = dump(store)
    with pytest.raises(StoreFailureError, match=r"constraint failed|cannot store"):
        store.execute(statement)
    assert dump(store) == before


@pytest.mark.parametrize(
    ("rules", "rows"),
    [(JOB_RULES, JOBS), (RUN_RULES, RUNS), (SUPERVISOR_RULES, SUPERVISORS)],
    ids=["job", "run", "owner"],
)
def test_every_invariant_has_its_rows(rules: tuple[tuple[str, object], ...], rows: dict[str, object]) -> None:
    """An invariant that joins the model must join the schema, or say here why it cannot."""
    assert {sentence for sentence, _ in rules} <= set(rows)
