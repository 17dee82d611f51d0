"""What must not be shown (contract, K.8): values whose key looks like that of a secret.

Captured output is never redacted; everything else that Jobman prints is.
"""

from __future__ import annotations

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


def is_sensitive(key: str) -> bool:
    """Say whether a value under ``key`` is to be hidden."""
    folded = key.lower()
    return any(word in folded for word in _SENSITIVE)


def redact(value: object, key: str = "") -> object:
    """Return a JSON value with everything sensitive replaced by an empty value of the same type (O.2)."""
    if key and is_sensitive(key):
        return _emptied(value)
    if isinstance(value, dict):
        return {name: redact(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [redact(member, key) for member in value]
    return value


def redact_text(text: str, key: str) -> str:
    """Return a human field; its label is its key."""
    return REDACTED if text and is_sensitive(key) else text


def _emptied(value: object) -> object:
    if isinstance(value, bool):
        return False
    for kind, empty in ((str, REDACTED), (dict, {}), (list, []), (int, 0), (float, 0)):
        if isinstance(value, kind):
            return empty
    return None
