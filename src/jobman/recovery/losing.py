"""Proving that a job has lost its owner, and saying so (contract, H.6; M20, D1, D42).

A job is declared lost only on proof that its supervisor is dead: another boot, or the recorded lock file locked by us
and the recorded process gone. Anything less leaves it alone.
"""

from __future__ import annotations

import os

from jobman import process
from jobman.errors import ConflictError, JobmanError
from jobman.logs.layout import remove_unused_run_directory, run_directory
from jobman.logs.scan import close_abandoned, scan
from jobman.model.identity import Presence
from jobman.model.state import (
    Diagnostic,
    JobPhase,
    LogIntegrity,
    RecordingHealth,
    RunLogs,
)
from jobman.model.transitions._change import Now
from jobman.model.transitions.recovery import Loss, lose, release_survivors
from jobman.model.transitions.submission import expire_submission
from jobman.policy.liveness import Verdict, judge
from jobman.process import liveness
from jobman.process.liveness import lock_path
from jobman.process.wake import wake_jobs
from jobman.recovery import diagnostics_path
from jobman.store.admissions import requests_to_wake
from jobman.store.commit import commit
from jobman.store.dependencies import dependents_to_wake
from jobman.store.jobs import load_runs, load_snapshot
from jobman.store.live_input import load_live_input
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.state import (
        Run,
        Snapshot,
        Supervisor,
    )
    from jobman.store.connection import Store

_EVIDENCE = {liveness.HELD: False, liveness.FREE: True}
_NOTES_BYTES = 1 << 17
_NOTE_CHARACTERS = 300
_LOST = "its supervisor (pid {pid}) has ended without completing the job"
_RESTARTED = "the machine was restarted, which ended its supervisor (pid {pid}); jobman rerun {job} submits it again"


def settle(store: Store, snapshot: Snapshot, clock: Clock) -> bool:
    """Complete a job that looks abandoned, if it is; return whether it was changed, by us or by somebody quicker."""
    now = Now(clock.wall_ns(), clock.monotonic_ns())
    if snapshot.job.phase == JobPhase.SUBMITTING:
        return _expire(store, snapshot, now)
    if snapshot.job.phase == JobPhase.COMPLETED:
        return _release_survivors(store, snapshot, now)
    if snapshot.supervisor is None or judge_owner(store, snapshot.supervisor) != Verdict.GONE:
        return False
    return _declare_lost(store, snapshot, snapshot.supervisor, now)


def judge_owner(store: Store, supervisor: Supervisor) -> Verdict:
    """Weigh what the lock and the process table say of an owner, without taking anything."""
    return _judge(supervisor, lock_taken=_EVIDENCE.get(_probe(store, supervisor)))


def remove_traces(root: str, job_id: str) -> None:
    """Remove what a dead supervisor, or one that did not get its job, left in ``run/``: FIFO, empty log, lock."""
    stem = f"{root}/run/{job_id}"
    for suffix in ("wake", "lock") if diagnostics_path(root, job_id) else ("wake", "log", "lock"):
        try:
            os.unlink(f"{stem}.{suffix}")
        except OSError:
            pass


def remove_endpoint(store: Store, job_id: str) -> None:
    """Remove the socket on which a dead supervisor took live input, if it did."""
    offered = load_live_input(store, job_id)
    if offered is None:
        return
    try:
        os.unlink(offered.endpoint)
    except OSError:
        pass


def last_note(path: str) -> str:
    """Return the last line of a supervisor's notes as ASCII; "" if there is none."""
    try:
        # Non-blocking: somebody may have put a FIFO in its place.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        # Their writer bounds them; what lies behind is not ours.
        lines = os.read(descriptor, _NOTES_BYTES).decode("ascii", "backslashreplace").splitlines()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return lines[-1] if lines else ""


def _expire(store: Store, snapshot: Snapshot, now: Now) -> bool:
    try:
        commit(store, expire_submission(snapshot, now))
    except ConflictError:
        return True  # a late claimer was quicker, or another inspector: either way it has changed
    remove_traces(store.root, snapshot.job.id)
    _wake_dependents(store, snapshot.job.id)
    return True


