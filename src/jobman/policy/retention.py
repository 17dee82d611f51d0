"""Which logs and jobs are old enough to be removed, or too many (contract, J.7 and K.4; D11).

Pure planning over what the store knows: completed runs, of completed jobs, whose logs are still there. What is really
removed is what still can be when its turn comes. "Older" means at least that old; a clock that was set back makes
nothing older, and an age of zero takes all.
"""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeVar

    Item = TypeVar("Item")

DEFAULT_LOG_AGE_NS = 30 * 24 * 3_600_000_000_000


class Retention(NamedTuple):
    """What a configuration says; ``None`` is unlimited. Ages in nanoseconds, sizes in bytes of both streams."""

    metadata_age_ns: int | None = None
    log_age_ns: int | None = DEFAULT_LOG_AGE_NS
    max_jobs: int | None = None
    max_runs_per_job: int | None = None
    max_log_bytes_per_job: int | None = None
    max_total_log_bytes: int | None = None


class PrunableRun(NamedTuple):
    """A completed run that still has logs.

    ``own_age_ns`` is the retention in the job's specification, ``None`` for unlimited; ``own_stated`` says that it was
    given for this job, and not taken from the configuration of that day.
    """

    id: str
    job_id: str
    number: int
    completed_at_ns: int
    log_bytes: int
    job_completed_at_ns: int
    own_age_ns: int | None = None
    own_stated: bool = False


def is_older(at_ns: int, age_ns: int, now_ns: int) -> bool:
    """Say whether something that ended at ``at_ns`` is at least ``age_ns`` old."""
    return max(0, now_ns - at_ns) >= age_ns


def completed_before(runs: Iterable[PrunableRun], age_ns: int, now_ns: int) -> list[PrunableRun]:
    """Return the runs that completed at least ``age_ns`` ago, the oldest first."""
    return sorted((run for run in runs if is_older(run.completed_at_ns, age_ns, now_ns)), key=_order)


def beyond_retention(runs: Sequence[PrunableRun], retention: Retention, now_ns: int) -> list[PrunableRun]:
    """Return the runs whose logs are to go, the oldest first.

    In this order, each step over what the ones before have left: age; runs, then bytes, of each job; jobs, those whose
    newest run is the oldest first; bytes in all. All runs of jobs whose metadata is too old go in any case.
    """
    left = sorted((run for run in runs if not _is_too_old(run, retention, now_ns)), key=_order)
    for limit, weigh in ((retention.max_runs_per_job, _one), (retention.max_log_bytes_per_job, _bytes)):
        left = sorted((run for own in _by_job(left) for run in _newest(own, limit, weigh)), key=_order)
    jobs = sorted(_by_job(left), key=lambda own: _order(own[-1]))
    left = sorted((run for own in _newest(jobs, retention.max_jobs, _one) for run in own), key=_order)
    kept = {run.id for run in _newest(left, retention.max_total_log_bytes, _bytes)}
    return sorted((run for run in runs if run.id not in kept), key=_order)


def _is_too_old(run: PrunableRun, retention: Retention, now_ns: int) -> bool:
    ages = (run.own_age_ns,) if run.own_stated else (run.own_age_ns, retention.log_age_ns)
    if any(age is not None and is_older(run.completed_at_ns, age, now_ns) for age in ages):
        return True
    metadata_age_ns = retention.metadata_age_ns
    return metadata_age_ns is not None and is_older(run.job_completed_at_ns, metadata_age_ns, now_ns)


def _newest(items: Sequence[Item], limit: int | None, weigh: Callable[[Item], int]) -> Sequence[Item]:
    """Drop items from the front, the oldest, until the rest weighs at most ``limit``."""
    if limit is None:
        return items
    weight = sum(map(weigh, items))
    for place, item in enumerate(items):
        if weight <= limit:
            return items[place:]
        weight -= weigh(item)
    return ()


def _by_job(runs: Iterable[PrunableRun]) -> list[list[PrunableRun]]:
    grouped: dict[str, list[PrunableRun]] = {}
    for run in runs:
        grouped.setdefault(run.job_id, []).append(run)
    return list(grouped.values())


def _order(run: PrunableRun) -> tuple[int, str, int]:
    return run.completed_at_ns, run.job_id, run.number


def _one(_item: object) -> int:
    return 1


def _bytes(run: PrunableRun) -> int:
    return run.log_bytes
