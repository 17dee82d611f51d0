"""Patterns of what must not be shown, in the syntax of RE2: their time is linear in the text, whatever they say.

Loaded only where a configuration has patterns: the engine costs 4 ms.
"""

from __future__ import annotations

import re2

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MAX_BYTES = 1024
MAX_PATTERNS = 64
_EXPECTED = f"expected a regular expression of RE2, of 1 to {MAX_BYTES} bytes"


def checked(value: object) -> str:
    """Return a pattern that can be compiled; raises ``ValueError`` saying what is allowed."""
    if not isinstance(value, str):
        raise ValueError(_EXPECTED)  # noqa: TRY004  # pydantic reports ValueError only
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(_EXPECTED) from None
    if not 1 <= size <= MAX_BYTES:
        raise ValueError(_EXPECTED)
    try:
        _compiled(value)
    except re2.error as error:
        # The reason quotes a part of the pattern at most, never what it is to hide.
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error.args[0]
        raise ValueError(f"{_EXPECTED}: {reason}") from None
    return value


def substitution(patterns: Sequence[str], replacement: str) -> Callable[[str], str]:
    """Return what replaces every match of ``patterns`` in a text; bytes that are not UTF-8 pass as they are."""
    compiled = [_compiled(pattern) for pattern in patterns]
    put = replacement.encode()

    def replaced(match: Any) -> bytes:
        return put if match.group(0) else b""  # what matches nothing at all hides nothing

    def apply(text: str) -> str:
        data = text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "surrogatepass")
        for pattern in compiled:
            data = pattern.sub(replaced, data)
        return data.decode("utf-8", "surrogateescape" if _is_escaped(text) else "surrogatepass")

    return apply


def _is_escaped(text: str) -> bool:
    """Say whether every surrogate of ``text`` stands for a byte."""
    return not any("\ud800" <= char <= "\udfff" and not "\udc80" <= char <= "\udcff" for char in text)


def _compiled(pattern: str) -> Any:  # the binding ships no annotations
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern.encode(), options)
