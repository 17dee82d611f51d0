"""The active run of a supervisor: its child, its pipes, its capture, and what is known of its end.

Nothing here decides or commits; the loop asks how far the child has come (`ActiveRun.view`) and tells it what to do.
"""

from __future__ import annotations

import os

from jobman import process
from jobman.config.secrets import resolve_all
from jobman.errors import SecretUnavailableError
from jobman.logs.capture import Capture
from jobman.model.spec import LogCapture
from jobman.model.state import Diagnostic, Problem, RunExit, RunLogs, RunUsage, Stream
from jobman.policy.ladder import Ladder
from jobman.policy.observation import ChildView, Stage
from jobman.process import LaunchFailure, LaunchRequest, RunTree
from jobman.supervisor.ending import Ending
from jobman.supervisor.environment import raw, target_environment
from jobman.supervisor.tree import LivingTree, named
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.identity import ProcessIdentity
    from jobman.model.spec import JobSpec
    from jobman.model.state import Run
    from jobman.process import GatedChild
    from jobman.supervisor.stdin import StandardInput

READ_BYTES = 256 * 1024
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
        self._tree: LivingTree | None = None
        self._stage = Stage.ABSENT
        self._pipes: dict[int, Stream] = {}
        self._result_fd: int | None = None
        self._exited_ns: int | None = None
        self._exit: RunExit | None = None
        self._problem: Problem | None = None
        self._exited_suspended = False
        self._ending: Ending | None = None

    # --- What the loop looks at ------------------------------------------------------------------------------------

    def view(self) -> ChildView:
        """Return how far the child has come; looks at the tree only when the leader has ended."""
        if self._ending is not None:
            # Everything is collected; only the commit that tells of it may have to be repeated.
            return ChildView(self._stage, self.ladder, drained=True, exited_ns=self._exited_ns, members=0)
        tree = self._tree
        if tree is None:
            return ChildView(self._stage, self.ladder, drained=not self._pipes)
        self._observe_exit(tree)
        if self._stage in (Stage.EXECUTED, Stage.EXITED):
            tree.reap_adopted()  # before, nothing of the target can have been left to us
        return ChildView(
            self._stage,
            self.ladder,
            drained=not self._pipes,
            exited_ns=self._exited_ns,
            members=len(tree.outliving()) if self._stage == Stage.EXITED else None,
            suspended=tree.suspended_ns is not None,
            exited_suspended=self._exited_suspended,
            unkillable=tree.unkillable(),
        )

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
        try:
            environment = self._environment()
        except SecretUnavailableError as error:
            self._fail_with(Problem(Diagnostic.SECRET_UNAVAILABLE, str(error)))
            return
        name, directory = raw(spec.executable), raw(spec.working_directory)
        found = process.resolve_executable(name, directory, environment.get(b"PATH"))
        if isinstance(found, LaunchFailure):
            self._fail(found)
            return
        self.executable = found.decode("utf-8", "surrogateescape")
        stdin = self.context.stdin.open(self.run_id)
        if isinstance(stdin, Problem):
            self._fail_with(stdin)
            return
        argv = (name, *(raw(word) for word in spec.arguments))
        limit = self.context.file_size_limit
        request = LaunchRequest(found, argv, environment, directory, self.context.umask, stdin, limit)
        try:
            ignored = process.adopted(os.getpid())
            self._child = process.launch_gated(request, close_in_child=(self.context.lock_fd,))
        except OSError as error:
            self._fail(LaunchFailure("setup", error.errno or 0))
            return
        finally:
            if stdin is not None:
                os.close(stdin)
        tree = RunTree(os.getpid(), self._child.pid, self.run_id, ignored, self.context.adopts)
        self._admit_child(self._child, LivingTree(tree, self.context.clock))

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
        """Stop the tree with SIGSTOP."""
        if self._tree is not None:
            self._tree.suspend()

    def resume(self) -> None:
        """Let a suspended tree go on; what it had left of drain and grace it has left again."""
        if self._tree is None or self._tree.suspended_ns is None:
            return
        since_ns, now_ns = self._tree.suspended_ns, self.context.clock.monotonic_ns()
        self._tree.resume()
        if self._exited_ns is not None:
            self._exited_ns += now_ns - max(since_ns, self._exited_ns)
        if self.ladder.asked_ns is not None:
            asked_ns = self.ladder.asked_ns + now_ns - max(since_ns, self.ladder.asked_ns)
            self.ladder = self.ladder._replace(asked_ns=asked_ns)

    def ask(self) -> None:
        """Send SIGTERM to the tree, once; if its processes cannot be listed, nothing was asked."""
        if self._tree is not None:
            self._tree.ask()
        self.ladder = self.ladder._replace(asked_ns=self.context.clock.monotonic_ns())

    def insist(self) -> None:
        """Send SIGKILL to the tree; repeated until nothing is left."""
        if self._tree is not None:
            self._tree.insist()
        self.ladder = self.ladder._replace(insisted_ns=self.context.clock.monotonic_ns())

    def stop_draining(self) -> None:
        """Take what the pipes hold, close those that somebody else holds, and say so if that may cut output (D33)."""
        for descriptor in list(self._pipes):
            if self.read(descriptor) > 0:
                self.read(descriptor)  # the end of the pipe, if that is what follows
        if set(self._pipes.values()).intersection(_CAPTURED[self.context.spec.logging.capture]):
            text = "a process that outlived the command still holds its output"
            self._capture.degrade(Diagnostic.DESCENDANT_HOLDS_OUTPUT, text)
        self._close_pipes()

    def collect(self) -> Ending:
        """Reap the leader, close the capture, and return what the run came to; later calls repeat it."""
        if self._ending is None:
            left = self._left_behind()
            usage = self._reap()
            if self._stage == Stage.EXITED:
                self.stop_draining()  # what is left without force holds its pipes
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
            problem = self._problem or _joined(left, result.problem)
            self._ending = Ending(self._stage == Stage.FAILED, self._exit, usage, logs, problem)
        return self._ending

    # --- Inside ----------------------------------------------------------------------------------------------------

    def _environment(self) -> dict[bytes, bytes]:
        marks = {
            "JOBMAN_STATE_DIR": self.context.root,
            "JOBMAN_RUN_ID": self.run_id,
            "JOBMAN_RUN_NUMBER": str(self.number),
        }
        secrets = resolve_all(self.context.spec.environment.secrets, self.context.inherited)
        return target_environment(self.context.inherited, self.context.spec, marks, secrets)

    def _admit_child(self, child: GatedChild, tree: LivingTree) -> None:
        self._tree = tree
        self._pipes = {child.stdout_fd: Stream.STDOUT, child.stderr_fd: Stream.STDERR}
        self._result_fd = child.result_fd
        try:
            self.identity = process.inspect(child.pid)
        except OSError as error:
            # Launched once more, it would stay behind at its gate.
            self.close_gate()
            self._fail(LaunchFailure("setup", error.errno or 0))
        else:
            self._stage = Stage.GATED

    def _fail(self, failure: LaunchFailure) -> None:
        spec = self.context.spec
        code, text = process.describe(failure, raw(spec.executable), raw(spec.working_directory))
        self._fail_with(Problem(Diagnostic(code), text))

    def _fail_with(self, problem: Problem) -> None:
        self._problem = problem
        self._stage = Stage.FAILED

    def _observe_exit(self, tree: LivingTree) -> None:
        if self._stage == Stage.RELEASED:
            self.read_result()
        if self._child is None or self._stage != Stage.EXECUTED:
            return
        status = process.observe_exit(self._child.pid)
        if status is None:
            return
        self._exited_ns = self.context.clock.monotonic_ns()
        self._exited_suspended = tree.suspended_ns is not None
        observed_ns = self.context.clock.wall_ns()
        self._exit = RunExit(observed_ns, status.exit_code, status.signal, status.platform_reason)
        self._stage = Stage.EXITED

    def _left_behind(self) -> Problem | None:
        """Name what goes on although the run is over: it was to be left, or to be ended without force (D33)."""
        left = self._tree.outliving() if self._tree is not None and self._stage == Stage.EXITED else ()
        return Problem(Diagnostic.DESCENDANTS_LEFT, f"left running: {named(left)}") if left else None

    def _reap(self) -> RunUsage | None:
        if self._child is None or self._tree is None:
            return None
        usage = process.reap(self._child.pid)
        self._tree.reap_adopted()
        self._close_child(self._child)
        return None if usage is None or self._stage == Stage.FAILED else RunUsage(*usage.plus(self._tree.usage))

    def _collect_child(self, child: GatedChild) -> None:
        # It was killed at its gate; it is ours, so the PID cannot be another's.
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


def _joined(first: Problem | None, second: Problem | None) -> Problem | None:
    if first is None or second is None:
        return first or second
    return first._replace(text=f"{first.text}; {second.text}")
