"""A sender killed, or refused something, at any system call: told once, at most once more, never too late (issue 7).

What is told is looked at where it arrives: by a program, by a web server, by a mail server.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman.model.events import NotifyEvent
from jobman.model.notifiers import HttpTarget, Notifier, SmtpTarget, TlsMode
from jobman.process.senders import sender_command, sender_environment, take_place
from jobman.store import deliveries
from jobman.store.deliveries import Delivery
from tests.faults.injection import ALL_POINTS, assert_sound, injected, rows, traced, with_threads
from tests.mailbox import mail_server
from tests.outbox import SECOND, Outbox, reap
from tests.receivers import Authority, web_server
from tests.support import DEADLINE_S, Cli, eventually, processes_with

HOUR = 3_600 * SECOND
EVENT = (NotifyEvent.JOB_SUCCEEDED,)
# Which calls a sender makes for one thing to tell, rounded up: its main thread, or the one that speaks to the other
# side, each counted by itself. What the main thread does is the same for all, so it stands with the hook only.
CALLS = {
    "hook": {
        "fdatasync": range(1, 7),
        "pwrite64": range(1, 25),
        "flock": range(1, 21),
        "mkdir,mkdirat": range(1, 3),
        "fchmod": range(1, 11),
        "openat": range(1, 191),
        "clone,clone3,fork,vfork": range(1, 3),
        "pipe2": range(1, 6),
        "write": range(1, 4),
        "wait4,waitid": range(1, 13),
        "epoll_wait": range(1, 9),
        "fsync": range(0),
        "ftruncate": range(0),
        "unlink,unlinkat": range(0),
        "rename,renameat,renameat2": range(0),
    },
    "web": {
        "openat": range(164, 301),
        "socket": range(1, 6),
        "connect": range(1, 6),
        "poll": range(1, 41),  # one for each moment that it waits: a slow machine has more
        "write": range(1, 7),
        "fdatasync": range(1, 7),
    },
    "mail": {
        "socket": range(1, 6),
        "connect": range(1, 6),
        "poll": range(1, 41),  # one for each moment that it waits: a slow machine has more
        "sendto,sendmsg": range(1, 5),
        "recvfrom,recvmsg": range(1, 13),
        "write": range(1, 13),
        "clone,clone3,fork,vfork": range(1, 3),
        "fdatasync": range(1, 7),
    },
}
SAMPLE: dict[str, dict[str, tuple[int, ...]]] = {
    "hook": {
        "fdatasync": (1, 2, 3),
        "clone,clone3,fork,vfork": (1,),
        "write": (1,),
        "wait4,waitid": (1,),
        "flock": (9,),
    },
    "web": {"connect": (3,), "write": (3,)},
    "mail": {"write": (8,)},
}
POINTS = [
    (kind, syscall, number)
    for kind, calls in CALLS.items()
    for syscall, numbers in calls.items()
    for number in (numbers if ALL_POINTS else SAMPLE[kind].get(syscall, ()))
]
# What a full or broken disk, or a system without room for a process, refuses.
REFUSED = {
    "pwrite64": ("EIO", "ENOSPC", range(1, 25), (3, 9)),
    "fdatasync": ("EIO", "ENOSPC", range(1, 7), (1, 2)),
    "openat": ("EMFILE", "ENOMEM", range(90, 181), ()),
    "pipe2": ("EMFILE", "ENFILE", range(1, 6), (2,)),
    "flock": ("ENOLCK", "EIO", range(1, 21), (4,)),
    "fchmod": ("EIO", "EROFS", range(1, 11), ()),
}
REFUSALS = [
    (syscall, number, error)
    for syscall, (first, second, every, some) in REFUSED.items()
    for error in ((first, second) if ALL_POINTS else (first,))
    for number in (every if ALL_POINTS else some)
]


class Receiver(NamedTuple):
    """A notifier and how much has arrived at the other side."""

    notifier: Notifier
    received: Callable[[], int]


class World:
    """The outbox of one job, whoever comes by, and the other side."""

    def __init__(self, cli: Cli, authority: Authority) -> None:
        self.cli = cli
        self.box = Outbox(cli.state)
        self.authority = authority
        cli.environment["SSL_CERT_FILE"] = str(authority.path)

    def receiver(self, kind: str) -> contextlib.AbstractContextManager[Receiver]:
        """Serve on the other side."""
        return {"hook": self._program, "web": self._web, "mail": self._mail}[kind](self.box.hook(budget_ns=HOUR // 4))

    @contextlib.contextmanager
    def _program(self, hook: Notifier) -> Iterator[Receiver]:
        yield Receiver(hook, lambda: len(self.box.file.read_text().splitlines()) if self.box.file.exists() else 0)

    @contextlib.contextmanager
    def _web(self, hook: Notifier) -> Iterator[Receiver]:
        with web_server(self.authority.context("localhost")) as server:
            target = HttpTarget(server.url, allow_private=True)
            yield Receiver(hook._replace(command=None, http=target), lambda: len(server.requests))

    @contextlib.contextmanager
    def _mail(self, hook: Notifier) -> Iterator[Receiver]:
        with mail_server(self.authority.context("localhost")) as (mailbox, server):
            target = SmtpTarget(server.address, "jobs@example.org", ("me@example.org",), TlsMode.STARTTLS)
            yield Receiver(hook._replace(command=None, smtp=target), lambda: len(mailbox.envelopes))

    def send(self, words: Sequence[str]) -> int:
        """Be a sender in the first place behind ``words``; return its status."""
        taken = take_place(self.box.store.root, (0,))
        assert taken is not None
        argv, environment = [*words, *sender_command("0")], sender_environment(self.box.store.root)
        with subprocess.Popen(argv, stdin=taken[1], env=environment) as sender:
            os.close(taken[1])
            try:
                sender.wait(4 * DEADLINE_S)  # it is traced, which a busy machine makes slow
            finally:
                sender.kill()
        self.box.finish()  # who traced it holds the place a moment longer
        return sender.returncode

    def delivery(self, job_id: str) -> Delivery:
        """Return what is recorded of the one thing to tell."""
        [delivery] = self.box.delivered(job_id)
        # A program that was left alone is at its end soon: nobody writes to it any more.
        eventually(lambda: not processes_with("JOBMAN_EVENT_ID", delivery.event_id.encode()))
        return delivery

    def let_the_budget_pass(self) -> None:
        """Make everything an hour older."""
        statement = (
            "UPDATE notification_deliveries SET created_at_ns = created_at_ns - ?1, deadline_ns = deadline_ns - ?1,"
            " next_attempt_at_ns = next_attempt_at_ns - ?1"
        )
        rows(self.cli.state, statement, HOUR)

    def come_by(self, number: int, job_id: str) -> None:
        """Come by in one of three ways, and wait until everybody has gone."""
        words = (("run", "--", "true"), ("wait", job_id), ("doctor", "--repair"))[number % 3]
        self.cli(*words)
        eventually(lambda: self.delivery(job_id).completed_at_ns is not None, " ".join(words))
        self.box.finish()


@pytest.fixture
def world(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(cli, Authority(tmp_path, monkeypatch))
    yield made
    made.box.store.close()
    reap()


class Sent(NamedTuple):
    """What came of one thing to tell."""

    status: int
    told: int
    delivery: Delivery


def send_with(world: World, kind: str, fault: Sequence[str], number: int) -> Sent:
    """Queue one thing to tell, send it with a fault, let somebody come by; for odd numbers, when it is too late."""
    with world.receiver(kind) as receiver:
        job_id = world.box.queue(receiver.notifier, events=EVENT)
        status = world.send(with_threads(fault, executes=kind == "hook"))
        before, told = world.delivery(job_id), receiver.received()
        if number % 2:
            world.let_the_budget_pass()
        world.come_by(number, job_id)
        after = world.delivery(job_id)
        if number % 2 and before.completed_at_ns is None:
            assert receiver.received() == told, "sent after its budget"
            assert (after.status, after.diagnostic_code) == ("failed", "budget_exhausted")
        assert_sound(world.cli.state)
        return Sent(status, receiver.received(), after)


@pytest.mark.parametrize(("kind", "syscall", "number"), POINTS)
def test_a_sender_killed_at_a_system_call(world: World, kind: str, syscall: str, number: int) -> None:
    """L.4, D5, O.60: whatever it was about to do; what it held is taken over at once, under the same number."""
    status, told, delivery = send_with(world, kind, injected(syscall, number), number)

    assert status in {0, -signal.SIGKILL}
    assert told <= delivery.attempt_count + (status != 0)
    assert told >= (delivery.status == "succeeded")
    assert delivery.diagnostic_code in {None, "budget_exhausted"}
    recorded = deliveries.load_attempts(world.box.store, delivery.job_id)
    assert [one.number for one in recorded] == [*range(1, delivery.attempt_count + 1)]
    assert [one for one in recorded if one.completed_at_ns is None] == []


@pytest.mark.parametrize(("syscall", "number", "error"), REFUSALS)
def test_a_sender_that_is_refused_a_call(world: World, syscall: str, number: int, error: str) -> None:
    """What it cannot record it has told at most once more; what it could not do is done again, as often as is asked."""
    _, told, delivery = send_with(world, "hook", injected(syscall, number, f"error={error}"), number)

    assert told <= delivery.attempt_count + 1
    assert told >= (delivery.status == "succeeded")
    # Each attempt has a thread, and each of them is refused the same call.
    refused = delivery.attempt_count == delivery.max_attempts and not told
    assert refused or delivery.diagnostic_code in {None, "budget_exhausted"}


def test_a_sender_without_room_for_a_thread_tries_again(world: World) -> None:
    with world.receiver("hook") as receiver:
        job_id = world.box.queue(receiver.notifier, events=EVENT)
        assert world.send(injected("clone,clone3", 1, "error=EAGAIN")) == 0

    assert world.delivery(job_id).status == "succeeded"
    first, second = deliveries.load_attempts(world.box.store, job_id)
    assert (first.diagnostic_code, first.diagnostic, second.status) == (
        "internal",
        "no thread can be started",
        "succeeded",
    )


@pytest.mark.parametrize("kind", CALLS)
def test_no_call_of_a_sender_is_left_out(world: World, tmp_path: Path, kind: str) -> None:
    """The table above covers what a sender does; one that does more needs more points."""
    log = tmp_path / "log"
    kinds = [name for syscall in CALLS[kind] for name in syscall.split(",")]

    with world.receiver(kind) as receiver:
        job_id = world.box.queue(receiver.notifier, events=EVENT)
        assert world.send(with_threads(traced(*kinds, log=log), executes=kind == "hook")) == 0

    assert world.delivery(job_id).status == "succeeded"
    made = re.findall(r"^(\d+) +(\w+)\(", log.read_text(), re.MULTILINE)
    for syscall, numbers in CALLS[kind].items():
        calls = [thread for thread, name in made if name in syscall.split(",")]
        most = max(map(calls.count, calls), default=0)
        assert (numbers.stop > 1) == (most > 0), syscall
        assert most < max(numbers.stop, 1), syscall
