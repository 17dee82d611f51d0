"""Checking trees of values, and saying of every problem where it stands: file, line, column and key.

Loads pydantic, so whoever only parses a file does not load this.
"""

from __future__ import annotations

from jobman.config import schema, trees
from jobman.config.check import check
from jobman.config.load import VARIABLES
from jobman.errors import InvalidConfigError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.config.schema import Path
    from jobman.config.strict_yaml import Value


def validated(tree: Value) -> schema.Configuration:
    """Return what a tree says by itself.

    Raises:
        InvalidConfigError: a value is not what its key takes.
    """
    try:
        return schema.validated(trees.plain(tree))
    except schema.Finding as finding:
        raise _placed(tree, finding) from None


def checked(tree: Value) -> schema.Configuration:
    """Return what all sources say together.

    Raises:
        InvalidConfigError: they do not go together.
    """
    configuration = validated(tree)
    try:
        check(schema.stated(configuration))
    except schema.Finding as finding:
        raise _placed(tree, finding) from None
    return configuration


def _placed(tree: Value, finding: schema.Finding) -> InvalidConfigError:
    """Return what was found with its place; of several problems the first in the order of lines."""
    path, detail = min(finding.problems, key=lambda problem: _order(trees.place(tree, problem[0])))
    where = trees.place(tree, path)
    # The name of a variable is both the place and the key.
    return InvalidConfigError(where=where, detail=detail if where in VARIABLES else f"{_dotted(path)}{detail}")


def _order(where: str) -> tuple[str, int, int]:
    path, line, column = ("::" + where).rsplit(":", 2)
    return (path, int(line), int(column)) if line.isdigit() and column.isdigit() else (where, 0, 0)


def _dotted(path: Path) -> str:
    text = ""
    for part in path[: -1 if path[-1:] == (trees.KEY,) else None]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{text[1:]}: " if text else ""
