"""Starting a supervisor and handing it a job (contract, section G).

The supervisor's interpreter boots while the client still validates: `start` comes first, `hand_over` last. On the
start-up path of ``jobman run``, hence few imports.
"""

from __future__ import annotations

import errno
import os
import resource
import sys

import jobman
from jobman import handshake
from jobman.errors import HandshakeError, LaunchError, UnsupportedPlatformError
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.process.spawn import is_listed, package_roots, spawn_detached, submitter_environment, without_run
from jobman.store.safety import DATABASE

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.process.spawn import Detached
    from jobman.store.connection import Store

ACKNOWLEDGEMENT_TIMEOUT_MS = 32_000
_NO_PROCESS = "no more processes can be started, by a limit of the user (ulimit -u) or of the system"
# The database grows with each job, and its write-ahead log to 4 MiB before it is merged.
_ROOM_TO_WRITE = 8 << 20


class Candidate:
    """A supervisor that has been started and waits for its offer; `abandon` makes it go away."""

    __slots__ = ("_process", "job_id")

    def __init__(self, job_id: str, process: Detached) -> None:
        self.job_id = job_id
        self._process = process

    @property
    def pid(self) -> int:
        """Its process ID; it is our child, so the ID is its own until we reap it."""
        return self._process.pid

    def hand_over(self, root: str, credential: bytes) -> str:
        """Make the offer and wait for the acknowledgement; return the supervisor's ID.

        Raises:
            HandshakeError: the supervisor ended, was too slow, or answered what it should not. The store tells whether
                it has claimed the job all the same.
        """
        descriptor, self._process.input_fd = self._process.input_fd, -1
        handshake.send_offer(descriptor, handshake.Offer(self.job_id, credential, root))
        return handshake.check_acknowledgement(self._read_answer(), self.job_id)

    def end(self) -> None:
        """Kill and reap it: afterwards nobody but us knows the credential."""
        try:
            os.kill(self._process.pid, 9)
            os.waitpid(self._process.pid, 0)
        except OSError:
            pass
        self.close()

    def abandon(self) -> None:
        """Let it go without an offer: it reads the end of the pipe and exits silently."""
        self.close()

    def close(self) -> None:
        """Close our ends of the pipes."""
        for descriptor in (self._process.input_fd, self._process.output_fd):
            if descriptor >= 0:
                os.close(descriptor)
        self._process.input_fd = self._process.output_fd = -1

    def _read_answer(self) -> bytes:
        import select

        poller = select.poll()
        poller.register(self._process.output_fd, select.POLLIN)
        answer = b""
        while len(answer) <= handshake.MAX_ACKNOWLEDGEMENT and not answer.endswith(b"\n"):
            if not poller.poll(ACKNOWLEDGEMENT_TIMEOUT_MS):
                raise HandshakeError(detail="the supervisor did not answer in time")
            block = os.read(self._process.output_fd, handshake.MAX_ACKNOWLEDGEMENT)
            if not block:
                break
            answer += block
        return answer


def new_job_id(clock: Clock) -> str:
    """Return an ID for a job that is to be submitted now."""
    return new_id(clock.wall_ns(), os.urandom(RANDOM_BYTES))


def start(job_id: str, root: str) -> Candidate:
    """Start a supervisor for a job that need not exist yet.

    Raises:
        LaunchError: the system refuses another process or files of the size that is needed, or there is no interpreter.
        UnsupportedPlatformError: nobody could tell from ``/proc`` which processes a job has.
    """
    if not is_listed():
        raise UnsupportedPlatformError(platform="a /proc that is missing, or shows another PID namespace,")
    _require_room_to_write(root)
    stub = os.path.join(os.path.dirname(jobman.__file__), "supervisor", "__main__.py")
    if not sys.executable:
        raise LaunchError(detail="the path of the Python interpreter is not known")
    argv = (sys.executable, "-I", "-S", stub, *package_roots())
    try:
        return Candidate(job_id, spawn_detached(argv, _environment(job_id, root)))
    except OSError as error:
        reason = _NO_PROCESS if error.errno == errno.EAGAIN else (error.strerror or str(error)).lower()
        raise LaunchError(detail=f"{sys.executable}: {reason}") from error


def resolve_failure(store: Store, candidate: Candidate, error: HandshakeError) -> None:
    """Settle a hand-over whose acknowledgement was lost: return if the job has an owner, else fail the submission (M4).

    The supervisor is our child and the only other holder of the credential; once it is reaped without having claimed,
    nobody can, so the submission ends at once instead of at its deadline.

    Raises:
        LaunchError: the job was not claimed; it is recorded as ``submission_failed``.
    """
    from jobman.clock import SystemClock
    from jobman.errors import ConflictError
    from jobman.model.state import JobPhase
    from jobman.model.transitions._change import Now
    from jobman.model.transitions.submission import withdraw_submission
    from jobman.recovery.losing import remove_traces
    from jobman.service.notify import send_queued
    from jobman.store.commit import commit
    from jobman.store.jobs import load_snapshot

    snapshot = load_snapshot(store, candidate.job_id)
    if snapshot.job.phase != JobPhase.SUBMITTING:
        return
    candidate.end()
    snapshot = load_snapshot(store, candidate.job_id)
    if snapshot.job.phase != JobPhase.SUBMITTING:
        return
    clock = SystemClock()
    detail = str(error.fields.get("detail", error))
    try:
        commit(store, withdraw_submission(snapshot, detail, Now(clock.wall_ns(), clock.monotonic_ns())))
    except ConflictError:
        return  # somebody else has seen to it
    remove_traces(store.root, candidate.job_id)
    send_queued(store)
    raise LaunchError(detail=f"{detail}; job {candidate.job_id} is recorded as submission_failed")


def _require_room_to_write(root: str) -> None:
    """Refuse to start a supervisor that could not record anything: its hard limit is for ever (field case 23)."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        size = os.lstat(f"{root}/{DATABASE}").st_size
    except OSError:
        size = 0
    if limit < size + _ROOM_TO_WRITE:
        detail = f"files of at most {limit} bytes (ulimit -f) are too small for the store, which needs"
        raise LaunchError(detail=f"{detail} {size + _ROOM_TO_WRITE}; ulimit -S -f limits the command alone")


def _environment(job_id: str, root: str) -> dict[bytes, bytes]:
    environment = without_run(submitter_environment())
    environment[b"JOBMAN_SUPERVISOR"] = job_id.encode("ascii")
    environment[b"JOBMAN_STATE_DIR"] = os.fsencode(root)
    return environment
