"""Durations, instants, integers and sizes as text: the one grammar of flags, configuration and documents.

Everything is an integer from parse to print: durations are nanoseconds, instants are nanoseconds since the Unix epoch,
both within 64 bits. ``datetime`` would lose the last three digits, a float the last two. Sources: contract A.0, A.2 and
its conventions; Go's ``ParseDuration``, ``Duration.String`` and ``strconv.ParseInt`` for what the original accepts.
"""

from __future__ import annotations

from jobman.errors import InvalidValueError

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_DIGITS = frozenset("0123456789")
_UNITS = {
    "ns": 1,
    "us": MICROSECOND,
    "\u00b5s": MICROSECOND,  # micro sign, the spelling that is printed
    "\u03bcs": MICROSECOND,  # Greek small letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
    "d": DAY,
    "D": DAY,
    "w": WEEK,
    "W": WEEK,
}
# Digits of the longest decimal of 64 bits; int() refuses thousands of them with an error of its own.
_LONGEST_NUMBER = 19
_SIZES = {unit: 1 << 10 * power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}
_EXPECTED_DURATION = "a duration such as 90s, 1h30m or 2d"
_EXPECTED_TIMESTAMP = "an RFC 3339 time such as 2026-11-29T15:19:20Z, between the years 1678 and 2261"


# --- Durations -----------------------------------------------------------------------------------------------------


def parse_duration(text: str, *, what: str = "duration") -> int:
    """Return the nanoseconds that ``text`` stands for, 0 to 2**63 - 1.

    A sequence of decimal numbers with units: ``1h30m``, ``1.5d``, ``1w2d3h``; a bare ``0`` needs no unit. What is finer
    than a nanosecond is cut off in each of its numbers.

    Args:
        text: Go's duration grammar without a minus sign, plus ``d`` (24 hours) and ``w`` (7 days) in either case.
        what: Names the value in the error.

    Raises:
        InvalidValueError: It is no such sequence, or longer than about 292 years.
    """
    unsigned = text.removeprefix("+")
    total = _sum_components(unsigned) if unsigned else None
    if total is None or total > INT64_MAX:
        raise InvalidValueError(what=what, value=text, expected=_EXPECTED_DURATION)
    return total


def _sum_components(text: str) -> int | None:
    if text == "0":
        return 0
    total = 0
    while text:
        length, text = _take_component(text)
        if length is None:
            return None
        total += length
    return total


def _take_component(text: str) -> tuple[int | None, str]:
    """Read one number with its unit; returns its nanoseconds (None: there is none) and what follows."""
    whole, rest = _take_digits(text)
    fraction = ""
    if rest.startswith("."):
        fraction, rest = _take_digits(rest[1:])
    end = 0
    while end < len(rest) and rest[end] not in _DIGITS and rest[end] != ".":
        end += 1
    unit = _UNITS.get(rest[:end])
    significant = whole.lstrip("0")
    if unit is None or not (whole or fraction) or len(significant) > _LONGEST_NUMBER:
        return None, rest
    # From the last digit on: exact however many there are, where a cut after some of them could be off by one.
    part = 0
    for digit in reversed(fraction):
        part = (int(digit) * unit + part) // 10
    return int(significant or "0") * unit + part, rest[end:]


def _take_digits(text: str) -> tuple[str, str]:
    end = 0
    while end < len(text) and text[end] in _DIGITS:
        end += 1
    return text[:end], text[end:]


def format_duration(nanoseconds: int) -> str:
    """Print a duration as Go does: ``0s``, ``275ms``, ``1.5s``, ``1m0s``, ``720h0m0s``; ``µs`` with U+00B5."""
    sign, value = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if value == 0:
        return "0s"
    if value < MICROSECOND:
        return f"{sign}{value}ns"
    if value < MILLISECOND:
        return f"{sign}{_decimal(value, MICROSECOND)}\u00b5s"
    if value < SECOND:
        return f"{sign}{_decimal(value, MILLISECOND)}ms"
    minutes, below = divmod(value, MINUTE)
    seconds = f"{_decimal(below, SECOND)}s"
    if not minutes:
        return sign + seconds
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{seconds}" if hours else f"{sign}{minutes}m{seconds}"


def _decimal(value: int, unit: int) -> str:
    """Print ``value / unit`` exactly; ``unit`` is a power of ten."""
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    digits = str(unit + part)[1:].rstrip("0")
    return f"{whole}.{digits}"


# --- Instants ------------------------------------------------------------------------------------------------------


def parse_timestamp(text: str, *, what: str = "time") -> int:
    """Return the Unix nanoseconds of an RFC 3339 time.

    Args:
        text: ``YYYY-MM-DDTHH:MM:SS``, up to 9 digits of a fraction, then ``Z`` or ``±HH:MM``.
        what: Names the value in the error.

    Raises:
        InvalidValueError: The text has another shape, names a moment that does not exist, or lies outside 64 bits.
    """
    seconds = _civil_seconds(text[:19])
    nanoseconds, zone = _take_fraction(text[19:])
    offset = _zone_seconds(zone)
    if seconds is not None and nanoseconds is not None and offset is not None:
        instant = (seconds - offset) * SECOND + nanoseconds
        if INT64_MIN <= instant <= INT64_MAX:
            return instant
    raise InvalidValueError(what=what, value=text, expected=_EXPECTED_TIMESTAMP)


