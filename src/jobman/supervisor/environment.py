"""What the processes of a job find in their environment, as bytes."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobman.model.spec import JobSpec


def raw(text: str) -> bytes:
    """Return the bytes that a string of a specification stands for, whatever the locale of this process."""
    return text.encode("utf-8", "surrogateescape")


def target_environment(
    inherited: Mapping[bytes, bytes],
    spec: JobSpec,
    marks: Mapping[str, str],
    secrets: Mapping[bytes, bytes] | None = None,
) -> dict[bytes, bytes]:
    """Return the target's environment: inherited, less removals, plus settings and secrets, plus what names the run.

    ``JOBMAN_SUPERVISOR`` stays behind: it tells supervisors from targets. The marks (D34) win over settings of the
    same name, because the tree of a run is recognised by them.
    """
    environment = dict(inherited)
    for name in spec.environment.removals:
        environment.pop(raw(name), None)
    environment.update((raw(name), raw(value)) for name, value in spec.environment.assignments)
    environment.update(secrets or {})
    # Not even a setting brings it in: whoever carries it would escape every signal of the run.
    environment.pop(b"JOBMAN_SUPERVISOR", None)
    environment.update((raw(name), raw(value)) for name, value in marks.items())
    return dict(sorted(environment.items()))
