"""What sends live input from a client: real sockets and pipes, in programs that hold many files open (I.6)."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.live_input import DATA, OK
from jobman.process import endpoint
from jobman.service.live_input import Delivery, Target, _await_ready
from jobman.supervisor.input import Broker
from jobman.testing import FakeClock

RUN = "018f2b6c-7d1e-7abc-9def-0123456789ab"
BEYOND = 1100
"""A descriptor that ``select`` cannot take."""


@pytest.fixture
def many_files() -> Iterator[None]:
    """Allow descriptors beyond the usual limit."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * BEYOND, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("many_files")
def test_a_program_with_a_thousand_files_open_sends_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = endpoint.connect

    def connect_beyond(path: str) -> socket.socket:
        with connect(path) as near:
            return socket.socket(fileno=fcntl.fcntl(near, fcntl.F_DUPFD_CLOEXEC, BEYOND))

    monkeypatch.setattr(endpoint, "connect", connect_beyond)
    (tmp_path / "s").mkdir(mode=0o700)
    broker = Broker(f"{tmp_path}/s/input/x.sock", FakeClock())
    broker.open()
    reader = broker.begin(RUN)
    delivery = Delivery(Target(RUN, broker.path), DATA, b"words")
    while (reply := delivery.advance()) is None:
        broker.handle()
        delivery.wait(0.01)
    assert (reply.status, os.read(reader, 100)) == (OK, b"words")
    os.close(reader)
    broker.close()


@pytest.mark.usefixtures("many_files")
def test_input_is_waited_for_on_any_descriptor() -> None:
    """The Python interface may copy from whatever descriptor it is given."""
    ends = os.pipe()
    far = fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, BEYOND)
    assert not _await_ready(far, select.POLLIN, 0.001)
    os.write(ends[1], b"x")
    assert _await_ready(far, select.POLLIN, 5)
    for descriptor in (*ends, far):
        os.close(descriptor)
