"""What queued jobs wait for, in words (D36, D42)."""

from __future__ import annotations

from jobman.policy.admission import STORE_WIDE, describe, lacking, positions
from jobman.service.survivors import survivors
from jobman.store.admissions import load_limits, load_view, slots_held_by_lost_jobs
from jobman.store.jobs import load_job
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store


def places(store: Store, job_ids: Sequence[str]) -> dict[str, str]:
    """Return why each of the queued jobs waits: its place, or the survivor that holds its slots."""
    view = load_view(store, load_limits(store))
    held = [(pool, _survivor(store, job_id)) for job_id, pool in slots_held_by_lost_jobs(store)]
    found, wanted, ahead = {}, frozenset(job_ids), positions(view)
    for request in view.queue:
        if request.job_id in wanted:
            full = lacking(view, request)
            keepers = (words for pool, words in held if words and (STORE_WIDE in full or pool in full))
            found[request.job_id] = next(keepers, "") or describe(view, request, ahead[request.job_id])
    return found


def _survivor(store: Store, job_id: str) -> str | None:
    """Return the words for slots that a surviving process of a lost job keeps (D42)."""
    alive = survivors(store, job_id)
    name = load_job(store, job_id).name or job_id[:8]
    if alive is None:
        return f"slot held by lost job {name}, whose processes cannot be seen from here; see jobman doctor"
    pids = ", ".join(str(member.identity.pid) for member in alive)
    return f"slot held by a surviving process of lost job {name} (pid {pids}); jobman cancel {job_id}" if pids else None
