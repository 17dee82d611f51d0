"""Reading specifications: apart from jobs, because most commands look at a job without what it is to do."""

from __future__ import annotations

from jobman.errors import JobNotFoundError
from jobman.model.spec_json import decode
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.model.spec import JobSpec
    from jobman.store.connection import Store


def load_spec(store: Store, job_id: str) -> JobSpec:
    """Return the specification of a job.

    Raises:
        InvalidSpecError: the stored document is damaged or from a newer version.
        JobNotFoundError: there is no such job.
    """
    found = load_specs(store, [job_id])
    if not found:
        raise JobNotFoundError(selector=job_id)
    return found[job_id]


def load_specs(store: Store, job_ids: Sequence[str]) -> dict[str, JobSpec]:
    """Return the specifications of several jobs; one that does not exist has no entry.

    Raises:
        InvalidSpecError: a stored document is damaged or from a newer version.
    """
    marks = ", ".join("?" * len(job_ids))
    rows = store.execute(f"SELECT job_id, spec_json FROM job_specs WHERE job_id IN ({marks})", job_ids)
    return {job_id: decode(text) for job_id, text in rows}
