"""Letters over real connections: TLS either way, authentication, several recipients, servers that refuse (L.3)."""

from __future__ import annotations

import base64
import contextlib
import email
import email.policy
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.model.notifiers import SmtpTarget, TlsMode
from jobman.model.secrets import SecretVariable
from jobman.notify import smtp
from jobman.notify.message import message_id
from jobman.policy.delivery import FailureCode
from tests.mailbox import Mailbox, MailServer, mail_server
from tests.receivers import MESSAGE, Authority, outgoing

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # it is TLS from the start
RECIPIENTS = ("ops@example.org", "Boss <boss@example.org>")
PASSWORD = SecretVariable("password_secret", "env", "PW")


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    return Authority(tmp_path, monkeypatch)


Serve = Callable[..., contextlib.AbstractContextManager[tuple[Mailbox, MailServer]]]


@pytest.fixture
def serve(authority: Authority) -> Serve:
    def serving(
        mode: TlsMode = TlsMode.STARTTLS, *, with_login: bool = False, name: str = "localhost"
    ) -> contextlib.AbstractContextManager[tuple[Mailbox, MailServer]]:
        return mail_server(authority.context(name), mode, with_login=with_login)

    return serving


def target(server: MailServer, mode: TlsMode = TlsMode.STARTTLS, **changes: Any) -> SmtpTarget:
    return SmtpTarget(server.address, "Jobman <jobs@example.org>", RECIPIENTS, mode)._replace(**changes)


@pytest.mark.parametrize("mode", list(TlsMode))
def test_a_letter_arrives_encrypted_for_every_recipient_with_a_login(serve: Serve, mode: TlsMode) -> None:
    with serve(mode, with_login=True) as (mailbox, server):
        chosen = target(server, mode, username="me", password=PASSWORD)

        result = smtp.send(chosen, outgoing({"password_secret": "pass\n"}))

        assert (result.code, result.message_id) == (None, message_id(MESSAGE))
    assert mailbox.logins == [(b"me", b"pass")]
    [envelope] = mailbox.envelopes
    assert envelope.mail_from == "jobs@example.org"
    assert envelope.rcpt_tos == ["ops@example.org", "boss@example.org"]
    assert isinstance(envelope.original_content, bytes)
    letter = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
    assert letter["To"] == ", ".join(RECIPIENTS)
    assert letter["Subject"] == "Jobman: failed: <näme> [01a2293e]"
    assert letter["Message-ID"] == result.message_id
    assert "Exit code:     0" in letter.get_content()
    assert base64.b64decode(envelope.original_content.partition(b"\r\n\r\n")[2]).decode() == letter.get_content()


def test_a_password_that_is_wrong_or_needs_more_than_ascii(serve: Serve) -> None:
    with serve(with_login=True) as (mailbox, server):
        chosen = target(server, username="me", password=PASSWORD)
        wrong = smtp.send(chosen, outgoing({"password_secret": "xyzzy"}))
        beyond = smtp.send(chosen, outgoing({"password_secret": "päss"}))
    assert (wrong.code, wrong.retryable) == (FailureCode.REJECTED, False)
    assert "535" in wrong.text
    assert "xyzzy" not in wrong.text
    assert beyond.code is None
    assert len(mailbox.envelopes) == 1


@pytest.mark.parametrize(("recipient", "retryable"), [("nobody@example.org", False), ("later@example.org", True)])
def test_one_recipient_that_is_refused_keeps_the_letter_from_all(
    serve: Serve, recipient: str, *, retryable: bool
) -> None:
    with serve() as (mailbox, server):
        result = smtp.send(target(server, recipients=(*RECIPIENTS, recipient)), outgoing())
    assert (result.code, result.retryable) == (FailureCode.REJECTED, retryable)
    assert mailbox.envelopes == []


@pytest.mark.parametrize(("said", "retryable"), [("554 spam", False), ("452 full", True)])
def test_what_the_server_says_to_the_letter_decides_whether_it_is_asked_again(
    serve: Serve, said: str, *, retryable: bool
) -> None:
    with serve() as (mailbox, server):
        mailbox.data_answer = said
        result = smtp.send(target(server), outgoing())
    assert (result.code, result.retryable, result.response_status_code) == (
        FailureCode.REJECTED,
        retryable,
        int(said[:3]),
    )
    assert said[4:] in result.text


@pytest.mark.parametrize("mode", list(TlsMode))
def test_only_a_certificate_that_bears_the_name_is_spoken_to(serve: Serve, mode: TlsMode) -> None:
    with serve(mode, name="elsewhere.example") as (mailbox, server):
        result = smtp.send(target(server, mode), outgoing())
        assert (result.code, result.retryable) == (FailureCode.TRANSPORT, True)
        assert "certificate verify failed" in result.text.lower()
        assert smtp.send(target(server, mode, server_name="elsewhere.example"), outgoing()).code is None
    assert len(mailbox.envelopes) == 1


@contextlib.contextmanager
def talker(talk: Callable[[socket.socket, threading.Event], None]) -> Iterator[str]:
    """Serve one connection with ``talk``."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                talk(connection, stop)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        thread.join()


def say_nothing(_connection: socket.socket, stop: threading.Event) -> None:
    stop.wait()


def trickle(connection: socket.socket, stop: threading.Event) -> None:
    while not stop.wait(0.02):
        connection.sendall(b"2")


def chatter(connection: socket.socket, stop: threading.Event) -> None:
    while not stop.is_set():
        connection.sendall(b"220-hello\r\n" * 1000)


def without_tls(connection: socket.socket, stop: threading.Event) -> None:
    connection.sendall(b"220 hello\r\n")
    connection.recv(1000)
    connection.sendall(b"250 HELP\r\n")
    stop.wait()


@pytest.mark.parametrize(
    ("talk", "code"),
    [
        (say_nothing, FailureCode.TIMEOUT),
        (trickle, FailureCode.TIMEOUT),
        (chatter, FailureCode.TRANSPORT),
        (without_tls, FailureCode.REJECTED),
    ],
)
def test_a_server_that_hangs_floods_or_speaks_no_tls_is_left(
    authority: Authority, talk: Callable[[socket.socket, threading.Event], None], code: FailureCode
) -> None:
    """Nothing is said in the clear, and no server is listened to for longer than its time."""
    del authority
    with talker(talk) as address:
        started = time.monotonic()
        chosen = SmtpTarget(address, "a@example.org", RECIPIENTS, TlsMode.STARTTLS, "me", PASSWORD)

        result = smtp.send(chosen, outgoing({"password_secret": "xyzzy"}, timeout_s=0.4))

        assert result.code == code, result
        assert time.monotonic() - started < 3
