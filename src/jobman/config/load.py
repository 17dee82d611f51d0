"""What is configured, from every source (contract, K.1, K.2 and K.7; D9).

The sources, in ascending precedence: the system file, the user file, the project's file if it is trusted, the file of
``--config``, the environment. On the start-up path of ``jobman run``: without a source this costs two ``stat`` calls,
and with files that have not changed what `jobman.config.cache` costs. Everything else is `jobman.config.read`.
"""

from __future__ import annotations

import os

from jobman.clock import SystemClock
from jobman.config.paths import config_files
from jobman.errors import InvalidConfigError
from jobman.policy.limits import StatedLimits
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jobman.clock import Clock
    from jobman.config.cache import Cache, Found

ENVIRONMENT = "JOBMAN_CONCURRENCY_MAX_ACTIVE_SLOTS"
VARIABLES = (
    ENVIRONMENT,
    "JOBMAN_RETENTION_COMPLETED_METADATA_MAX_AGE",
    "JOBMAN_RETENTION_COMPLETED_LOG_MAX_AGE",
    "JOBMAN_RETENTION_MAX_JOBS",
    "JOBMAN_RETENTION_MAX_RUNS_PER_JOB",
    "JOBMAN_RETENTION_MAX_LOG_BYTES_PER_JOB",
    "JOBMAN_RETENTION_MAX_TOTAL_LOG_BYTES",
)
PROJECT_FILE = ".jobman.yml"


class File(NamedTuple):
    """A configuration file that is there: its kind, its path, and what tells that it has not changed."""

    kind: str
    path: str
    signature: tuple[int, ...]


class Configured(NamedTuple):
    """What the sources state, in canonical form and without defaults, and which sources there are.

    The members are those of a file (contract, K.4); durations are text, limits numbers or ``unlimited``.
    """

    stated: Mapping[str, Any]
    files: tuple[File, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def sources(self) -> int:
        """How many sources there are, the built-in defaults included."""
        return 1 + len(self.files) + bool(self.variables)


NOTHING = Configured({})


def load(explicit: str, state_directory: str = "", clock: Clock | None = None) -> Configured:
    """Read every source, or what is remembered of them.

    Args:
        explicit: the path of ``--config``, "" if it was not given.
        state_directory: where checked results are kept; "" to read and check everything.
        clock: tells how young a file is.

    Raises:
        ConfigFileError: a file cannot be read, or one that must exist does not.
        InvalidConfigError: a source breaks a rule; says where, and what is allowed.
    """
    files, variables = present_files(explicit), present_variables()
    if not files and not variables:
        return NOTHING
    if not state_directory:
        return _load(files, variables, None, None)
    from jobman.config.cache import Cache  # for those who have something to remember

    cache = Cache(state_directory, clock or SystemClock())
    found = cache.recall(files, variables)
    if found is not None and found.stated is not None and not found.roots:
        return Configured(found.stated, files, variables)
    return _load(files, variables, cache, found)


def _load(
    files: tuple[File, ...], variables: tuple[tuple[str, str], ...], cache: Cache | None, found: Found | None
) -> Configured:
    from jobman.config.project import with_project  # for those who trust a project, and for what is read anew

    reader = None
    if found is None:
        from jobman.config.read import Reader  # 100 ms, only for files that are not remembered

        reader = Reader()
        roots = reader.trusted_roots(files)
    else:
        roots = found.roots
    complete = with_project(files, roots)
    if cache and complete != files:
        found = cache.recall(complete, variables)
    if found is not None and found.stated is not None:
        return Configured(found.stated, complete, variables)
    if reader is None:
        from jobman.config.read import Reader

        reader = Reader()
    stated = reader.stated(complete, variables)
    if cache:
        cache.remember(complete, variables, roots, stated)
        if complete != files:
            cache.remember(files, variables, roots, None)
    return Configured(stated, complete, variables)


def present_files(explicit: str) -> tuple[File, ...]:
    """Return the files that are there, and the explicit one also if it is not."""
    found = (file_at(kind, path, required=required) for kind, path, required in config_files(explicit))
    return tuple(file for file in found if file is not None)


def file_at(kind: str, path: str, *, required: bool) -> File | None:
    """Return a file with its signature; without one if it is required and cannot be looked at: opening it says why."""
    try:
        facts = os.stat(path)
    except OSError:
        return File(kind, path, ()) if required else None
    return File(kind, path, (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns))


def present_variables() -> tuple[tuple[str, str], ...]:
    """Return the variables that override something (K.7); all other ``JOBMAN_*`` names mean nothing here.

    Raises:
        InvalidConfigError: one of them is given twice, and nobody can say which is meant.
    """
    present = tuple((name, os.environ[name]) for name in VARIABLES if name in os.environ)
    if present:
        _refuse_duplicates(present)
    return present


def _refuse_duplicates(variables: tuple[tuple[str, str], ...]) -> None:
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return
    for name, _ in variables:
        if sum(entry.startswith(name.encode() + b"=") for entry in given) > 1:
            raise InvalidConfigError(where=name, detail="is given twice in the environment")


def stated_limits(configured: Configured) -> StatedLimits:
    """Return what is stated of concurrency."""
    concurrency = configured.stated.get("concurrency", {})
    pools = {name: _slots(slots) for name, slots in concurrency.get("pools", {}).items()}
    stated = "max_active_slots" in concurrency
    return StatedLimits(stated, _slots(concurrency["max_active_slots"]) if stated else None, pools)


def _slots(limit: int | str) -> int | None:
    return limit if isinstance(limit, int) else None
