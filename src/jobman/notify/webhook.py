"""Telling a web hook: one POST, whose status is the answer (contract, L.3)."""

from __future__ import annotations

import email.utils
import hashlib
import hmac
import time

import httpcore
import httpx

from jobman.model.notifiers import RESPONSE_LIMIT
from jobman.notify.network import Backend, RefusedAddressError, TlsContext
from jobman.policy.delivery import FailureCode, Result
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobman.model.notifiers import HttpTarget
    from jobman.notify.outgoing import Outgoing

    Headers = list[tuple[bytes, bytes]]

SIGNATURE_HEADER = "X-Jobman-Signature"
_USER_AGENT = "jobman-notifier/1"
_MAX_REDIRECTS = 10
# Those after which the same request is repeated elsewhere; 303 means that the answer lies elsewhere, not the target.
_REDIRECTS = frozenset((301, 302, 307, 308))
_RETRYABLE = frozenset((408, 425, 429))
_CORE_ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)
_SECOND_NS = 1_000_000_000
_LONGEST_WAIT_S = 10**9


def send(target: HttpTarget, outgoing: Outgoing) -> Result:
    """Post the message and read the answer, up to its limit."""
    timeout_s = outgoing.timeout_s
    backend = Backend(time.monotonic() + timeout_s, allow_private=target.allow_private)
    try:
        headers = _headers(target, outgoing)
        with (
            httpcore.ConnectionPool(ssl_context=TlsContext.get(), network_backend=backend) as pool,
            httpx.Client(transport=_Transport(pool), trust_env=False, timeout=timeout_s) as client,
        ):
            return _post(client, target, outgoing, headers)
    except RefusedAddressError as error:
        return Result(FailureCode.REJECTED, str(error))
    except (httpx.HTTPError, *_CORE_ERRORS) as error:
        return _failed(error, target, timeout_s)
    except (httpx.InvalidURL, ValueError) as error:
        return Result(FailureCode.INVALID, f"the request cannot be made: {type(error).__name__}")


def _failed(error: Exception, target: HttpTarget, timeout_s: float) -> Result:
    if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException):
        return Result(FailureCode.TIMEOUT, f"no answer within {timeout_s:g} s", retryable=True)
    if isinstance(error, httpx.LocalProtocolError | httpcore.LocalProtocolError):
        # Its text would quote the header that cannot be sent, which may be a secret.
        return Result(FailureCode.INVALID, "the request cannot be made: a header holds what none can")
    if isinstance(error, httpx.RemoteProtocolError | httpcore.RemoteProtocolError):
        return Result(FailureCode.TRANSPORT, f"{_host(target.url)} does not answer in HTTP", retryable=True)
    return Result(FailureCode.TRANSPORT, f"{_host(target.url)}: {error}", retryable=True)


def _headers(target: HttpTarget, outgoing: Outgoing) -> Headers:
    event_id, secrets = outgoing.message.id.encode(), outgoing.secrets
    headers = [
        (b"Content-Type", b"application/json"),
        (b"User-Agent", _USER_AGENT.encode()),
        (b"Accept-Encoding", b"identity"),
        (b"Idempotency-Key", event_id),
        (b"X-Jobman-Event-Id", event_id),
    ]
    configured = [(name, value.encode("utf-8", "surrogateescape")) for name, value in target.headers]
    # A file of a secret often ends with a newline, which no header can hold.
    configured += [(secret.name, secrets[secret.name].strip()) for secret in target.secret_headers]
    replaced = {name.lower().encode() for name, _ in configured}
    headers = [header for header in headers if header[0].lower() not in replaced]
    headers += [(name.encode("ascii"), value) for name, value in configured]
    if target.signing_secret is not None:
        digest = hmac.new(secrets[target.signing_secret.name], outgoing.body, hashlib.sha256).hexdigest()
        headers.append(((target.signature_header or SIGNATURE_HEADER).encode("ascii"), f"sha256={digest}".encode()))
    if any(_holds_what_none_can(value) for _, value in headers):
        raise ValueError("a header holds a control character")
    return headers


def _holds_what_none_can(value: bytes) -> bool:
    return any((byte < 0x20 and byte != 0x09) or byte == 0x7F for byte in value)


def _post(client: httpx.Client, target: HttpTarget, outgoing: Outgoing, headers: Headers) -> Result:
    url = httpx.URL(target.url)
    for _ in range(_MAX_REDIRECTS + 1):
        with client.stream("POST", url, content=outgoing.body, headers=headers) as response:
            truncated = _drain(response)
            location = response.headers.get("Location")
            if not (target.follow_redirects and response.status_code in _REDIRECTS and location):
                return _judge(response, truncated=truncated, wall_ns=outgoing.wall_ns)
            elsewhere = url.join(location)
            # Another port is another server, which the headers' secrets are none of the business of.
            if (elsewhere.scheme, elsewhere.netloc) != (url.scheme, url.netloc):
                text = f"it redirects to another host, {elsewhere.netloc.decode() or location[:100]}"
                return _rejected(response, text, truncated=truncated)
            url = elsewhere
    return Result(FailureCode.REJECTED, f"more than {_MAX_REDIRECTS} redirects")


def _drain(response: httpx.Response) -> bool:
    """Read the answer as it comes over the wire, never unpacked; say whether there was more than the limit."""
    size = 0
    for block in response.iter_raw():
        size += len(block)
        if size > RESPONSE_LIMIT:
            return True
    return False


def _judge(response: httpx.Response, *, truncated: bool, wall_ns: int) -> Result:
    status = response.status_code
    if 200 <= status < 300:
        return Result(response_status_code=status, response_truncated=truncated)
    if 300 <= status < 400:
        return _rejected(response, "it redirects, which is not allowed", truncated=truncated)
    retryable = status in _RETRYABLE or status >= 500
    result = _rejected(response, "", truncated=truncated)._replace(retryable=retryable)
    return result._replace(retry_after_ns=_retry_after_ns(response.headers.get("Retry-After", ""), wall_ns))


def _rejected(response: httpx.Response, detail: str, *, truncated: bool) -> Result:
    status = response.status_code
    text = f"the server answered {status}" + (f": {detail}" if detail else "")
    return Result(FailureCode.REJECTED, text, response_status_code=status, response_truncated=truncated)


def _retry_after_ns(text: str, wall_ns: int) -> int:
    """Return the pause that an answer asks for, in nanoseconds: a number of seconds, or a date."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(int(text[:12]), _LONGEST_WAIT_S) * _SECOND_NS
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return 0
    return max(0, int(moment.timestamp()) * _SECOND_NS - wall_ns)


def _host(url: str) -> str:
    # A path may be what is secret about an address.
    return url.partition("://")[2].partition("/")[0].partition("?")[0]


class _Transport(httpx.BaseTransport):
    """Hands requests to a pool whose connections are ours."""

    def __init__(self, pool: httpcore.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        raw = httpcore.Request(
            method=request.method,
            url=url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        response = self._pool.handle_request(raw)
        return httpx.Response(response.status, headers=response.headers, stream=_Answer(response))


class _Answer(httpx.SyncByteStream):
    """The body of an answer as it arrives."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        yield from self._response.iter_stream()

    def close(self) -> None:
        """Close the connection if the answer was not read to its end."""
        self._response.close()
