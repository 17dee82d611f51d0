"""Committing and performing what was decided; one small method per act.

Intent is durable before its effect. A method that loses a compare-and-swap changes nothing: the loop reads the store
again and decides again.
"""

from __future__ import annotations

import os

from jobman import process
from jobman.errors import RevisionConflictError, StoreBusyError, StoreFailureError
from jobman.logs.layout import create_run_directory, remove_unused_run_directory, run_directory
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.state import Diagnostic, JobPhase, Problem, Reason
from jobman.model.transitions import running, stopping
from jobman.model.transitions.running import Retry
from jobman.model.transitions.submission import LEASE_NS
from jobman.policy.observation import Act
from jobman.process.spawn import submitter_environment
from jobman.process.wake import wake_jobs
from jobman.store.admissions import requests_to_wake
from jobman.store.commit import record_identity, record_problem, record_signalled, renew_lease
from jobman.store.conditions import record_evaluations
from jobman.store.dependencies import dependents_to_wake, record_observations
from jobman.supervisor import admission
from jobman.supervisor.commits import Commits
from jobman.supervisor.conditions import ConditionWatch
from jobman.supervisor.ending import judge, what_follows
from jobman.supervisor.environment import target_environment
from jobman.supervisor.notes import Notes
from jobman.supervisor.probes import ProbeContext
from jobman.supervisor.run import ActiveRun, RunContext
from jobman.supervisor.stdin import StandardInput
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.clock import Clock
    from jobman.model.events import Transition
    from jobman.model.state import Run, Snapshot
    from jobman.model.transitions._change import Now
    from jobman.policy.observation import Decision
    from jobman.supervisor.observe import Observer
    from jobman.supervisor.ownership import Ownership

_RENEW_EVERY_NS = 5_000_000_000


