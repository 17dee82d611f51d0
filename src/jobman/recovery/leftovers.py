"""What dead supervisors can leave: files in ``run/`` and ``input/``, and markers of captures that are over.

Only ``doctor`` looks for all of it; the usual commands remove what they come across (`jobman.recovery`).
"""

from __future__ import annotations

import os

from jobman import recovery
from jobman.logs.layout import run_directory
from jobman.logs.scan import close_abandoned, scan
from jobman.model.ids import is_id
from jobman.process.liveness import lock_path
from jobman.store.check import completed_runs, unknown_jobs
from jobman.store.jobs import is_completed
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.store.connection import Store

_PLACES = {"run": (".lock", ".wake", ".log"), "input": (".sock",)}


def abandoned_files(store: Store) -> dict[str, tuple[str, ...]]:
    """Return the files of nobody, relative to the root, by the ID of the job that they are named after.

    The job is completed or unknown, and no process holds its lock. Notes about a job that is known are no leftover.
    """
    by_job: dict[str, list[str]] = {}
    # Listed before the store is asked: a supervisor makes its files after its job is stored.
    for directory, suffixes in _PLACES.items():
        for name in names_in(f"{store.root}/{directory}"):
            job_id, dot, suffix = name.partition(".")
            if is_id(job_id) and dot + suffix in suffixes:
                by_job.setdefault(job_id, []).append(f"{directory}/{name}")
    unknown = set(unknown_jobs(store, list(by_job)))
    found = {}
    for job_id, names in sorted(by_job.items()):
        kept = "" if job_id in unknown else recovery.diagnostics_path(store.root, job_id)
        over = job_id in unknown or is_completed(store, job_id)
        if over and not recovery.is_locked(lock_path(store.root, job_id)):
            paths = ((name, f"{store.root}/{name}") for name in sorted(names))
            # Its supervisor may have been about to leave when the directory was listed.
            found[job_id] = tuple(name for name, path in paths if path != kept and os.path.lexists(path))
    return {job_id: names for job_id, names in found.items() if names}


def abandoned_markers(store: Store, marked: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return those of the marked runs (job, number) that nobody records any more."""
    unknown = set(unknown_jobs(store, [job_id for job_id, _ in marked]))
    return [(job_id, number) for job_id, number in marked if job_id in unknown or _is_over(store, job_id, number)]


def close_marker(root: str, job_id: str, number: int) -> str:
    """Remove the marker of a run that nobody records any more; return what its log is worth, in words.

    Raises:
        JobmanError: the directory is not ours alone.
        OSError: the file system refuses.
    """
    path = run_directory(root, job_id, number)
    found = scan(path)
    close_abandoned(path)
    return found.integrity.value if found.detail is None else f"{found.integrity}: {found.detail}"


def _is_over(store: Store, job_id: str, number: int) -> bool:
    return is_completed(store, job_id) or number in completed_runs(store, job_id)


def names_in(directory: str) -> list[str]:
    """Return the names in a directory, none if it cannot be listed."""
    try:
        return os.listdir(directory)
    except OSError:
        return []
