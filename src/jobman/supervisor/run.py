"""The active run of a supervisor: its child, its pipes, its capture, and what is known of its end.

Nothing here decides or commits; the loop asks how far the child has come (`ActiveRun.view`) and tells it what to do.
"""

from __future__ import annotations

import os

from jobman import process
from jobman.logs.capture import Capture
from jobman.model.spec import LogCapture
from jobman.model.state import Diagnostic, Problem, RunExit, RunLogs, RunUsage, Stream
from jobman.policy.decide import ChildView, Stage
from jobman.policy.ladder import Ladder
from jobman.process import LaunchFailure, LaunchRequest, RunTree
from jobman.supervisor.stop import ask
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.identity import ProcessIdentity
    from jobman.model.spec import JobSpec
    from jobman.model.state import Run
    from jobman.process import GatedChild
    from jobman.supervisor.stdin import StandardInput

READ_BYTES = 256 * 1024
_RESCAN_NS = 20_000_000
_CAPTURED = {
    LogCapture.BOTH: (Stream.STDOUT, Stream.STDERR),
    LogCapture.STDOUT: (Stream.STDOUT,),
    LogCapture.STDERR: (Stream.STDERR,),
    LogCapture.NONE: (),
}


class RunContext(NamedTuple):
    """What every step of a run needs: where, what, for whom.

    ``inherited`` is the submitter's environment, ``directory`` that of the run's logs, ``adopts`` whether this
    supervisor is a child subreaper.
    """

    root: str
    spec: JobSpec
    directory: str
    clock: Clock
    inherited: dict[bytes, bytes]
    umask: int
    lock_fd: int
    stdin: StandardInput
    adopts: bool
    file_size_limit: tuple[int, int] | None = None


class Ending(NamedTuple):
    """What a run came to, once its leader is reaped and its capture closed."""

    start_failed: bool
    exit: RunExit | None
    usage: RunUsage | None
    logs: RunLogs
    problem: Problem | None


