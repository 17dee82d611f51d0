"""Telling a program: its standard input is the message, its exit status the answer (contract, L.3 and D.3)."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time

from jobman.notify.message import SCHEMA_VERSION
from jobman.policy.delivery import FailureCode, Result
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.notifiers import CommandTarget
    from jobman.notify.outgoing import Outgoing

    Process = subprocess.Popen[bytes]

_BLOCK = 65_536
_LOOK_EVERY_S = 0.05
_PIPES_S = 2.0
_GRACE_S = 1.0


def send(target: CommandTarget, outgoing: Outgoing) -> Result:
    """Execute the program, without a shell and with nothing but its own environment, and wait for its end.

    When its time is over, its whole process group is stopped.
    """
    deadline = time.monotonic() + outgoing.timeout_s
    try:
        with outgoing.fork_gate:
            process = subprocess.Popen(
                [_raw(word) for word in (target.executable, *target.arguments)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(target, outgoing),
                cwd=_raw(target.working_directory) or None,
                start_new_session=True,
                bufsize=0,
            )
    except OSError as error:
        text = f"{target.executable} cannot be started: {(error.strerror or str(error)).lower()}"
        return Result(FailureCode.REJECTED, text, retryable=True, command_exit_code=-1)
    conversation = _Conversation(process, outgoing.body, target.output_limit)
    try:
        ended = conversation.run(deadline)
    finally:
        conversation.close()
    return _judge(target, process, conversation.output(), ended=ended, timeout_s=outgoing.timeout_s)


def _environment(target: CommandTarget, outgoing: Outgoing) -> dict[bytes, bytes]:
    environment = {_raw(name): _raw(value) for name, value in target.assignments}
    environment |= {name.encode("ascii"): value for name, value in outgoing.secrets.items()}
    environment[b"JOBMAN_EVENT_ID"] = outgoing.message.id.encode()
    environment[b"JOBMAN_EVENT_TYPE"] = outgoing.message.type.encode()
    environment[b"JOBMAN_EVENT_SCHEMA_VERSION"] = str(SCHEMA_VERSION).encode()
    return environment


def _judge(target: CommandTarget, process: Process, output: bytes, *, ended: bool, timeout_s: float) -> Result:
    if not ended:
        _stop(process)
        text = f"{target.executable} did not end within {timeout_s:g} s and was stopped"
        return Result(FailureCode.TIMEOUT, text, retryable=True, command_exit_code=-1, output=output)
    status = process.returncode
    if status == 0:
        return Result(command_exit_code=0, output=output)
    # A program that a signal ended has no exit code.
    how, code = (f"exited with status {status}", status) if status > 0 else (f"was ended by signal {-status}", -1)
    text = f"{target.executable} {how}"
    return Result(FailureCode.REJECTED, text, retryable=True, command_exit_code=code, output=output)


def _stop(process: Process) -> None:
    """Ask the process group to end, wait, insist; the leader is not reaped before, so the group is still its own."""
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        if _has_ended(process, patience_s):
            break
    try:
        # Whatever the leader did, nothing of its group goes on.
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _has_ended(process: Process, patience_s: float | None) -> bool:
    deadline = None if patience_s is None else time.monotonic() + patience_s
    while deadline is None or time.monotonic() < deadline:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            return True
        time.sleep(_LOOK_EVERY_S / 5)
    return False


class _Conversation:
    """Writes the message and takes what the program says, up to its limit; what is more is read and dropped."""

    def __init__(self, process: Process, body: bytes, limit: int) -> None:
        self._process = process
        self._body = memoryview(body)
        self._limit = limit
        self._selector = selectors.DefaultSelector()
        self._kept: dict[int, bytearray] = {}
        for pipe, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe.fileno(), event)
                if event == selectors.EVENT_READ:
                    self._kept[pipe.fileno()] = bytearray()

    def run(self, deadline: float) -> bool:
        """Go on until the program has ended, and whoever holds its output has had 2 s more; say whether it ended."""
        ended_at: float | None = None
        while True:
            now = time.monotonic()
            if ended_at is None and self._leader_has_ended():
                ended_at = now
            if ended_at is not None and (not self._reads() or now >= ended_at + _PIPES_S):
                self._process.wait()
                return True
            if ended_at is None and now >= deadline:
                return False
            self._step(min(_LOOK_EVERY_S, max(0.0, deadline - now)) if ended_at is None else _LOOK_EVERY_S)

    def output(self) -> bytes:
        """Return what the program said, its standard output first."""
        return b"".join(bytes(kept) for kept in self._kept.values())

    def close(self) -> None:
        """Close all pipes."""
        self._selector.close()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def _leader_has_ended(self) -> bool:
        # Without reaping it: until then its process group cannot be another's.
        found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        return found is not None

    def _reads(self) -> bool:
        return any(key.events == selectors.EVENT_READ for key in self._selector.get_map().values())

    def _step(self, patience_s: float) -> None:
        if not self._selector.get_map():
            time.sleep(patience_s / 5)
            return
        for key, _ in self._selector.select(patience_s):
            if key.events == selectors.EVENT_WRITE:
                self._write(key.fd)
            else:
                self._read(key.fd)

    def _write(self, descriptor: int) -> None:
        try:
            self._body = self._body[os.write(descriptor, self._body[:_BLOCK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._body = self._body[:0]  # a program need not read what it is told
        if not self._body:
            self._selector.unregister(descriptor)
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _read(self, descriptor: int) -> None:
        try:
            block = os.read(descriptor, _BLOCK)
        except BlockingIOError:
            return
        if not block:
            self._selector.unregister(descriptor)
            return
        kept = self._kept[descriptor]
        kept += block[: self._limit - len(kept)]


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
