"""Names of signals as people give them, in a flag or in a configuration."""

from __future__ import annotations

from signal import Signals


def full_name(text: str) -> str | None:
    """Return the whole name of a signal, such as ``SIGTERM``; ``text`` may leave ``SIG`` out, in either case.

    ``None`` if no signal of this system is called so.
    """
    # Letters of other alphabets have capitals here: the upper case of "\u017f" is "S".
    word = text.upper() if text.isascii() else ""
    name = word if word.startswith("SIG") else f"SIG{word}"
    return name if name in Signals.__members__ else None
