"""Logs of any size are captured and read in memory that does not grow (C5; field case 20)."""

from __future__ import annotations

import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from jobman.logs import index
from jobman.logs.capture import Capture
from jobman.logs.index import encode
from jobman.logs.layout import View, create_run_directory
from jobman.logs.reader import copy, open_run
from jobman.testing import FakeClock
from tests.integration.test_logs_reading import last_lines
from tests.unit.logs.support import ERR, JOB, OUT, printed, put

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> str:
    return create_run_directory(str(tmp_path), JOB, 1)


@pytest.mark.parametrize("view", [View.STDOUT, View.BOTH])
@pytest.mark.parametrize("lines", [-1, 1, 2])
def test_memory_does_not_grow_with_the_log(run: str, view: View, lines: int) -> None:
    """C5; field case 20: 512 MiB in a single line, then another."""
    size = 512 * 1024 * 1024
    os.truncate(f"{run}/stdout.log", size)
    with open(f"{run}/stdout.log", "r+b") as file:
        file.seek(size - 7)
        file.write(b"\nafter\n")
    chunk = index.LARGEST_CHUNK
    put(
        run,
        "chunks.idx",
        b"".join(encode(index.Record(1, OUT, 0, n + 1, n * chunk, chunk, 0)) for n in range(size // chunk)),
    )
    total = [0]
    tracemalloc.start()
    copy(open_run(run, 1, view=view), lambda block: total.append(total.pop() + len(block)), lines=lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == [6 if lines == 1 else size]
    assert peak < 2 * 1024 * 1024


def test_20000_tiny_writes_alternating_between_the_streams_keep_their_order(run: str) -> None:
    """Issue 4: as the index says, in flat memory on both sides."""
    expected = b"".join(b"o%d\ne%d\n" % (number, number) for number in range(10_000))
    capture = Capture(run, clock=FakeClock(), segment_bytes=30_000)
    tracemalloc.start()
    for number in range(10_000):
        capture.write(OUT, b"o%d\n" % number)
        capture.write(ERR, b"e%d\n" % number)
        if number % 1_000 == 0:
            capture.flush()
    result = capture.close()
    source = open_run(run, 1, view=View.BOTH)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 1024 * 1024
    assert (result.stdout_bytes, result.stderr_bytes) == (len(expected) // 2, len(expected) // 2)
    assert printed(source) == expected
    assert printed(source, 4_001) == last_lines(expected, 4_001)


def test_an_index_of_any_length_is_read_in_blocks(run: str) -> None:
    """Constant memory for 200,000 records (10 MB of index)."""
    put(run, "stdout.log", b"x" * 200_000)
    put(run, "chunks.idx", b"".join(encode(index.Record(1, OUT, 0, n + 1, n, 1, 0)) for n in range(200_000)))
    tracemalloc.start()
    source = open_run(run, 1, view=View.BOTH)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert source.length == 200_000
    assert peak < 1024 * 1024
    assert printed(source) == b"x" * 200_000
