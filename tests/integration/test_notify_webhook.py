"""Web hooks over real connections: what is sent, what is refused, what is cut (contract, L.3)."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.model.notifiers import HttpTarget
from jobman.model.secrets import SecretVariable
from jobman.notify import network, webhook
from jobman.policy.delivery import FailureCode
from tests.receivers import EVENT_ID, OCCURRED_NS, Answer, Authority, WebServer, answer, outgoing, web_server

SECOND_NS = 1_000_000_000


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    return Authority(tmp_path, monkeypatch)


@pytest.fixture
def server(authority: Authority) -> Iterator[WebServer]:
    with web_server(authority.context("localhost")) as serving:
        yield serving


def target(server: WebServer, **changes: Any) -> HttpTarget:
    return HttpTarget(server.url, allow_private=True)._replace(**changes)


def test_a_message_is_posted_with_its_id_its_headers_and_a_signature_of_the_body(server: WebServer) -> None:
    chosen = target(
        server,
        headers=(("X-Team", "blue"), ("User-Agent", "mine")),
        secret_headers=(SecretVariable("Authorization", "env", "TOKEN"),),
        signing_secret=SecretVariable("signing_secret", "env", "KEY"),
    )

    result = webhook.send(chosen, outgoing({"Authorization": "Bearer xyzzy\n", "signing_secret": "key"}))

    assert (result.code, result.response_status_code, result.response_truncated) == (None, 200, False)
    [request] = server.requests
    said = {name.lower(): value for name, value in request.headers.items()}
    assert request.path == "/hook"
    assert request.body == outgoing().body
    assert said["content-type"] == "application/json"
    assert said["idempotency-key"] == said["x-jobman-event-id"] == EVENT_ID
    assert (said["x-team"], said["user-agent"], said["authorization"]) == ("blue", "mine", "Bearer xyzzy")
    digest = hmac.new(b"key", request.body, hashlib.sha256).hexdigest()
    assert said["x-jobman-signature"] == f"sha256={digest}"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (404, False), (408, True), (425, True), (429, True), (500, True), (503, True)],
)
def test_what_the_server_answers_decides_whether_it_is_asked_again(
    server: WebServer, status: int, *, retryable: bool
) -> None:
    server.answers = [answer(status, Retry_After="7")]

    result = webhook.send(target(server), outgoing())

    assert (result.code, result.retryable, result.response_status_code) == (FailureCode.REJECTED, retryable, status)
    assert result.retry_after_ns == 7 * SECOND_NS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Fri, 15 Jan 2027 08:00:30 GMT", 30),
        ("Fri, 15 Jan 2027 07:00:00 GMT", 0),
        ("soon", 0),
        ("-1", 0),
        ("9" * 50, 10**9),
    ],
)
def test_a_pause_that_is_asked_for_may_be_a_date(text: str, seconds: int) -> None:
    assert webhook._retry_after_ns(text, OCCURRED_NS // SECOND_NS * SECOND_NS) == seconds * SECOND_NS


def test_only_a_certificate_that_is_trusted_and_bears_the_name_is_accepted(
    server: WebServer, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_server(authority.context("elsewhere.example")) as other:
        result = webhook.send(target(other), outgoing())
        assert (result.code, result.retryable, other.requests) == (FailureCode.TRANSPORT, True, [])
        assert "certificate verify failed" in result.text.lower()
    (tmp_path / "another").mkdir()
    Authority(tmp_path / "another", monkeypatch)

    assert webhook.send(target(server), outgoing()).code == FailureCode.TRANSPORT
    assert server.requests == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "[::]"])
def test_a_private_address_is_refused_unless_it_is_allowed(server: WebServer, host: str) -> None:
    url = f"https://{host}:{server.port}/hook"

    result = webhook.send(target(server, url=url, allow_private=False), outgoing())

    assert (result.code, result.retryable) == (FailureCode.REJECTED, False)
    assert "is at the private address" in result.text
    assert server.requests == []


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([["8.8.8.8", "127.0.0.1"]], id="one of several addresses is private"),
        pytest.param([["10.0.0.1"]], id="a name of the inside"),
        pytest.param([["64:ff9b::7f00:1"], ["::ffff:127.0.0.1"]], id="an address in disguise"),
    ],
)
def test_a_name_that_resolves_to_a_private_address_is_refused(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]
) -> None:
    for addresses in answers:
        monkeypatch.setattr(network, "resolve", lambda *_, found=addresses: found)
        result = webhook.send(
            target(server, url=f"https://hooks.example:{server.port}/", allow_private=False), outgoing()
        )
        assert result.code == FailureCode.REJECTED
        assert "hooks.example is at the private address" in result.text
    assert server.requests == []


def test_only_addresses_of_the_open_internet_are_public() -> None:
    inside = "10.0.0.1 127.0.0.1 0.0.0.0 169.254.169.254 100.64.0.1 240.0.0.1 255.255.255.255 224.0.0.1 ::1 :: fe80::1"
    inside += (
        " fd00::1 fec0::1 ff02::1 ::ffff:10.0.0.1 ::7f00:1 64:ff9b::7f00:1 2002:7f00:1:: 2002:a9fe:a9fe:: 2001:0:1::"
    )
    outside = "8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 2002:808:808::"

    assert [text for text in inside.split() if network.is_public(ipaddress.ip_address(text))] == []
    assert [text for text in outside.split() if not network.is_public(ipaddress.ip_address(text))] == []


def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resolver that answers differently the second time leads nowhere; and the peer is looked at again."""
    asked: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(network, "resolve", resolve)
    assert webhook.send(target(server), outgoing()).code is None
    assert asked == ["localhost"]
    # As if the first look had been deceived: what is connected to is what counts.
    real, looks = network.require_public, iter([False])
    monkeypatch.setattr(network, "require_public", lambda *found: real(*found) if next(looks, True) else None)

    result = webhook.send(target(server, allow_private=False), outgoing())
    assert result.code == FailureCode.REJECTED
    assert len(server.requests) == 1


