"""Canonical JSON: compact, ASCII, keys sorted; the same value always gives the same text.

Small enough to be our own: ``json`` loads ``re`` to be able to read, which ``jobman run`` does not need.
"""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii as _quoted
except ImportError:
    from json.encoder import py_encode_basestring_ascii as _quoted


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
