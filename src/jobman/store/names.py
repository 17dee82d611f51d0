"""What can be named in a store, for whoever completes a word; nothing here writes or makes a job whole."""

from __future__ import annotations

from jobman.model.state import JobPhase
from jobman.store.jobs import ACTIVE, ACTIVE_JOBS
from jobman.store.selectors import resolve
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.store.connection import Store

# More than anybody reads.
_MOST = 1000
_AFTER_ALL = "\U0010ffff"


class NamedJob(NamedTuple):
    """A job as it is offered.

    Attributes:
        state: its outcome, or its phase while it has none.
        is_only: it has a name that no other job has.
    """

    id: str
    name: str
    state: str
    is_only: bool


def jobs_beginning(store: Store, text: str, phases: tuple[str, ...]) -> list[NamedJob]:
    """Return the newest jobs in ``phases`` (any if there are none) whose ID or name begins with ``text``."""
    conditions = [f"phase IN ({', '.join('?' * len(phases))})"] if phases else []
    active = bool(phases) and JobPhase.COMPLETED not in phases
    if active:
        conditions.append(ACTIVE)
    if text:
        conditions.append("((id >= ? AND id < ?) OR (name <> '' AND name >= ? AND name < ?))")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    source = ACTIVE_JOBS if active else "jobs"
    statement = (
        "SELECT id, name, coalesce(outcome, phase), name <> '' AND NOT EXISTS (SELECT 1 FROM jobs AS other"
        " WHERE other.name = jobs.name AND other.name <> '' AND other.id <> jobs.id)"
        f" FROM {source} {where} ORDER BY submitted_at_ns DESC, id DESC LIMIT {_MOST}"
    )
    bindings = (*phases, *((text, text + _AFTER_ALL) * 2 if text else ()))
    return [
        NamedJob(job_id, name, state, bool(only)) for job_id, name, state, only in store.execute(statement, bindings)
    ]


def names_beginning(store: Store, text: str) -> list[str]:
    """Return the names of jobs that begin with ``text``, each once."""
    statement = "SELECT DISTINCT name FROM jobs WHERE name <> '' AND name >= ? AND name < ? ORDER BY name LIMIT ?"
    return [row[0] for row in store.execute(statement, (text, text + _AFTER_ALL, _MOST))]


def labels(store: Store, kind: str) -> list[str]:
    """Return the groups or tags, each once."""
    statement = "SELECT DISTINCT label FROM job_labels WHERE kind = ? ORDER BY label LIMIT ?"
    return [row[0] for row in store.execute(statement, (kind, _MOST))]


def pools(store: Store) -> list[str]:
    """Return the names of the pools that have a limit."""
    return [row[0] for row in store.execute("SELECT scope FROM concurrency_limits WHERE scope <> '' ORDER BY scope")]


def runs_of(store: Store, selector: str) -> list[tuple[int, str]]:
    """Return number and state of the runs of the job that a selector means, the latest first.

    Raises:
        JobNotFoundError: it means none.
        AmbiguousSelectorError: it means several.
    """
    statement = "SELECT number, coalesce(outcome, phase) FROM runs WHERE job_id = ? ORDER BY number DESC LIMIT ?"
    return [(number, state) for number, state in store.execute(statement, (resolve(store, selector), _MOST))]
