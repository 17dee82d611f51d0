"""Servers on loopback that notifications are sent to, and what a test sends to them."""

from __future__ import annotations

import contextlib
import http.server
import os
import ssl
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from jobman.notify.message import Message, payload
from jobman.notify.network import TlsContext
from jobman.notify.outgoing import Outgoing

EVENT_ID = "01a2293e-6e22-73c5-983f-fc23a7be4cb9"
JOB_ID = "01a2293e-6a45-77f2-ae80-0d84f1cf70ac"
OCCURRED_NS = 1_800_000_000_123_456_789
NONE: Mapping[str, str] = types.MappingProxyType({})
MESSAGE = Message(EVENT_ID, "job_failed", JOB_ID, OCCURRED_NS, {"job_name": "<näme>", "exit_code": 0})


def outgoing(secrets: Mapping[str, str] = NONE, *, timeout_s: float = 10.0, message: Message = MESSAGE) -> Outgoing:
    """Return one attempt at ``message``."""
    found = {name: value.encode() for name, value in secrets.items()}
    return Outgoing(message, payload(message), found, timeout_s, OCCURRED_NS, contextlib.nullcontext())


class Authority:
    """A certificate authority of the test, trusted by this process and by whom it starts."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._authority = trustme.CA()
        self.path = directory / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.path))
        monkeypatch.setenv("SSL_CERT_FILE", str(self.path))
        monkeypatch.setattr(TlsContext, "_made", None)

    def context(self, *names: str) -> ssl.SSLContext:
        """Return a server's context with a certificate for ``names``."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*names).configure_cert(context)
        return context


class Request(NamedTuple):
    """What a web server was sent."""

    path: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


def answer(status: int, body: bytes = b"", **headers: str) -> Answer:
    """Return an answer: ``Retry_After="1"`` is the header Retry-After."""

    def write(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return write


class WebServer:
    """Keeps what it is sent, and gives one answer after the other, the last one again and again."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer] = [answer(200)]
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that cuts us off is meant
        self._scheme = "http" if context is None else "https"
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address, by name."""
        return f"{self._scheme}://localhost:{self.port}/hook"

    @property
    def port(self) -> int:
        """Its port."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name is the interface
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append(Request(self.path, dict(self.headers), body))
                turn = outer.answers[0] if len(outer.answers) == 1 else outer.answers.pop(0)
                turn(self)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@contextlib.contextmanager
def web_server(context: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    """Serve HTTP, or HTTPS with a context."""
    server = WebServer(context)
    try:
        yield server
    finally:
        server.close()


def appender(path: Path) -> list[str]:
    """Return the words of a program that appends what it is told to a file, in one write, and a newline."""
    return ["/bin/sh", "-c", f'printf "%s\\n" "$(cat)" >> {os.fspath(path)}']
