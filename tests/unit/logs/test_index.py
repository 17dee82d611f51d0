"""The chunk index by itself (contract, J.2)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.errors import CorruptIndexError
from jobman.logs.index import (
    LARGEST_CHUNK,
    RECORD_BYTES,
    SEGMENTED,
    UNSEGMENTED,
    Chain,
    IndexFile,
    Record,
    decode,
    encode,
    whole_records,
)
from jobman.model.state import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

OUT, ERR = Stream.STDOUT, Stream.STDERR
SAMPLE = bytes.fromhex(
    "4a4d4c49 01 01 0000 0100000000000000 0000000000000000 02000000000000009a430c6b00000000 6819091d00000000 cc33b794"
)
EVERYTHING_FITS = 1 << 62

u64 = st.integers(min_value=0, max_value=2**64 - 1)
lengths = st.integers(min_value=1, max_value=LARGEST_CHUNK)
times = st.integers(min_value=-(2**62), max_value=2**62)
streams = st.sampled_from([OUT, ERR])
records = st.one_of(
    st.builds(Record, st.just(UNSEGMENTED), streams, st.just(0), u64, u64, lengths, times),
    st.builds(Record, st.just(SEGMENTED), streams, st.integers(1, 65535), u64, u64, lengths, times),
)


def plain(sequence: int = 1, offset: int = 0, length: int = 2, stream: Stream = OUT) -> Record:
    return Record(UNSEGMENTED, stream, 0, sequence, offset, length, 0)


def segmented(sequence: int, segment: int, offset: int = 0, length: int = 2) -> Record:
    return Record(SEGMENTED, OUT, segment, sequence, offset, length, 0)


def check(sequence: Sequence[Record], size: int = EVERYTHING_FITS) -> Chain:
    chain = Chain("x/chunks.idx", lambda _stream, _segment: size)
    chain.extend(b"".join(map(encode, sequence)))
    chain.settle()
    return chain


def extend(data: bytes) -> None:
    Chain("x/chunks.idx", lambda _stream, _segment: EVERYTHING_FITS).extend(data)


def test_the_sample_written_by_the_original_reads_and_writes_the_same() -> None:
    """J.2, verified sample."""
    found = decode(SAMPLE)
    assert found == Record(UNSEGMENTED, OUT, 0, 1, 0, 2, 0x6B0C439A * 1_000_000_000 + 0x1D091968)
    assert encode(found) == SAMPLE


@given(records)
def test_every_record_survives_being_written_and_read(record: Record) -> None:
    """J.2."""
    data = encode(record)
    assert len(data) == RECORD_BYTES
    assert decode(data) == record


@given(records, st.integers(0, RECORD_BYTES - 1), st.integers(1, 255))
def test_a_changed_byte_anywhere_is_noticed(record: Record, place: int, change: int) -> None:
    """J.2: magic, CRC."""
    data = bytearray(encode(record))
    data[place] ^= change
    with pytest.raises(ValueError, match=r"JMLI|checksum"):
        decode(bytes(data))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        pytest.param(plain()._replace(version=3), "version 3", id="unknown version"),
        pytest.param(plain()._replace(version=0), "version 0", id="version zero"),
        pytest.param(plain()._replace(segment=1), "segment 1", id="segment in version 1"),
        pytest.param(segmented(1, 0), "segment 0", id="no segment in version 2"),
        pytest.param(plain(length=0), "length 0", id="empty chunk"),
        pytest.param(plain(length=LARGEST_CHUNK + 1), "length", id="chunk over 16 MiB"),
    ],
)
def test_a_record_with_a_right_checksum_and_an_impossible_field_is_refused(record: Record, reason: str) -> None:
    """J.2: ranges of the fields; in a chain, as the first record and as a later one."""
    data = encode(record)
    with pytest.raises(ValueError, match=reason):
        decode(data)
    with pytest.raises(CorruptIndexError, match=reason):
        check([record])
    with pytest.raises(CorruptIndexError, match=reason):
        check([plain(), record._replace(sequence=2, offset=2)])


def test_a_stream_that_does_not_exist_is_refused() -> None:
    """J.2: stream 1 or 2."""
    encoded = encode(plain())
    other = bytearray(encoded[:48])
    other[5] = 3
    with pytest.raises(ValueError, match="unknown stream 3"):
        decode(_with_checksum(bytes(other)))


def test_nanoseconds_of_a_whole_second_are_refused() -> None:
    """J.2: nanoseconds 0..999999999."""
    head = encode(plain())[:40] + (1_000_000_000).to_bytes(8, "little")
    with pytest.raises(ValueError, match="nanoseconds"):
        decode(_with_checksum(head))
    later = encode(plain(2, 2))[:40] + (1_000_000_000).to_bytes(8, "little")
    with pytest.raises(CorruptIndexError, match="nanoseconds"):
        extend(encode(plain()) + _with_checksum(later))


def test_a_later_record_with_a_wrong_checksum_is_refused() -> None:
    """J.5: bad CRC."""
    later = encode(plain(2, 2))
    with pytest.raises(CorruptIndexError, match="checksum"):
        extend(encode(plain()) + later[:40] + b"\x01" + later[41:])


def _with_checksum(head: bytes) -> bytes:
    import google_crc32c

    return head + int(google_crc32c.value(head)).to_bytes(4, "little")


GOOD = [plain(), plain(2, 0, 3, ERR), plain(3, 2, 5), plain(4, 3, 1, ERR)]
ROTATED = [segmented(1, 1), segmented(2, 1, 2), segmented(3, 2), segmented(4, 3)]


def test_a_chain_adds_up_the_bytes_of_each_stream() -> None:
    """J.2: offsets contiguous per stream, sequence across streams."""
    chain = check(GOOD)
    assert (chain.total(OUT), chain.total(ERR), chain.version) == (7, 4, UNSEGMENTED)
    assert chain.position == 4 * RECORD_BYTES


def test_segments_start_again_at_offset_zero_and_count_on() -> None:
    """J.2: restarts at 0 per segment; segments advance by 1."""
    chain = check(ROTATED)
    assert (chain.total(OUT), chain.total(ERR), chain.version) == (8, 0, SEGMENTED)


@pytest.mark.parametrize(
    ("sequence", "bad"),
    [
        pytest.param([plain(2)], 0, id="sequence does not start at 1"),
        pytest.param([*GOOD[:2], plain(4, 2)], 2, id="sequence gap"),
        pytest.param([*GOOD[:2], plain(2, 2)], 2, id="sequence repeated"),
        pytest.param([plain(1, 1)], 0, id="offset does not start at 0"),
        pytest.param([*GOOD[:2], plain(3, 3)], 2, id="offset gap"),
        pytest.param([*GOOD[:2], plain(3, 1)], 2, id="offset overlap"),
        pytest.param([GOOD[1], GOOD[0]], 0, id="swapped"),
        pytest.param([segmented(1, 2)], 0, id="first segment missing"),
        pytest.param([segmented(1, 1), segmented(2, 3)], 1, id="segment gap"),
        pytest.param([*ROTATED[:3], segmented(4, 1, 4)], 3, id="segment goes back"),
        pytest.param([segmented(1, 1), segmented(2, 2, 2)], 1, id="segment does not restart at 0"),
    ],
)
def test_a_record_that_does_not_follow_is_named_by_its_place(sequence: list[Record], bad: int) -> None:
    """J.5: complete record with bad version, sequence or offset."""
    with pytest.raises(CorruptIndexError) as caught:
        check(sequence)
    assert caught.value.fields["offset"] == bad * RECORD_BYTES
    assert caught.value.fields["path"] == "x/chunks.idx"


@pytest.mark.parametrize("sequence", [GOOD, ROTATED], ids=["one file", "segments"])
def test_an_index_that_names_more_bytes_than_the_file_has_is_corrupt(sequence: list[Record]) -> None:
    """J.5: index covering more bytes than the file."""
    check(sequence, size=7)
    with pytest.raises(CorruptIndexError, match="the records name"):
        check(sequence, size=1)


def test_a_segment_that_was_left_is_compared_with_its_file_too() -> None:
    """J.5."""
    sizes = {1: 3, 2: 2, 3: 2}
    chain = Chain("x/chunks.idx", lambda _stream, segment: sizes[segment])
    with pytest.raises(CorruptIndexError, match="name 4 bytes of stdout segment 1, its file has 3"):
        chain.extend(b"".join(map(encode, ROTATED)))


@pytest.mark.parametrize(
    "sequence", [[plain(), segmented(2, 1)], [segmented(1, 1), plain(2, 2)]], ids=["2 after 1", "1 after 2"]
)
def test_versions_are_not_mixed(sequence: list[Record]) -> None:
    """J.2: v1 and v2 records may not be mixed."""
    with pytest.raises(CorruptIndexError, match="among records of version"):
        check(sequence)


@given(st.lists(st.tuples(streams, st.integers(1, 9)), max_size=12), st.integers(1, 5))
def test_a_chain_sees_the_same_in_blocks_of_any_size(chunks: list[tuple[Stream, int]], size: int) -> None:
    ends = {OUT: 0, ERR: 0}
    data = b""
    for sequence, (stream, length) in enumerate(chunks, start=1):
        data += encode(plain(sequence, ends[stream], length, stream))
        ends[stream] += length
    chain = Chain("x", lambda _stream, _segment: EVERYTHING_FITS)
    for at in range(0, len(data), size * RECORD_BYTES):
        chain.extend(data[at : at + size * RECORD_BYTES])
    assert {stream: chain.total(stream) for stream in ends} == ends
    assert chain.position == len(data)


@pytest.fixture
def long_index(tmp_path: Path) -> Iterator[IndexFile]:
    data = b"".join(encode(plain(sequence, 2 * (sequence - 1))) for sequence in range(1, 3000))
    path = tmp_path / "chunks.idx"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    yield IndexFile(descriptor, str(path))
    os.close(descriptor)


def test_records_come_in_order_across_blocks_and_in_reverse_backward(long_index: IndexFile) -> None:
    stop = 2999 * RECORD_BYTES
    assert [record.sequence for record in long_index.records(0, stop)] == list(range(1, 3000))
    assert [record.sequence for record in long_index.records_backward(0, stop)] == list(range(2999, 0, -1))
    assert [r.sequence for r in long_index.records(5 * RECORD_BYTES, 7 * RECORD_BYTES)] == [6, 7]
    assert [r.sequence for r in long_index.records_backward(5 * RECORD_BYTES, 7 * RECORD_BYTES)] == [7, 6]


def test_an_index_that_lost_its_end_since_it_was_measured_is_corrupt(long_index: IndexFile) -> None:
    os.truncate(long_index.path, 100 * RECORD_BYTES)
    for reading in (long_index.records, long_index.records_backward, long_index.blocks):
        with pytest.raises(CorruptIndexError, match="shorter"):
            list(reading(0, 2999 * RECORD_BYTES))


def test_a_record_damaged_after_the_check_is_still_refused(long_index: IndexFile) -> None:
    with open(long_index.path, "r+b") as file:
        file.seek(2 * RECORD_BYTES + 20)
        file.write(b"\xff")
    for reading in (long_index.records, long_index.records_backward):
        with pytest.raises(CorruptIndexError, match="checksum") as caught:
            list(reading(0, 2999 * RECORD_BYTES))
        assert caught.value.fields["offset"] == 2 * RECORD_BYTES


def test_a_torn_record_is_no_part_of_the_whole_ones() -> None:
    """J.5: torn final record."""
    assert [whole_records(size) for size in (0, 51, 52, 103, 104)] == [0, 0, 52, 52, 104]