def _declare_lost(store: Store, snapshot: Snapshot, supervisor: Supervisor, now: Now) -> bool:
    with liveness.seize(lock_path(store.root, supervisor.job_id), *supervisor.lock) as seizure:
        if _judge(supervisor, lock_taken=_EVIDENCE.get(seizure.state)) != Verdict.GONE:
            return False
        # What was read before the proof may be older than its last deed: a run that has a target by now.
        snapshot = load_snapshot(store, snapshot.job.id)
        loss = _assess(store, snapshot, supervisor)
        # Before the commit: nobody comes back to a job that is completed, and a marker would keep its logs for ever.
        _close_capture(store, snapshot)
        try:
            commit(store, lose(snapshot, loss, now))
        except ConflictError:
            return True
        remove_endpoint(store, snapshot.job.id)
        remove_traces(store.root, snapshot.job.id)
    if loss.release_slots:
        _wake_requests(store, snapshot)
    _wake_dependents(store, snapshot.job.id)
    return True


def _release_survivors(store: Store, snapshot: Snapshot, now: Now) -> bool:
    runs = load_runs(store, [snapshot.job.id]).get(snapshot.job.id, ())
    if not runs or snapshot.supervisor is None or survivors_of(runs[-1], snapshot.supervisor) != ():
        return False
    return give_back(store, snapshot, now)


def give_back(store: Store, snapshot: Snapshot, now: Now) -> bool:
    """Release the slots of a lost job: nothing of it is alive, by proof or on the word of the user."""
    try:
        commit(store, release_survivors(snapshot, now))
    except ConflictError:
        return True
    _wake_requests(store, snapshot)
    return True


def survivors_of(run: Run, supervisor: Supervisor) -> tuple[process.Member, ...] | None:
    """Return what is alive of a run whose supervisor is dead; ``None`` if that cannot be known from here."""
    return process.survivors(
        run.identity,
        run_id=run.id,
        reserved_after_ns=run.reserved_at_ns,
        caller_pid=os.getpid(),
        supervisor_pid=supervisor.identity.pid,
    )


def _judge(supervisor: Supervisor, *, lock_taken: bool | None) -> Verdict:
    identity = supervisor.identity
    same_boot = identity.boot_id == process.boot_id()
    presence = process.presence(identity) if same_boot else Presence.GONE
    return judge(same_boot=same_boot, lock_taken=lock_taken, presence=presence)


def _assess(store: Store, snapshot: Snapshot, supervisor: Supervisor) -> Loss:
    run = snapshot.run
    said = _LOST if supervisor.identity.boot_id == process.boot_id() else _RESTARTED
    detail = said.format(pid=supervisor.identity.pid, job=snapshot.job.id)
    noted = last_note(diagnostics_path(store.root, snapshot.job.id))
    detail += f"; its last note: {noted[:_NOTE_CHARACTERS]}" if noted else ""
    if run is None:
        return Loss(detail, RunLogs(LogIntegrity.PARTIAL, RecordingHealth.DEGRADED), release_slots=True)
    alive = survivors_of(run, supervisor)
    if alive:
        pids = ", ".join(str(member.identity.pid) for member in alive)
        detail += f"; processes of its run have outlived it (pid {pids})"
    return Loss(detail, _scanned(store, run), release_slots=alive is not None and not alive)


def _scanned(store: Store, run: Run) -> RunLogs:
    """Judge the logs that the dead supervisor left (H.6, D1): what is there stays, and is never called healthy."""
    code = Diagnostic.SUPERVISOR_LEASE_EXPIRED.value
    found = scan(run_directory(store.root, run.job_id, run.number))
    version = found.index_version or run.logs.index_version
    return RunLogs(found.integrity, RecordingHealth.DEGRADED, code, version, found.stdout_bytes, found.stderr_bytes)


def _close_capture(store: Store, snapshot: Snapshot) -> None:
    if snapshot.run is None:
        _take_back_reservation(store.root, snapshot)
        return
    try:
        close_abandoned(run_directory(store.root, snapshot.job.id, snapshot.run.number))
    except (JobmanError, OSError):
        pass  # the marker only keeps the logs from being pruned


def _take_back_reservation(root: str, snapshot: Snapshot) -> None:
    """Remove the directory that was made for a run which was then never recorded (M24): no record would name it."""
    job = snapshot.job
    remove_unused_run_directory(root, job.id, job.counters.runs + 1)
    try:
        os.rmdir(f"{root}/logs/{job.id}")
    except OSError:
        pass  # it holds earlier runs, or was never made


def _wake_requests(store: Store, snapshot: Snapshot) -> None:
    if snapshot.admission is not None:
        wake_jobs(store.root, requests_to_wake(store, snapshot.admission.slots))


def _wake_dependents(store: Store, job_id: str) -> None:
    wake_jobs(store.root, dependents_to_wake(store, job_id))


def _probe(store: Store, supervisor: Supervisor) -> str:
    try:
        return liveness.probe(lock_path(store.root, supervisor.job_id), *supervisor.lock)
    except OSError:
        return liveness.MISSING
