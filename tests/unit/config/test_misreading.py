"""What a scalar of a file means is what everybody reads there, and what the flags mean by it; or is refused (D15)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.config.load import File
from jobman.config.read import Reader
from jobman.errors import InvalidConfigError, InvalidValueError
from jobman.model.scalars import (
    INT64_MAX,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_size,
    parse_timestamp,
)
from jobman.model.spec_rules import name_problem

REFUSED = "(refused)"
Meaning = Callable[[str], object]


def by_flags(parse: Callable[[str], int], show: Callable[[int], object]) -> Meaning:
    """Return the meaning that the grammar of the flags gives to a text."""

    def meaning(text: str) -> object:
        try:
            return show(parse(text))
        except InvalidValueError:
            return REFUSED

    return meaning


def or_unlimited(meaning: Meaning) -> Meaning:
    """Return a meaning with one word more."""
    return lambda text: text if text == "unlimited" else meaning(text)


def decimal(text: str) -> object:
    """An integer as everybody writes it."""
    value = int(text) if re.fullmatch("-?(0|[1-9][0-9]{0,30})", text) else -1
    return value if 0 <= value <= INT64_MAX else REFUSED


def size(text: str) -> object:
    """Bytes; without quotes a number is one of YAML, which has no leading zero."""
    return decimal(text) if re.fullmatch("-?[0-9]+", text) else by_flags(parse_size, int)(text)


def label(text: str) -> object:
    """A name, which stands for itself."""
    return text if name_problem("it", text) is None else REFUSED


def nothing(_text: str) -> object:
    """No text has a meaning here."""
    return REFUSED


DURATION = or_unlimited(by_flags(parse_duration, format_duration))
TIME = by_flags(parse_timestamp, lambda time_ns: format_timestamp(time_ns) if time_ns >= 0 else REFUSED)
BOOLEANS = {"true": True, "false": False}
# A document with one scalar, and what a text there means without quotes and in them.
PLACES: dict[str, tuple[Meaning, Meaning]] = {
    "{retention: {completed_log_max_age: VALUE}}": (DURATION, DURATION),
    "{retention: {max_jobs: VALUE}}": (or_unlimited(decimal), or_unlimited(nothing)),
    "{retention: {max_total_log_bytes: VALUE}}": (or_unlimited(size), or_unlimited(by_flags(parse_size, int))),
    "{profiles: {a: {overrides: {stop: {leave_descendants: VALUE}}}}}": (
        lambda text: BOOLEANS.get(text, REFUSED),
        nothing,
    ),
    "{profiles: {a: {overrides: {name: VALUE}}}}": (label, label),
    "{wait_conditions: {c: {until: VALUE, type: until}}}": (TIME, TIME),
}
TRICKY = (
    *(".5d", "5d", "1.5d", "1_000", "0x10", "0b1", "0o7", "07", "010", "yes", "no", "on", "y", "True", "TRUE", "true"),
    *("false", "1:30", "190:20:30", "1e3", "1.", ".5", "+4", "-0", "-1", "0", "00", "unlimited", "null", "~", "Null"),
    *("2026-11-29", "2026-11-29T15:19:20Z", "2026-11-29 15:19:20Z", "1970-01-01T00:00:00Z", "1969-12-31T00:00:00Z"),
    *("4KiB", "4k", "1KiB", "07KiB", "9223372036854775807", "9223372036854775808", ".inf", ".nan", "=", "<<", "1w2d"),
)
PLAIN = st.sampled_from(TRICKY) | st.text("0123456789._+-xXeobBKiMhmswdTZ:", min_size=1, max_size=8)
ANY = st.sampled_from(TRICKY) | st.text(max_size=8) | st.sampled_from(("\u2028", "a\u2028b", "\u0661", "1\u2028", " 1"))


def quoted(text: str) -> str:
    """Return a text in double quotes, as YAML escapes it: JSON has two escapes for one character beyond 16 bits."""
    safe = (char if char.isalnum() and char.isascii() else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(safe)}"'


def read(file: Path, document: str, scalar: str) -> object:
    """Return what the scalar, as it is written, means in a document."""
    file.write_text(document.replace("VALUE", scalar))
    try:
        found: Any = Reader().stated([File("explicit", str(file), ())], ())
    except InvalidConfigError:
        return REFUSED
    while isinstance(found, dict):
        found = next(iter(found[key] for key in found if key != "type"))
    return found


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("document", PLACES)
@given(text=PLAIN)
def test_without_quotes_a_scalar_is_what_it_looks_like_or_refused(tmp_path: Path, document: str, text: str) -> None:
    """Neither octal, nor hexadecimal, nor base 60, nor yes for true; a colon or a dash may be of YAML's own grammar."""
    assert read(tmp_path / "jobman.yml", document, text) in (REFUSED, PLACES[document][0](text))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("document", PLACES)
@given(text=ANY)
def test_in_quotes_a_text_means_what_it_means_to_the_flags(tmp_path: Path, document: str, text: str) -> None:
    assert read(tmp_path / "jobman.yml", document, quoted(text)) == PLACES[document][1](text)


@pytest.mark.parametrize("document", PLACES)
def test_the_tricky_ones_are_all_tried(tmp_path: Path, document: str) -> None:
    """The same for every one of them, which a few dozen random examples might miss."""
    wrong = []
    for text in TRICKY:
        plain, given = (read(tmp_path / "jobman.yml", document, scalar) for scalar in (text, quoted(text)))
        looks, means = (meaning(text) for meaning in PLACES[document])
        wrong += [] if plain in (REFUSED, looks) and given == means else [(text, plain, looks, given, means)]
    assert wrong == []


def test_what_is_plain_is_not_refused(tmp_path: Path) -> None:
    for document, text in zip(PLACES, ("1.5d", "10", "4KiB", "true", "a", "2027-01-01T00:00:00Z"), strict=True):
        assert read(tmp_path / "jobman.yml", document, text) == PLACES[document][0](text) != REFUSED
