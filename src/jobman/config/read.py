"""Reading sources anew: strictly, each with the places of its values, laid on each other and checked as a whole."""

from __future__ import annotations

from jobman.config import schema, trees
from jobman.config.check import check
from jobman.config.load import VARIABLES
from jobman.config.strict_yaml import read
from jobman.errors import InvalidConfigError
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jobman.config.load import File
    from jobman.config.schema import Path
    from jobman.config.strict_yaml import Value

_ROOTS = "trusted_project_roots"
_MAY_TRUST = ("user", "explicit")
_PREFIX = "JOBMAN_"
# Durations are text, and "30" is none; counts and sizes are digits.
_DURATIONS = tuple(name for name in VARIABLES if name.endswith("_MAX_AGE"))


class Part(NamedTuple):
    """One source: what it is, where it lies ("" for the environment), and what it says."""

    kind: str
    path: str
    tree: Value


class Reader:
    """Reads every file once, whoever asks."""

    def __init__(self) -> None:
        self._trees: dict[str, Value] = {}

    def trusted_roots(self, files: Sequence[File]) -> list[str]:
        """Return the roots below which a project's file counts; only the user and ``--config`` may name any.

        Raises:
            ConfigFileError: a file cannot be read.
            InvalidConfigError: a file breaks a rule by itself.
        """
        roots: list[str] = []
        for file in files:
            found = schema.stated(_validated(self._tree(file)))
            if file.kind in _MAY_TRUST:
                roots = found.get(_ROOTS, roots)
        return roots

    def stated(self, files: Sequence[File], variables: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return what the sources state together.

        Raises:
            ConfigFileError: a file cannot be read.
            InvalidConfigError: a source breaks a rule, or they do together.
        """
        return schema.stated(self.checked(self.parts(files, variables)))

    def checked(self, parts: Sequence[Part]) -> schema.Configuration:
        """Return what all parts say together, as a value with defaults."""
        tree = trees.mapping({}, "")
        for part in parts:
            _validated(part.tree)
            tree = trees.merged(tree, part.tree)
        configuration = _validated(tree)
        try:
            check(schema.stated(configuration))
        except schema.Finding as finding:
            raise _placed(tree, finding) from None
        return configuration

    def parts(self, files: Sequence[File], variables: Sequence[tuple[str, str]]) -> list[Part]:
        """Return the sources in ascending precedence."""
        parts = [Part(file.kind, file.path, self._tree(file)) for file in files]
        if variables:
            parts.append(Part("environment", "", _environment(variables)))
        return parts

    def _tree(self, file: File) -> Value:
        if file.path not in self._trees:
            tree = read(file.path)
            roots = tree.members.get(_ROOTS)
            if roots is not None and file.kind not in _MAY_TRUST:
                detail = f"{_ROOTS}: only the user's file and that of --config may say which projects are trusted"
                raise InvalidConfigError(where=roots.where, detail=detail)
            self._trees[file.path] = tree
        return self._trees[file.path]


def _validated(tree: Value) -> schema.Configuration:
    try:
        return schema.validated(trees.plain(tree))
    except schema.Finding as finding:
        raise _placed(tree, finding) from None


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
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return f"{text[1:]}: " if text else ""


def _environment(variables: Sequence[tuple[str, str]]) -> Value:
    """Return the variables as a document; the same name twice in the environment is refused (K.7)."""
    _refuse_duplicates([name for name, _ in variables])
    blocks: dict[str, dict[str, Value]] = {}
    for name, text in variables:
        block, _, key = name.removeprefix(_PREFIX).lower().partition("_")
        blocks.setdefault(block, {})[key] = _variable(name, text)
    return trees.mapping({block: trees.mapping(members, _PREFIX) for block, members in blocks.items()}, "")


def _variable(name: str, text: str) -> Value:
    digits = text.lstrip("0") or "0"
    if name not in _DURATIONS and text.isascii() and text.isdigit():
        return trees.integer(digits, name)
    return trees.text_value(text, name)


def _refuse_duplicates(names: Sequence[str]) -> None:
    try:
        with open("/proc/self/environ", "rb") as file:
            given = file.read().split(b"\0")
    except OSError:
        return
    for name in names:
        if sum(entry.startswith(name.encode() + b"=") for entry in given) > 1:
            raise InvalidConfigError(where=name, detail="is given twice in the environment")
