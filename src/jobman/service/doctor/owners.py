"""Jobs without an owner, what is alive of them, and what they have left; looks only, and changes nothing."""

from __future__ import annotations

from jobman import recovery
from jobman.model.state import JobPhase
from jobman.policy.liveness import Verdict
from jobman.recovery.leftovers import abandoned_files, abandoned_markers
from jobman.recovery.losing import last_note, survivors_of
from jobman.service.doctor.findings import Finding, Level, Survivor, few
from jobman.service.survivors import survivors
from jobman.store.check import lost_holders, unknown_jobs
from jobman.store.jobs import count_active, load_snapshot
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobman.clock import Clock
    from jobman.model.state import Snapshot
    from jobman.process import Member
    from jobman.service.doctor.files import Holdings
    from jobman.store.connection import Store

_REPAIR = "jobman doctor --repair"


def judge_owners(store: Store, clock: Clock) -> list[Finding]:
    """Return jobs whose owner is gone, or cannot be verified."""
    findings = []
    for job_id in recovery.suspects(store, clock):
        snapshot = load_snapshot(store, job_id)
        if snapshot.job.phase != JobPhase.COMPLETED:
            findings += _judge(store, snapshot)
    if findings:
        return findings
    text = f"{counted(count_active(store), 'active job')}, none without its supervisor"
    return [Finding(Level.OK, "supervisors", text)]


def _judge(store: Store, snapshot: Snapshot) -> list[Finding]:
    job_id, supervisor = snapshot.job.id, snapshot.supervisor
    if supervisor is None:
        text = f"nobody claimed job {job_id} in time"
        return [Finding(Level.PROBLEM, "supervisors", text, f"{_REPAIR} records its submission as failed", job_id)]
    verdict = recovery.owner_state(store, supervisor)
    who = f"the supervisor (pid {supervisor.identity.pid}) of job {job_id}"
    if verdict == Verdict.GONE:
        alive = survivors_of(snapshot.run, supervisor) if snapshot.run is not None else ()
        text = f"{who} is gone{_words_for(alive)}"
        return [Finding(Level.PROBLEM, "supervisors", text, f"{_REPAIR} records the job as lost", job_id)]
    if verdict == Verdict.UNVERIFIABLE:
        text = f"{who} cannot be verified: it belongs to another PID namespace and its lock is missing"
        return [Finding(Level.NOTE, "supervisors", text, "look from where the job was submitted", job_id)]
    return []


def list_survivors(store: Store) -> tuple[list[Finding], list[Survivor]]:
    """Return what is alive of lost jobs (D25)."""
    findings, found = [], []
    for job_id in lost_holders(store):
        alive = survivors(store, job_id)
        found += [Survivor(job_id, member) for member in alive or ()]
        if alive is None:
            text = f"whether processes of lost job {job_id} are alive cannot be told from here, and it holds its slots"
            advice = (
                "look from where the job was submitted, such as its container; if that is gone,"
                f" jobman clean {job_id} --force gives the slots up"
            )
        elif alive:
            text = f"processes of lost job {job_id} are alive: {_pids(alive)}"
            advice = f"jobman cancel {job_id} stops them"
        else:
            text = f"lost job {job_id} still holds its slots, and nothing of it is alive"
            advice = f"{_REPAIR} releases them"
        findings.append(Finding(Level.PROBLEM, "survivors", text, advice, job_id))
    return findings or [Finding(Level.OK, "survivors", "no process of a lost job is alive")], found


def judge_leftovers(store: Store, holdings: Holdings) -> list[Finding]:
    """Return files of nobody, markers of runs that are over, and logs of jobs that are not there."""
    findings = []
    for job_id, names in abandoned_files(store).items():
        text = f"{', '.join(names)} of nobody"
        findings.append(Finding(Level.PROBLEM, "leftovers", text, f"{_REPAIR} removes them", job_id))
    for job_id, number in abandoned_markers(store, holdings.marked):
        text = f"logs/{job_id}/{number}/.active marks a run that is over, and keeps its logs from being cleaned"
        findings.append(Finding(Level.PROBLEM, "leftovers", text, f"{_REPAIR} removes it", job_id))
    unknown = unknown_jobs(store, holdings.logged)
    if unknown:
        text = f"logs of jobs that the store does not know: {few([f'logs/{job_id}' for job_id in unknown])}"
        findings.append(Finding(Level.NOTE, "leftovers", text, "read them, then remove them by hand"))
    return findings or [Finding(Level.OK, "leftovers", "none")]


def list_diagnostics(store: Store, names: Iterable[str]) -> list[Finding]:
    """Return what supervisors have noted of their own troubles (D24)."""
    findings = []
    for name in sorted(names):
        job_id, suffix = name[: -len(".log")], name[-len(".log") :]
        path = recovery.diagnostics_path(store.root, job_id) if suffix == ".log" else ""
        if path:
            text = f"the supervisor of job {job_id} had trouble: {last_note(path)}"
            findings.append(Finding(Level.NOTE, "diagnostics", text, f"see {path}", job_id))
    return findings


def _words_for(alive: Sequence[Member] | None) -> str:
    if alive is None:
        return ", and whether processes of its run are alive cannot be told from here"
    return f", and processes of its run are alive: {_pids(alive)}" if alive else ""


def _pids(members: Sequence[Member]) -> str:
    return few([f"pid {member.identity.pid} ({member.name})" for member in members])
