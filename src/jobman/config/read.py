"""Reading sources anew: strictly, each with the places of its values, laid on each other and checked as a whole."""

from __future__ import annotations

from jobman.config import trees
from jobman.config.load import VARIABLES
from jobman.config.strict_yaml import read
from jobman.errors import InvalidConfigError
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jobman.config.load import File
    from jobman.config.schema import Configuration
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
        read_files = [(file.kind, self._tree(file)) for file in files]
        from jobman.config.places import validated  # loads pydantic, and what is no YAML does not get there

        roots: list[str] = []
        for kind, tree in read_files:
            configuration = validated(tree)
            if kind in _MAY_TRUST and _ROOTS in tree.members:
                roots = configuration.trusted_project_roots
        return roots

    def stated(self, files: Sequence[File], variables: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """Return what the sources state together.

        Raises:
            ConfigFileError: a file cannot be read.
            InvalidConfigError: a source breaks a rule, or they do together.
        """
        configuration = self.checked(self.parts(files, variables))
        from jobman.config.schema import stated  # as above

        return stated(configuration)

    def checked(self, parts: Sequence[Part]) -> Configuration:
        """Return what all parts say together, as a value with defaults."""
        from jobman.config.places import checked, validated  # as above

        tree = trees.mapping({}, "")
        for part in parts:
            validated(part.tree)
            tree = trees.merged(tree, part.tree)
        return checked(tree)

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


def _environment(variables: Sequence[tuple[str, str]]) -> Value:
    """Return the variables as a document."""
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
