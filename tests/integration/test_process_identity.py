"""A PID is never an identity: who lives, who is gone, and who must not be judged from here."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobman import process
from jobman.errors import UnsupportedPlatformError
from jobman.model.identity import Presence, ProcessIdentity
from jobman.process import GatedChild, _linux
from tests.integration.test_process_helpers import (
    finish,
    launch,
    nobody_left,  # noqa: F401  # a fixture
    until,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.usefixtures("nobody_left"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


@pytest.fixture
def child() -> Iterator[GatedChild]:
    child = launch(b"sleep", b"60")
    yield child
    os.kill(child.pid, signal.SIGKILL)
    finish(child, closed=(child.gate_fd,))


@pytest.fixture
def identity(child: GatedChild) -> ProcessIdentity:
    found = process.inspect(child.pid)
    assert found is not None
    return found


def older(identity: ProcessIdentity) -> ProcessIdentity:
    """The identity of somebody who had this PID before: what a recycled PID looks like from a record."""
    return identity._replace(creation_id=str(int(identity.creation_id) - 1))


def test_our_own_identity_is_alive_and_names_boot_and_namespace() -> None:
    own = process.own_identity()
    assert own.pid == os.getpid()
    assert own.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert os.readlink("/proc/self/ns/pid") == f"pid:[{own.pid_namespace}]"
    assert process.presence(own) is Presence.ALIVE


def test_a_process_is_gone_once_it_is_reaped_and_nobody_has_its_pid() -> None:
    child = launch(b"sleep", b"60")
    identity = process.inspect(child.pid)
    assert identity is not None
    assert process.presence(identity) is Presence.ALIVE
    os.kill(child.pid, signal.SIGKILL)
    finish(child, closed=(child.gate_fd,))
    assert process.inspect(child.pid) is None
    assert process.presence(identity) is Presence.GONE


def test_a_zombie_is_gone_and_can_still_be_identified(child: GatedChild, identity: ProcessIdentity) -> None:
    """Field case 10: ``kill -0`` would call it alive."""
    os.kill(child.pid, signal.SIGKILL)
    until(lambda: process.observe_exit(child.pid) is not None)
    assert process.presence(identity) is Presence.GONE
    assert process.inspect(child.pid) == identity
    assert not process.signal_process(identity, 0)


def test_a_stopped_process_is_alive(child: GatedChild, identity: ProcessIdentity) -> None:
    assert process.signal_process(identity, signal.SIGSTOP)
    until(lambda: (found := _linux.entry(child.pid)) is not None and found.state == "T")
    assert process.presence(identity) is Presence.ALIVE


def test_a_recycled_pid_is_gone_and_never_signalled(child: GatedChild, identity: ProcessIdentity) -> None:
    """Field case 8."""
    assert process.presence(older(identity)) is Presence.GONE
    assert not process.signal_process(older(identity), signal.SIGKILL)
    assert not process.signal_group(older(identity), signal.SIGKILL)
    assert process.observe_exit(child.pid) is None


def test_a_process_of_another_boot_is_gone_and_never_signalled(child: GatedChild, identity: ProcessIdentity) -> None:
    other = identity._replace(boot_id="00000000-0000-0000-0000-000000000000", pid_namespace="1")
    assert process.presence(other) is Presence.GONE
    assert not process.signal_process(other, signal.SIGKILL)
    assert not process.signal_group(other, signal.SIGKILL)
    assert process.observe_exit(child.pid) is None


def test_a_process_of_another_pid_namespace_is_unknown_and_never_signalled(
    child: GatedChild, identity: ProcessIdentity
) -> None:
    other = identity._replace(pid_namespace="1")
    assert process.presence(other) is Presence.UNKNOWN
    assert not process.signal_process(other, signal.SIGKILL)
    assert not process.signal_group(other, signal.SIGKILL)
    assert process.observe_exit(child.pid) is None


def test_a_process_table_of_another_namespace_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch, identity: ProcessIdentity
) -> None:
    monkeypatch.setattr(_linux, "_table_is_ours", lambda: False)
    assert process.presence(identity) is Presence.UNKNOWN
    assert not process.signal_process(identity, signal.SIGKILL)
    assert not process.signal_group(identity, signal.SIGKILL)
    with pytest.raises(UnsupportedPlatformError, match="another PID namespace"):
        process.own_identity()


def test_an_unreadable_process_table_leaves_presence_unknown(
    monkeypatch: pytest.MonkeyPatch, identity: ProcessIdentity
) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(errno.EMFILE, "no descriptor")

    monkeypatch.setattr(_linux, "_read", refuse)
    assert process.presence(identity) is Presence.UNKNOWN


def test_a_process_that_is_hidden_from_us_is_unknown(
    monkeypatch: pytest.MonkeyPatch, identity: ProcessIdentity
) -> None:
    monkeypatch.setattr(_linux, "_entry", lambda _: None)
    assert process.presence(identity) is Presence.UNKNOWN


def test_the_table_of_a_foreign_namespace_is_recognised() -> None:
    """A child namespace that still sees its parent's ``/proc``."""
    code = "from jobman.process import _linux; print(_linux._table_is_ours())"
    source = os.path.dirname(os.path.dirname(os.path.dirname(process.__file__)))
    command = ["unshare", "-Urpf", os.path.realpath("/proc/self/exe"), "-I", "-S", "-c"]
    command.append(f"import sys; sys.path.insert(0, {source!r}); {code}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces of our own here")
    assert done.stdout == "False\n", done.stderr


