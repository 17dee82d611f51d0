"""The requests and replies of live input, byte by byte (contract, I.6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.live_input import (
    DATA,
    END,
    MALFORMED,
    MAX_PAYLOAD,
    Arrival,
    Reply,
    Request,
    decode_reply,
    encode,
    encode_reply,
)

RUN_ID = "018f2b6c-7d1e-7abc-9def-0123456789ab"


def take(data: bytes, sizes: list[int] | None = None) -> tuple[Request | Reply | None, bytes]:
    """Let bytes arrive in pieces of ``sizes``, the last of which is repeated; return what came of it, and what is left.

    Like the supervisor this reads no more than is wanted.
    """
    arrival, sizes = Arrival(), list(sizes or [len(data) or 1])
    while True:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        block, data = data[: min(size, arrival.wanted)], data[min(size, arrival.wanted) :]
        if not block:
            return None, data
        found = arrival.take(block)
        if found is not None:
            return found, data


def test_a_request_and_a_reply_look_as_the_contract_says() -> None:
    assert encode(Request(DATA, RUN_ID, b"abc")) == b"\1" + RUN_ID.encode() + b"\0\0\0\3abc"
    assert encode(Request(END, RUN_ID)) == b"\2" + RUN_ID.encode() + b"\0\0\0\0"
    assert encode_reply(Reply(4, 0x0102)) == b"\4\0\0\0\0\0\0\1\2"


@settings(max_examples=100)
@given(
    payload=st.binary(max_size=200),
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=20),
    behind=st.binary(max_size=5),
)
def test_however_the_bytes_arrive_the_request_is_the_same(payload: bytes, sizes: list[int], behind: bytes) -> None:
    """Any split gives the same request, and no byte behind its end is touched."""
    for request in (Request(DATA, RUN_ID, payload), Request(END, RUN_ID)):
        assert take(encode(request) + behind, sizes) == (request, behind)


@settings(max_examples=50)
@given(cut=st.integers(0, 43), sizes=st.lists(st.integers(1, 60), min_size=1, max_size=20))
def test_a_request_that_is_cut_off_is_none(cut: int, sizes: list[int]) -> None:
    assert take(encode(Request(DATA, RUN_ID, b"abc"))[:cut], sizes) == (None, b"")


def header(operation: int = DATA, run_id: bytes = RUN_ID.encode(), length: int = 0) -> bytes:
    return bytes((operation,)) + run_id + length.to_bytes(4, "big")


@pytest.mark.parametrize(
    "data",
    [
        header(0),
        header(3),
        header(END, length=1) + b"x",
        header(length=MAX_PAYLOAD + 1),
        header(length=2**32 - 1),
        header(run_id=b"x" * 36),
        header(run_id=b"\xff" * 36),
        header(run_id=RUN_ID.upper().encode()),
    ],
)
def test_what_is_no_request_is_refused_before_its_payload_is_read(data: bytes) -> None:
    for sizes in ([100], [1]):
        found, left = take(data, sizes)
        assert found == Reply(MALFORMED)
        assert left == data[41:]


def test_the_longest_payload_is_taken() -> None:
    request = Request(DATA, RUN_ID, bytes(MAX_PAYLOAD))
    assert take(encode(request), [65536]) == (request, b"")


@given(st.integers(0, 4), st.integers(0, 2**64 - 1))
def test_a_reply_is_read_as_it_was_written(status: int, delivered: int) -> None:
    assert decode_reply(encode_reply(Reply(status, delivered))) == Reply(status, delivered)
