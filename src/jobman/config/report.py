"""What ``config show`` prints: the effective configuration, and which source each value comes from (contract, K.9)."""

from __future__ import annotations

from jobman.config import schema, trees
from jobman.config.load import load
from jobman.config.read import Reader
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from jobman.config.read import Part

_BUILT_IN = {"kind": "built-in", "name": "built-in defaults"}
_ENVIRONMENT = {"kind": "environment", "name": "JOBMAN_ environment"}


def effective(explicit: str) -> dict[str, Any]:
    """Return everything that is configured, defaults included; errors are those of `jobman.config.load.load`."""
    return _read(explicit)[0]


def with_origins(explicit: str) -> dict[str, Any]:
    """Return the same as ``config``, with ``origins`` of every scalar and list, and all ``sources``."""
    document, parts = _read(explicit)
    stated = {path: _source(part) for part in parts for path in trees.leaves(part.tree)}
    origins = {".".join(path): stated.get(path, _BUILT_IN) for path in _leaves(document)}
    return {"config": document, "origins": origins, "sources": [_BUILT_IN, *(_source(part) for part in parts)]}


def _read(explicit: str) -> tuple[dict[str, Any], Sequence[Part]]:
    configured, reader = load(explicit), Reader()
    parts = reader.parts(configured.files, configured.variables)
    return schema.effective(reader.checked(parts)), parts


def _source(part: Part) -> dict[str, str]:
    return {"kind": part.kind, "name": part.kind, "path": part.path} if part.path else _ENVIRONMENT


def _leaves(document: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key)
