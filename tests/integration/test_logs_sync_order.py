"""The order of writes and syncs as the kernel saw them (architecture, Log durability): records name durable bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jobman.logs.index import RECORD_BYTES, decode
from jobman.logs.layout import segment_name

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from jobman.logs.capture import Capture
from jobman.logs.layout import create_run_directory
from jobman.model.state import Stream
from jobman.testing import FakeClock

capture = Capture(create_run_directory(sys.argv[1], "job", 1), clock=FakeClock(), segment_bytes=int(sys.argv[2]))
for batch in range(4):
    for size in range(1, 9):
        capture.write(Stream.STDOUT, b"o" * size)
        capture.write(Stream.STDERR, b"e")
    if batch != 2:
        capture.flush()
print(capture.close().stdout_bytes)
"""
CALL = re.compile(rb"^\d+ +(\w+)\((?:\w+)<([^>]*)>(?:, \"([^\"]*)\")?(.*)\) += (\d+)")
ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")


class Call(NamedTuple):
    """A system call that succeeded: name, path of its descriptor, its string, what follows, what it returned."""

    name: str
    path: str
    data: bytes
    rest: bytes
    returned: int


def plain(text: bytes) -> bytes:
    return ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text)


def trace(root: Path, segment_bytes: int) -> list[Call]:
    out = root / "trace"
    calls = "trace=write,pwrite64,fdatasync,fsync,openat"
    tracer = ["strace", "-f", "-y", "-xx", "-s", "100000", "-e", calls, "-o", str(out)]
    subprocess.run(
        [*tracer, sys.executable, "-c", PROGRAM, str(root), str(segment_bytes)], check=True, stdout=subprocess.DEVNULL
    )
    matches = filter(None, map(CALL.match, out.read_bytes().splitlines()))
    return [
        Call(match[1].decode(), os.fsdecode(plain(match[2])), plain(match[3] or b""), match[4], int(match[5]))
        for match in matches
    ]


class Disk:
    """What would survive a loss of power, by the calls so far."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.written: dict[str, int] = {}
        self.durable: dict[str, int] = {}
        self.unsynced_entries: set[str] = set()
        self.records = 0
        self.index_unsynced = False

    def see(self, call: Call) -> None:
        if call.name == "openat" and b"O_CREAT" in call.rest:
            path = os.path.join(call.path, os.fsdecode(call.data))
            if os.path.dirname(path) == self.run:
                self.unsynced_entries.add(path)
        elif call.name in {"write", "pwrite64"} and call.path == f"{self.run}/chunks.idx":
            self.check_records(call.data[: call.returned])
        elif call.name in {"write", "pwrite64"}:
            self.written[call.path] = self.written.get(call.path, 0) + call.returned
        elif call.name == "fdatasync":
            self.durable[call.path] = self.written.get(call.path, 0)
            self.index_unsynced &= call.path != f"{self.run}/chunks.idx"
        elif call.name == "fsync" and call.path == self.run:
            self.unsynced_entries.clear()

    def check_records(self, data: bytes) -> None:
        assert not self.index_unsynced, "records of one batch are synced before those of the next are written"
        self.index_unsynced = True
        for at in range(0, len(data), RECORD_BYTES):
            record = decode(data[at : at + RECORD_BYTES])
            path = f"{self.run}/{segment_name(record.stream, record.segment)}"
            assert self.durable.get(path, 0) >= record.offset + record.length, f"{record} names bytes not yet synced"
            assert path not in self.unsynced_entries, f"{path} has no durable directory entry"
            self.records += 1


@pytest.fixture
def _strace() -> None:
    if shutil.which("strace") is None:
        if os.environ.get("JOBMAN_REQUIRE_TOOLS") == "1":
            pytest.fail("strace is required here and missing")
        pytest.skip("strace is missing")


@pytest.mark.usefixtures("_strace")
@pytest.mark.parametrize(("segment_bytes", "records"), [(0, 64), (10, 76)], ids=["one file", "segments"])
def test_every_record_is_written_after_its_bytes_and_its_file_are_durable(
    tmp_path: Path, segment_bytes: int, records: int
) -> None:
    """C3: group commit keeps the order of J.3."""
    disk = Disk(f"{tmp_path}/logs/job/1")
    calls = trace(tmp_path, segment_bytes)
    for call in calls:
        disk.see(call)
    assert disk.records == records
    assert not disk.index_unsynced, "the last records are synced too"
    assert not disk.unsynced_entries
    index_syncs = [call for call in calls if call.name == "fdatasync" and call.path.endswith("chunks.idx")]
    assert len(index_syncs) == 3 if segment_bytes == 0 else len(index_syncs) >= 3
