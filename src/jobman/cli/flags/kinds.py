"""The kinds of values that flags and operands take; ``jobman.cli.values`` converts their text."""

from __future__ import annotations

_EMPTY: dict[str, object] = {"bool": False, "text": "", "selector": "", "id": "", "choice": ""}


class Kind:
    """What a value is.

    Attributes:
        name: Selects the conversion.
        verbatim: A text that is not blank needs no conversion, so that ``status JOB`` need not load any.
        metavar: What help calls the value, unless the flag says it better; "" for a boolean.
        empty: The value of an absent flag without a default: ``()``, ``False``, ``""`` or None.
        repeated: The flag may be given again, and its value is a tuple.
        minimum: The smallest integer.
        words: The vocabulary of a choice.
    """

    __slots__ = ("empty", "metavar", "minimum", "name", "repeated", "verbatim", "words")

    def __init__(
        self, name: str, metavar: str, *, repeated: bool = False, minimum: int = 0, words: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.empty: object = () if repeated else _EMPTY.get(name)
        self.verbatim = name in ("text", "selector")
        self.metavar = metavar
        self.repeated = repeated
        self.minimum = minimum
        self.words = words


BOOL = Kind("bool", "")
TEXT = Kind("text", "TEXT")
TEXTS = Kind("text", "TEXT", repeated=True)
SELECTOR = Kind("selector", "JOB")
SELECTORS = Kind("selector", "JOB", repeated=True)
JOB_ID = Kind("id", "ID")
ASSIGNMENTS = Kind("assignment", "NAME=VALUE", repeated=True)
DURATION = Kind("duration", "DUR")
TIMESTAMP = Kind("timestamp", "TIME")
RUN = Kind("run", "RUN")
RUN_OR_ALL = Kind("run or all", "N|-N|all")
COMMAND_NAME = Kind("text", "COMMAND")


def integer(minimum: int) -> Kind:
    """An integer in Go's base-0 syntax, ``minimum`` to 2**63 - 1."""
    return Kind("integer", "N", minimum=minimum)


def integers(minimum: int) -> Kind:
    """Decimal integers, repeated and separated by commas."""
    return Kind("integers", "N,...", repeated=True, minimum=minimum)


def choice(*words: str) -> Kind:
    """One of a few words."""
    return Kind("choice", "|".join(words), words=words)


def choices(metavar: str, *words: str) -> Kind:
    """Some of a few words, repeated and separated by commas."""
    return Kind("choices", metavar, repeated=True, words=words)