def _civil_seconds(text: str) -> int | None:
    """Seconds from the epoch to ``YYYY-MM-DDTHH:MM:SS``, as if it were UTC."""
    if not _has_shape(text, "0000-00-00T00:00:00"):
        return None
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if not (1 <= month <= 12 and 1 <= day <= _days_in_month(year, month)):
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((_days_from_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second


def _take_fraction(text: str) -> tuple[int | None, str]:
    """Read an optional ``.digits``; returns its nanoseconds (None: malformed) and the zone that follows."""
    if not text.startswith("."):
        return 0, text
    digits, zone = _take_digits(text[1:])
    if not 1 <= len(digits) <= 9:
        return None, zone
    return int(digits.ljust(9, "0")), zone


def _zone_seconds(text: str) -> int | None:
    if text == "Z":
        return 0
    if not _has_shape(text[1:], "00:00") or text[0] not in "+-":
        return None
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    offset = (hours * 60 + minutes) * 60
    return offset if text[0] == "+" else -offset


def _has_shape(text: str, shape: str) -> bool:
    """Say whether ``text`` has ASCII digits where ``shape`` has ``0``, and the same characters elsewhere."""
    return len(text) == len(shape) and all(
        (have in _DIGITS) if want == "0" else (have == want) for have, want in zip(text, shape, strict=True)
    )


def format_timestamp(nanoseconds: int) -> str:
    """Print Unix nanoseconds as UTC: up to 9 digits of a fraction, trailing zeros trimmed, always ``Z``."""
    seconds, part = divmod(nanoseconds, SECOND)
    days, second = divmod(seconds, 86_400)
    year, month, day = _date_of(days)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    fraction = "." + str(SECOND + part)[1:].rstrip("0") if part else ""
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"


def _days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


# The two conversions count years from March, so that the leap day is the last of its year, in eras of 400 years, which
# all have 146,097 days. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
_DAYS_PER_ERA = 146_097
_EPOCH_DAY = 719_468  # 1970-01-01, counted from 0000-03-01


def _days_from_epoch(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * _DAYS_PER_ERA + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - _EPOCH_DAY


def _date_of(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + _EPOCH_DAY, _DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return era * 400 + year_of_era + (month <= 2), month, day


# --- Integers ------------------------------------------------------------------------------------------------------

_ALPHABETS = {
    2: frozenset("01"),
    8: frozenset("01234567"),
    10: _DIGITS,
    16: frozenset("0123456789abcdefABCDEF"),
}
_PREFIXES = {"0b": 2, "0o": 8, "0x": 16}


def parse_integer(text: str, *, what: str = "integer") -> int:
    """Return the 64-bit integer that ``text`` spells in Go's base-0 syntax.

    Args:
        text: An optional sign; decimal, or hexadecimal after ``0x``, octal after ``0o`` or a leading ``0``, binary
            after ``0b``; single underscores between digits and after a prefix.
        what: Names the value in the error.

    Raises:
        InvalidValueError: The text has another shape, or needs more than 64 bits.
    """
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    base, digits = _split_base(unsigned)
    plain = digits.replace("_", "").lstrip("0")
    if _are_digits(digits, base) and len(plain) <= 64 and (base != 10 or len(plain) <= _LONGEST_NUMBER):
        value = int(plain or "0", base)
        value = -value if text[0] == "-" else value
        if INT64_MIN <= value <= INT64_MAX:
            return value
    raise InvalidValueError(what=what, value=text, expected="an integer of 64 bits")


def _split_base(text: str) -> tuple[int, str]:
    """Return the base and its digits; a prefix stays as one ``0``, which an underscore may follow."""
    base = _PREFIXES.get(text[:2].lower())
    if base is not None and len(text) > 2:
        return base, text[2:] if text[2] != "_" else "0" + text[2:]
    return (8 if len(text) > 1 and text[0] == "0" else 10), text


def _are_digits(text: str, base: int) -> bool:
    alphabet = _ALPHABETS[base]
    return all(group and alphabet.issuperset(group) for group in text.split("_"))


# --- Sizes ---------------------------------------------------------------------------------------------------------


def parse_size(text: str, *, what: str = "size") -> int:
    """Return the bytes that ``text`` stands for, 0 to 2**63 - 1.

    Args:
        text: Decimal digits, and perhaps a unit: ``4096``, ``4KiB``, ``1GiB``.
        what: Names the value in the error.

    Raises:
        InvalidValueError: The text has another shape, or needs more than 63 bits.
    """
    digits, unit = _take_digits(text)
    significant = digits.lstrip("0")
    factor = _SIZES.get(unit or "B")
    if digits and factor is not None and len(significant) <= _LONGEST_NUMBER:
        size = int(significant or "0") * factor
        if size <= INT64_MAX:
            return size
    raise InvalidValueError(what=what, value=text, expected="bytes such as 1048576, 4KiB or 1GiB, at most 2**63 - 1")
