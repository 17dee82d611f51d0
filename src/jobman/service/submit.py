"""Submitting a job: from a request to a durable, owned job (M2, M11).

Nothing durable is left by a request that is refused: everything that can be checked is checked before the insertion.
"""

from __future__ import annotations

from jobman import handshake
from jobman.errors import DependencyConflictError, HandshakeError, TooManySlotsError, UnknownPoolError
from jobman.model.spec import Dependency, Predicate
from jobman.model.spec_rules import validate
from jobman.model.transitions._change import Now
from jobman.model.transitions.submission import submit as submit_transition
from jobman.service.launch import resolve_failure
from jobman.store.commit import commit_submission
from jobman.store.selectors import resolve
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.service.launch import Candidate
    from jobman.store.connection import Store

PATIENCE_NS = SUPERVISOR_PATIENCE_NS
"""How long a submission queues for the store, as long as a supervisor. The clients of one terminal share one scheduling
group: with 64 of them at once on two cores, some waited for 8 s."""


class Requirement(NamedTuple):
    """A dependency as asked for: a selector, and a predicate of E.4."""

    selector: str
    predicate: str = Predicate.SUCCESS


def resolve_dependencies(store: Store, requirements: Sequence[Requirement]) -> tuple[Dependency, ...]:
    """Turn selectors into IDs at once (M11); equal requirements are one, contradictory ones refused (O.38).

    A new job cannot close a cycle: nothing depends on an ID that did not exist before.

    Raises:
        AmbiguousSelectorError: a selector means several jobs.
        DependencyConflictError: two different predicates on one job.
        JobNotFoundError: a selector means none.
    """
    found: dict[str, str] = {}
    for selector, predicate in requirements:
        job_id = resolve(store, selector)
        known = found.setdefault(job_id, predicate)
        if known != predicate:
            raise DependencyConflictError(job=job_id, first=known, second=predicate)
    return tuple(Dependency(job_id, predicate) for job_id, predicate in sorted(found.items()))


def repeat(store: Store, job_id: str, name: str = "") -> JobSpec:
    """Return the specification of a job that is to do the same as another (M8), under its name or another one.

    Raises:
        JobNotFoundError: there is no such job.
        TooManySlotsError: a limit is smaller by now than what it asks for.
        UnknownPoolError: its pool has been removed.
    """
    from jobman.store.specs import load_spec  # submissions of a new command read no specification

    spec = load_spec(store, job_id)
    check_admissible(store, spec)
    return spec._replace(name=name or spec.name)


def check_admissible(store: Store, spec: JobSpec) -> None:
    """Refuse a request for slots that could never be met (M16).

    Raises:
        TooManySlotsError: the store-wide limit or the pool is smaller than what is asked for.
        UnknownPoolError: the store has no such pool.
    """
    if spec.pool is None and spec.slots == 1:
        return  # one slot fits into every limit
    from jobman.policy.admission import STORE_WIDE, Request, impossible_scope  # few submissions need it
    from jobman.store.admissions import load_limits

    limits = load_limits(store)
    scope = impossible_scope(limits, Request("", spec.pool, spec.slots))
    if scope is None:
        return
    if scope != STORE_WIDE and scope not in limits.pools:
        raise UnknownPoolError(pool=scope)
    where = "the store-wide limit" if scope == STORE_WIDE else f"pool {scope}"
    raise TooManySlotsError(slots=spec.slots, scope=where, capacity=limits.capacities[scope])


def submit(store: Store, candidate: Candidate, spec: JobSpec, clock: Clock) -> str:
    """Insert the job and hand it to the supervisor that has been started for it; return its ID.

    Raises:
        InvalidSpecError: the specification breaks a rule; nothing was stored.
        JobNotFoundError: a job that it depends on has been removed; nothing was stored.
        LaunchError: no supervisor took the job; it is recorded as ``submission_failed``.
        StoreBusyError: others have been writing all the time; nothing was stored.
    """
    validate(spec)
    credential = handshake.new_credential()
    hashed = handshake.digest(credential)
    store.patience_ns = PATIENCE_NS
    with store.write():
        _require_dependencies(store, spec)
        # Dated when the queue has been stood in: the time to claim is the supervisor's alone.
        now = Now(clock.wall_ns(), clock.monotonic_ns())
        commit_submission(store, submit_transition(candidate.job_id, spec.name, credential_hash=hashed, now=now), spec)
    try:
        candidate.hand_over(store.root, credential)
    except HandshakeError as error:
        resolve_failure(store, candidate, error)
    candidate.close()
    return candidate.job_id


def _require_dependencies(store: Store, spec: JobSpec) -> None:
    """Refuse a dependency that has been removed: since it was resolved, or since the job that is repeated ran."""
    if spec.dependencies:
        from jobman.store.jobs import load_job  # most jobs depend on none

        for dependency in spec.dependencies:
            load_job(store, dependency.job_id)