def test_a_redirect_is_followed_only_if_that_is_allowed_and_to_the_same_host(server: WebServer) -> None:
    server.answers = [answer(307, Location="/there"), answer(200)]
    assert webhook.send(target(server), outgoing()).code == FailureCode.REJECTED
    assert webhook.send(target(server, follow_redirects=True), outgoing()).code is None
    assert len(server.requests) == 2

    server.answers = [answer(307, Location="/there"), answer(200)]
    assert webhook.send(target(server, follow_redirects=True), outgoing()).code is None
    assert server.requests[-1].path == "/there"
    assert server.requests[-1].body == outgoing().body

    for location in (
        "https://169.254.169.254/latest",
        f"http://localhost:{server.port}/",
        "https://127.0.0.1/",
        "https://localhost/",
    ):
        server.answers = [answer(302, Location=location)]
        result = webhook.send(target(server, follow_redirects=True), outgoing())
        assert (result.code, result.retryable) == (FailureCode.REJECTED, False)
        assert "redirects to another host" in result.text
    server.answers = [answer(308, Location="/again")]
    assert "more than 10 redirects" in webhook.send(target(server, follow_redirects=True), outgoing()).text


def gigabyte(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(1 << 30))
    handler.end_headers()
    block = bytes(65_536)
    for _ in range(1 << 14):
        handler.wfile.write(block)


def test_an_answer_of_a_gigabyte_is_cut(server: WebServer) -> None:
    server.answers = [gigabyte]
    started = time.monotonic()

    result = webhook.send(target(server), outgoing())

    assert (result.code, result.response_truncated) == (None, True)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "], ids=["says nothing", "trickles headers"])
def test_a_server_that_takes_its_time_is_left_when_the_time_is_over(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()
        thread = threading.Thread(target=_trickle, args=(listener, said, stop), daemon=True)
        thread.start()
        chosen = HttpTarget(f"http://127.0.0.1:{listener.getsockname()[1]}/", allow_http=True, allow_private=True)
        started = time.monotonic()

        result = webhook.send(chosen, outgoing(timeout_s=0.3))

        assert time.monotonic() - started < 3
        assert (result.code, result.retryable) == (FailureCode.TIMEOUT, True)
        stop.set()
        thread.join()


def _trickle(listener: socket.socket, said: bytes, stop: threading.Event) -> None:
    connection, _ = listener.accept()
    with connection:
        while not stop.wait(0.02):
            try:
                connection.sendall(said[:1] and (said or b"x"))
                said = said[-1:]
            except OSError:
                return


def broken(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"not HTTP at all\r\n\r\n")


def silent(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


@pytest.mark.parametrize("turn", [broken, silent])
def test_a_server_that_does_not_answer_in_http_may_be_tried_again(server: WebServer, turn: Answer) -> None:
    server.answers = [turn]

    result = webhook.send(target(server), outgoing())

    assert (result.code, result.retryable) == (FailureCode.TRANSPORT, True)


def test_a_host_that_cannot_be_reached_or_has_no_address_may_be_tried_again(authority: Authority) -> None:
    del authority
    for url in ("https://127.0.0.1:1/", "https://no-such-host.invalid/secret-path"):
        result = webhook.send(HttpTarget(url, allow_private=True), outgoing())
        assert (result.code, result.retryable) == (FailureCode.TRANSPORT, True)
        assert "secret-path" not in result.text


@pytest.mark.parametrize("secret", ["xy\r\nX-More: zzy", "zzy\0"])
def test_a_secret_that_no_header_can_hold_is_refused_and_never_quoted(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    chosen = target(server, secret_headers=(SecretVariable("Authorization", "env", "TOKEN"),))
    first = webhook.send(chosen, outgoing({"Authorization": secret}))
    # As if our own check knew less than the library.
    monkeypatch.setattr(webhook, "_holds_what_none_can", lambda _: False)
    second = webhook.send(chosen, outgoing({"Authorization": secret}))

    for result in (first, second):
        assert (result.code, result.retryable) == (FailureCode.INVALID, False)
        assert "zzy" not in result.text
    assert server.requests == []
