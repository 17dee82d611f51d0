"""Canonical JSON: compact, ASCII, keys sorted; the same value always gives the same text.

Small enough to be our own: ``json`` loads ``re`` to be able to read, and with it ``enum`` and ``functools``, which is
6 ms of a command and 1.2 MB of every supervisor. What it reads and quotes with is a C module, which is here used alone.
"""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii as _quoted
except ImportError:
    from json.encoder import py_encode_basestring_ascii as _quoted

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Members = list[tuple[str, object]]


def dump(value: object) -> str:
    """Return ``value`` (mappings, lists, text, integers, booleans, ``None``) as JSON; lone surrogates as escapes.

    Raises:
        TypeError: it holds something else, such as a float, whose text would not be canonical.
    """
    if isinstance(value, str):
        return str(_quoted(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, list):
        return f"[{','.join(map(dump, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{_quoted(key)}:{dump(value[key])}' for key in sorted(value))}}}"
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


def load(text: str, members: Callable[[Members], object] = dict) -> Any:
    """Return the value of a JSON text, as ``json.loads`` does; ``members`` makes a value of the pairs of an object.

    Raises:
        ValueError: it is no JSON; with the reason and the place.
    """
    try:
        value, end = _scanner(members)(text, 0)
    except (AttributeError, ImportError, StopIteration, SystemError, ValueError):
        # Not what `dump` wrote, or not this interpreter: the scanner is no documented interface, and it has neither
        # words nor, in CPython 3.11, an exception for what it cannot read.
        end = -1
    if end == len(text):
        return value
    import json

    return json.loads(text, object_pairs_hook=members)


def _scanner(members: Callable[[Members], object]) -> Callable[[str, int], tuple[object, int]]:
    from _json import make_scanner

    reading: Any = _Reading(members)
    return make_scanner(reading)


class _Reading:
    """What the scanner asks of a ``json.JSONDecoder``."""

    strict = True
    object_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float

    def __init__(self, members: Callable[[Members], object]) -> None:
        self.object_pairs_hook = members
