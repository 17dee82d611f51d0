"""What configuration says of concurrency, from every source (contract, K.1, K.4 and K.7; D9).

The sources, in ascending precedence: the system file, the user file, the file of ``--config``, the environment. Without
any of them this costs two ``stat`` calls; the YAML reader is loaded only for a file that exists.
"""

from __future__ import annotations

import os

from jobman.config.paths import config_files
from jobman.errors import InvalidConfigError
from jobman.policy.limits import StatedLimits
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.config.strict_yaml import Value

ENVIRONMENT = "JOBMAN_CONCURRENCY_MAX_ACTIVE_SLOTS"
_LARGEST = 2**32 - 1
_INTEGER = "tag:yaml.org,2002:int"
_MAPPING = "tag:yaml.org,2002:map"
_TEXT = "tag:yaml.org,2002:str"
_NAME_BYTES = 128


class Concurrency(NamedTuple):
    """The limits that are stated, and how many sources were read, the built-in defaults included."""

    limits: StatedLimits
    sources: int


def load_concurrency(explicit: str) -> Concurrency:
    """Read every source.

    Args:
        explicit: the path of ``--config``, "" if it was not given.

    Raises:
        ConfigFileError: a file cannot be read, or the explicit one does not exist.
        InvalidConfigError: a source breaks a rule; says where, and what is allowed.
    """
    limits = StatedLimits(states_store_wide=False, store_wide=None, pools={})
    sources = 1
    for _, path, required in config_files(explicit):
        if required or os.path.exists(path):
            limits = _overlaid(limits, _read(path))
            sources += 1
    if ENVIRONMENT in os.environ:
        text = os.environ[ENVIRONMENT]
        stated = StatedLimits(states_store_wide=True, store_wide=_slots(text, ENVIRONMENT), pools={})
        limits = _overlaid(limits, stated)
        sources += 1
    return Concurrency(limits, sources)


def _overlaid(base: StatedLimits, over: StatedLimits) -> StatedLimits:
    store_wide = over.store_wide if over.states_store_wide else base.store_wide
    stated = base.states_store_wide or over.states_store_wide
    return StatedLimits(stated, store_wide, {**base.pools, **over.pools})


def _read(path: str) -> StatedLimits:
    from jobman.config.strict_yaml import read  # 12 ms, only for those who have a file

    document = read(path)
    known = _members(document, ("schema_version", "concurrency"))
    version = known.get("schema_version")
    if version is not None and (version.tag, version.text, version.plain) != (_INTEGER, "1", True):
        raise InvalidConfigError(where=version.where, detail="schema_version: expected the integer 1")
    concurrency = known.get("concurrency")
    if concurrency is None:
        return StatedLimits(states_store_wide=False, store_wide=None, pools={})
    return _concurrency(concurrency)


def _concurrency(value: Value) -> StatedLimits:
    known = _members(value, ("max_active_slots", "pools"))
    stated = known.get("max_active_slots")
    store_wide = None if stated is None else _limit(stated, "max_active_slots")
    pools = known.get("pools")
    if pools is not None and pools.tag != _MAPPING:
        raise InvalidConfigError(where=pools.where, detail="pools: expected a mapping of names to slots")
    named = {} if pools is None else {_name(name, slots): _limit(slots, name) for name, slots in pools.members.items()}
    return StatedLimits(stated is not None, store_wide, named)


def _members(value: Value, known: tuple[str, ...]) -> dict[str, Value]:
    if value.tag != _MAPPING:
        raise InvalidConfigError(where=value.where, detail=f"expected a mapping with the keys {', '.join(known)}")
    for name, member in value.members.items():
        if name not in known:
            detail = f"unknown key {name!r}: expected {' or '.join(known)}"
            raise InvalidConfigError(where=member.where, detail=detail)
    return value.members


def _name(name: str, value: Value) -> str:
    allowed = name.isascii() and name[:1].isalnum() and all(char.isalnum() or char in "._-" for char in name)
    if not allowed or len(name) > _NAME_BYTES:
        detail = f"pool {name!r}: a name is letters, digits, dots, dashes and underscores, at most {_NAME_BYTES}"
        raise InvalidConfigError(where=value.where, detail=detail)
    return name


def _limit(value: Value, key: str) -> int | None:
    # 010 is eight to YAML and ten to everybody else.
    if value.tag == _INTEGER and value.plain and not value.text.startswith("0"):
        return _slots(value.text, f"{value.where}: {key}")
    if (value.tag, value.text) == (_TEXT, "unlimited"):
        return None
    raise InvalidConfigError(where=f"{value.where}: {key}", detail=_EXPECTED)


_EXPECTED = f"expected a number of slots from 1 to {_LARGEST}, or unlimited"


def _slots(text: str, where: str) -> int | None:
    if text == "unlimited":
        return None
    digits = text.lstrip("0")
    # So few digits that int() takes them, whatever was given: it refuses more than 4,300.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10 or int(digits) > _LARGEST:
        raise InvalidConfigError(where=where, detail=_EXPECTED)
    return int(digits)
