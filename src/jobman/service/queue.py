"""What queued jobs wait for, in words (D36, D42)."""

from __future__ import annotations

from jobman.policy.admission import STORE_WIDE, describe, lacking
from jobman.recovery.losing import survivors_of
from jobman.store.admissions import load_limits, load_view, slots_held_by_lost_jobs
from jobman.store.jobs import load_job, load_runs, load_supervisor
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store


def places(store: Store, job_ids: Sequence[str]) -> dict[str, str]:
    """Return why each of the queued jobs waits: its place, or the survivor that holds its slots."""
    view = load_view(store, load_limits(store))
    held = [(pool, _survivor(store, job_id)) for job_id, pool in slots_held_by_lost_jobs(store)]
    found = {}
    for request in view.queue:
        if request.job_id in job_ids:
            full = lacking(view, request)
            keepers = (words for pool, words in held if words and (STORE_WIDE in full or pool in full))
            found[request.job_id] = next(keepers, "") or describe(view, request)
    return found


def _survivor(store: Store, job_id: str) -> str | None:
    """Return the words for slots that a surviving process of a lost job keeps (D42)."""
    supervisor = load_supervisor(store, job_id)
    runs = load_runs(store, [job_id]).get(job_id, [])
    if supervisor is None or not runs:
        return None
    alive = survivors_of(runs[-1], supervisor)
    pids = ", ".join(str(member.identity.pid) for member in alive or ())
    name = load_job(store, job_id).name or job_id[:8]
    if alive is None:
        return f"slot held by lost job {name}, whose processes cannot be seen from here; see jobman doctor"
    return f"slot held by a surviving process of lost job {name} (pid {pids}); jobman cancel {job_id}" if pids else None
