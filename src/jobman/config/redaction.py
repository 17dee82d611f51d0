"""What must not be shown (contract, K.8): values whose key looks like that of a secret, and what patterns match.

Captured output is never redacted; everything else that Jobman prints is. Names and patterns of a configuration are
asked for when the first value is about to be printed, and without one nothing but the built-in keys applies.
"""

from __future__ import annotations

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

REDACTED = "[REDACTED]"
_SENSITIVE = (
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "private_key",
    "private-key",
    "api_key",
    "api-key",
    "authorization",
    "cookie",
)


class Redactor:
    """Hides what the built-in keys, the names and the patterns of a configuration say.

    Args:
        stated: the block ``redaction`` of a configuration.
    """

    def __init__(self, stated: Mapping[str, Any] | None = None) -> None:
        stated = stated or {}
        self._names = frozenset(name.lower() for name in stated.get("names", ()))
        self._replace: Callable[[str], str] | None = None
        if stated.get("patterns"):
            from jobman.config.patterns import substitution  # 4 ms, only for those who have patterns

            self._replace = substitution(stated["patterns"], REDACTED)

    def is_sensitive(self, key: str) -> bool:
        """Say whether a value under ``key`` is to be hidden."""
        folded = key.lower()
        return folded in self._names or any(word in folded for word in _SENSITIVE)

    def value(self, value: object, key: str = "") -> object:
        """Return a JSON value with everything sensitive replaced by an empty value of the same type (O.2)."""
        if key and self.is_sensitive(key):
            return _emptied(value)
        if isinstance(value, dict):
            return {name: self.value(member, name) for name, member in value.items()}
        if isinstance(value, list):
            return [self.value(member, key) for member in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str, key: str = "") -> str:
        """Return a human field, whose label is its key, or a message, which has none."""
        if text and key and self.is_sensitive(key):
            return REDACTED
        return self._replace(text) if self._replace is not None and text else text


_redactor: Redactor | None = None
_configured: Callable[[], Mapping[str, Any]] | None = None


def configure(source: Callable[[], Mapping[str, Any]] | None) -> None:
    """Say where the block ``redaction`` of the configuration is to be had, once it is needed; None: there is none."""
    global _configured, _redactor  # one process prints for one user
    _configured, _redactor = source, None


def redact(value: object, key: str = "") -> object:
    """Return a JSON value as it may be printed."""
    return _current().value(value, key)


def redact_text(text: str, key: str = "") -> str:
    """Return a human field or a message as it may be printed."""
    return _current().text(text, key)


def _current() -> Redactor:
    global _redactor  # noqa: PLW0603  # as above
    if _redactor is None:
        _redactor = Redactor()  # while it is looked for, and if that fails
        if _configured is not None:
            _redactor = Redactor(_configured())
    return _redactor


def _emptied(value: object) -> object:
    if isinstance(value, bool):
        return False
    for kind, empty in ((str, REDACTED), (dict, {}), (list, []), (int, 0), (float, 0)):
        if isinstance(value, kind):
            return empty
    return None
