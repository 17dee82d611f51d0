"""What a text means, said a second time: regular expressions and exact fractions, written from the documentation.

Nothing here is taken from the code that is fuzzed, so that both would have to be wrong in the same way. Each function
returns what a text means, or None if it means nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fractions import Fraction

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)
_SECOND = 10**9
_UNITS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": _SECOND, "m": 60 * _SECOND} | {
    "h": 3_600 * _SECOND,
    "d": 86_400 * _SECOND,
    "D": 86_400 * _SECOND,
    "w": 604_800 * _SECOND,
    "W": 604_800 * _SECOND,
}
_COMPONENT = re.compile("([0-9]*)(?:[.]([0-9]*))?(" + "|".join(sorted(_UNITS, key=len, reverse=True)) + ")")
_SIZE = re.compile("([0-9]+)(B|[KMGTPE]iB)?")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_BASES = (
    (16, re.compile("0[xX](_?[0-9a-fA-F])+")),
    (2, re.compile("0[bB](_?[01])+")),
    (8, re.compile("0[oO](_?[0-7])+|0(_?[0-7])+")),
    (10, re.compile("0|[1-9](_?[0-9])*")),
)
_PREFIX = re.compile("[0-9a-f]{0,8}|[0-9a-f]{8}-[0-9a-f]{0,4}|[0-9a-f]{8}(-[0-9a-f]{4}){1,3}-[0-9a-f]{0,12}")
_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def duration(text: str) -> int | None:
    """Nanoseconds: numbers with units, one after the other; each is cut off below a nanosecond."""
    unsigned = text[1:] if text[:1] == "+" else text
    if unsigned == "0":
        return 0
    total, end = 0, 0
    while end < len(unsigned):
        found = _COMPONENT.match(unsigned, end)
        if found is None or not (found[1] or found[2]):
            return None
        number = Fraction(f"{found[1] or 0}.{found[2] or 0}")
        total, end = total + int(number * _UNITS[found[3]]), found.end()
    return total if unsigned and total <= INT64_MAX else None


def size(text: str) -> int | None:
    """Bytes: digits, and perhaps one of the binary units."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    value = int(found[1]) * 1024 ** "BKMGTPE".index((found[2] or "B")[0])
    return value if value <= INT64_MAX else None


def instant(text: str) -> int | None:
    """Nanoseconds since 1970: RFC 3339, of a moment that exists."""
    found = _TIME.fullmatch(text)
    if found is None or (found[3] != "Z" and not (found[3][1:3] <= "23" and found[3][4:] <= "59")):
        return None
    try:
        moment = datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    offset = 0 if found[3] == "Z" else int(found[3][:3]) * 3_600 + int(found[3][0] + found[3][4:]) * 60
    value = (elapsed.days * 86_400 + elapsed.seconds - offset) * _SECOND + int((found[2] or "").ljust(9, "0"))
    return value if moment.second < 60 and INT64_MIN <= value <= INT64_MAX else None


def integer(text: str) -> int | None:
    """An integer in the syntax of Go's literals, a leading zero for octal included."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    for base, shape in _BASES:
        if shape.fullmatch(unsigned):
            digits = re.sub("^0[xXbBoO]", "", unsigned).replace("_", "")
            value = int(digits, base) * (-1 if text.startswith("-") else 1)
            return value if INT64_MIN <= value <= INT64_MAX else None
    return None


def exit_codes(text: str) -> tuple[int, ...] | None:
    """Decimal integers, none negative, separated by commas."""
    parts = text.split(",")
    if not all(re.fullmatch(r"[+]?[0-9]{1,19}|-0{1,19}", part) for part in parts):
        return None
    values = tuple(int(part) for part in parts)
    return values if max(values) <= INT64_MAX else None


def run_number(text: str) -> int | None:
    """A decimal integer that is not zero."""
    if not re.fullmatch("[+-]?[0-9]{1,19}", text):
        return None
    value = int(text)
    return value if value and INT64_MIN <= value <= INT64_MAX else None


def plain_integer(text: str) -> int | None:
    """A number as a configuration has it: decimal, without a leading zero or a plus sign."""
    value = int(text) if re.fullmatch("-?(0|[1-9][0-9]{0,30})", text) else -1
    return value if 0 <= value <= INT64_MAX else None


def selected(jobs: dict[str, str], text: str) -> list[str]:
    """The IDs of the jobs (IDs with their names) that a selector means: none, the one, or all that it may mean."""
    if _ID.fullmatch(text) and text in jobs:
        return [text]
    begun = [job_id for job_id in jobs if job_id.startswith(text)]
    if len(text) >= 8 and _PREFIX.fullmatch(text) and begun:
        return begun
    return [job_id for job_id, name in jobs.items() if name and name == text]
