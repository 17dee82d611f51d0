"""UUIDv7 identifiers (RFC 9562) and what may stand for one on the command line."""

from __future__ import annotations

ID_LENGTH = 36
MINIMUM_PREFIX = 8
_DASHES = frozenset((8, 13, 18, 23))
_HEX = frozenset("0123456789abcdef")
_NANOSECONDS_PER_MILLISECOND = 1_000_000
RANDOM_BYTES = 10


def new_id(wall_ns: int, random: bytes) -> str:
    """Return a UUIDv7: 48 bits of Unix milliseconds, then the 10 bytes of ``random`` with version and variant set.

    IDs of later milliseconds compare greater as text.
    """
    milliseconds = (wall_ns // _NANOSECONDS_PER_MILLISECOND) & 0xFFFF_FFFF_FFFF
    value = bytearray(milliseconds.to_bytes(6, "big") + random)
    value[6] = 0x70 | (value[6] & 0x0F)
    value[8] = 0x80 | (value[8] & 0x3F)
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_id(text: str) -> bool:
    """Say whether ``text`` is a canonical lower-case UUIDv7."""
    return len(text) == ID_LENGTH and _has_id_shape(text) and text[14] == "7" and text[19] in "89ab"


def is_id_prefix(text: str) -> bool:
    """Say whether ``text`` could be the beginning of an ID: 8 to 36 characters of the right shape (contract, B.3)."""
    return MINIMUM_PREFIX <= len(text) <= ID_LENGTH and _has_id_shape(text)


def _has_id_shape(text: str) -> bool:
    return all((char == "-") if place in _DASHES else (char in _HEX) for place, char in enumerate(text))
