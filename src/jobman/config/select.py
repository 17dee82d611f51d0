"""Named objects put together: a job spec, the profiles over it, their members merged at every level (K.5, D8).

Works on what the sources have stated, without defaults, so that a part that is not stated keeps the value below it.
"""

from __future__ import annotations

from jobman.errors import UsageError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Block = Mapping[str, Any]


def select_job(stated: Block, job_spec: str, profiles: Sequence[str]) -> Block:
    """Return what a job spec and profiles say together, {} for neither.

    Args:
        stated: the configuration, as far as it is stated.
        job_spec: the name of ``--job-spec``, "" if it was not given.
        profiles: the names of ``--profile``, in order.

    Raises:
        UsageError: there is no such name, or the profiles are for different job specs.
    """
    if job_spec:
        _named(stated, "job_specs", "--job-spec", job_spec)
    chosen = [_named(stated, "profiles", "--profile", name) for name in profiles]
    base = _base(job_spec, [(name, str(one.get("job_spec", ""))) for name, one in zip(profiles, chosen, strict=True)])
    block: Block = stated.get("job_specs", {}).get(base, {}) if base else {}
    for profile in chosen:
        block = merged(block, profile.get("overrides", {}))
    return block


def merged(base: Block, over: Block) -> Block:
    """Return ``base`` with ``over`` laid on it; mappings merge at every level, lists and scalars replace (D8)."""
    together = dict(base)
    for key, value in over.items():
        below = together.get(key)
        together[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return together


def look_up(named: Block, flag: str, name: str) -> Any:  # the kind of object decides
    """Return the object of a name that a flag gave.

    Raises:
        UsageError: there is none; says which there are.
    """
    if name in named:
        return named[name]
    known = f"expected {', '.join(sorted(named))}" if named else "none is configured"
    raise UsageError(detail=f"{flag}: unknown name {name!r}: {known}")


def _named(stated: Block, kind: str, flag: str, name: str) -> Any:
    return look_up(stated.get(kind, {}), flag, name)


def _base(job_spec: str, wanted: Sequence[tuple[str, str]]) -> str:
    base, by = job_spec, "--job-spec"
    for profile, name in wanted:
        if name and base and name != base:
            raise UsageError(detail=f"--profile {profile} is for job spec {name}, but {by} asks for {base}")
        if name:
            base, by = name, f"--profile {profile}"
    return base
