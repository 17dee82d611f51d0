"""Making a transition durable: compare revision and phase, write, append its events, all in one transaction (M7)."""

from __future__ import annotations

import os

from jobman.errors import RevisionConflictError
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.state import JobPhase, RunPhase
from jobman.store.rows import (
    ADMISSIONS,
    EVENTS,
    JOBS,
    RUNS,
    SUPERVISORS,
    admission_row,
    event_row,
    job_row,
    run_row,
    supervisor_row,
)
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from jobman.model.events import Event, Transition
    from jobman.model.identity import ProcessIdentity
    from jobman.model.spec import JobSpec
    from jobman.model.state import Admission, Job, Problem, Run, Snapshot, Supervisor
    from jobman.store.connection import Store
    from jobman.store.rows import (
        Row,
        Table,
    )

    Entity = Job | Run | Supervisor
    E = TypeVar("E", Job, Run, Supervisor)

_EVENT = EVENTS.insert()
_SAME_STATE = "revision = ? AND phase = ?"


def commit(store: Store, transition: Transition) -> None:
    """Write ``transition``, or nothing.

    Raises:
        RevisionConflictError: somebody changed one of the entities since it was read.
    """
    with store.write():
        write_transition(store, transition)


def write_transition(store: Store, transition: Transition) -> None:
    """Write ``transition`` as a part of the transaction that is open, which an error must roll back as a whole.

    Raises:
        RevisionConflictError: somebody changed one of the entities since it was read; some of it may be written.
    """
    if not store.in_transaction():
        raise AssertionError("outside a transaction each statement would be durable by itself")
    before, after = transition.before, transition.after
    _write(store, JOBS, job_row, before and before.job, after.job)
    _write(store, RUNS, run_row, before and before.run, after.run)
    _write(store, SUPERVISORS, supervisor_row, before and before.supervisor, after.supervisor)
    _write_admission(store, before, after)
    _leave_queue(store, before, after)
    event_ids = _append_events(store, transition.events)
    if before is not None:
        from jobman.store.outbox import queue  # a submission, which must be quick, has nobody to tell yet

        queue(store, transition, event_ids)


def commit_submission(store: Store, transition: Transition, spec: JobSpec) -> None:
    """Write a new job with its specification, labels, dependency edges and subscriptions, or nothing (O.39)."""
    from jobman.model.spec_json import encode  # only submissions write one

    job = transition.after.job
    with store.write():
        write_transition(store, transition)
        store.execute("INSERT INTO job_specs (job_id, spec_json) VALUES (?, ?)", (job.id, encode(spec)))
        for kind, labels in (("group", spec.groups), ("tag", spec.tags)):
            for label in labels:
                row = (job.id, kind, label)
                store.execute("INSERT INTO job_labels (job_id, kind, label) VALUES (?, ?, ?)", row)
        for edge in spec.dependencies:
            statement = "INSERT INTO dependencies (job_id, depends_on, predicate) VALUES (?, ?, ?)"
            store.execute(statement, (job.id, edge.job_id, edge.predicate))
        if spec.subscriptions:
            from jobman.store.outbox import subscribe  # few jobs tell anybody

            subscribe(store, job.id, spec)


def record_identity(store: Store, run: Run, identity: ProcessIdentity) -> Run:
    """Store who waits at the gate of a ``starting`` run: no revision, no event, since nothing has started.

    Raises:
        RevisionConflictError: the run is not ``starting`` any more; the child must not pass the gate.
    """
    statement = (
        "UPDATE runs SET pid = ?, creation_id = ?, boot_id = ?, pid_namespace = ?"
        " WHERE id = ? AND revision = ? AND phase = ?"
    )
    with store.write():
        store.execute(statement, (*identity, run.id, run.revision, RunPhase.STARTING))
        _require_one(store, run)
    return run._replace(identity=identity)


def record_signalled(store: Store, run: Run, at_ns: int) -> Run:
    """Store when the stop signal of a ``stopping`` run was sent: a fact about its intent, not a change of state.

    Raises:
        RevisionConflictError: the run has changed meanwhile.
    """
    at_ns = max(at_ns, run.latest_ns())
    return _note(store, run, run._replace(signalled_at_ns=at_ns))


