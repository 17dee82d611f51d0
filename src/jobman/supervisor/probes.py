"""Probes: small programs that answer a wait condition, watched by the loop like any other child (D30).

A probe has a process group of its own, an argument vector and no shell, and a time limit after which the group is
killed. Its output is read and thrown away, a block at a time.
"""

from __future__ import annotations

import os

from jobman import process, signals
from jobman.config.secrets import resolve_all
from jobman.errors import SecretUnavailableError
from jobman.policy.conditions import EVALUATION_ERROR, PROBE_TIMEOUT, Evaluation
from jobman.process import LaunchFailure, LaunchRequest
from jobman.supervisor.environment import raw
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobman.clock import Clock
    from jobman.model.waits import Probe
    from jobman.process import GatedChild

_READ_BYTES = 65_536
_SATISFIED = Evaluation(satisfied=True)
_UNSATISFIED = Evaluation(satisfied=False)


class ProbeContext(NamedTuple):
    """Where probes run: the target's environment, directory, umask and file size limit, and the lock to close.

    ``inherited`` is the environment of the submitter, where secrets are looked up.
    """

    environment: Mapping[bytes, bytes]
    directory: str
    umask: int
    lock_fd: int
    clock: Clock
    inherited: Mapping[bytes, bytes]
    file_size_limit: tuple[int, int] | None = None


class ProbeRun:
    """One evaluation of a probe that is under way; `poll` tells its result once there is one."""

    def __init__(self, probe: Probe, context: ProbeContext) -> None:
        self._probe = probe
        self._clock = context.clock
        self._deadline_ns = context.clock.monotonic_ns() + probe.timeout_ns
        self._child: GatedChild | None = None
        self._pipes: set[int] = set()
        self._result_fd: int | None = None
        self._result: Evaluation | None = None
        self._start(probe, context)

    def descriptors(self) -> list[int]:
        """Return what to poll for reading."""
        child = self._child
        if child is None:
            return []
        watched = (*self._pipes, self._result_fd, child.pidfd)
        return [descriptor for descriptor in watched if descriptor is not None]

    def pids(self) -> list[int]:
        """Return its process, if it has one."""
        return [] if self._child is None else [self._child.pid]

    def due_ns(self) -> int:
        """Return the monotonic time at which the probe has used up its own."""
        return self._deadline_ns

    def poll(self) -> Evaluation | None:
        """Take in what has happened; return the result, ``None`` while there is none."""
        child = self._child
        if self._result is not None or child is None:
            return self._result
        self._drain()
        if self._failed_to_start():
            return self._end(self._error())
        status = process.observe_exit(child.pid)
        if status is not None:
            return self._end(self._judge(status))
        if self._clock.monotonic_ns() >= self._deadline_ns:
            return self._end(Evaluation(satisfied=False, code=PROBE_TIMEOUT, fatal=self._probe.fatal_on_error))
        return None

    def abandon(self) -> None:
        """End it without a result: what it was asked for does not matter any more."""
        if self._child is not None:
            self._end(_UNSATISFIED)

    def _start(self, probe: Probe, context: ProbeContext) -> None:
        environment = dict(context.environment)
        for variable in probe.removals:
            environment.pop(raw(variable), None)
        environment.update((raw(variable), raw(value)) for variable, value in probe.assignments)
        try:
            environment.update(resolve_all(probe.secrets, context.inherited))
        except SecretUnavailableError:
            self._result = self._error()
            return
        name, directory = raw(probe.executable), raw(probe.working_directory or context.directory)
        found = process.resolve_executable(name, directory, environment.get(b"PATH"))
        if isinstance(found, LaunchFailure):
            self._result = self._error()
            return
        argv = (name, *(raw(word) for word in probe.arguments))
        limit = context.file_size_limit
        request = LaunchRequest(found, argv, environment, directory, context.umask, file_size_limit=limit)
        try:
            child = process.launch_gated(request, close_in_child=(context.lock_fd,))
        except OSError:
            self._result = self._error()
            return
        self._child = child
        self._pipes = {child.stdout_fd, child.stderr_fd}
        self._result_fd = child.result_fd
        # Nothing is recorded of a probe that its start would have to wait for.
        process.open_gate(child)

    def _drain(self) -> None:
        for descriptor in tuple(self._pipes):
            try:
                block = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                continue
            # What a probe says is kept nowhere, within its limit or beyond; with the pipe closed it would die of it.
            if not block:
                self._pipes.discard(descriptor)
                os.close(descriptor)

    def _failed_to_start(self) -> bool:
        if self._result_fd is None:
            return False
        try:
            failed = process.read_launch_result(self._result_fd) is not None
        except BlockingIOError:
            return False
        # Read once: a pipe at its end stays readable, and would keep the loop awake.
        os.close(self._result_fd)
        self._result_fd = None
        return failed

    def _judge(self, status: process.ExitStatus) -> Evaluation:
        if status.exit_code == 0:
            return _SATISFIED
        # Killed by a signal: nobody can say what it would have answered, ever (H.2; D7 exempts its own timeout only).
        return (
            _UNSATISFIED
            if status.exit_code is not None
            else Evaluation(satisfied=False, code=EVALUATION_ERROR, fatal=True)
        )

    def _error(self) -> Evaluation:
        return Evaluation(satisfied=False, code=EVALUATION_ERROR, fatal=self._probe.fatal_on_error)

    def _end(self, result: Evaluation) -> Evaluation:
        child, self._child = self._child, None
        self._result = result
        if child is None:
            return result
        try:
            os.killpg(child.pid, signals.SIGKILL)  # nobody has reaped its leader yet: the group is its own
        except OSError:
            pass  # gone, or another user's by now
        # Not waited for: it may hang in the kernel for as long as the file server it asks is away. Whoever reaps what
        # is left to this supervisor takes it when it ends.
        process.reap(child.pid)
        for descriptor in (*self._pipes, self._result_fd, child.pidfd):
            if descriptor is not None:
                os.close(descriptor)
        self._pipes.clear()
        self._result_fd = None
        return result
