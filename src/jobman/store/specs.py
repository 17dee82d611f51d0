"""Reading specifications: apart from jobs, because most commands look at a job without what it is to do."""

from __future__ import annotations

from jobman.errors import JobNotFoundError
from jobman.model.spec_json import decode
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.spec import JobSpec
    from jobman.store.connection import Store


def load_spec(store: Store, job_id: str) -> JobSpec:
    """Return the specification of a job.

    Raises:
        InvalidSpecError: the stored document is damaged or from a newer version.
        JobNotFoundError: there is no such job.
    """
    rows = store.execute("SELECT spec_json FROM job_specs WHERE job_id = ?", (job_id,))
    if not rows:
        raise JobNotFoundError(selector=job_id)
    return decode(rows[0][0])
