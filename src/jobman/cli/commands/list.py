"""``jobman list``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import out
from jobman.errors import UsageError
from jobman.service.query import enumerate_jobs
from jobman.store.jobs import LONGEST_PATTERN, JobFilter, load_job
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


def run(parsed: Parsed) -> int:
    """Print jobs, newest first."""
    store = store_of(parsed)
    with_runs = parsed.value("show-runs")
    limit = None if parsed.value("all") else parsed.value("limit")
    jobs = enumerate_jobs(store, _filter(parsed, store), clock(), limit=limit, with_runs=with_runs)
    if parsed.value("json"):
        from jobman import documents

        for piece in documents.job_list(jobs, with_runs=with_runs, root=store.root):
            out(piece)
    else:
        from jobman.cli.render import job_table

        out(job_table(jobs))
    return 0


def _filter(parsed: Parsed, store: Store) -> JobFilter:
    before = parsed.value("before")
    _require_text(parsed, "name", "name-match", "group", "tag")
    if len(parsed.value("name-match").encode()) > LONGEST_PATTERN:
        raise UsageError(detail=f"--name-match: the pattern is longer than {LONGEST_PATTERN} bytes")
    return JobFilter(
        phases=parsed.value("phase"),
        outcomes=parsed.value("outcome"),
        active=_activity(parsed),
        name=parsed.value("name") if parsed.given("name") else None,
        name_glob=parsed.value("name-match") if parsed.given("name-match") else None,
        group=parsed.value("group") if parsed.given("group") else None,
        tags=parsed.value("tag"),
        submitted_after_ns=parsed.value("submitted-after"),
        submitted_before_ns=parsed.value("submitted-before"),
        before=load_job(store, before) if before else None,
    )


def _require_text(parsed: Parsed, *flags: str) -> None:
    # Bytes that are not UTF-8 are in no name or label, and the store could not even be asked for them.
    for flag in flags:
        value = parsed.value(flag)
        for text in (value,) if isinstance(value, str) else value:
            if any("\ud800" <= char <= "\udfff" for char in text):
                raise UsageError(detail=f"--{flag} must be valid UTF-8")


def _activity(parsed: Parsed) -> bool | None:
    if parsed.value("active"):
        return True
    return False if parsed.value("completed") else None
