from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.errors import InvalidValueError
from jobman.model.scalars import (
    DAY,
    HOUR,
    INT64_MAX,
    INT64_MIN,
    MINUTE,
    SECOND,
    WEEK,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_integer,
    parse_size,
    parse_timestamp,
)

INT64 = st.integers(INT64_MIN, INT64_MAX)
LONGEST = "2562047h47m16.854775807s"

# --- Durations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("1us", 1_000),
        ("1\u00b5s", 1_000),
        ("1\u03bcs", 1_000),
        ("1ms", 1_000_000),
        ("90s", 90 * SECOND),
        ("1h30m", HOUR + 30 * MINUTE),
        ("+5m", 5 * MINUTE),
        ("1w2d3h", WEEK + 2 * DAY + 3 * HOUR),
        ("1.5d", 36 * HOUR),
        ("1W1D", WEEK + DAY),
        ("1.5h0.5m", 90 * MINUTE + 30 * SECOND),
        ("5.s", 5 * SECOND),
        ("3s3s", 6 * SECOND),
        ("0.1234567899s", 123_456_789),
        ("0000000000000000000000000000001s", SECOND),
        ("0.00000000000000000000000000001w", 0),
        # A third of a week and one nanosecond, by the twenty-seventh digit only.
        (f"0.{'3' * 26}4w", WEEK // 3),
        (f"0.{'3' * 26}w", WEEK // 3 - 1),
        (f"0.{'9' * 100_000}w", WEEK - 1),
        (LONGEST, INT64_MAX),
    ],
)
def test_duration_is_gos_plus_days_and_weeks(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


def test_d15_half_a_day_needs_no_leading_zero() -> None:
    assert parse_duration(".5d") == 12 * HOUR


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "+",
            "-",
            "-1s",
            "++1s",
            "5",
            "00",
            "s",
            ".s",
            ".",
            "1..5s",
            "1.5.s",
            "5x",
            "1H",
            "1M",
            "1S",
            "1MS",
            "1 s",
            " 1s",
        ),
        *("1s ", "1h-1m", "\u0663s", "1e3s", "0x1s", "1_0s", "s1", "1h5", "5\udc80", "inf", "unlimited"),
        "2562047h47m16.854775808s",
        "9223372036854775807h",
        "1" * 5_000 + "s",
        "1w" * 20_000,
    ],
)
def test_no_duration(text: str) -> None:
    with pytest.raises(InvalidValueError, match="expected a duration such as 90s, 1h30m or 2d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (10 * SECOND, "10s"),
        (MINUTE, "1m0s"),
        (720 * HOUR, "720h0m0s"),
        (275_000_000, "275ms"),
        (1_500_000_000, "1.5s"),
        (12_171_369, "12.171369ms"),
        (1_100, "1.1\u00b5s"),
        (999, "999ns"),
        (1_000, "1\u00b5s"),
        (1_000_000, "1ms"),
        (SECOND, "1s"),
        (HOUR, "1h0m0s"),
        (HOUR + 1, "1h0m0.000000001s"),
        (-1, "-1ns"),
        (-90 * SECOND, "-1m30s"),
        (INT64_MAX, LONGEST),
        (INT64_MIN, "-2562047h47m16.854775808s"),
    ],
)
def test_durations_print_as_in_go(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@given(st.integers(0, INT64_MAX))
def test_a_printed_duration_means_the_same(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


@given(st.integers(1, INT64_MAX))
def test_a_negative_duration_prints_with_a_sign_before(nanoseconds: int) -> None:
    assert format_duration(-nanoseconds) == "-" + format_duration(nanoseconds)


# --- Instants ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2026-11-29T15:19:20.10706609Z", 1_795_965_560_107_066_090),
        ("1970-01-01T01:30:00+01:30", 0),
        ("1969-12-31T16:00:00-08:00", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("2000-02-29T00:00:00Z", 951_782_400 * SECOND),
        ("2262-04-11T23:47:16.854775807Z", INT64_MAX),
        ("1677-09-21T00:12:43.145224192Z", INT64_MIN),
    ],
)
def test_instant_is_rfc_3339(text: str, nanoseconds: int) -> None:
    assert parse_timestamp(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Z",
            "now",
            "2026-11-29",
            "2026-11-29T15:19:20",
            "2026-11-29 15:19:20Z",
            "2026-11-29T15:19Z",
            "1795965560",
        ),
        *("2026-11-29t15:19:20Z", "2026-11-29T15:19:20z", "2026-11-29T15:19:20.Z", "2026-11-29T15:19:20.1234567890Z"),
        *("2026-11-29T15:19:20,5Z", "2026-11-29T15:19:20+0100", "2026-11-29T15:19:20+01", "2026-11-29T15:19:20ZZ"),
        *(
            "2026-11-29T15:19:20+24:00",
            "2026-11-29T15:19:20+01:60",
            "2026-11-29T15:19:20 01:00",
            "\u0662026-11-29T15:19:20Z",
        ),
        *("2026-00-29T15:19:20Z", "2026-13-29T15:19:20Z", "2026-11-00T15:19:20Z", "2026-11-31T15:19:20Z"),
        *("2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-02-30T00:00:00Z"),
        *("2026-11-29T24:00:00Z", "2026-11-29T15:60:00Z", "2026-11-29T15:19:60Z", "-026-11-29T15:19:20Z"),
        *(
            "9999-12-31T23:59:59Z",
            "0000-01-01T00:00:00Z",
            "2262-04-11T23:47:16.854775808Z",
            "1677-09-21T00:12:43.145224191Z",
        ),
    ],
)
def test_no_instant(text: str) -> None:
    with pytest.raises(InvalidValueError, match="expected an RFC 3339 time"):
        parse_timestamp(text)


