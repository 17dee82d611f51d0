"""``jobman show``: a job, or one of its runs."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import out
from jobman.cli.render import job_view, run_view
from jobman.service.pruned import without_logs
from jobman.service.query import describe, find, select_run
from jobman.store.jobs import load_runs
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


def run(parsed: Parsed) -> int:
    """Print everything that is known of a job or a run."""
    store = store_of(parsed)
    job_id = find(store, parsed.operand("JOB"), clock())
    out(_run(parsed, store, job_id) if parsed.command[1:] == ("run",) else _job(parsed, store, job_id))
    return 0


def _job(parsed: Parsed, store: Store, job_id: str) -> str:
    detail = describe(store, job_id, clock())
    if not parsed.value("json"):
        return job_view(detail, without_logs(store, detail.runs))
    from jobman import documents

    return documents.envelope(documents.job_detail(detail, store.root))


def _run(parsed: Parsed, store: Store, job_id: str) -> str:
    chosen = select_run(job_id, load_runs(store, [job_id]).get(job_id, ()), parsed.operand("RUN"))
    if not parsed.value("json"):
        return run_view(chosen, without_logs(store, [chosen]))
    from jobman import documents

    return documents.envelope(documents.run_document(chosen, store.root))
