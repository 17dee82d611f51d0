"""Telling people: a letter, handed to a mail server over TLS (contract, L.3)."""

from __future__ import annotations

import base64
import email.utils
import io
import smtplib
import socket
import threading
import time

from jobman.model.notifiers import TlsMode
from jobman.notify.message import letter, message_id
from jobman.notify.network import TlsContext
from jobman.policy.delivery import FailureCode, Result
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobman.model.notifiers import SmtpTarget
    from jobman.notify.outgoing import Outgoing

_MAX_ANSWERS = 256 * 1024
_PERMANENT = 500
_LOGGED_IN = 235
_GO_ON = 334


def send(target: SmtpTarget, outgoing: Outgoing) -> Result:
    """Hand over the letter for all recipients, or for none."""
    sent_as, timeout_s = message_id(outgoing.message), outgoing.timeout_s
    text = letter(outgoing.message, target.sender, target.recipients, target.subject_prefix)
    watchdog = _Watchdog(timeout_s)
    try:
        with _connect(target, watchdog) as server:
            _log_in(server, target, outgoing.secrets)
            _hand_over(server, target, text)
        return Result(message_id=sent_as)
    except smtplib.SMTPNotSupportedError as error:
        return Result(FailureCode.REJECTED, str(error), message_id=sent_as)
    except (smtplib.SMTPException, OSError) as error:
        # First: what had arrived when the connection was ended may look like an answer.
        if watchdog.is_over() or isinstance(error, TimeoutError):
            late = f"the mail server did not take the letter within {timeout_s:g} s"
            return Result(FailureCode.TIMEOUT, late, retryable=True, message_id=sent_as)
        if isinstance(error, smtplib.SMTPResponseException):
            return _refused(error.smtp_code, error.smtp_error, sent_as)
        return Result(FailureCode.TRANSPORT, _described(target, error), retryable=True, message_id=sent_as)
    finally:
        watchdog.cancel()


def _connect(target: SmtpTarget, watchdog: _Watchdog) -> smtplib.SMTP:
    host, _, port = target.address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    context, name = TlsContext.get(), target.server_name or host
    connection = watchdog.watch(socket.create_connection((host, int(port)), watchdog.left()))
    if target.mode == TlsMode.IMPLICIT:
        connection = watchdog.watch(context.wrap_socket(connection, server_hostname=name))
    server = _Server(connection, name)
    try:
        _require(server.getreply(), accepted=(220,))
        server.ehlo_or_helo_if_needed()
        if target.mode == TlsMode.STARTTLS:
            server.starttls(context=context)
            if server.sock is not None:
                watchdog.watch(server.sock)
            server.ehlo_or_helo_if_needed()
    except BaseException:
        server.close()
        raise
    return server


def _log_in(server: smtplib.SMTP, target: SmtpTarget, secrets: Mapping[str, bytes]) -> None:
    if target.password is None:
        return
    # A file of a password often ends with a newline, which is not part of it.
    user, password = target.username.encode(), secrets[target.password.name].rstrip(b"\r\n")
    offered = server.esmtp_features.get("auth", "").upper().split()
    # Not smtplib's own login: it knows ASCII only, and tries one mechanism after the other with a wrong password.
    if "PLAIN" in offered:
        answer = server.docmd("AUTH", f"PLAIN {_base64(b'', user, password)}")
    elif "LOGIN" in offered:
        answer = server.docmd("AUTH", "LOGIN")
        for word in (user, password):
            answer = server.docmd(_base64(word)) if answer[0] == _GO_ON else answer
    else:
        raise smtplib.SMTPNotSupportedError("the mail server offers neither PLAIN nor LOGIN")
    # Its own words might quote what it was given.
    _require((answer[0], b"the login was refused"), accepted=(_LOGGED_IN,))


def _base64(*parts: bytes) -> str:
    return base64.b64encode(b"\0".join(parts)).decode("ascii")


def _hand_over(server: smtplib.SMTP, target: SmtpTarget, text: bytes) -> None:
    _require(server.mail(_bare(target.sender)))
    for recipient in target.recipients:
        # One that is refused must not leave the others with a letter that is sent again.
        _require(server.rcpt(_bare(recipient)), accepted=(250, 251))
    _require(server.data(text))


def _require(answer: tuple[int, bytes], accepted: tuple[int, ...] = (250,)) -> None:
    if answer[0] not in accepted:
        raise smtplib.SMTPResponseException(*answer)


def _bare(address: str) -> str:
    return email.utils.parseaddr(address)[1] or address


def _refused(code: int, answer: bytes | str, sent_as: str) -> Result:
    said = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    permanent = code >= _PERMANENT
    text = f"the mail server answered {code}: {' '.join(said.split())[:200]}"
    return Result(FailureCode.REJECTED, text, not permanent, response_status_code=code, message_id=sent_as)


def _described(target: SmtpTarget, error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{target.address}: {error.strerror.lower()}"
    return f"{target.address}: {error}"


class _Server(smtplib.SMTP):
    """A conversation over a connection that is there already; what the server says is bounded as a whole."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        super().__init__(local_hostname="localhost")
        self.sock = connection
        self._host = name  # what starttls verifies the certificate against

    def getreply(self) -> tuple[int, bytes]:
        """Return the next answer."""
        if self.file is None and self.sock is not None:
            self.file = _Bounded(self.sock.makefile("rb"))
        return super().getreply()


class _Bounded(io.BufferedReader):
    """Reads lines until there have been too many."""

    def __init__(self, file: io.BufferedReader) -> None:
        super().__init__(file.detach())
        self._left = _MAX_ANSWERS

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line.

        Raises:
            OSError: the server says too much.
        """
        line = super().readline(size)
        self._left -= len(line)
        if self._left < 0:
            raise OSError("the server says too much")
        return line


class _Watchdog:
    """Ends the connection when the time is over, however slowly the server trickles."""

    def __init__(self, timeout_s: float) -> None:
        self._deadline = time.monotonic() + timeout_s
        self._connection: socket.socket | None = None
        self._timer = threading.Timer(timeout_s, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connection: socket.socket) -> socket.socket:
        """Take charge of a connection; return it."""
        self._connection = connection
        connection.settimeout(self.left())
        return connection

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: none.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def is_over(self) -> bool:
        """Say whether no time is left."""
        return time.monotonic() >= self._deadline

    def cancel(self) -> None:
        """Stop watching."""
        self._timer.cancel()

    def _fire(self) -> None:
        if self._connection is not None:
            try:
                self._connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
