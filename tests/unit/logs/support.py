"""Runs on disk for tests of logs: real files in a scratch state directory, times from a fake clock."""

from __future__ import annotations

import os
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from jobman.logs.capture import Capture
from jobman.logs.index import RECORD_BYTES, Record, decode
from jobman.logs.layout import View, create_run_directory
from jobman.logs.reader import copy, open_run
from jobman.model.state import Stream
from jobman.testing import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.logs.capture import CaptureResult
    from jobman.logs.reader import Source

JOB = "0190b6a5-0000-7000-8000-000000000001"
OUT, ERR = Stream.STDOUT, Stream.STDERR


class Write(NamedTuple):
    """One read of the drainer; ``flush`` closes the batch after it."""

    stream: Stream
    data: bytes
    flush: bool = False


writes = st.lists(
    st.builds(Write, st.sampled_from([OUT, ERR]), st.binary(min_size=1, max_size=12), st.booleans()), max_size=12
)


@contextmanager
def scratch_run(number: int = 1) -> Iterator[str]:
    """Yield the directory of a fresh run."""
    with TemporaryDirectory() as root:
        yield create_run_directory(root, JOB, number)


def feed(capture: Capture, sequence: Sequence[Write]) -> None:
    for write in sequence:
        capture.write(write.stream, write.data)
        if write.flush:
            capture.flush()


def record(directory: str, sequence: Sequence[Write], segment_bytes: int = 0, segments: int = 0) -> CaptureResult:
    capture = Capture(directory, clock=FakeClock(), segment_bytes=segment_bytes, segments=segments)
    feed(capture, sequence)
    return capture.close()


def content(sequence: Sequence[Write], stream: Stream | None = None) -> bytes:
    """Return what a view must show; ``None`` means both streams."""
    return b"".join(write.data for write in sequence if stream in {None, write.stream})


def printed(source: Source, lines: int = -1) -> bytes:
    blocks: list[bytes] = []
    copy(source, blocks.append, lines=lines)
    return b"".join(blocks)


def shown(directory: str, view: View, lines: int = -1) -> bytes:
    return printed(open_run(directory, 1, view=view), lines)


def read(directory: str, name: str) -> bytes:
    with open(f"{directory}/{name}", "rb") as file:
        return file.read()


def put(directory: str, name: str, data: bytes) -> None:
    """Replace the content of a file that exists, keeping its inode and mode."""
    with open(f"{directory}/{name}", "wb") as file:
        file.write(data)


def index_records(directory: str) -> list[Record]:
    data = read(directory, "chunks.idx")
    return [decode(data[at : at + RECORD_BYTES]) for at in range(0, len(data), RECORD_BYTES)]


def path_of(descriptor: int) -> str:
    """Return the base name of an open file."""
    return os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
