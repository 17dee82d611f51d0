"""The hand-over between a client and the supervisor it has started, both ends (contract, section G).

The client writes one *offer* to the supervisor's standard input: a version, the job, a one-time credential, and the
state directory. It is shorter than a pipe's atomic size, so a client that is killed has sent all of it or nothing.
The supervisor answers with one line of JSON when its claim is durable, and with nothing otherwise. On the start-up
path of both, hence no imports beyond ``os`` and ``sys``.
"""

from __future__ import annotations

import os
import sys

from jobman.errors import HandshakeError
from jobman.model.ids import is_id

CREDENTIAL_BYTES = 32
ID_BYTES = 36
MAX_ACKNOWLEDGEMENT = 4096
_VERSION = b"JMH1"
_MAX_OFFER = 8192
_AFTER_ID = b'"}\n'


class Offer:
    """What a client hands over: the job's ID, the credential, and the canonical state root."""

    __slots__ = ("credential", "job_id", "root")

    def __init__(self, job_id: str, credential: bytes, root: str) -> None:
        self.job_id = job_id
        self.credential = credential
        self.root = root


def new_credential() -> bytes:
    """Return 256 random bits."""
    return os.urandom(CREDENTIAL_BYTES)


def digest(credential: bytes) -> bytes:
    """Return the SHA-256 that the store keeps instead of the credential."""
    # hashlib loads OpenSSL (2 ms); the interpreter's own implementation is there without it.
    try:
        # By version: looking for a module that is not there costs as much as loading the one that is.
        if sys.version_info >= (3, 12):
            from _sha2 import sha256
        else:
            from _sha256 import sha256  # type: ignore[import-not-found]  # nobody has described it
    except ImportError:
        from hashlib import sha256
    return bytes(sha256(credential).digest())


def send_offer(descriptor: int, offer: Offer) -> None:
    """Write ``offer`` and close the pipe.

    Raises:
        HandshakeError: the supervisor is gone.
    """
    message = _VERSION + offer.job_id.encode("ascii") + offer.credential + offer.root.encode("utf-8")
    try:
        os.write(descriptor, message)
    except OSError as error:
        raise HandshakeError(detail=f"the supervisor has ended: {error.strerror}") from error
    finally:
        os.close(descriptor)


def receive_offer(descriptor: int) -> Offer | None:
    """Read an offer up to the end of the pipe; ``None`` if the client ended without making one.

    Raises:
        HandshakeError: it is damaged or of another version.
    """
    message = _read_all(descriptor, _MAX_OFFER)
    if not message:
        return None
    body = message[len(_VERSION) :]
    credential = body[ID_BYTES : ID_BYTES + CREDENTIAL_BYTES]
    try:
        job_id = body[:ID_BYTES].decode("ascii")
        root = body[ID_BYTES + CREDENTIAL_BYTES :].decode("utf-8")
    except ValueError:
        job_id = root = ""
    # The ID becomes a file name; of a root that was cut off nothing can be known but its length.
    if not message.startswith(_VERSION) or len(message) == _MAX_OFFER or not is_id(job_id) or root[:1] != "/":
        raise HandshakeError(detail="the offer is not one that this version understands")
    return Offer(job_id, credential, root)


def acknowledgement(job_id: str, supervisor_id: str) -> bytes:
    """Return the line that tells the client of a durable claim."""
    return f'{{"schema_version":1,"job_id":"{job_id}","supervisor_id":"{supervisor_id}"}}\n'.encode("ascii")


def check_acknowledgement(line: bytes, job_id: str) -> str:
    """Return the supervisor's ID from an acknowledgement of ``job_id``.

    Compared byte for byte with the one line that a supervisor of this version can write: unknown members, another
    version or job, and trailing data all differ from it (O.56), and ``json`` need not be loaded.

    Raises:
        HandshakeError: it is anything else, or nothing at all.
    """
    supervisor_id = line[-len(_AFTER_ID) - ID_BYTES : -len(_AFTER_ID)].decode("ascii", "replace")
    if not line:
        raise HandshakeError(detail="the supervisor ended without acknowledging the job")
    if not is_id(supervisor_id) or line != acknowledgement(job_id, supervisor_id):
        raise HandshakeError(detail="the supervisor's acknowledgement is not one that this version understands")
    return supervisor_id


def _read_all(descriptor: int, limit: int) -> bytes:
    message = b""
    while len(message) < limit:
        block = os.read(descriptor, limit - len(message))
        if not block:
            break
        message += block
    return message
