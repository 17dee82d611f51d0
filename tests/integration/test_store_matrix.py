"""Every writer of the store, in every state that a transaction can be in.

A new writer joins by one row of `ROWS`; `test_every_writer_of_the_store_has_a_row` fails until it has.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import jobman.store
from jobman.errors import ClaimError, JobmanError, LimitConflictError, RevisionConflictError, StoreFailureError
from jobman.model.spec import Dependency
from jobman.model.state import Diagnostic, JobOutcome, JobPhase, Problem, Pruning, Run
from jobman.model.waits import WaitKind
from jobman.policy.admission import IDLE_AFTER_NS, Request
from jobman.policy.conditions import ConditionState
from jobman.policy.limits import StatedLimits
from jobman.policy.retention import PrunableRun
from jobman.policy.waiting import DependencyState
from jobman.store.admissions import enqueue, forget_fitting, note_fitting, settle
from jobman.store.claim import Claimant, claim_job
from jobman.store.commit import (
    commit,
    commit_submission,
    record_identity,
    record_problem,
    record_signalled,
    renew_lease,
    write_transition,
)
from jobman.store.conditions import record_evaluations
from jobman.store.connection import Store, _connect
from jobman.store.dependencies import record_observations
from jobman.store.limits import apply_all, apply_stated
from jobman.store.live_input import publish_endpoint, request_eof
from jobman.store.migrations._apply import create_schema, upgrade_schema
from jobman.store.pruning import finish_prunings, record_pruned, remove_jobs
from tests.integration.outbox_rows import OUTBOX_ROWS, SPEC
from tests.moves import EXAMPLE_JOB_ID, PLAIN, derived_id, instant, submitted, walk
from tests.stores import commit_all, downgrade, dump, dump_at, fast_store, fresh_id, plain_spec
from tests.support import SUCCEED

Write = Callable[[Store], object]
OTHER_ID = derived_id(EXAMPLE_JOB_ID, "job", 2)
OWNER_ID = derived_id(EXAMPLE_JOB_ID, "supervisor", 1)
_CHANGED = "UPDATE {table} SET revision = revision + 1"
_RELEASED = (
    "UPDATE supervisors SET phase = 'released', released_at_ns = lease_expires_at_ns;"
    "UPDATE admissions SET released_at_ns = lease_expires_at_ns"
)
_INSERT_JOB = (
    "INSERT INTO jobs (id, name, phase, revision, submitted_at_ns, claim_hash, claim_deadline_ns)"
    " VALUES ('{job}', '', 'submitting', 1, 0, zeroblob(32), 1)"
)
_INSERT_REQUEST = "INSERT INTO admission_requests (job_id, pool, slots, eligible_at_ns) VALUES ('{job}', 'gpu', 2, 1)"
_INSERT_ENDPOINT = "INSERT INTO live_inputs (job_id, endpoint) VALUES ('{job}', 'x')"
_INSERT_EVALUATION = "INSERT INTO wait_evaluations VALUES ('{job}', 0, 'delay', 1, {at_ns}, NULL, NULL)"


class Row(NamedTuple):
    """A writer.

    Attributes:
        function: what is tested; the guard compares its name.
        arrange: fills the store and returns the write.
        disturb: SQL by which somebody else gets in first.
        error: what the write then raises; ``None`` if it changes nothing in silence.
    """

    function: Callable[..., object]
    arrange: Callable[[Store], Write]
    disturb: str
    error: type[JobmanError] | None


def _last_of(*moves: str) -> Callable[[Store], Write]:
    def arrange(store: Store) -> Write:
        history = walk(*moves)
        commit_all(store, history[:-1])
        return lambda one: commit(one, history[-1])

    return arrange


def _submission(_store: Store) -> Write:
    spec = SPEC._replace(groups=("night",), tags=("a", "b"))
    return lambda one: commit_submission(one, submitted(EXAMPLE_JOB_ID), spec)


def _claim(store: Store) -> Write:
    commit_all(store, walk())
    claimant = Claimant(OWNER_ID, (*PLAIN.identity,), (*PLAIN.lock,))
    at_ns = instant(1).wall_ns
    return lambda one: claim_job(
        one, EXAMPLE_JOB_ID, claimant=claimant, credential_hash=PLAIN.credential_hash, wall_ns=at_ns
    )


def _identity(store: Store) -> Write:
    history = walk("claim", "admit", "reserve")
    commit_all(store, history)
    run = history[-1].after.run
    assert run is not None
    return lambda one: record_identity(one, run, PLAIN.identity)


def _stopping(store: Store) -> Run:
    history = walk("claim", "admit", "reserve", "start", "cancel")
    commit_all(store, history)
    run = history[-1].after.run
    assert run is not None
    return run


def _signalled(store: Store) -> Write:
    run = _stopping(store)
    return lambda one: record_signalled(one, run, instant(9).wall_ns)


def _problem(store: Store) -> Write:
    run = _stopping(store)
    return lambda one: record_problem(one, run, Problem(Diagnostic.TARGET_CANNOT_BE_KILLED, "survives"))


def _lease(store: Store) -> Write:
    history = walk("claim", "admit")
    commit_all(store, history)
    return lambda one: renew_lease(one, history[-1].after, instant(99).wall_ns)


def _observations(store: Store) -> Write:
    commit_all(store, walk("claim", "abort", job_id=OTHER_ID))
    edge = Dependency(OTHER_ID, "finish")
    commit_all(store, walk("claim", "await_prerequisites"), plain_spec(dependencies=(edge,)))
    state = DependencyState(edge, "", JobPhase.COMPLETED, 3, JobOutcome.ABORTED)
    return lambda one: record_observations(one, EXAMPLE_JOB_ID, [state], instant(9).wall_ns)


def _queued(store: Store, *job_ids: str) -> None:
    for place, job_id in enumerate(job_ids):
        commit_all(store, walk("claim", "enqueue_full", job_id=job_id))
        enqueue(store, Request(job_id, "gpu", 2, place))


def _enqueue(store: Store) -> Write:
    commit_all(store, walk("claim", "enqueue_full"))
    return lambda one: enqueue(one, Request(EXAMPLE_JOB_ID, "gpu", 2, 7))


def _note(store: Store) -> Write:
    _queued(store, EXAMPLE_JOB_ID)
    return lambda one: note_fitting(one, EXAMPLE_JOB_ID, 7)


def _forget(store: Store) -> Write:
    _queued(store, EXAMPLE_JOB_ID)
    note_fitting(store, EXAMPLE_JOB_ID, 7)
    return lambda one: forget_fitting(one, EXAMPLE_JOB_ID)


def _settle(store: Store) -> Write:
    _queued(store, EXAMPLE_JOB_ID, OTHER_ID)
    return lambda one: settle(one, Request(OTHER_ID, "gpu", 2, 1), EXAMPLE_JOB_ID, now_ns=IDLE_AFTER_NS)


def _stated(store: Store) -> Write:
    _queued(store, EXAMPLE_JOB_ID)
    return lambda one: apply_stated(one, StatedLimits(states_store_wide=True, store_wide=3, pools={"gpu": 2}))


def _all(store: Store) -> Write:
    apply_stated(store, StatedLimits(states_store_wide=True, store_wide=3, pools={"gpu": 2}))
    commit_all(store, walk("claim", "enqueue_full"))
    return lambda one: apply_all(one, StatedLimits(states_store_wide=False, store_wide=None, pools={}))


def _evaluations(store: Store) -> Write:
    commit_all(store, walk("claim", "await_prerequisites"))
    state = ConditionState(0, WaitKind.DELAY, 1, instant(2).wall_ns, None, None)
    return lambda one: record_evaluations(one, EXAMPLE_JOB_ID, [state])


def _endpoint(store: Store) -> Write:
    commit_all(store, walk("claim"))
    return lambda one: publish_endpoint(one, EXAMPLE_JOB_ID, "/somewhere/else.sock")


def _eof(store: Store) -> Write:
    history = walk("claim", "admit", "reserve", "start")
    commit_all(store, history)
    publish_endpoint(store, EXAMPLE_JOB_ID, "/somewhere/else.sock")
    run = history[-1].after.run
    assert run is not None
    return lambda one: request_eof(one, EXAMPLE_JOB_ID, run.id)


_RUN = PrunableRun(derived_id(EXAMPLE_JOB_ID, "run", 1), EXAMPLE_JOB_ID, 1, 0, 0, 0)
_TOMBSTONE = (
    "UPDATE runs SET pruned_at_ns = completed_at_ns, pruned_files = 0, pruned_bytes = 0, pruning_unfinished = 1"
)


def _pruned(store: Store) -> Write:
    commit_all(store, walk(*SUCCEED))
    return lambda one: record_pruned(one, _RUN, Pruning(instant(9).wall_ns, 3, 52))


def _finished(store: Store) -> Write:
    commit_all(store, walk(*SUCCEED))
    store.execute(_TOMBSTONE)
    return lambda one: finish_prunings(one, [_RUN.id])


def _removal(store: Store) -> Write:
    commit_all(store, walk("claim", "abort"))
    return lambda one: remove_jobs(one, [EXAMPLE_JOB_ID])


def _upgrade(store: Store) -> Write:
    downgrade(store)
    return upgrade_schema


def _schema(store: Store) -> Write:
    # Not what a first command does step by step, but the state in which it comes to create the tables.
    for kind, name in store.execute(
        "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'table'"
    ):
        store.execute(f"PRAGMA foreign_keys=OFF; DROP {kind} {name}")
    store.execute("PRAGMA foreign_keys=ON; PRAGMA user_version=0; PRAGMA application_id=0")
    return create_schema


ROWS = {
    "commit: job": Row(commit, _last_of("claim", "cancel"), _CHANGED.format(table="jobs"), RevisionConflictError),
    "commit: run": Row(
        commit, _last_of("claim", "admit", "reserve", "start"), _CHANGED.format(table="runs"), RevisionConflictError
    ),
    "commit: supervisor": Row(
        commit, _last_of("claim", "abort"), _CHANGED.format(table="supervisors"), RevisionConflictError
    ),
    "commit: admission": Row(
        commit,
        _last_of("claim", "admit", "reserve"),
        "UPDATE admissions SET released_at_ns = acquired_at_ns",
        RevisionConflictError,
    ),
    "commit: phase alone": Row(
        commit,
        _last_of("claim", "cancel"),
        "UPDATE jobs SET phase = 'waiting'",
        RevisionConflictError,
    ),
    "commit_submission": Row(
        commit_submission,
        _submission,
        _INSERT_JOB.format(job=EXAMPLE_JOB_ID),
        StoreFailureError,
    ),
    "claim_job": Row(claim_job, _claim, "UPDATE jobs SET claim_hash = zeroblob(32)", ClaimError),
    "record_identity": Row(record_identity, _identity, _CHANGED.format(table="runs"), RevisionConflictError),
    "record_problem": Row(record_problem, _problem, _CHANGED.format(table="runs"), RevisionConflictError),
    "record_signalled": Row(record_signalled, _signalled, _CHANGED.format(table="runs"), RevisionConflictError),
    "renew_lease": Row(renew_lease, _lease, _RELEASED, None),
    "record_observations": Row(
        record_observations,
        _observations,
        "UPDATE dependencies SET observed_revision = 1, observed_outcome = 'lost'",
        None,
    ),
    "enqueue": Row(
        enqueue,
        _enqueue,
        _INSERT_REQUEST.format(job=EXAMPLE_JOB_ID),
        None,
    ),
    "note_fitting": Row(note_fitting, _note, "UPDATE admission_requests SET fits_since_ns = 1", None),
    "forget_fitting": Row(forget_fitting, _forget, "DELETE FROM admission_requests", None),
    "settle": Row(settle, _settle, "DELETE FROM admission_requests", None),
    "apply_stated": Row(
        apply_stated,
        _stated,
        "UPDATE admission_requests SET slots = 4",
        LimitConflictError,
    ),
    "apply_all": Row(
        apply_all,
        _all,
        _INSERT_REQUEST.format(job=EXAMPLE_JOB_ID),
        LimitConflictError,
    ),
    "record_evaluations": Row(
        record_evaluations,
        _evaluations,
        _INSERT_EVALUATION.format(job=EXAMPLE_JOB_ID, at_ns=instant(2).wall_ns),
        None,
    ),
    "publish_endpoint": Row(
        publish_endpoint,
        _endpoint,
        _INSERT_ENDPOINT.format(job=EXAMPLE_JOB_ID),
        None,
    ),
    "request_eof": Row(request_eof, _eof, "UPDATE live_inputs SET eof_run_id = (SELECT id FROM runs)", None),
    "record_pruned": Row(record_pruned, _pruned, _TOMBSTONE, RevisionConflictError),
    "finish_prunings": Row(finish_prunings, _finished, "UPDATE runs SET pruning_unfinished = NULL", None),
    "remove_jobs": Row(remove_jobs, _removal, "DELETE FROM jobs", None),
    "create_schema": Row(create_schema, _schema, "", None),
    "upgrade_schema": Row(upgrade_schema, _upgrade, "", None),
    **{function.__name__: Row(function, arrange, taken, None) for function, arrange, taken in OUTBOX_ROWS},
}
EVERY_ROW = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


@EVERY_ROW
def test_alone_a_write_is_durable(row: Row, store: Store, state: Path) -> None:
    write = row.arrange(store)
    before = dump(store)
    write(store)
    assert dump(store) != before
    assert not store.in_transaction()
    assert dump_at(state) == dump(store)


@EVERY_ROW
def test_nested_a_write_belongs_to_the_outer_transaction(row: Row, store: Store, state: Path) -> None:
    write = row.arrange(store)
    before = dump(store)
    with store.write():
        write(store)
        assert store.in_transaction(), "the inner commit must not end the outer transaction"
        assert _seen_by_another(state) == before
    assert dump(store) != before
    assert dump_at(state) == dump(store)


@EVERY_ROW
def test_rolled_back_nothing_of_a_write_remains(row: Row, store: Store, state: Path) -> None:
    write = row.arrange(store)
    before = dump(store)
    with pytest.raises(KeyError), store.write():  # noqa: PT012  # the write must come before the failure
        write(store)
        raise KeyError
    assert dump(store) == before
    store.close()
    assert _seen_by_another(state) == before


@EVERY_ROW
def test_in_conflict_nothing_is_changed(row: Row, store: Store, state: Path) -> None:
    write = row.arrange(store)
    _disturb(state, row)
    before = dump(store)
    _expect(row, write, store)
    assert dump(store) == before
    assert not store.in_transaction()


@EVERY_ROW
def test_a_conflict_inside_an_outer_transaction_takes_only_itself_back(row: Row, store: Store, state: Path) -> None:
    write = row.arrange(store)
    _disturb(state, row)
    mark = (fresh_id(), EXAMPLE_JOB_ID)
    with store.write():
        store.execute("CREATE TABLE IF NOT EXISTS marks (id TEXT, job TEXT)")
        store.execute("INSERT INTO marks VALUES (?, ?)", mark)
        before = dump(store)
        _expect(row, write, store)
        assert dump(store) == before
    assert store.execute("SELECT * FROM marks") == [mark]


def test_a_lease_is_renewed_without_waiting_for_the_disk_and_only_it(store: Store) -> None:
    """D41: the renewal may be lost to a power cut, what is committed after it may not."""
    write = _lease(store)
    store.execute("PRAGMA synchronous=FULL")
    write(store)
    assert store.execute("PRAGMA synchronous") == [(2,)]


def test_every_writer_of_the_store_has_a_row() -> None:
    """All but the one that is a part of others' transactions, and refuses to be one itself."""
    tabled = {row.function.__name__ for row in ROWS.values()}
    assert set(_writers()) == tabled | {write_transition.__name__}


