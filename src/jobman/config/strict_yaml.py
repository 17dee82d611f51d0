"""One YAML document, read strictly, with the place of every value (contract, K.1).

Only what a configuration needs: mappings with unique text keys, lists, scalars. Anchors, aliases, merge keys and
further documents are refused: they make a file that says one thing mean another.
"""

from __future__ import annotations

import os
import stat

import yaml

from jobman.errors import ConfigFileError, InvalidConfigError
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Mark = Any  # the marks of the C parser and of the other one are unrelated classes, alike in what is used

MAX_BYTES = 1 << 20
MAX_NODES = 10_000
MAX_DEPTH = 64
_MAPPING = "tag:yaml.org,2002:map"
_NULL = "tag:yaml.org,2002:null"
# The C parser where PyYAML was built with it; the other is slower and reads the same.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Value(NamedTuple):
    """A node: its YAML tag, its scalar text, members or items, and where it stands (``file:line:column``)."""

    tag: str
    text: str
    members: dict[str, Value]
    items: tuple[Value, ...]
    where: str
    plain: bool


def read(path: str) -> Value:
    """Return the mapping that a file holds; an empty file is an empty mapping.

    Raises:
        ConfigFileError: it cannot be read, or is not a regular file.
        InvalidConfigError: its content breaks a rule, with line and column.
    """
    data = _bytes(path)
    try:
        _refuse_sharing(path, data)
        node = yaml.compose(data, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise _syntax_error(path, error) from error
    if node is None:
        return Value(_MAPPING, "", {}, (), path, plain=False)
    value = _Converter(path).convert(node, 1)
    if value.tag != _MAPPING:
        raise InvalidConfigError(where=value.where, detail="expected a mapping")
    return value


def is_null(value: Value) -> bool:
    """Say whether a value is YAML's null."""
    return value.tag == _NULL


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigFileError(path=path, detail="is not a regular file")
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(path=path, detail=(error.strerror or str(error)).lower()) from error
    if len(data) > MAX_BYTES:
        raise InvalidConfigError(where=path, detail="is larger than 1 MiB")
    return data


def _refuse_sharing(path: str, data: bytes) -> None:
    for event in yaml.parse(data, Loader=_LOADER):
        if getattr(event, "anchor", None) is not None:
            raise InvalidConfigError(where=_place(path, event.start_mark), detail="anchors and aliases are not allowed")


def _syntax_error(path: str, error: yaml.YAMLError) -> InvalidConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "is not valid YAML"
    return InvalidConfigError(where=_place(path, mark), detail=problem)


def _place(path: str, mark: Mark | None) -> str:
    return path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"


class _Converter:
    """Turns nodes into values, counting them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._nodes = 0

    def convert(self, node: yaml.Node, depth: int) -> Value:
        where = _place(self._path, node.start_mark)
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise InvalidConfigError(where=where, detail="the document is too large or too deep")
        if isinstance(node, yaml.MappingNode):
            return Value(node.tag, "", dict(self._members(node, depth)), (), where, plain=False)
        if isinstance(node, yaml.SequenceNode):
            items = tuple(self.convert(item, depth + 1) for item in node.value)
            return Value(node.tag, "", {}, items, where, plain=False)
        return Value(node.tag, node.value, {}, (), where, plain=not getattr(node, "style", None))

    def _members(self, node: yaml.MappingNode, depth: int) -> Iterator[tuple[str, Value]]:
        seen = set()
        for key, value in node.value:
            where = _place(self._path, key.start_mark)
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str" or not key.value:
                raise InvalidConfigError(where=where, detail="keys must be text")
            if key.value in seen:
                raise InvalidConfigError(where=where, detail=f"{key.value} is given twice")
            seen.add(key.value)
            yield key.value, self.convert(value, depth + 1)
