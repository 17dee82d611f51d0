"""What a client and a supervisor say to each other about live input, both ends (contract, I.6).

One request per connection. A *request* is one byte that says what it asks for, the ID of the run that is meant, the
length of the payload as a big-endian u32, and the payload. The *reply* is a status byte and a big-endian u64: how many
bytes were delivered. Nothing of it is ever stored or logged.
"""

from __future__ import annotations

from jobman.model.ids import is_id
from jobman.values import NamedTuple

DATA = 1
END = 2
"""What a request asks for: deliver the payload, or let the target see the end of its input."""

OK = 0
NO_TARGET = 1
CLOSED = 2
MALFORMED = 3
OTHER_RUN = 4
"""What a reply says; a count below what was sent is part of an `OK` and means that the target did not take the rest."""

PIECE_BYTES = 64 * 1024
MAX_PAYLOAD = 1024 * 1024
PATIENCE_NS = 30_000_000_000
REPLY_BYTES = 9
_ID_BYTES = 36
_HEADER_BYTES = 1 + _ID_BYTES + 4


class Request(NamedTuple):
    """What is asked of a run; only `DATA` has a payload."""

    operation: int
    run_id: str
    payload: bytes = b""


class Reply(NamedTuple):
    """How a request ended, and how many bytes of it the target's pipe took."""

    status: int
    delivered: int = 0


class Arrival:
    """A request of which a part has arrived.

    Attributes:
        wanted: how many bytes to read next, never one beyond the end of the request; 0 when it is complete.
    """

    def __init__(self) -> None:
        self.wanted = _HEADER_BYTES
        self._header = b""
        self._payload = bytearray()

    def take(self, block: bytes) -> Request | Reply | None:
        """Take at most ``wanted`` bytes; return the request once it is whole, or what to answer if it is none."""
        self.wanted -= len(block)
        if len(self._header) == _HEADER_BYTES:
            self._payload += block
        else:
            self._header += block
            if self.wanted == 0 and not self._begin_payload():
                return Reply(MALFORMED)
        return self._request() if self.wanted == 0 else None

    def _begin_payload(self) -> bool:
        length = int.from_bytes(self._header[-4:], "big")
        if self._header[0] not in (DATA, END) or length > MAX_PAYLOAD or not is_id(self._run_id()):
            return False
        self.wanted = length
        return self._header[0] == DATA or length == 0

    def _request(self) -> Request:
        return Request(self._header[0], self._run_id(), bytes(self._payload))

    def _run_id(self) -> str:
        return self._header[1 : 1 + _ID_BYTES].decode("ascii", "replace")


def encode(request: Request) -> bytes:
    """Return the bytes of a request, whose payload must not be longer than `MAX_PAYLOAD`."""
    length = len(request.payload).to_bytes(4, "big")
    return b"".join((bytes((request.operation,)), request.run_id.encode("ascii"), length, request.payload))


def encode_reply(reply: Reply) -> bytes:
    """Return the `REPLY_BYTES` bytes of a reply."""
    return bytes((reply.status,)) + reply.delivered.to_bytes(8, "big")


def decode_reply(data: bytes) -> Reply:
    """Return the reply that `encode_reply` wrote; ``data`` must be whole."""
    return Reply(data[0], int.from_bytes(data[1:REPLY_BYTES], "big"))
