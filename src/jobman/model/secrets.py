"""Variables that hold secrets: a specification says where a secret lies, never what it is (contract, E.1, K.6)."""

from __future__ import annotations

from jobman.model.strict import Reader
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from jobman.model.strict import Document

PROVIDERS = ("env", "file")


class SecretVariable(NamedTuple):
    """A variable and the place of its secret: ``env`` with the name of a variable, ``file`` with an absolute path."""

    name: str
    provider: str
    locator: str


def is_environment_name(name: str) -> bool:
    """Say whether ``name`` is ``[A-Za-z_][A-Za-z0-9_]*``."""
    return name.isascii() and name.isidentifier()


def secrets_problem(secrets: Iterable[SecretVariable], taken: Collection[str]) -> str | None:
    """Return what is wrong with variables of secrets beside those that are ``taken``, in words, or ``None``."""
    names = set(taken)
    for name, provider, locator in secrets:
        if not is_environment_name(name):
            return f"environment variable name {name!r} is not of the form [A-Za-z_][A-Za-z0-9_]*"
        if name in names:
            return f"environment variable {name} is to hold a secret, and is set, unset or given otherwise too"
        names.add(name)
        problem = place_problem(name, provider, locator)
        if problem is not None:
            return problem
    return None


def place_problem(name: str, provider: str, locator: str) -> str | None:
    """Return what is wrong with where a secret is said to lie, in words, or ``None``."""
    valid = is_environment_name(locator) if provider == "env" else locator.startswith("/") and "\0" not in locator
    return None if provider in PROVIDERS and valid else f"the secret of {name} is neither a variable nor a file"


def secrets_document(secrets: Iterable[SecretVariable]) -> Document:
    """Return the member ``secret_environment``."""
    return {name: {"provider": provider, "name": locator} for name, provider, locator in secrets}


def secrets_from(document: Document) -> tuple[SecretVariable, ...]:
    """Return what `secrets_document` made, in the order of the names."""
    found = []
    for name, value in sorted(document.items()):
        with Reader(value) as reader:
            found.append(SecretVariable(name, reader.take("provider", str), reader.take("name", str)))
    return tuple(found)
