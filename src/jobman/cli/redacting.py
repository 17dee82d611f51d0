"""Hiding what the configuration says must not be shown, as far as it can be read (contract, A.0 and K.8).

Names and patterns are looked for when something is about to be printed, not before: most commands print nothing that
could be sensitive. A configuration that is broken or missing keeps nobody from working; the built-in keys apply then.
"""

from __future__ import annotations

from jobman.config import redaction
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def prepare(config: str, state_dir: str) -> None:
    """Have what is printed from now on follow the configuration; the arguments are the flags of the same names."""
    redaction.configure(lambda: _rules(config, state_dir))


def message(text: str, words: Sequence[str]) -> str:
    """Return an error message as it may be printed, by the configuration that a command line names."""
    prepare(_value(words, "--config"), _value(words, "--state-dir"))
    return redaction.redact_text(text)


def _rules(config: str, state_dir: str) -> Mapping[str, Any]:
    from jobman.config.load import load
    from jobman.config.paths import state_directory

    try:
        stated = load(config, state_directory(state_dir)).stated
    except Exception:  # noqa: BLE001  # it is asked for while something else is said, which must be said
        return {}
    rules: Mapping[str, Any] = stated.get("redaction", {})
    return rules


def _value(words: Sequence[str], flag: str) -> str:
    """Return the last value of a flag in words that may not have been understood."""
    found = ""
    for place, word in enumerate(words):
        if word == "--":
            break
        if word == flag and place + 1 < len(words):
            found = words[place + 1]
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found
