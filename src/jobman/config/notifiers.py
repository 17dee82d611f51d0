"""What a notifier must say beside the types of its values (contract, E.3 and K.4; D14)."""

from __future__ import annotations

import ipaddress
import posixpath
from urllib.parse import urlsplit

from jobman.config.rules import check_environment, exactly_one, refuse, require_secret
from jobman.model.notifiers import MAX_PORT, MESSAGE_LIMIT
from jobman.model.scalars import parse_duration
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jobman.config.schema import Path

    Block = Mapping[str, Any]

_PARTS = {"command": "command", "http": "http", "smtp": "smtp"}
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_SECRET_HEADERS = frozenset(("authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"))
_RESERVED_HEADERS = frozenset(("content-length", "host", "idempotency-key", "x-jobman-event-id"))


def check_notifier(stated: Block, path: Path, notifier: Block) -> None:
    """Hold one notifier to its rules.

    Raises:
        Finding: one of them is broken.
    """
    part = exactly_one(path, notifier, _PARTS)
    retry = notifier.get("retry", {})
    if parse_duration(retry.get("max_delay", "1m")) < parse_duration(retry.get("delay", "1s")):
        refuse((*path, "retry", "max_delay"), "expected at least the delay")
    _CHECKS[notifier["type"]](stated, (*path, notifier["type"]), part)


def _check_command(stated: Block, path: Path, command: Block) -> None:
    if "command" not in command:
        refuse(path, "command must be given")
    executable = command["command"][0]
    if not executable.startswith("/") or posixpath.normpath(executable) != executable:
        refuse((*path, "command", 0), "expected the absolute path of a program, in its shortest form")
    if command.get("output_limit", 0) > MESSAGE_LIMIT:
        refuse((*path, "output_limit"), f"expected at most {MESSAGE_LIMIT} bytes")
    check_environment(stated, (*path, "environment"), command.get("environment", {}))


def _check_http(stated: Block, path: Path, http: Block) -> None:
    if "url" not in http:
        refuse(path, "url must be given")
    problem = _url_problem(http)
    if problem:
        refuse((*path, "url"), problem)
    seen: set[str] = set()
    for part in ("headers", "secret_headers"):
        for name, value in http.get(part, {}).items():
            problem = _header_problem(part, name.lower(), value) or ("is given twice" if name.lower() in seen else "")
            seen.add(name.lower())
            if problem:
                refuse((*path, part, name), problem)
    for name, secret in http.get("secret_headers", {}).items():
        require_secret(stated, (*path, "secret_headers", name), secret)
    if "signing_secret" in http:
        require_secret(stated, (*path, "signing_secret"), http["signing_secret"])


def _header_problem(part: str, name: str, value: str) -> str:
    if not _TOKEN.issuperset(name):
        return "expected the name of a header: letters, digits and !#$%&'*+-.^_`|~"
    if name in _RESERVED_HEADERS:
        return "is set by Jobman and cannot be configured"
    if part == "headers" and name in _SECRET_HEADERS:
        return "expected it under secret_headers"
    return "expected a value of one line" if "\r" in value or "\n" in value else ""


def _url_problem(http: Block) -> str:
    url = http["url"]
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host, _port = parts.hostname, parts.port
    except ValueError:
        return "expected a URL such as https://example.org/path"
    schemes = ("https", "http") if http.get("allow_http", False) else ("https",)
    rules = (
        (not any(char <= " " or char == "\x7f" for char in url), "expected a URL without blanks"),
        (parts.scheme in schemes, "expected https, or http with allow_http: true"),
        (bool(host), "expected a URL with a host"),
        ("@" not in parts.netloc and "#" not in url, "expected a URL without a user, a password or a fragment"),
        (
            http.get("allow_private_hosts", False) or not _is_private(host or ""),
            "expected a public host, or allow_private_hosts: true",
        ),
    )
    return next((expected for kept, expected in rules if not kept), "")


def _is_private(host: str) -> bool:
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return any((mapped.is_loopback, mapped.is_private, mapped.is_link_local, mapped.is_unspecified))


def _check_smtp(stated: Block, path: Path, smtp: Block) -> None:
    for key in ("address", "tls", "from", "to"):
        if key not in smtp:
            refuse(path, f"{key} must be given")
    host, _, port = smtp["address"].rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or len(port) > 5 or not 1 <= int(port) <= MAX_PORT:
        refuse((*path, "address"), "expected HOST:PORT with a port from 1 to 65535")
    for key, addresses in (("from", [smtp["from"]]), ("to", smtp["to"])):
        if not all(map(_is_address, addresses)):
            refuse((*path, key), "expected an address such as name@example.org")
    if ("username" in smtp) != ("password_secret" in smtp):
        refuse(path, "username and password_secret must be given together")
    if "password_secret" in smtp:
        require_secret(stated, (*path, "password_secret"), smtp["password_secret"])
    if any(char in smtp.get("subject_prefix", "") for char in "\r\n"):
        refuse((*path, "subject_prefix"), "expected one line")


def _is_address(text: str) -> bool:
    from email.utils import parseaddr

    if any(char < " " or char == "\x7f" for char in text):
        return False
    name, at, host = parseaddr(text)[1].rpartition("@")
    return bool(name and at and host) and " " not in name + host


_CHECKS = {"command": _check_command, "http": _check_http, "smtp": _check_smtp}
