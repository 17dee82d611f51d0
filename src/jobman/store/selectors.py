"""From what a person types to one job (contract, section B)."""

from __future__ import annotations

from jobman.errors import AmbiguousSelectorError, JobNotFoundError
from jobman.model.ids import is_id, is_id_prefix
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.store.connection import Store

_SHOWN = 3
_AFTER_HEX = "g"  # greater than every digit and dash of an ID


def resolve(store: Store, selector: str) -> str:
    """Return the ID of the one job that ``selector`` means: a full ID, then a prefix, then an exact name.

    Raises:
        AmbiguousSelectorError: several jobs; a prefix wins over a name that looks the same.
        JobNotFoundError: none.
    """
    if not _is_text(selector):
        raise JobNotFoundError(selector=selector)
    if is_id(selector) and _select(store, "id = ?", selector):
        return selector
    if is_id_prefix(selector):
        matches = _select(store, "id >= ? AND id < ?", selector, selector + _AFTER_HEX)
        if matches:
            return _only(selector, matches)
    matches = _select(store, "name = ? AND name <> ''", selector)
    if not matches:
        raise JobNotFoundError(selector=selector)
    return _only(selector, matches)


def _select(store: Store, condition: str, *bindings: str) -> list[str]:
    statement = f"SELECT id FROM jobs WHERE {condition} ORDER BY id LIMIT {_SHOWN + 1}"
    return [row[0] for row in store.execute(statement, bindings)]


def _only(selector: str, matches: list[str]) -> str:
    if len(matches) == 1:
        return matches[0]
    shown = ", ".join(matches[:_SHOWN]) + (", …" if len(matches) > _SHOWN else "")
    raise AmbiguousSelectorError(selector=selector, candidates=shown)


def _is_text(selector: str) -> bool:
    # Words of the command line carry surrogates for bytes that are not UTF-8; no ID or name has them.
    try:
        selector.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