@given(INT64)
def test_a_printed_instant_means_the_same(nanoseconds: int) -> None:
    assert parse_timestamp(format_timestamp(nanoseconds)) == nanoseconds


@given(INT64)
def test_instants_print_the_date_that_the_standard_library_knows(nanoseconds: int) -> None:
    seconds, part = divmod(nanoseconds, SECOND)
    text = format_timestamp(nanoseconds)
    # fromtimestamp() counts in floats; the whole seconds of 64-bit nanoseconds are exact in them.
    assert text[:19] == datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    assert text[19:] == (f".{part:09}".rstrip("0") + "Z" if part else "Z")


def test_every_day_that_64_bits_hold_follows_the_one_before() -> None:
    day = datetime(1677, 9, 22, tzinfo=UTC)
    last = datetime(2262, 4, 11, tzinfo=UTC)
    instant = (day - datetime(1970, 1, 1, tzinfo=UTC)).days * DAY
    while day <= last:
        text = f"{day.year}-{day.month:02}-{day.day:02}T00:00:00Z"
        assert (format_timestamp(instant), parse_timestamp(text)) == (text, instant)
        day, instant = day + timedelta(days=1), instant + DAY


@given(INT64, st.integers(-23 * 60 - 59, 23 * 60 + 59))
def test_an_offset_moves_the_clock_and_not_the_instant(nanoseconds: int, minutes: int) -> None:
    local = format_timestamp(nanoseconds + minutes * MINUTE).removesuffix("Z")
    hours, rest = divmod(abs(minutes), 60)
    zone = f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"
    assert parse_timestamp(local + zone) == nanoseconds


# --- Integers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("-1", -1),
        ("0x10", 16),
        ("0XfF", 255),
        ("-0x8", -8),
        ("0b1", 1),
        ("0o17", 15),
        ("017", 15),
        ("00", 0),
        ("1_000", 1_000),
        ("0x_1", 1),
        ("0_7", 7),
        ("0" * 5_000 + "7", 7),
        ("9223372036854775807", INT64_MAX),
        ("-9223372036854775808", INT64_MIN),
        ("0b" + "1" * 63, INT64_MAX),
    ],
)
def test_integer_is_gos_base_0(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "+", "--1", "x", "0x", "0b", "0o", "0b2", "0o8", "08", "0xg", "1.0", "1e3", " 1", "1 ", "\u0661"),
        *("_1", "1_", "1__0", "0_", "0x_", "0__7", "0x1_", "-_1", "unlimited", "\udcff"),
        *("9223372036854775808", "-9223372036854775809", "0x8000000000000000", "9" * 5_000, "0x" + "f" * 5_000),
    ],
)
def test_no_integer(text: str) -> None:
    with pytest.raises(InvalidValueError, match="expected an integer of 64 bits"):
        parse_integer(text)


@given(INT64, st.sampled_from(["{:d}", "{:#x}", "{:#b}", "{:#o}", "{:_d}", "{:#_x}"]))
def test_an_integer_may_be_spelled_in_any_base(value: int, form: str) -> None:
    assert parse_integer(form.format(value)) == value


# --- Sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("007", 7),
        ("5B", 5),
        ("4KiB", 4096),
        ("3MiB", 3 * 1024**2),
        ("1GiB", 1024**3),
        ("2TiB", 2 * 1024**4),
        ("1PiB", 1024**5),
        ("7EiB", 7 * 1024**6),
        ("9223372036854775807", INT64_MAX),
        ("0EiB", 0),
    ],
)
def test_size_is_bytes_or_has_a_binary_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "B", "KiB", "4K", "4KB", "4kib", "4 KiB", "1.5KiB", "-1", "+1", "0x10", "1_000", "8EiB", str(2**63), "9" * 99],
)
def test_no_size(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parse_size(text)


@pytest.mark.parametrize("parse", [parse_duration, parse_timestamp, parse_integer, parse_size])
@given(st.text())
def test_any_text_is_a_value_or_an_error_that_names_it(parse: Callable[..., int], text: str) -> None:
    try:
        assert isinstance(parse(text, what="--flag"), int)
    except InvalidValueError as error:
        assert str(error).startswith(f"--flag: invalid value {text!r}: expected ")  # noqa: PT017  # either is fine
