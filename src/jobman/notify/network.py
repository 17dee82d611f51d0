"""Connections that go where they are allowed to, and end when their time is over (contract, L.3).

A name is resolved here, every address of it is looked at, and one of these very addresses is connected to: a second
answer of the resolver cannot lead elsewhere. A deadline holds for the whole conversation, however slowly it trickles.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import time

import httpcore

from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_MAX_ADDRESSES = 8


class RefusedAddressError(Exception):
    """A host is, or resolves to, an address that is not public."""


class TlsContext:
    """Made once, when first needed: loading the certificates takes 20 ms."""

    _made: ssl.SSLContext | None = None

    @classmethod
    def get(cls) -> ssl.SSLContext:
        """Return a context that verifies certificates and names, TLS 1.2 at least.

        The authorities are those of the system, or of ``SSL_CERT_FILE``; where the system has none, those of certifi.
        """
        if cls._made is None:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if not _has_authorities():
                import certifi  # comes with httpx

                context.load_verify_locations(certifi.where())
            cls._made = context
        return cls._made


def _has_authorities() -> bool:
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and os.listdir(paths.capath)))


def is_public(address: Address) -> bool:
    """Say whether an address is one of the open internet."""
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    # Not only those that is_private names: a translated address (64:ff9b::/96) may lead back inside, and what was the
    # private range of a site (fec0::/10) counts as global since it was given up.
    inside = getattr(address, "is_site_local", False)
    return bool(inner.is_global and not inner.is_multicast and not inner.is_reserved and not inside)


def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host as text.

    Raises:
        OSError: it has none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def require_public(host: str, addresses: Iterable[str]) -> None:
    """Refuse a host of which any address is not public.

    Raises:
        RefusedAddressError: names the host and the address.
    """
    for text in addresses:
        if not is_public(ipaddress.ip_address(text.partition("%")[0])):
            detail = f"{host} is at the private address {text}; allow_private_hosts: true would allow it"
            raise RefusedAddressError(detail)


class Backend(httpcore.NetworkBackend):
    """Makes the connections of one attempt.

    Args:
        deadline: on the monotonic clock, in seconds.
        allow_private: whether addresses that are not public may be connected to.
    """

    def __init__(self, deadline: float, *, allow_private: bool) -> None:
        self._deadline = deadline
        self._allow_private = allow_private
        self._plain = httpcore.SyncBackend()

    def connect_tcp(  # noqa: PLR0917  # the signature of the interface
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to one of the addresses of a host, after all of them have been looked at."""
        del timeout  # the deadline is nearer
        try:
            addresses = resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
        if not self._allow_private:
            require_public(host, addresses)
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses[:_MAX_ADDRESSES]:
            try:
                left = self._left()
                stream = self._plain.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
                continue
            return self._checked(host, TimedStream(stream, self._deadline))
        raise failure

    def sleep(self, seconds: float) -> None:
        """Wait, as between two tries to connect."""
        time.sleep(min(seconds, self._left()))

    def _checked(self, host: str, stream: TimedStream) -> TimedStream:
        peer = stream.get_extra_info("server_addr")
        if not self._allow_private and peer:
            try:
                require_public(host, [str(peer[0])])
            except RefusedAddressError:
                stream.close()
                raise
        return stream

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ConnectTimeout("the time for this attempt is over")
        return left


class TimedStream(httpcore.NetworkStream):
    """A connection on which no operation lasts beyond the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has arrived."""
        return self._stream.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send everything."""
        self._stream.write(buffer, self._left(timeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Return the encrypted connection."""
        secured = self._stream.start_tls(ssl_context, server_hostname, self._left(timeout))
        return TimedStream(secured, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the time for this attempt is over")
        return left if timeout is None else min(left, timeout)
