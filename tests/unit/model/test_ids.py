"""UUIDv7 identifiers and their prefixes (contract, B)."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.model.ids import ID_LENGTH, MINIMUM_PREFIX, RANDOM_BYTES, is_id, is_id_prefix, new_id
from tests.strategies import ids

EXAMPLE = "018f2b6c-7d1e-7abc-9def-0123456789ab"
RANDOM = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)
WALL_NS = st.integers(0, 2**63 - 1)


@settings(max_examples=60, deadline=None)
@given(WALL_NS, RANDOM)
def test_an_id_is_a_canonical_uuid_of_version_7_that_holds_its_millisecond(wall_ns: int, random: bytes) -> None:
    """B, RFC 9562."""
    text = new_id(wall_ns, random)
    parsed = uuid.UUID(text)
    assert (parsed.version, parsed.variant, str(parsed)) == (7, uuid.RFC_4122, text)
    assert parsed.int >> 80 == wall_ns // 1_000_000
    assert is_id(text)


@settings(max_examples=60, deadline=None)
@given(WALL_NS, RANDOM, RANDOM)
def test_random_bytes_fill_all_but_version_and_variant(wall_ns: int, first: bytes, second: bytes) -> None:
    """B: 74 random bits."""
    mask = (1 << 80) - 1 & ~(0xF << 76) & ~(0x3 << 62)
    differ = (int.from_bytes(first, "big") ^ int.from_bytes(second, "big")) & mask
    assert uuid.UUID(new_id(wall_ns, first)).int ^ uuid.UUID(new_id(wall_ns, second)).int == differ


@settings(max_examples=60, deadline=None)
@given(st.tuples(WALL_NS, WALL_NS), RANDOM, RANDOM)
def test_ids_sort_by_millisecond_as_text(times: tuple[int, int], first: bytes, second: bytes) -> None:
    """B: time ordered."""
    earlier, later = sorted(times)
    if earlier // 1_000_000 < later // 1_000_000:
        assert new_id(earlier, first) < new_id(later, second)


@settings(max_examples=60, deadline=None)
@given(ids(), st.integers(0, ID_LENGTH))
def test_the_first_eight_to_thirty_six_characters_of_an_id_are_a_prefix(text: str, length: int) -> None:
    """B.3."""
    assert is_id_prefix(text[:length]) == (length >= MINIMUM_PREFIX)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(EXAMPLE[:-1], id="too short"),
        pytest.param(EXAMPLE + "0", id="too long"),
        pytest.param(EXAMPLE.upper(), id="upper case"),
        pytest.param(EXAMPLE.replace("-", ""), id="no dashes"),
        pytest.param(EXAMPLE.replace("-7", "-4"), id="another version"),
        pytest.param(EXAMPLE.replace("-9", "-c"), id="another variant"),
        pytest.param(EXAMPLE.replace("a", "g"), id="no hexadecimal digit"),
        pytest.param(EXAMPLE.replace("0", "\u0660"), id="digits of another script"),
        pytest.param(EXAMPLE[:-1] + "\n", id="line feed"),
    ],
)
def test_what_is_no_canonical_id(text: str) -> None:
    """B.2."""
    assert is_id(EXAMPLE)
    assert not is_id(text)


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        pytest.param("018f2b6c", True, id="eight digits"),
        pytest.param("018f2b6", False, id="seven digits are a name"),
        pytest.param("018f2b6c-", True, id="a trailing dash"),
        pytest.param("018f2b6c7", False, id="a digit where a dash belongs"),
        pytest.param("018f-2b6c", False, id="a dash where a digit belongs"),
        pytest.param("018F2B6C", False, id="upper case never matches"),
        pytest.param("018f2b6c-7d1e-4", True, id="the version is not looked at"),
        pytest.param(EXAMPLE + "0", False, id="longer than an ID"),
    ],
)
def test_what_could_be_the_beginning_of_an_id(text: str, possible: bool) -> None:  # noqa: FBT001
    """B.3 and its consequences."""
    assert is_id_prefix(text) == possible
