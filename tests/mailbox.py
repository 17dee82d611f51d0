"""A mail server on loopback that keeps the letters it is given."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Iterator
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope

from jobman.model.notifiers import TlsMode


class Mailbox:
    """Takes letters, except for those who are not known."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.data_answer = "250 taken"

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Envelope, address: str, _options: Any) -> str:  # noqa: N802  # the name is the interface
        if address.startswith("nobody"):
            return "550 no such user"
        if address.startswith("later"):
            return "451 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802  # as above
        if self.data_answer.startswith("250"):
            self.envelopes.append(envelope)
        return self.data_answer

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password in {b"pass", "päss".encode()}, handled=False)


class MailServer(Controller):
    """aiosmtpd on loopback, by STARTTLS or encrypted from the first byte."""

    def __init__(self, mailbox: Mailbox, mode: TlsMode, context: ssl.SSLContext, *, with_login: bool) -> None:
        options: dict[str, Any] = {"hostname": "127.0.0.1", "port": 0}
        self._tls = context if mode == TlsMode.STARTTLS else None
        self._login: dict[str, Any] = (
            {"authenticator": mailbox.authenticate, "auth_required": True} if with_login else {}
        )
        if mode == TlsMode.IMPLICIT:
            options["ssl_context"] = context
            self._login |= {"auth_require_tls": False} if with_login else {}
        super().__init__(mailbox, **options)

    def factory(self) -> SMTP:
        starttls: dict[str, Any] = {"tls_context": self._tls, "require_starttls": True} if self._tls else {}
        return SMTP(self.handler, **starttls, **self._login)

    def _trigger_server(self) -> None:
        # The port was left to the system, so what the controller would connect to is known only now.
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # aiosmtpd annotates a part of itself only

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"


@contextlib.contextmanager
def mail_server(
    context: ssl.SSLContext, mode: TlsMode = TlsMode.STARTTLS, *, with_login: bool = False
) -> Iterator[tuple[Mailbox, MailServer]]:
    """Take letters."""
    mailbox = Mailbox()
    server = MailServer(mailbox, mode, context, with_login=with_login)
    server.start()
    try:
        yield mailbox, server
    finally:
        server.stop()