class ActiveRun:
    """One run between its reservation and its recorded end."""

    def __init__(self, context: RunContext, run: Run, *, paused_ns: int) -> None:
        logging = context.spec.logging
        self.context = context
        self.run_id = run.id
        self.number = run.number
        self.reserved_ns = context.clock.monotonic_ns()
        self.paused_before_ns = paused_ns
        self.ladder = Ladder()
        self.identity: ProcessIdentity | None = None
        self.executable = ""
        self._capture = Capture(
            context.directory,
            clock=context.clock,
            streams=_CAPTURED[logging.capture],
            segment_bytes=logging.segment_bytes,
            segments=logging.segments,
        )
        self._child: GatedChild | None = None
        self._tree: RunTree | None = None
        self._stage = Stage.ABSENT
        self._pipes: dict[int, Stream] = {}
        self._result_fd: int | None = None
        self._exited_ns: int | None = None
        self._exit: RunExit | None = None
        self._problem: Problem | None = None
        self._members: tuple[process.Member, ...] | None = None
        self._looked_ns = 0
        self._usage = process.Usage()
        self._suspended = False
        self._ending: Ending | None = None

    # --- What the loop looks at ------------------------------------------------------------------------------------

    def view(self) -> ChildView:
        """Return how far the child has come; looks at the tree only when the leader has ended."""
        if self._ending is not None:
            # Everything is collected; only the commit that tells of it may have to be repeated.
            return ChildView(self._stage, self.ladder, drained=True, exited_ns=self._exited_ns, members=0)
        self._observe_exit()
        self._reap_adopted()
        members = len(self._left_behind()) if self._stage == Stage.EXITED else None
        drained = not self._pipes
        return ChildView(self._stage, self.ladder, drained, self._exited_ns, members, self._suspended)

    def descriptors(self) -> list[int]:
        """Return what to poll for reading: output pipes, the result of the launch, and the child itself."""
        waiting = list(self._pipes)
        if self._result_fd is not None and self._stage == Stage.RELEASED:
            waiting.append(self._result_fd)
        if self._child is not None and self._child.pidfd is not None and self._exited_ns is None:
            waiting.append(self._child.pidfd)
        return waiting

    def due_ns(self) -> int | None:
        """Return the monotonic time at which captured output has to be made durable."""
        return self._capture.due_ns()

    def flush(self) -> None:
        """Make captured output durable."""
        self._capture.flush()

    def may_write(self) -> bool:
        """Say whether somebody may be writing into the pipes: the gate is open, and they are not at their end."""
        return bool(self._pipes) and self._stage not in (Stage.ABSENT, Stage.GATED, Stage.FAILED)

    def is_output(self, descriptor: int) -> bool:
        """Say whether ``descriptor`` is one of the target's output pipes."""
        return descriptor in self._pipes

    def read(self, descriptor: int) -> int:
        """Take what a pipe holds, at most one block, to the capture; return its size, 0 at the end of the pipe."""
        try:
            block = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return -1
        except OSError:
            block = b""
        if block:
            self._capture.write(self._pipes[descriptor], block)
        else:
            self._close_pipe(descriptor)
        return len(block)

    def read_result(self) -> None:
        """Learn what became of the exec, if it is known by now."""
        if self._result_fd is None or self._stage != Stage.RELEASED:
            return
        try:
            failure = process.read_launch_result(self._result_fd)
        except BlockingIOError:
            return
        os.close(self._result_fd)
        self._result_fd = None
        if failure is None:
            self._stage = Stage.EXECUTED
        else:
            self._fail(failure)

    # --- What the loop tells it to do ------------------------------------------------------------------------------

    def launch(self) -> None:
        """Fork the child up to its gate; a failure is kept as the result of the run, not raised."""
        spec = self.context.spec
        environment = self._environment()
        name, directory = raw(spec.executable), raw(spec.working_directory)
        found = process.resolve_executable(name, directory, environment.get(b"PATH"))
        if isinstance(found, LaunchFailure):
            self._fail(found)
            return
        self.executable = found.decode("utf-8", "surrogateescape")
        stdin = self.context.stdin.open(self.run_id)
        if isinstance(stdin, Problem):
            self._problem, self._stage = stdin, Stage.FAILED
            return
        argv = (name, *(raw(word) for word in spec.arguments))
        limit = self.context.file_size_limit
        request = LaunchRequest(found, argv, environment, directory, self.context.umask, stdin, limit)
        ignored = process.adopted(os.getpid())
        try:
            self._child = process.launch_gated(request, close_in_child=(self.context.lock_fd,))
        except OSError as error:
            self._fail(LaunchFailure("setup", error.errno or 0))
            return
        finally:
            if stdin is not None:
                os.close(stdin)
        self._admit_child(self._child, RunTree(os.getpid(), self._child.pid, self.run_id, ignored, self.context.adopts))

    def open_gate(self) -> None:
        """Let the target run; its identity is durable."""
        if self._child is not None:
            process.open_gate(self._child)
            self._stage = Stage.RELEASED

    def close_gate(self) -> None:
        """End the child before any instruction of the target has run."""
        if self._child is not None:
            process.close_gate(self._child)
            self._collect_child(self._child)
        self._close_pipes()
        self._stage = Stage.ABSENT
        self._child = self._tree = None

    def suspend(self) -> None:
        """Stop the tree with SIGSTOP, members that appear meanwhile included."""
        from jobman.supervisor.stop import suspend

        tree = self._tree
        self._suspended = True
        if tree is not None:
            suspend(lambda: process.members(tree))

    def resume(self) -> None:
        """Let a suspended tree go on."""
        from jobman.supervisor.stop import resume

        self._suspended = False
        if self._tree is not None:
            resume(process.members(self._tree))

    def ask(self) -> None:
        """Send SIGTERM to the tree, once; a stopped member is continued, or it would not get the signal."""
        self.ladder = self.ladder._replace(asked_ns=self.context.clock.monotonic_ns())
        if self._tree is not None:
            ask(process.members(self._tree), suspended=self._suspended)
        self._forget_members()

    def insist(self) -> None:
        """Send SIGKILL to the tree; repeated until nothing is left."""
        tree = self._tree
        self.ladder = self.ladder._replace(insisted_ns=self.context.clock.monotonic_ns())
        if tree is not None:
            process.kill_all(lambda: process.members(tree))
        self._forget_members()

    def stop_draining(self) -> None:
        """Close pipes that somebody else still holds, and say so if that may have cut output off (D33)."""
        text = "a process that outlived the command still holds its output"
        self._capture.degrade(Diagnostic.DESCENDANT_HOLDS_OUTPUT, text)
        self._close_pipes()

    def collect(self) -> Ending:
        """Reap the leader, close the capture, and return what the run came to; later calls repeat it."""
        if self._ending is None:
            usage = self._reap()
            self._close_pipes()
            self.context.stdin.end()
            result = self._capture.close()
            logs = RunLogs(
                result.integrity,
                result.health,
                result.problem.code if result.problem else None,
                result.index_version,
                result.stdout_bytes,
                result.stderr_bytes,
            )
            problem = self._problem or result.problem
            self._ending = Ending(self._stage == Stage.FAILED, self._exit, usage, logs, problem)
        return self._ending

    # --- Inside ----------------------------------------------------------------------------------------------------

    def _environment(self) -> dict[bytes, bytes]:
        marks = {
            "JOBMAN_STATE_DIR": self.context.root,
            "JOBMAN_RUN_ID": self.run_id,
            "JOBMAN_RUN_NUMBER": str(self.number),
        }
        return target_environment(self.context.inherited, self.context.spec, marks)

    def _admit_child(self, child: GatedChild, tree: RunTree) -> None:
        self._tree = tree
        self._pipes = {child.stdout_fd: Stream.STDOUT, child.stderr_fd: Stream.STDERR}
        self._result_fd = child.result_fd
        self.identity = process.inspect(child.pid)
        self._stage = Stage.GATED

    def _fail(self, failure: LaunchFailure) -> None:
        spec = self.context.spec
        code, text = process.describe(failure, raw(spec.executable), raw(spec.working_directory))
        self._problem = Problem(Diagnostic(code), text)
        self._stage = Stage.FAILED

    def _observe_exit(self) -> None:
        if self._stage == Stage.RELEASED:
            self.read_result()
        if self._child is None or self._stage != Stage.EXECUTED:
            return
        status = process.observe_exit(self._child.pid)
        if status is None:
            return
        self._exited_ns = self.context.clock.monotonic_ns()
        observed_ns = self.context.clock.wall_ns()
        self._exit = RunExit(observed_ns, status.exit_code, status.signal, status.platform_reason)
        self._stage = Stage.EXITED

    def _left_behind(self) -> tuple[process.Member, ...]:
        now_ns = self.context.clock.monotonic_ns()
        if self._tree is None:
            return ()
        if self._members is None or now_ns - self._looked_ns >= _RESCAN_NS:
            self._looked_ns = now_ns
            alive = process.has_members(self._tree)
            self._members = process.members(self._tree) if alive else ()
        return self._members

    def _reap_adopted(self) -> None:
        """Reap what the target left to us, as it ends: a run of days may orphan thousands (field case 10)."""
        if self._tree is None:
            return
        used = process.reap_adopted(self._tree)
        if used != process.Usage():
            self._usage = self._usage.plus(used)
            # It may have been the last: nothing else would make us look again before the next deadline.
            self._forget_members()

    def _forget_members(self) -> None:
        self._members = None

    def _reap(self) -> RunUsage | None:
        if self._child is None or self._tree is None:
            return None
        usage = process.reap(self._child.pid)
        self._reap_adopted()
        self._close_child(self._child)
        return None if usage is None or self._stage == Stage.FAILED else RunUsage(*usage.plus(self._usage))

    def _collect_child(self, child: GatedChild) -> None:
        # It only has to notice that its gate is closed; it is ours, so the PID cannot be another's.
        os.waitpid(child.pid, 0)
        self._close_child(child)

    def _close_child(self, child: GatedChild) -> None:
        for descriptor in (child.pidfd, self._result_fd):
            if descriptor is not None:
                os.close(descriptor)
        self._result_fd = None
        self._child = None

    def _close_pipe(self, descriptor: int) -> None:
        os.close(descriptor)
        del self._pipes[descriptor]

    def _close_pipes(self) -> None:
        for descriptor in list(self._pipes):
            self._close_pipe(descriptor)


def raw(text: str) -> bytes:
    """Return the bytes that a string of a specification stands for, whatever the locale of this process."""
    return text.encode("utf-8", "surrogateescape")


def target_environment(inherited: dict[bytes, bytes], spec: JobSpec, marks: dict[str, str]) -> dict[bytes, bytes]:
    """Return the target's environment: inherited, less removals, plus settings, plus what names the run (D34).

    ``JOBMAN_SUPERVISOR`` stays behind: it tells supervisors from targets. The marks win over settings of the same
    name, because the tree of a run is recognised by them.
    """
    environment = dict(inherited)
    environment.pop(b"JOBMAN_SUPERVISOR", None)
    for name in spec.environment.removals:
        environment.pop(raw(name), None)
    for name, value in (*spec.environment.assignments, *marks.items()):
        environment[raw(name)] = raw(value)
    return dict(sorted(environment.items()))
