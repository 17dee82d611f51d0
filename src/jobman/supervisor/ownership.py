"""From a fresh process to the owner of a job: receive the offer, claim, acknowledge, supervise, leave nothing.

Until the acknowledgement every millisecond is one that ``jobman run`` waits for, so only what the claim needs is
imported before it; the rest follows at once, before the first decision, because the package may be upgraded while a
job runs.
"""

from __future__ import annotations

import os
import resource
import time

from jobman import handshake, signals
from jobman.errors import JobmanError
from jobman.process.liveness import LivenessLock, lock_path
from jobman.process.own import own_identity_fields
from jobman.process.spawn import close_inherited_descriptors
from jobman.process.wake import WakeReceiver, wake_path
from jobman.store.claim import Claimant, claim_job
from jobman.store.connection import open_store
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from types import FrameType

    from jobman.store.connection import Store


# What a round of the loop asks, and a commit; all that have been asked by the first wait are 0.2 MB.
_FEW_STATEMENTS = 24


class Ownership:
    """What a supervisor holds.

    Attributes:
        job_id: its job.
        store: the open store.
        lock: proof of life; dropped by the kernel at death.
        wake: where others leave a byte after a commit that concerns this job.
        umask: the submitter's, for the target.
        claimed_ns: monotonic time of the claim, from which the job's budget runs.
        asked_to_end: the end signals that have arrived.
        file_size_limit: the submitter's soft and hard limit, for the target, if they differ.
    """

    __slots__ = ("asked_to_end", "claimed_ns", "file_size_limit", "job_id", "lock", "store", "umask", "wake")

    def __init__(self, job_id: str, store: Store, umask: int) -> None:
        self.job_id = job_id
        self.store = store
        self.umask = umask
        self.asked_to_end: list[int] = []
        self.file_size_limit: tuple[int, int] | None = None
        # Before anything is published: whoever learns of the job can wake its supervisor.
        self.wake = WakeReceiver.create(wake_path(store.root, job_id))
        self.lock = LivenessLock.acquire(lock_path(store.root, job_id))
        self.claimed_ns = time.monotonic_ns()

    def handle_signals(self) -> None:
        """Take SIGTERM and SIGINT as a request to end the job; ignore SIGHUP (differences, "Settled besides")."""
        for number in (signals.SIGTERM, signals.SIGINT):
            signals.signal(number, self._note)
        signals.signal(signals.SIGHUP, signals.SIG_IGN)
        signals.signal(signals.SIGCHLD, self._pass)
        signals.set_wakeup_fd(self.wake.fileno(), warn_on_full_buffer=False)

    def leave(self) -> None:
        """Remove what marks this supervisor in the file system, the lock last; its last act."""
        self.wake.unlink()
        discard_empty(log_path(self.store.root, self.job_id))
        self.lock.unlink()
        self.store.close()

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self.asked_to_end.append(number)

    def _pass(self, _number: int, _frame: FrameType | None) -> None:
        # A handler, not SIG_DFL: only handled signals write to the wake-up descriptor.
        pass


def main() -> None:
    """Run one supervisor and end the process."""
    os.chdir("/")
    close_inherited_descriptors()
    umask = os.umask(0o077)
    status = 1
    try:
        status = _own(umask)
    except BaseException as error:  # noqa: BLE001  # the end of the process, whatever it is
        _note_end(error)
    finally:
        # No interpreter shutdown: nothing is buffered, and a supervisor should be gone when it is done.
        os._exit(status)


def log_path(root: str, job_id: str) -> str:
    """Return the path of a supervisor's own diagnostics, as its standard error."""
    return f"{root}/run/{job_id}.log"


def discard_empty(path: str) -> None:
    """Remove a diagnostics file in which nothing was written."""
    try:
        if os.lstat(path).st_size == 0:
            os.unlink(path)
    except OSError:
        pass


def _own(umask: int) -> int:
    offer = handshake.receive_offer(0)
    if offer is None:
        return 0
    limit = _lift_file_size_limit()
    store = open_store(offer.root, statements=_FEW_STATEMENTS)
    # The claim may queue behind hundreds of writers for as long as the offer stands.
    store.patience_ns = SUPERVISOR_PATIENCE_NS
    _log_to(log_path(store.root, offer.job_id))
    owner = Ownership(offer.job_id, store, umask)
    owner.file_size_limit = limit
    try:
        owner.handle_signals()
        supervisor_id = _claim(owner, offer.credential)
    except BaseException:
        owner.leave()
        raise
    _acknowledge(handshake.acknowledgement(offer.job_id, supervisor_id))
    from jobman.supervisor.loop import supervise

    supervise(owner)
    owner.leave()
    return 0


def _lift_file_size_limit() -> tuple[int, int] | None:
    """Use all of the hard limit for ourselves: the submitter's soft one would stop the store from growing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if soft == hard:
        return None
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    return soft, hard


def _claim(owner: Ownership, credential: bytes) -> str:
    from jobman.model.ids import new_id

    now_ns = time.time_ns()  # noqa: TID251  # jobman.clock is imported after the claim, with all the rest
    claimant = Claimant(new_id(now_ns, os.urandom(10)), own_identity_fields(), (owner.lock.device, owner.lock.inode))
    claim_job(
        owner.store,
        owner.job_id,
        claimant=claimant,
        credential_hash=handshake.digest(credential),
        wall_ns=now_ns,
    )
    return claimant.supervisor_id


def _acknowledge(line: bytes) -> None:
    try:
        os.write(1, line)
    except OSError:
        pass  # the client is gone; the claim is durable and anybody can see it
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def _log_to(path: str) -> None:
    # Exclusively: a second supervisor of the job must end here, not write into the diagnostics of the first.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(path, flags, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _note_end(error: BaseException) -> None:
    from jobman.supervisor.notes import dated, last_words  # loaded by then, unless it ended before the claim

    # Our own errors say what happened to what; any other message may hold values.
    text = str(error) if isinstance(error, JobmanError) else last_words(error)
    now_ns = time.time_ns()  # noqa: TID251  # as in _claim
    try:
        os.write(2, dated(now_ns, text).encode("ascii", "backslashreplace"))
    except OSError:
        pass
