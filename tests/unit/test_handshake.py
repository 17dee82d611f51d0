"""The codec of the hand-over: what is understood, and that nothing else is (contract, section G; O.56)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman import handshake
from jobman.errors import HandshakeError

JOB = "01890a5d-ac96-774b-bcce-b302099a8057"
OWNER = "01890a5d-ac96-774b-bcce-b302099a8058"
CREDENTIAL = bytes(range(32))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe; a test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


def received(message: bytes) -> handshake.Offer | None:
    """What a supervisor makes of ``message`` on its standard input."""
    reader, writer = os.pipe()
    try:
        os.write(writer, message)
    finally:
        os.close(writer)
    try:
        return handshake.receive_offer(reader)
    finally:
        os.close(reader)


def encoded(offer: handshake.Offer) -> bytes:
    """What a client writes."""
    reader, writer = os.pipe()
    handshake.send_offer(writer, offer)
    with os.fdopen(reader, "rb") as file:
        return file.read()


def acknowledged(**changes: object) -> bytes:
    """An acknowledgement with members changed, or removed by ``None``."""
    document = {"schema_version": 1, "job_id": JOB, "supervisor_id": OWNER} | changes
    kept = {name: value for name, value in document.items() if value is not None}
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


GOOD = acknowledged()

# --- The offer -----------------------------------------------------------------------------------------------------


@given(
    credential=st.binary(min_size=32, max_size=32),
    root=st.text(st.characters(codec="utf-8"), max_size=900).map("/{}".format),
)
def test_an_offer_arrives_as_it_was_sent(credential: bytes, root: str) -> None:
    """G.2: any credential, newlines and NULs included, and any UTF-8 path."""
    offer = received(encoded(handshake.Offer(JOB, credential, root)))

    assert offer is not None
    assert (offer.job_id, offer.credential, offer.root) == (JOB, credential, root)


def test_no_offer_at_all_is_a_client_that_gave_up() -> None:
    """A client that ends before its offer leaves a supervisor nothing to do, and no error to report."""
    assert received(b"") is None


def test_the_longest_path_is_offered_whole() -> None:
    """PATH_MAX is 4096 with its NUL."""
    root = "/" + "d" * 4094

    offer = received(encoded(handshake.Offer(JOB, CREDENTIAL, root)))

    assert offer is not None
    assert offer.root == root


@pytest.mark.parametrize("kept", [1, 3, 4, 39, 40, 71, 72])
def test_a_truncated_offer_is_refused(kept: int) -> None:
    whole = encoded(handshake.Offer(JOB, CREDENTIAL, "/s"))

    with pytest.raises(HandshakeError, match="not one that this version understands"):
        received(whole[:kept])


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"JMH2" + JOB.encode() + CREDENTIAL + b"/s", id="other version"),
        pytest.param(b"JMH1" + b"\xff" * 36 + CREDENTIAL + b"/s", id="ID is not ASCII"),
        pytest.param(b"JMH1" + b"../../../../../../../../../../etc/cron" + CREDENTIAL + b"/s", id="ID is a path"),
        pytest.param(b"JMH1" + JOB.encode() + CREDENTIAL + b"/\xff", id="path is not UTF-8"),
        pytest.param(b"JMH1" + JOB.encode() + CREDENTIAL + b"relative", id="path is relative"),
        pytest.param(b"JMH1" + JOB.encode() + CREDENTIAL + b"/" + b"a" * 9000, id="oversize"),
        pytest.param(CREDENTIAL, id="a bare credential, as in the original"),
    ],
)
def test_an_offer_of_another_kind_is_refused(message: bytes) -> None:
    with pytest.raises(HandshakeError, match="not one that this version understands"):
        received(message)


def test_an_offer_to_a_supervisor_that_is_gone_is_an_error_and_leaves_no_descriptor(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.close(reader)

    with pytest.raises(HandshakeError, match="the supervisor has ended"):
        handshake.send_offer(writer, handshake.Offer(JOB, CREDENTIAL, "/s"))

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(writer)


def test_credentials_have_256_bits_and_never_repeat() -> None:
    """M3."""
    credentials = {handshake.new_credential() for _ in range(100)}

    assert len(credentials) == 100
    assert {len(credential) for credential in credentials} == {32}


@given(st.binary(max_size=200))
def test_the_digest_is_sha_256(credential: bytes) -> None:
    """M3: what the store keeps instead of the credential."""
    assert handshake.digest(credential) == hashlib.sha256(credential).digest()


# --- The acknowledgement -------------------------------------------------------------------------------------------


def test_an_acknowledgement_names_the_supervisor() -> None:
    assert handshake.check_acknowledgement(GOOD, JOB) == OWNER


def test_an_acknowledgement_is_the_line_of_the_contract() -> None:
    """G.4: one line of JSON with exactly these members."""
    line = handshake.acknowledgement(JOB, OWNER)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"schema_version": 1, "job_id": JOB, "supervisor_id": OWNER}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\n", id="empty line"),
        pytest.param(b"ok\n", id="no JSON"),
        pytest.param(b"\xff\xfe\xfd\n", id="no text"),
        pytest.param(b"[" * 4000, id="nested without end"),
        pytest.param(b"null\n", id="null"),
        pytest.param(b"[1]\n", id="list"),
        pytest.param(GOOD[:-20], id="torn"),
        pytest.param(b" " + GOOD, id="other spelling"),
        pytest.param(acknowledged(extra=1), id="unknown member"),
        pytest.param(acknowledged(job_id=None), id="no job"),
        pytest.param(acknowledged(supervisor_id=None), id="no supervisor"),
        pytest.param(acknowledged(schema_version=None), id="no version"),
        pytest.param(acknowledged(schema_version=2), id="later version"),
        pytest.param(acknowledged(schema_version="1"), id="version as text"),
        pytest.param(acknowledged(schema_version=True), id="version as truth value"),
        pytest.param(acknowledged(schema_version=1.0), id="version as fraction"),
        pytest.param(acknowledged(job_id=OWNER), id="other job"),
        pytest.param(acknowledged(job_id=JOB.upper()), id="job in capitals"),
        pytest.param(acknowledged(supervisor_id="me"), id="supervisor without an ID"),
        pytest.param(acknowledged(supervisor_id=[OWNER]), id="supervisor as list"),
        pytest.param(GOOD + GOOD, id="two documents"),
        pytest.param(GOOD + b"x", id="trailing data"),
        pytest.param(GOOD[:-2] + b',"job_id":"' + JOB.encode() + b'"}\n', id="a member twice"),
        pytest.param(GOOD + b" " * 4096, id="oversize"),
    ],
)
def test_what_is_no_acknowledgement_of_this_job_is_refused(line: bytes) -> None:
    """O.56."""
    with pytest.raises(HandshakeError):
        handshake.check_acknowledgement(line, JOB)


@given(st.binary(max_size=300))
def test_any_answer_is_either_understood_or_refused(line: bytes) -> None:
    """Whatever a broken supervisor writes ends in the one error that makes the client ask the store."""
    with pytest.raises(HandshakeError):
        handshake.check_acknowledgement(line, JOB)
