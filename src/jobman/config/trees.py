"""Documents as trees of values with places: merged (K.1), turned into plain values, searched for a place."""

from __future__ import annotations

from jobman.config.scalars import UNREADABLE
from jobman.config.strict_yaml import Value
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "[key]"  # as pydantic says it
_TAG = "tag:yaml.org,2002:"
MAPPING = f"{_TAG}map"
_SEQUENCE = f"{_TAG}seq"
_INTEGER = f"{_TAG}int"
_TEXTS = (f"{_TAG}str", f"{_TAG}timestamp")
_WORDS = {(f"{_TAG}bool", "true"): True, (f"{_TAG}bool", "false"): False}
# More digits than any number that a configuration accepts; int() refuses thousands of them with an error of its own.
_MOST_DIGITS = 20


def integer(text: str, where: str) -> Value:
    """Return a number that did not come from a file."""
    return Value(_INTEGER, text, {}, (), where, plain=True)


def text_value(text: str, where: str) -> Value:
    """Return text that did not come from a file."""
    return Value(_TEXTS[0], text, {}, (), where, plain=False)


def mapping(members: dict[str, Value], where: str) -> Value:
    """Return a mapping that did not come from a file."""
    return Value(MAPPING, "", members, (), where, plain=False)


def merged(base: Value, over: Value) -> Value:
    """Return ``base`` with ``over`` laid on it: mappings merge key by key, everything else is replaced."""
    if base.tag != MAPPING or over.tag != MAPPING:
        return over
    members = dict(base.members)
    for key, value in over.members.items():
        members[key] = merged(members[key], value) if key in members else value
    return over._replace(members=members)


def plain(value: Value) -> object:
    """Return mappings, lists, text, integers, booleans and None; whatever else YAML knows is `UNREADABLE`."""
    if value.tag == MAPPING:
        return {key: plain(member) for key, member in value.members.items()}
    if value.tag == _SEQUENCE:
        return [plain(item) for item in value.items]
    return _scalar(value)


def _scalar(value: Value) -> object:
    if value.plain and value.tag == _TEXTS[0] and value.text.isascii() and value.text.isdigit():
        # 08 is text, because no octal number has that digit, and 07 is none: neither is what it looks like.
        return UNREADABLE
    if value.tag in _TEXTS:
        # A date is the text that was written: those who want a time read it themselves.
        return value.text
    if value.tag == _INTEGER and value.plain and _is_decimal(value.text):
        return int(value.text)
    if value.tag == f"{_TAG}null" and not value.members and not value.items:
        return None
    return _WORDS.get((value.tag, value.text), UNREADABLE)


def _is_decimal(text: str) -> bool:
    # 010 is eight to YAML and ten to everybody else.
    digits = text.removeprefix("-")
    plain_digits = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return plain_digits and (digits == "0" or not digits.startswith("0"))


def place(tree: Value, path: tuple[str | int, ...]) -> str:
    """Return where the value at ``path`` stands, or what encloses it if it does not stand anywhere.

    A path that ends with `KEY` is that of the key itself.
    """
    for part in path:
        if part == KEY:
            return tree.key or tree.where
        if isinstance(part, int):
            if part >= len(tree.items):
                break
            tree = tree.items[part]
        elif part in tree.members:
            tree = tree.members[part]
        else:
            break
    return tree.where


def leaves(tree: Value, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every scalar and list."""
    if tree.tag != MAPPING:
        yield path
    for key, member in tree.members.items():
        yield from leaves(member, (*path, key))