def test_a_name_with_blanks_and_parentheses_does_not_confuse_the_table(tmp_path: Path) -> None:
    script = tmp_path / "a) R 1 (b"
    script.write_bytes(b"#!/bin/sh\nread line\n")
    script.chmod(0o755)
    reader, writer = os.pipe()
    asked = process.LaunchRequest(bytes(script), (b"x",), {}, b"/", 0o22, reader)
    child = process.launch_gated(asked)
    process.open_gate(child)
    until(lambda: (entry := _linux.entry(child.pid)) is not None and entry.name == script.name)
    entry = _linux.entry(child.pid)
    assert entry is not None
    assert (entry.ppid, entry.pgid, entry.session) == (os.getpid(), child.pid, os.getsid(0))
    os.close(writer)
    os.close(reader)
    finish(child, closed=(child.gate_fd,))


@pytest.mark.parametrize("pidfds", [True, False])
def test_a_verified_process_is_signalled(
    monkeypatch: pytest.MonkeyPatch, child: GatedChild, identity: ProcessIdentity, *, pidfds: bool
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSYS, "an old kernel")

    if not pidfds:
        monkeypatch.setattr(os, "pidfd_open", refuse)
        assert not process.signal_process(older(identity), signal.SIGKILL)
    assert process.signal_process(identity, signal.SIGTERM)
    until(lambda: process.observe_exit(child.pid) is not None)
    assert process.observe_exit(child.pid) == (None, "terminated", 15, None)


def test_a_signal_to_somebody_who_is_gone_is_not_sent(identity: ProcessIdentity) -> None:
    assert not process.signal_process(identity._replace(pid=4_000_000), signal.SIGTERM)


@pytest.mark.parametrize("pid", [-1, 0])
def test_numbers_that_kill_takes_for_many_are_never_signalled(pid: int, identity: ProcessIdentity) -> None:
    assert not process.signal_group(identity._replace(pid=pid), 0)
    assert not process.signal_process(identity._replace(pid=pid), 0)


def test_the_group_of_the_first_process_is_never_signalled() -> None:
    """To ``killpg``, 1 means every process there is."""
    init = process.inspect(1)
    assert init is not None
    assert not process.signal_group(init, 0)


def test_a_group_can_be_signalled_while_its_leader_is_a_zombie() -> None:
    leader = launch(b"sh", b"-c", b"sleep 60 & sleep 60 & echo; exit 3")
    identity = process.inspect(leader.pid)
    assert identity is not None
    until(lambda: process.observe_exit(leader.pid) is not None)
    assert process.signal_group(identity, signal.SIGKILL)
    until(lambda: len(process.adopted(os.getpid())) == 3)
    until(lambda: all(process.presence(one) is Presence.GONE for one in process.adopted(os.getpid())))
    for one in process.adopted(os.getpid()):
        if one != identity:
            process.reap(one.pid)
    finish(leader, closed=(leader.gate_fd,))


def test_a_process_that_leads_no_group_has_no_group_to_signal() -> None:
    with subprocess.Popen(["sleep", "60"]) as plain:
        identity = process.inspect(plain.pid)
        assert identity is not None
        assert not process.signal_group(identity, 0)
        plain.kill()