class Performer:
    """Turns decisions into commits and effects.

    Attributes:
        active: the run between its reservation and its recorded end.
        stdin: what the runs read.
        notes: of what this supervisor has trouble with.
    """

    def __init__(self, owner: Ownership, observer: Observer, clock: Clock) -> None:
        self.active: ActiveRun | None = None
        self.stdin = StandardInput(owner.store, owner.job_id, observer.spec)
        self.notes = Notes(clock)
        self._owner = owner
        self._store = owner.store
        self._observer = observer
        self._clock = clock
        self._adopts = process.become_subreaper()
        process.prepare_launches()
        self._renew_at_ns = 0
        self._commits = Commits(owner.store, observer, clock, self.notes)
        self._acts: dict[Act, Callable[[Decision], None]] = {
            Act.REQUEST_CANCEL: self._request_cancel,
            Act.REQUEST_JOB_TIMEOUT: self._request_job_timeout,
            Act.REQUEST_RUN_TIMEOUT: self._request_run_timeout,
            Act.AWAIT_PREREQUISITES: self._await_prerequisites,
            Act.RECORD_OBSERVATIONS: self._record_observations,
            Act.RECORD_EVALUATIONS: self._record_evaluations,
            Act.ENQUEUE: self._enqueue,
            Act.ADMIT: self._admit,
            Act.RESERVE_RUN: self._reserve_run,
            Act.LAUNCH: self._launch,
            Act.RECORD_IDENTITY: self._record_identity,
            Act.OPEN_GATE: self._open_gate,
            Act.CLOSE_GATE: self._close_gate,
            Act.PUBLISH_START: self._publish_start,
            Act.SUSPEND: self._suspend,
            Act.CONTINUE: self._continue,
            Act.ASK: self._ask,
            Act.INSIST: self._insist,
            Act.RECORD_SIGNALLED: self._record_signalled,
            Act.RECORD_UNKILLABLE: self._record_unkillable,
            Act.STOP_DRAINING: self._stop_draining,
            Act.END_RUN: self._end_run,
            Act.FINISH: self._finish,
        }

    def watch_conditions(self) -> None:
        """Begin to look at the wait conditions of a job that has any."""
        spec = self._observer.spec
        if not spec.waits.conditions:
            return
        marks = {"JOBMAN_STATE_DIR": self._store.root}
        inherited = self._inherited()
        context = ProbeContext(
            environment=target_environment(inherited, spec, marks),
            directory=spec.working_directory,
            umask=self._owner.umask,
            lock_fd=self._owner.lock.fileno(),
            clock=self._clock,
            inherited=inherited,
            file_size_limit=self._owner.file_size_limit,
        )
        since_claim_ns = self._clock.monotonic_ns() - self._owner.claimed_ns
        claimed_ns = self._clock.boottime_ns() - since_claim_ns
        self._observer.watch = ConditionWatch(spec.waits, context, claimed_boottime_ns=claimed_ns)

    def perform(self, decision: Decision) -> None:
        """Do what was decided.

        Raises:
            RevisionConflictError: somebody changed the job first; nothing was done.
            StoreBusyError: the store could not be written to in time; nothing was done.
            StoreFailureError: the store cannot be written to; nothing was done.
        """
        self._acts[decision.act](decision)

    def renew_lease_if_due(self) -> None:
        """Renew the lease every 5 s while slots are held; a renewal that fails is simply tried again later."""
        now_ns = self._clock.monotonic_ns()
        if self._observer.store_gone or self._observer.snapshot.admission is None or now_ns < self._renew_at_ns:
            return
        self._renew_at_ns = now_ns + _RENEW_EVERY_NS
        try:
            renew_lease(self._store, self._observer.snapshot, self._clock.wall_ns() + LEASE_NS)
        except (StoreBusyError, StoreFailureError):
            pass

    def forget_intents(self) -> None:
        """Drop what could not be written: somebody has changed the job meanwhile, and it is decided anew."""
        self._commits.forget_intents()

    def _now(self) -> Now:
        return self._commits.now()

    def _snapshot(self) -> Snapshot:
        return self._observer.snapshot

    # --- Before and between runs -----------------------------------------------------------------------------------

    def _intend(self, transition: Transition | None) -> None:
        self._commits.intend(transition, with_target=self.active is not None)

    def _request_cancel(self, decision: Decision) -> None:
        self._intend(stopping.request_cancel(self._snapshot(), self._now(), decision.reason))

    def _request_job_timeout(self, _decision: Decision) -> None:
        self._intend(stopping.request_job_timeout(self._snapshot(), self._now()))

    def _request_run_timeout(self, _decision: Decision) -> None:
        self._intend(stopping.request_run_timeout(self._snapshot(), self._now()))

    def _await_prerequisites(self, _decision: Decision) -> None:
        self._commits.commit(running.await_prerequisites(self._snapshot(), self._now()))
        self._observer.reload_dependencies()

    def _record_observations(self, decision: Decision) -> None:
        record_observations(self._store, self._owner.job_id, decision.edges, self._clock.wall_ns())
        self._observer.reload_dependencies()

    def _record_evaluations(self, _decision: Decision) -> None:
        watch = self._observer.watch
        if watch is not None:
            states = watch.unwritten()
            record_evaluations(self._store, self._owner.job_id, states)
            watch.written(states)

    def _enqueue(self, decision: Decision) -> None:
        self._commits.commit(running.enqueue(self._snapshot(), Reason(decision.reason), self._now()))

    def _admit(self, _decision: Decision) -> None:
        now = self._now()
        self._renew_at_ns = now.monotonic_ns + _RENEW_EVERY_NS
        after = admission.attempt(self._store, self._snapshot(), self._observer.spec, clock=self._clock, now=now)
        self._observer.attempted(after)

    def _finish(self, decision: Decision) -> None:
        if decision.finish is None:
            raise AssertionError(decision)
        self._commits.commit(running.finish_without_run(self._snapshot(), decision.finish, self._now()))
        self._wake_others()

    # --- The run ---------------------------------------------------------------------------------------------------

    def _reserve_run(self, _decision: Decision) -> None:
        transition = running.reserve_run(self._snapshot(), self._new_id(), self._now())
        run = transition.after.run
        if run is None:
            raise AssertionError(transition)
        try:
            create_run_directory(self._store.root, self._owner.job_id, run.number)
        except OSError as error:
            # A run without logs is better than no run: its capture will find nothing to write to and say so.
            self.notes.note(f"logs of run {run.number} cannot be made: {error.strerror}")
        try:
            self._commits.commit(transition)
        except BaseException:
            self._remove_directory(run)
            raise

    def take_back(self) -> None:
        """Remove the log directory of a run whose reservation was rolled back."""
        run = self._snapshot().run
        if run is not None and self.active is None:
            self._remove_directory(run)

    def _remove_directory(self, run: Run) -> None:
        remove_unused_run_directory(self._store.root, self._owner.job_id, run.number)

    def _begin(self, run: Run) -> ActiveRun:
        context = RunContext(
            root=self._store.root,
            spec=self._observer.spec,
            directory=run_directory(self._store.root, self._owner.job_id, run.number),
            clock=self._clock,
            inherited=self._inherited(),
            umask=self._owner.umask,
            lock_fd=self._owner.lock.fileno(),
            stdin=self.stdin,
            adopts=self._adopts,
            file_size_limit=self._owner.file_size_limit,
        )
        return ActiveRun(context, run, paused_ns=self._snapshot().job.total_paused_ns)

    def _launch(self, _decision: Decision) -> None:
        self._run().launch()

    def _record_identity(self, _decision: Decision) -> None:
        active, run = self._run(), self._snapshot().run
        if active.identity is None or run is None:
            raise RevisionConflictError(entity=f"run {active.run_id}")
        if self._observer.store_gone:
            identified = run._replace(identity=active.identity)
        else:
            identified = record_identity(self._store, run, active.identity)
        self._observer.advance(self._snapshot()._replace(run=identified))

    def _open_gate(self, _decision: Decision) -> None:
        self._run().open_gate()

    def _close_gate(self, _decision: Decision) -> None:
        self._run().close_gate()

    def _publish_start(self, _decision: Decision) -> None:
        active = self._run()
        if active.identity is None:
            raise AssertionError(active.run_id)
        self._commits.commit(running.start_run(self._snapshot(), active.identity, active.executable, self._now()))

    def _suspend(self, decision: Decision) -> None:
        self._run().suspend()
        self._record_signalled(decision)

    def _continue(self, decision: Decision) -> None:
        self._run().resume()
        self._record_signalled(decision)

    def _ask(self, _decision: Decision) -> None:
        self._run().ask()

    def _insist(self, _decision: Decision) -> None:
        self._run().insist()

    def _record_signalled(self, _decision: Decision) -> None:
        at_ns = self._clock.wall_ns()
        self._note(
            lambda run: run._replace(signalled_at_ns=max(at_ns, run.latest_ns())),
            lambda run: record_signalled(self._store, run, at_ns),
        )

    def _record_unkillable(self, decision: Decision) -> None:
        problem = Problem(Diagnostic.TARGET_CANNOT_BE_KILLED, decision.reason)
        self._note(
            lambda run: run._replace(problem=problem),
            lambda run: record_problem(self._store, run, problem),
        )

    def _note(self, remember: Callable[[Run], Run], write: Callable[[Run], Run]) -> None:
        """Note something about the active run, in the store if that can be written to: the ladder must not wait."""
        run = self._snapshot().run
        if run is None:
            return
        noted = remember(run)
        if not self._observer.store_gone and not self._commits.behind:
            try:
                noted = write(run)
            except (StoreBusyError, StoreFailureError):
                pass
        self._observer.advance(self._snapshot()._replace(run=noted))

    def _stop_draining(self, _decision: Decision) -> None:
        self._run().stop_draining()

    def _end_run(self, _decision: Decision) -> None:
        active, snapshot = self._run(), self._snapshot()
        if snapshot.run is None:
            raise AssertionError(active.run_id)
        # The end is dated after the last sync of its logs, which may take a while.
        spec = self._observer.spec
        end, now = judge(snapshot.job, snapshot.run, active.collect(), spec), self._now()
        following = what_follows(snapshot.job, end, spec, now.wall_ns)
        self._commits.commit(running.end_run(snapshot, end, following, now))
        self.active = None
        if isinstance(following, Retry) and following.next_run_at_ns is not None:
            pause_ns = following.next_run_at_ns - now.wall_ns
            self._observer.backoff_due_ns = self._clock.boottime_ns() + pause_ns
        self._wake_others()

    def _wake_others(self) -> None:
        """Wake whom the last commit concerns: dependents of a completed job, and requests that may fit now."""
        if self._observer.store_gone:
            return
        if self._snapshot().job.phase == JobPhase.COMPLETED:
            wake_jobs(self._store.root, dependents_to_wake(self._store, self._owner.job_id))
        wake_jobs(self._store.root, requests_to_wake(self._store, self._observer.spec.slots))

    def _run(self) -> ActiveRun:
        """Return the active run; it begins when it is first asked for, once its reservation is durable."""
        if self.active is None:
            run = self._snapshot().run
            if run is None:
                raise AssertionError("no active run")
            self.active = self._begin(run)
        return self.active

    def _inherited(self) -> dict[bytes, bytes]:
        environment = submitter_environment()
        held = self._snapshot().admission
        marks = {
            b"JOBMAN_JOB_ID": self._owner.job_id,
            b"JOBMAN_JOB_NAME": self._observer.spec.name,
            b"JOBMAN_POOL": self._observer.spec.pool or "",
            b"JOBMAN_SLOTS": "" if held is None else ",".join(map(str, held.slot_indexes)),
        }
        for name, value in marks.items():
            environment.pop(name, None)
            if value:
                environment[name] = value.encode()
        return environment

    def _new_id(self) -> str:
        return new_id(self._clock.wall_ns(), os.urandom(RANDOM_BYTES))
