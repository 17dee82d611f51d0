"""Rules that several parts of a configuration share."""

from __future__ import annotations

from jobman.config.schema import Finding
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from jobman.config.schema import Path

    Block = Mapping[str, Any]


def refuse(path: Path, detail: str) -> NoReturn:
    """Raise what is wrong."""
    raise Finding([(path, detail)])


def require_secret(stated: Block, path: Path, name: str) -> None:
    """Refuse a secret that is not configured."""
    if name not in stated.get("secrets", {}):
        refuse(path, f"unknown secret {name!r}: expected a name under secrets")


def exactly_one(path: Path, block: Block, parts: Mapping[str, str]) -> Any:
    """Return the part that belongs to the type of a block, which must be there alone."""
    if "type" not in block:
        refuse(path, f"type must be given: {' or '.join(parts)}")
    wanted = parts[block["type"]]
    for part in parts.values():
        if part != wanted and part in block:
            refuse((*path, part), f"does not belong to type {block['type']}")
    if wanted not in block:
        refuse(path, f"type {block['type']} needs {wanted}")
    return block[wanted]


def check_environment(stated: Block, path: Path, environment: Block) -> None:
    """Refuse a variable that is meant in two ways, and a secret that is not configured."""
    seen: dict[str, str] = {}
    for part in ("set", "unset", "secrets"):
        for name in environment.get(part, ()):
            if seen.setdefault(name, part) != part:
                refuse((*path, part), f"{name} is also under {seen[name]}: expected it in one of set, unset, secrets")
    for name, secret in environment.get("secrets", {}).items():
        require_secret(stated, (*path, "secrets", name), secret)