def test_a_transition_is_not_written_outside_a_transaction(store: Store) -> None:
    (first, *_) = walk("claim")
    with pytest.raises(AssertionError, match="transaction"):
        write_transition(store, first)


def _expect(row: Row, write: Write, store: Store) -> None:
    if row.error is None:
        write(store)
    else:
        with pytest.raises(row.error):
            write(store)


def _disturb(state: Path, row: Row) -> None:
    """Let another connection get in first."""
    other = Store(str(state), _connect(f"{state}/jobman.db"), read_only=False)
    if row.function in (create_schema, upgrade_schema):
        row.function(other)
    else:
        with other.write():
            other.execute(row.disturb)
    other.close()


def _seen_by_another(state: Path) -> object:
    other = Store(str(state), _connect(f"{state}/jobman.db"), read_only=False)
    try:
        return dump(other)
    finally:
        other.close()


def _writers() -> Iterator[str]:
    """Yield the public functions of the store's modules that write."""
    for path in sorted(Path(*jobman.store.__path__).rglob("*.py")):
        functions = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
        for name, node in functions.items():
            if not name.startswith("_") and any(_writes(part) for part in _with_helpers(node, functions)):
                yield name


def _with_helpers(node: ast.FunctionDef, functions: dict[str, ast.FunctionDef]) -> list[ast.FunctionDef]:
    """Return a function and the private ones of its module that it comes to call."""
    found, seen = [node], {node.name}
    for one in found:
        for part in ast.walk(one):
            helper = functions.get(part.id) if isinstance(part, ast.Name) else None
            if helper is not None and helper.name.startswith("_") and helper.name not in seen:
                seen.add(helper.name)
                found.append(helper)
    return found


def _writes(node: ast.AST) -> bool:
    return any(
        (isinstance(part, ast.Constant) and str(part.value).startswith(("INSERT ", "UPDATE ", "DELETE ")))
        or (isinstance(part, ast.Attribute) and part.attr in ("write", "insert", "update"))
        for part in ast.walk(node)
    )
