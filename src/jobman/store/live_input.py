"""Where jobs take live input, and the mark that a run gets no more of it (contract, I.6)."""

from __future__ import annotations

import os

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.store.connection import Store


class LiveInput(NamedTuple):
    """The absolute path of a job's endpoint, and the run whose end of input was asked for."""

    endpoint: str
    eof_run_id: str | None


def publish_endpoint(store: Store, job_id: str, path: str) -> None:
    """Record where a job takes input; stored relative to the state root if it lies there."""
    path = path.removeprefix(f"{store.root}/")
    statement = "INSERT INTO live_inputs (job_id, endpoint) VALUES (?, ?) ON CONFLICT (job_id) DO NOTHING"
    with store.write():
        store.execute(statement, (job_id, path))


def load_live_input(store: Store, job_id: str) -> LiveInput | None:
    """Return what is known of a job's live input; ``None`` for one that never offered any."""
    rows = store.execute("SELECT endpoint, eof_run_id FROM live_inputs WHERE job_id = ?", (job_id,))
    return LiveInput(os.path.join(store.root, rows[0][0]), rows[0][1]) if rows else None


def eof_run(store: Store, job_id: str) -> str | None:
    """Return the run of a job that is to get no more input."""
    rows = store.execute("SELECT eof_run_id FROM live_inputs WHERE job_id = ?", (job_id,))
    return rows[0][0] if rows else None


def request_eof(store: Store, job_id: str, run_id: str) -> bool:
    """Make it durable that a run gets no more input; ``False`` if it is not the active one, or was told already."""
    statement = (
        "UPDATE live_inputs SET eof_run_id = ? WHERE job_id = ? AND eof_run_id IS NOT ?"
        " AND EXISTS (SELECT 1 FROM jobs WHERE jobs.id = live_inputs.job_id AND active_run_id = ?)"
    )
    with store.write():
        store.execute(statement, (run_id, job_id, run_id, run_id))
        return store.changes() == 1
