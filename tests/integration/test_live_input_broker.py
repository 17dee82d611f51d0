"""What takes live input in a supervisor: real sockets and pipes, and a clock that goes on when it is told to (I.6)."""

from __future__ import annotations

import os
import select
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobman import live_input
from jobman.errors import EndpointError
from jobman.live_input import (
    CLOSED,
    DATA,
    END,
    MALFORMED,
    NO_TARGET,
    OK,
    OTHER_RUN,
    PATIENCE_NS,
    Reply,
    Request,
    decode_reply,
    encode,
)
from jobman.process import endpoint
from jobman.supervisor.input import MOST_CLIENTS, Broker
from jobman.testing import FakeClock

RUN = "018f2b6c-7d1e-7abc-9def-0123456789ab"
LATER_RUN = "018f2b6c-7d1e-7abc-9def-0123456789ac"
FULL = 1024 * 1024
PIPE_BYTES = 64 * 1024


class Setup:
    """A broker in a directory of its own, with a target that reads when the test does."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700)
        self.clock = FakeClock()
        self.path = f"{directory}/input/x.sock"
        self.broker = Broker(self.path, self.clock)
        self.broker.open()
        self.reader = -1
        self._clients: list[socket.socket] = []

    def begin(self, run_id: str = RUN) -> None:
        self.stop_reading()
        self.reader = self.broker.begin(run_id)
        os.set_blocking(self.reader, False)

    def connect(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5)
        client.connect(self.path)
        self._clients.append(client)
        return client

    def ask(self, operation: int, payload: bytes = b"", run_id: str = RUN) -> socket.socket:
        """Send a whole request and let the broker take it in."""
        client = self.connect()
        view = memoryview(encode(Request(operation, run_id, payload)))
        client.setblocking(False)
        while view:
            try:
                view = view[client.send(view) :]
            except BlockingIOError:
                self.go_round()
        client.settimeout(5)
        self.go_round()
        return client

    def go_round(self) -> None:
        """Do what the loop does as long as something is ready."""
        for _ in range(100):
            self.broker.handle()
            if not select.select([self.broker], [], [], 0)[0]:
                return

    def pass_time(self, ns: int) -> None:
        self.clock.advance(ns)
        self.go_round()

    def read(self, size: int = FULL) -> bytes | None:
        """What the target reads at once; ``None`` if nothing is there, ``b""`` at the end."""
        self.go_round()
        try:
            return os.read(self.reader, size)
        except BlockingIOError:
            return None

    def read_all(self) -> bytes:
        data = b""
        while block := self.read():
            data += block
        return data

    def stop_reading(self) -> None:
        if self.reader >= 0:
            os.close(self.reader)
        self.reader = -1

    def close(self) -> None:
        self.broker.close()
        self.stop_reading()
        for client in self._clients:
            client.close()


def reply_of(client: socket.socket) -> Reply:
    data = b""
    while block := client.recv(100):
        data += block
    assert len(data) == live_input.REPLY_BYTES
    return decode_reply(data)


def is_pending(client: socket.socket) -> bool:
    return not select.select([client], [], [], 0)[0]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Setup]:
    setup = Setup(tmp_path / "s")
    yield setup
    setup.close()


# --- Delivering -----------------------------------------------------------------------------------------------------


def test_what_is_sent_is_read_and_counted(at: Setup) -> None:
    at.begin()
    assert reply_of(at.ask(DATA, b"\0binary\xff")) == Reply(OK, 8)
    assert reply_of(at.ask(DATA)) == Reply(OK, 0)
    assert at.read() == b"\0binary\xff"
    assert at.read() is None
    assert reply_of(at.ask(END)) == Reply(OK, 0)
    assert at.read() == b""


def test_requests_are_delivered_whole_in_the_order_in_which_they_became_complete(at: Setup) -> None:
    """D29: a client that is slow to say what it wants holds up nobody, and big requests are not mixed."""
    at.begin()
    slow = at.connect()
    data = encode(Request(DATA, RUN, b"slow"))
    slow.sendall(data[:-1])
    at.go_round()
    big = [at.ask(DATA, bytes((letter,)) * 300_000) for letter in b"abc"]
    slow.sendall(data[-1:])
    at.go_round()
    assert all(is_pending(client) for client in (*big, slow))

    assert at.read_all() == b"a" * 300_000 + b"b" * 300_000 + b"c" * 300_000 + b"slow"
    assert [reply_of(client).delivered for client in (*big, slow)] == [300_000, 300_000, 300_000, 4]


def test_a_full_pipe_holds_up_each_request_for_its_own_time(at: Setup) -> None:
    """D21: 30 s from its arrival; those behind it answer 0, and the end that was asked for comes when that is over."""
    at.begin()
    first = at.ask(DATA, bytes(PIPE_BYTES + 1))
    at.pass_time(10_000_000_000)
    second = at.ask(DATA, b"later")
    at.pass_time(10_000_000_000)
    end = at.ask(END)
    at.pass_time(10_000_000_000 - 1)
    assert is_pending(first)
    at.pass_time(1)
    assert reply_of(first) == Reply(OK, PIPE_BYTES)
    assert is_pending(second)
    assert at.broker.due_ns() == at.clock.monotonic_ns() + 10_000_000_000
    at.pass_time(10_000_000_000)
    assert reply_of(second) == Reply(OK, 0)
    assert reply_of(end) == Reply(OK, 0)
    assert at.read_all() == bytes(PIPE_BYTES)
    assert at.read() == b""


def test_a_request_goes_on_where_a_full_pipe_stopped_it(at: Setup) -> None:
    at.begin()
    payload = os.urandom(FULL)
    client = at.ask(DATA, payload)
    at.pass_time(PATIENCE_NS - 1)
    assert at.read_all() == payload
    assert reply_of(client) == Reply(OK, FULL)
    assert at.broker.due_ns() is None


def test_a_target_that_has_closed_its_input_takes_nothing_more(at: Setup) -> None:
    at.begin()
    pending = [at.ask(DATA, bytes(PIPE_BYTES + 1)), at.ask(DATA, b"next")]
    at.stop_reading()
    at.go_round()
    assert [reply_of(client) for client in pending] == [Reply(OK, PIPE_BYTES), Reply(OK, 0)]
    assert reply_of(at.ask(DATA, b"x")) == Reply(OK, 0)
    assert reply_of(at.ask(END)) == Reply(OK, 0)


def test_a_client_that_has_gone_disturbs_nobody(at: Setup) -> None:
    at.begin()
    half = at.connect()
    half.sendall(encode(Request(DATA, RUN, b"half"))[:-2])
    at.go_round()
    half.close()
    filler = at.ask(DATA, bytes(PIPE_BYTES + 1))
    at.ask(DATA, b"whole").close()
    filler.close()
    assert at.read_all() == bytes(PIPE_BYTES + 1) + b"whole"
    assert reply_of(at.ask(DATA, b"x")) == Reply(OK, 1)


# --- Runs and the end -----------------------------------------------------------------------------------------------


def test_a_request_reaches_the_run_it_means_and_no_other(at: Setup) -> None:
    """O.25."""
    assert reply_of(at.ask(DATA, b"x")) == Reply(NO_TARGET)
    at.begin()
    assert reply_of(at.ask(DATA, b"x", LATER_RUN)) == Reply(OTHER_RUN)
    full, behind = at.ask(DATA, bytes(FULL)), at.ask(DATA, b"x")
    at.broker.end()
    assert [reply_of(full), reply_of(behind)] == [Reply(OK, PIPE_BYTES), Reply(NO_TARGET)]
    assert reply_of(at.ask(END)) == Reply(NO_TARGET)
    at.begin(LATER_RUN)
    assert reply_of(at.ask(DATA, b"x")) == Reply(OTHER_RUN)
    assert reply_of(at.ask(DATA, b"y", LATER_RUN)) == Reply(OK, 1)
    assert at.read() == b"y"


def test_after_the_end_nothing_is_taken_until_the_next_run(at: Setup) -> None:
    at.begin()
    full = at.ask(DATA, bytes(PIPE_BYTES + 1))
    end, late, again = at.ask(END), at.ask(DATA, b"x"), at.ask(END)
    assert len(at.read_all()) == PIPE_BYTES + 1
    assert [reply_of(client) for client in (full, end, late, again)] == [
        Reply(OK, PIPE_BYTES + 1),
        Reply(OK),
        Reply(CLOSED),
        Reply(CLOSED),
    ]
    assert reply_of(at.ask(DATA, b"x")) == Reply(CLOSED)
    at.begin(LATER_RUN)
    assert reply_of(at.ask(DATA, b"x", LATER_RUN)) == Reply(OK, 1)


def test_an_end_that_the_store_tells_of_comes_after_what_has_arrived(at: Setup) -> None:
    """I.6, O.26: the client that asked for it may be dead; the mark of another run means nothing."""
    at.begin()
    for other in (None, LATER_RUN):
        at.broker.finish(other)
    waiting = at.ask(DATA, bytes(PIPE_BYTES + 1))
    for _ in range(2):
        at.broker.finish(RUN)
    assert reply_of(at.ask(DATA, b"x")) == Reply(CLOSED)
    assert len(at.read_all()) == PIPE_BYTES + 1
    assert reply_of(waiting) == Reply(OK, PIPE_BYTES + 1)
    assert at.read() == b""
    assert reply_of(at.ask(END)) == Reply(CLOSED)


# --- Who may come ---------------------------------------------------------------------------------------------------


def test_what_is_no_request_gets_an_answer_and_what_never_becomes_one_is_dropped(at: Setup) -> None:
    at.begin()
    wrong, silent, half = at.connect(), at.connect(), at.connect()
    wrong.sendall(b"\7" + RUN.encode() + bytes(4))
    half.sendall(encode(Request(DATA, RUN, b"abc"))[:-1])
    at.go_round()
    assert reply_of(wrong) == Reply(MALFORMED)
    at.pass_time(PATIENCE_NS - 1)
    assert is_pending(silent)
    at.pass_time(1)
    assert (silent.recv(1), half.recv(1)) == (b"", b"")
    assert at.read() is None


def test_more_clients_than_there_is_room_for_wait_their_turn(at: Setup) -> None:
    at.begin()
    idle = [at.connect() for _ in range(MOST_CLIENTS)]
    at.go_round()
    client = at.ask(DATA, b"x")
    assert is_pending(client)
    assert not select.select([at.broker], [], [], 0)[0], "whom we do not listen to must not keep the loop awake"
    idle[0].close()
    at.go_round()
    assert reply_of(client) == Reply(OK, 1)


def test_without_a_free_descriptor_the_loop_does_not_spin(at: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_listener: socket.socket) -> None:
        raise OSError(24, "Too many open files")

    at.begin()
    with monkeypatch.context() as patched:
        patched.setattr(socket.socket, "accept", refuse)
        client = at.ask(DATA, b"x")
        assert not select.select([at.broker], [], [], 0)[0]
    assert at.broker.due_ns() is not None
    at.pass_time(100_000_000)
    assert reply_of(client) == Reply(OK, 1)


def test_processes_of_other_users_are_refused_at_either_end(at: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    at.begin()
    stranger = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: stranger)
    client = at.connect()
    at.go_round()
    assert client.recv(1) == b""
    with pytest.raises(EndpointError, match="another user"):
        endpoint.connect(at.path)


# --- Where it lies --------------------------------------------------------------------------------------------------


def test_only_the_owner_can_reach_the_socket_and_it_goes_with_the_broker(tmp_path: Path) -> None:
    setup = Setup(tmp_path / "t")
    socket_file = Path(setup.path)
    assert stat.S_IMODE(socket_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket_file.parent.stat().st_mode) == 0o700
    setup.close()
    assert not socket_file.exists()


def test_a_stale_socket_is_replaced_and_a_directory_below_a_private_one_made_private(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir(mode=0o700)
    directory = tmp_path / "p" / "input"
    directory.mkdir(mode=0o755)
    endpoint.listen(f"{directory}/x.sock").close()
    endpoint.listen(f"{directory}/x.sock").close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def link(directory: Path) -> None:
    (directory.parent / "elsewhere").mkdir(mode=0o700)
    directory.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        (lambda directory: directory.mkdir(mode=0o755), "is not private"),
        (link, "is not a directory"),
        (lambda directory: directory.write_text(""), "is not a directory"),
    ],
    ids=["open to others", "link", "file"],
)
def test_a_directory_that_is_not_ours_alone_is_refused(
    tmp_path: Path, prepare: Callable[[Path], object], says: str
) -> None:
    """D31: below $TMPDIR anybody may have been there first."""
    tmp_path.chmod(0o755)
    directory = tmp_path / "jobman"
    prepare(directory)
    with pytest.raises(EndpointError, match=says):
        endpoint.listen(f"{directory}/x.sock")
    assert list(tmp_path.glob("**/*.sock")) == []


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """D31."""
    (tmp_path / "jobman").mkdir(mode=0o700)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(EndpointError, match="belongs to user"):
        endpoint.listen(f"{tmp_path}/jobman/x.sock")


def test_where_the_socket_lies() -> None:
    """I.6: below the state root if that is short enough, else in $TMPDIR, else in /tmp."""
    assert endpoint.endpoint_path("/s", RUN) == f"/s/input/{RUN}.sock"
    longest = "/" + "s" * (99 - len(f"/input/{RUN}.sock") - 1)
    assert endpoint.endpoint_path(longest, RUN) == f"{longest}/input/{RUN}.sock"
    own = f"jobman-{os.geteuid()}"
    long = longest + "s"
    there = endpoint.endpoint_path(long, RUN, "/var/tmp/")  # nothing is made
    assert there.startswith(f"/var/tmp/{own}/")  # see above
    assert len(os.path.basename(there)) == 32 + len(".sock")
    for useless in ("", "relative", "/t" * 50, "/\udcff"):
        assert endpoint.endpoint_path(long, RUN, useless).startswith(f"/tmp/{own}/")  # see above
    assert endpoint.endpoint_path(long, RUN) != endpoint.endpoint_path(long, LATER_RUN)
    assert endpoint.endpoint_path(long, RUN) != endpoint.endpoint_path(long + "s", RUN)
