"""Hooks as real processes: what they are given, and what becomes of those that hang, flood, crash or fork (L.3)."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from jobman.model.notifiers import CommandTarget
from jobman.model.secrets import SecretVariable
from jobman.notify import command
from jobman.policy.delivery import FailureCode, Result
from tests.receivers import EVENT_ID, outgoing
from tests.support import eventually


def shell(script: str, **changes: Any) -> CommandTarget:
    return CommandTarget("/bin/sh", ("-c", script))._replace(**changes)


def send(script: str, *, timeout_s: float = 10.0) -> Result:
    return command.send(shell(script), outgoing(timeout_s=timeout_s))


def test_a_hook_gets_the_message_and_nothing_but_its_own_environment(tmp_path: Path) -> None:
    """D.3: no PATH, nothing inherited; the secret is among the variables."""
    chosen = CommandTarget("/usr/bin/env", ("-0",), (("A", "1"),), (SecretVariable("TOKEN", "env", "X"),))

    result = command.send(chosen, outgoing({"TOKEN": "xyzzy"}))

    assert (result.code, result.command_exit_code) == (None, 0)
    assert sorted(result.output.decode().rstrip("\0").split("\0")) == [
        "A=1",
        f"JOBMAN_EVENT_ID={EVENT_ID}",
        "JOBMAN_EVENT_SCHEMA_VERSION=1",
        "JOBMAN_EVENT_TYPE=job_failed",
        "TOKEN=xyzzy",
    ]
    read = tmp_path / "read"
    assert send(f"/bin/cat > {read}").code is None
    assert json.loads(read.read_bytes())["id"] == EVENT_ID


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ("exit 3", 3, "exited with status 3"),
        ("kill -SEGV $$", -1, "ended by signal 11"),
        ("exit 255", 255, "status 255"),
    ],
)
def test_a_hook_that_fails_or_crashes_may_be_tried_again(script: str, code: int, says: str) -> None:
    result = send(script)

    assert (result.code, result.retryable, result.command_exit_code) == (FailureCode.REJECTED, True, code)
    assert says in result.text


def test_a_hook_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    for path, why in (
        (tmp_path / "absent", "no such file"),
        (text, "permission denied"),
        (tmp_path, "permission denied"),
    ):
        result = command.send(CommandTarget(str(path)), outgoing())
        assert (result.code, result.retryable, result.command_exit_code) == (FailureCode.REJECTED, True, -1)
        assert why in result.text


@pytest.mark.parametrize(
    "script", ["echo $$ > {}; sleep 60", "trap '' TERM; (sleep 60 & echo $! > {}; wait); sleep 60"]
)
def test_a_hook_that_hangs_is_stopped_with_its_process_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(command, "_GRACE_S", 0.05)
    pid = tmp_path / "pid"

    result = send(f"PATH=/bin:/usr/bin; {script.format(pid)}", timeout_s=0.3)

    assert (result.code, result.retryable, result.command_exit_code) == (FailureCode.TIMEOUT, True, -1)
    eventually(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"), "it lives on")


def test_a_hook_that_floods_is_read_to_its_end_and_only_the_beginning_is_kept() -> None:
    chosen = shell("PATH=/bin:/usr/bin; head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2", output_limit=1000)

    result = command.send(chosen, outgoing())

    assert (result.code, len(result.output)) == (None, 2000)


def test_a_hook_that_never_stops_writing_is_stopped_in_time() -> None:
    started = time.monotonic()

    result = send("while :; do echo text; done", timeout_s=0.3)

    assert result.code == FailureCode.TIMEOUT
    assert time.monotonic() - started < 5


def test_a_hook_that_leaves_a_child_with_its_output_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer counts; what it has left in the background goes on, and its output goes nowhere."""
    monkeypatch.setattr(command, "_PIPES_S", 0.1)
    pid = tmp_path / "pid"
    started = time.monotonic()

    result = send(f"PATH=/bin:/usr/bin; sleep 60 & echo $! > {pid}; exit 0")

    assert (result.code, result.command_exit_code) == (None, 0)
    assert time.monotonic() - started < 5
    os.kill(int(pid.read_text()), 9)


def test_a_hook_need_not_read_what_it_is_told() -> None:
    message = outgoing().message
    large = message._replace(summary={"job_name": "x" * 900_000})

    assert command.send(shell("exec <&-; exit 0"), outgoing(message=large)).code is None


def test_nothing_is_forked_while_the_gate_is_held() -> None:
    held: list[str] = []

    class Gate:
        def __enter__(self) -> None:
            held.append("in")

        def __exit__(self, *_: object) -> None:
            held.append("out")

    result = command.send(shell("exit 0"), outgoing()._replace(fork_gate=Gate()))

    assert (result.code, held) == (None, ["in", "out"])
