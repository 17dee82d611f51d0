"""Secrets, looked up where they are needed and when they are needed; kept nowhere (contract, K.6)."""

from __future__ import annotations

import os
import stat

from jobman.errors import SecretUnavailableError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jobman.model.secrets import SecretVariable

MAX_FILE_BYTES = 65_536


def resolve_all(secrets: Iterable[SecretVariable], environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the variables with their values, all of them or none.

    Args:
        secrets: which variable is to hold which secret.
        environment: where ``env:`` looks.

    Raises:
        SecretUnavailableError: one of them cannot be had; says which and why, never what it is.
    """
    found = {}
    for secret in secrets:
        locator = os.fsencode(secret.locator)
        value = environment.get(locator) if secret.provider == "env" else _content(secret)
        if value is None:
            raise _unavailable(secret, "is not set")
        if b"\0" in value:
            raise _unavailable(secret, "holds a NUL byte, which no variable can")
        found[secret.name.encode("ascii")] = value
    return found


def _content(secret: SecretVariable) -> bytes:
    """Return what a file holds, verbatim."""
    try:
        named = os.lstat(secret.locator)
        if not stat.S_ISREG(named.st_mode):
            raise _unavailable(secret, "is not a regular file")
        if named.st_mode & 0o077:
            raise _unavailable(secret, "may be read by others: chmod 600 it")
        descriptor = os.open(secret.locator, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _unavailable(secret, f"cannot be read: {(error.strerror or str(error)).lower()}") from error
    try:
        opened = os.fstat(descriptor)
        if (named.st_dev, named.st_ino, named.st_mode) != (opened.st_dev, opened.st_ino, opened.st_mode):
            raise _unavailable(secret, "was replaced while it was opened")
        if opened.st_size > MAX_FILE_BYTES:
            raise _unavailable(secret, f"is larger than {MAX_FILE_BYTES} bytes")
        return _all(secret, descriptor)
    finally:
        os.close(descriptor)


def _all(secret: SecretVariable, descriptor: int) -> bytes:
    data = b""
    try:
        while block := os.read(descriptor, MAX_FILE_BYTES + 1 - len(data)):
            data += block
    except OSError as error:
        raise _unavailable(secret, f"cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_FILE_BYTES:
        raise _unavailable(secret, f"is larger than {MAX_FILE_BYTES} bytes")
    return data


def _unavailable(secret: SecretVariable, detail: str) -> SecretUnavailableError:
    what = "variable" if secret.provider == "env" else "file"
    return SecretUnavailableError(variable=secret.name, source=f"{what} {secret.locator}", detail=detail)