def record_problem(store: Store, run: Run, problem: Problem) -> Run:
    """Store what stands in the way of an active run; its end replaces that: no revision, no event.

    Raises:
        RevisionConflictError: the run has changed meanwhile.
    """
    return _note(store, run, run._replace(problem=problem))


def _note(store: Store, before: Run, after: Run) -> Run:
    with store.write():
        _write(store, RUNS, run_row, before, after)
    return after


def renew_lease(store: Store, snapshot: Snapshot, expires_at_ns: int) -> None:
    """Extend the lease of a supervisor and its admission: no revision, no event (D41).

    Written with ``synchronous=NORMAL``: losing a renewal to a power cut costs nothing, for nobody survives one.
    """
    supervisor, admission = snapshot.supervisor, snapshot.admission
    if supervisor is None or admission is None:
        return
    if store.in_transaction():
        # SQLite refuses to change the safety level here, and the outer commit needs the full one anyway.
        _extend(store, supervisor, admission, expires_at_ns)
        return
    store.execute("PRAGMA synchronous=NORMAL")
    try:
        _extend(store, supervisor, admission, expires_at_ns)
    finally:
        store.execute("PRAGMA synchronous=FULL")


def _append_events(store: Store, events: tuple[Event, ...]) -> list[str]:
    """Append to the history; each event gets its ID here, which is returned."""
    event_ids = [new_id(event.at_ns, os.urandom(RANDOM_BYTES)) for event in events]
    for event, event_id in zip(events, event_ids, strict=True):
        store.execute(_EVENT, event_row(event, event_id))
    return event_ids


def _extend(store: Store, supervisor: Supervisor, admission: Admission, expires_at_ns: int) -> None:
    # Never before the beginning: a wall clock that was set back must not make the order check refuse a renewal.
    with store.write():
        statement = (
            "UPDATE supervisors SET lease_expires_at_ns = max(?, claimed_at_ns) WHERE id = ? AND phase = 'claimed'"
        )
        store.execute(statement, (expires_at_ns, supervisor.id))
        statement = (
            "UPDATE admissions SET lease_expires_at_ns = max(?, acquired_at_ns) WHERE id = ? AND released_at_ns IS NULL"
        )
        store.execute(statement, (expires_at_ns, admission.id))


def _write(  # noqa: PLR0917  # one table, two values
    store: Store, table: Table, row: Callable[[E], Row], before: E | None, after: E | None
) -> None:
    if after is None or after == before:
        return
    if before is None:
        store.execute(table.insert(), row(after))
        return
    store.execute(*_update(table, row(before), row(after), _SAME_STATE, _state(before)))
    _require_one(store, before)


def _update(  # noqa: PLR0917  # one row before and after, one condition and its bindings
    table: Table, before: Row, after: Row, condition: str, bindings: Row
) -> tuple[str, Row]:
    # Only what the transition changes: facts that are recorded without a revision (who waits at the gate, when the
    # signal was sent, the lease) may be newer than the snapshot, and must survive it. Nor are indexes written of
    # what stays the same.
    pairs = zip(table.columns, before, after, strict=True)
    changed = {column: new for column, old, new in pairs if new != old}
    return table.update(tuple(changed), condition), (*changed.values(), *bindings)


def _write_admission(store: Store, before: Snapshot | None, after: Snapshot) -> None:
    old, new = before and before.admission, after.admission
    if new is None or new == old:
        return
    if old is None:
        store.execute(ADMISSIONS.insert(), admission_row(new))
        return
    store.execute(*_update(ADMISSIONS, admission_row(old), admission_row(new), "released_at_ns IS NULL", (new.id,)))
    _require_one(store, new)


def _leave_queue(store: Store, before: Snapshot | None, after: Snapshot) -> None:
    # A job that has ended waits for nothing (O.42); one that was admitted has left the queue already.
    if before is not None and before.admission is None and after.job.phase == JobPhase.COMPLETED:
        store.execute("DELETE FROM admission_requests WHERE job_id = ?", (after.job.id,))


def _require_one(store: Store, entity: Entity | Admission) -> None:
    if store.changes() != 1:
        raise RevisionConflictError(entity=f"{type(entity).__name__.lower()} {entity.id}")


def _state(entity: Entity) -> tuple[str, int, str]:
    return entity.id, entity.revision, entity.phase
