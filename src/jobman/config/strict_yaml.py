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
_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"
# A carriage return alone is one too; editors that show it as a line end are outnumbered by programs that do not.
_BREAKS = (
    ("U+0085", "\x85", "\\x85"),
    ("U+2028", "\u2028", "\\u2028"),
    ("U+2029", "\u2029", "\\u2029"),
    ("a carriage return without a line feed", "\r", "\\r"),
)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# The C parser where PyYAML was built with it; the other is slower and reads the same.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Value(NamedTuple):
    """A node: its YAML tag, its scalar text, members or items; where it stands (``file:line:column``), and its key."""

    tag: str
    text: str
    members: dict[str, Value]
    items: tuple[Value, ...]
    where: str
    plain: bool
    key: str = ""


def read(path: str) -> Value:
    """Return the mapping that a file holds; an empty file is an empty mapping.

    Raises:
        ConfigFileError: it cannot be read, or is not a regular file.
        InvalidConfigError: its content breaks a rule, with line and column.
    """
    data = _bytes(path)
    _check_breaks(path, data)
    try:
        _check_shape(path, data)
        node = yaml.compose(data, Loader=_LOADER)
    except yaml.reader.ReaderError as error:
        raise _encoding_error(path, data, error) from error
    except yaml.YAMLError as error:
        raise _syntax_error(path, error) from error
    except (ValueError, OverflowError) as error:
        # The parser that is used where the C one is missing hands any character code to chr().
        raise InvalidConfigError(where=path, detail="is not valid YAML: a character code is out of range") from error
    if node is None:
        return Value(_MAPPING, "", {}, (), path, plain=False)
    value = _converted(path, node)
    if value.tag != _MAPPING:
        raise InvalidConfigError(where=value.where, detail="expected a mapping")
    return value


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigFileError(path=path, detail=(error.strerror or str(error)).lower()) from error
    if len(data) > MAX_BYTES:
        raise InvalidConfigError(where=path, detail=f"is larger than {MAX_BYTES} bytes")
    return data


def _without_waiting(path: str, _flags: int) -> int:
    """Open a regular file; opening a FIFO would wait for a writer that may never come."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise ConfigFileError(path=path, detail="is a directory" if stat.S_ISDIR(mode) else "is not a regular file")


def _check_breaks(path: str, data: bytes) -> None:
    """Refuse line ends that only YAML 1.1 knows: what every editor shows as one line would be two, with a key more."""
    text = data.decode("utf-16" if data[:2] in _UTF_16 else "utf-8", "replace")
    for line, whole in enumerate(text.split("\n"), 1):
        content = whole.removesuffix("\r")
        for name, char, escape in _BREAKS:
            if char in content:
                detail = f"{name} would end the line here: in text it is written {escape}, in double quotes"
                raise InvalidConfigError(where=f"{path}:{line}:{content.index(char) + 1}", detail=detail)


def _check_shape(path: str, data: bytes) -> None:
    """Refuse what is shared, repeated or too large before anything is built: building recurses, this does not."""
    depth = nodes = documents = 0
    for event in yaml.parse(data, Loader=_LOADER):
        documents += isinstance(event, yaml.DocumentStartEvent)
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        problem = _problem(event, depth=depth, nodes=nodes, documents=documents)
        if problem:
            raise InvalidConfigError(where=_place(path, event.start_mark), detail=problem)


def _problem(event: yaml.Event, *, depth: int, nodes: int, documents: int) -> str:
    if getattr(event, "anchor", None) is not None:
        return "anchors and aliases are not allowed"
    if getattr(event, "tag", None) == "!":
        return (
            "a tag without a name is not allowed"  # one parser reads text behind it, the other whatever it looks like
        )
    if documents > 1:
        return "a second document begins here, and only one is allowed"
    if depth > MAX_DEPTH:
        return f"is nested deeper than {MAX_DEPTH} levels"
    return f"has more than {MAX_NODES} values" if nodes > MAX_NODES else ""


def _encoding_error(path: str, data: bytes, error: yaml.reader.ReaderError) -> InvalidConfigError:
    place = error.position if isinstance(error.position, int) else 0
    before = data[: max(0, place)]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    detail = f"is not text that YAML allows: {error.reason}"
    return InvalidConfigError(where=f"{path}:{line}:{column}", detail=detail)


def _syntax_error(path: str, error: yaml.YAMLError) -> InvalidConfigError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "is not valid YAML"
    return InvalidConfigError(where=_place(path, mark), detail=problem)


def _place(path: str, mark: Mark | None) -> str:
    return path if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"


def _converted(path: str, node: yaml.Node) -> Value:
    where = _place(path, node.start_mark)
    if isinstance(node, yaml.MappingNode):
        return Value(node.tag, "", dict(_members(path, node)), (), where, plain=False)
    if isinstance(node, yaml.SequenceNode):
        return Value(node.tag, "", {}, tuple(_converted(path, item) for item in node.value), where, plain=False)
    _check_text(where, node.value)
    return Value(node.tag, node.value, {}, (), where, plain=not getattr(node, "style", None))


def _check_text(where: str, text: str) -> None:
    """Refuse half a character, for which only one of the parsers has no other name."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidConfigError(where=where, detail="a character code is out of range")


def _members(path: str, node: yaml.MappingNode) -> Iterator[tuple[str, Value]]:
    seen = set()
    for key, value in node.value:
        where = _place(path, key.start_mark)
        if key.tag == _MERGE:
            raise InvalidConfigError(where=where, detail="merge keys are not allowed")
        if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT or not key.value:
            raise InvalidConfigError(where=where, detail="keys must be text; a number or a word like yes needs quotes")
        if key.value in seen:
            raise InvalidConfigError(where=where, detail=f"the key {key.value!r} is given twice")
        seen.add(key.value)
        _check_text(where, key.value)
        yield key.value, _converted(path, value)._replace(key=where)
