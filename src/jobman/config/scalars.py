"""The scalars of a configuration (contract, K.3): what YAML made of a value to what the configuration makes of it.

Every function takes a plain value, returns it in canonical form, and raises ``ValueError`` saying what is allowed,
without the value itself: it may be a secret in the wrong place. Durations stay text (``1m0s``), sizes are integers.
"""

from __future__ import annotations

import os

from jobman.errors import InvalidValueError
from jobman.model.scalars import (
    INT64_MAX,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_size,
    parse_timestamp,
)
from jobman.model.spec_rules import name_problem
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

UNLIMITED = "unlimited"
NAME_BYTES = 128
NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
ENVIRONMENT_PATTERN = "^[A-Z_][A-Z0-9_]*$"
_DURATION = "expected a duration as text, such as 90s, 1h30m or 2d"
_SIZE = "expected bytes such as 1048576, 4KiB or 1GiB"
_NAME = f"expected a name of letters, digits, dots, dashes and underscores, at most {NAME_BYTES}"


class Unreadable:
    """A scalar that is no plain decimal integer, no text, and none of true, false and null: nothing accepts it."""


UNREADABLE = Unreadable()


def duration(value: object) -> str:
    """A duration, which is text: ``30`` does not say of what."""
    if not isinstance(value, str):
        raise ValueError(_DURATION)  # noqa: TRY004  # pydantic reports ValueError only
    try:
        return format_duration(parse_duration(value))
    except InvalidValueError:
        raise ValueError(_DURATION) from None


def positive_duration(value: object) -> str:
    """A duration that is not zero."""
    text = duration(value)
    if text == "0s":
        raise ValueError(f"{_DURATION}, longer than 0s")
    return text


def duration_limit(value: object) -> str:
    """A duration, or ``unlimited``."""
    try:
        return UNLIMITED if value == UNLIMITED else duration(value)
    except ValueError:
        raise ValueError(f"{_DURATION}, or unlimited") from None


def integer(minimum: int, maximum: int = INT64_MAX, what: str = "a number") -> Callable[[object], int]:
    """A plain decimal integer within bounds."""
    bounds = f"{what} from {minimum}" + (f" to {maximum}" if maximum < INT64_MAX else " on")
    expected = f"the integer {minimum}" if minimum == maximum else bounds

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        raise ValueError(f"expected {expected}")

    return check


def integer_limit(minimum: int, maximum: int = INT64_MAX, what: str = "a number") -> Callable[[object], int | str]:
    """A plain decimal integer within bounds, or ``unlimited``."""
    check_integer = integer(minimum, maximum, what)

    def check(value: object) -> int | str:
        if value == UNLIMITED:
            return UNLIMITED
        try:
            return check_integer(value)
        except ValueError as error:
            raise ValueError(f"{error}, or {UNLIMITED}") from None

    return check


def byte_limit(value: object) -> int | str:
    """A number of bytes, with a unit if it is text, or ``unlimited``."""
    if value == UNLIMITED:
        return UNLIMITED
    size = _size(value)
    if size is None:
        raise ValueError(f"{_SIZE}, or {UNLIMITED}")
    return size


def positive_size(value: object) -> int:
    """A finite number of bytes, at least one."""
    size = _size(value)
    if not size:
        raise ValueError(f"{_SIZE}, at least 1")
    return size


def _size(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= INT64_MAX else None
    if not isinstance(value, str):
        return None
    try:
        return parse_size(value)
    except InvalidValueError:
        return None


def boolean(value: object) -> bool:
    """``true`` or ``false``; ``yes`` and ``on`` mean something else to everybody but YAML 1.1."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")  # noqa: TRY004  # pydantic reports ValueError only
    return value


def text(value: object) -> str:
    """Text without NUL; a number or a word like ``yes`` needs quotes."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("expected text; a number or a word like yes needs quotes")
    return value


def filled_text(value: object) -> str:
    """Text that is not blank."""
    if not text(value).strip():
        raise ValueError("expected text that is not blank")
    return str(value)


def label(value: object) -> str:
    """A name of a job, as people see it."""
    problem = name_problem("it", text(value))
    if problem is not None:
        raise ValueError(f"expected a name: {problem}")
    return str(value)


def name(value: object) -> str:
    """A configured name: of a pool, a job spec, a profile, a secret, a condition, a notifier, a tag or a group."""
    if not isinstance(value, str) or not _is_name(value):
        raise ValueError(_NAME)
    return value


def _is_name(value: str) -> bool:
    allowed = value.isascii() and value[:1].isalnum() and all(char.isalnum() or char in "._-" for char in value)
    return allowed and len(value) <= NAME_BYTES


def environment_name(value: object) -> str:
    """The name of a variable, in capitals."""
    if isinstance(value, str) and value.isascii() and value.isidentifier() and value == value.upper():
        return value
    raise ValueError("expected the name of a variable: capitals, digits and underscores, no digit first")


def absolute_path(value: object) -> str:
    """An absolute path in its shortest form."""
    if isinstance(value, str) and "\0" not in value and value.startswith("/") and os.path.normpath(value) == value:
        return "/" + value.lstrip("/")
    raise ValueError("expected an absolute path in its shortest form")


def path(value: object) -> str:
    """A path."""
    if isinstance(value, str) and value and "\0" not in value:
        return value
    raise ValueError("expected a path")


def timestamp(value: object) -> str:
    """A time of RFC 3339, not before 1970."""
    expected = "expected a time such as 2026-11-29T15:19:20Z, from 1970 on"
    if not isinstance(value, str):
        raise ValueError(expected)  # noqa: TRY004  # pydantic reports ValueError only
    try:
        time_ns = parse_timestamp(value)
    except InvalidValueError:
        raise ValueError(expected) from None
    if time_ns < 0:
        raise ValueError(expected)
    return format_timestamp(time_ns)


def choice(*words: str) -> Callable[[object], str]:
    """One of a few words."""

    def check(value: object) -> str:
        if isinstance(value, str) and value in words:
            return value
        raise ValueError(f"expected {one_of(words)}")

    return check


def one_of(words: Sequence[str]) -> str:
    """Say which words there are: ``a, b or c``."""
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def stdin(value: object) -> str:
    """``null`` or ``live``; null without quotes is what YAML reads as nothing, and means the same here."""
    return choice("null", "live")("null" if value is None else value)


def signal_name(value: object) -> str:
    """The name of a signal."""
    from jobman.signal_names import full_name  # few configurations have one

    name = full_name(value) if isinstance(value, str) else None
    if name is None:
        raise ValueError("expected the name of a signal, such as TERM or SIGTERM")
    return name.removeprefix("SIG")


def secret_reference(value: object) -> str:
    """Where a secret lies: ``env:NAME`` or ``file:/absolute/path``."""
    provider, _, locator = value.partition(":") if isinstance(value, str) else ("", "", "")
    checks = {"env": environment_name, "file": absolute_path}
    try:
        return f"{provider}:{checks[provider](locator)}"
    except (KeyError, ValueError):
        raise ValueError("expected env:NAME, in capitals, or file:/absolute/path") from None


def unique(values: list[object]) -> list[object]:
    """A list in which nothing stands twice."""
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(f"expected every item once, and {value!r} is given twice")
    return values


def not_empty(values: list[object]) -> list[object]:
    """A list with at least one item."""
    if not values:
        raise ValueError("expected at least one item")
    return values
