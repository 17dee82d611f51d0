"""Histories of many jobs that want slots, against one store, and what holds in all of them (H.4, D42, D44; O.42).

The transitions, the queries and the commits are the real ones; only supervisors are played: one attempts, hangs or dies
when the history says so. The model knows who holds what and keeps its own books.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from jobman.errors import LimitConflictError, RevisionConflictError
from jobman.model.events import Transition
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.state import JobPhase, Snapshot
from jobman.model.transitions._change import Now
from jobman.model.transitions.recovery import release_survivors
from jobman.policy.admission import (
    BYPASS_BOUND,
    IDLE_AFTER_NS,
    STORE_WIDE,
    Request,
    Ruling,
    View,
    is_idle,
)
from jobman.policy.limits import StatedLimits
from jobman.store.admissions import load_limits, load_view
from jobman.store.commit import commit
from jobman.store.jobs import load_snapshot
from jobman.store.limits import apply_stated
from jobman.supervisor import admission
from jobman.testing import FakeClock
from tests.moves import MOVES, PLAIN, SECOND_NS, Choice, submitted
from tests.stores import commit_all, fast_store, plain_spec

POOLS = ("gpu", "disk")
_NUMBERS = itertools.count()
CAPACITY = st.none() | st.integers(1, 4)
_NOT_HOLDING = (JobPhase.STARTING, JobPhase.QUEUED)


class Held(NamedTuple):
    """What the model knows of slots that are taken."""

    pool: str | None
    slots: int
    scope: str | None
    indexes: tuple[int, ...]


class Sim:
    """One job and the supervisor that plays for it."""

    def __init__(self, pool: str | None, slots: int) -> None:
        self.spec = plain_spec(pool=pool, slots=slots)
        self.responds = True
        self.lives = True
        self.place_ns: int | None = None
        self.bypassed = 0
        self.passed = 0

    def scopes(self) -> tuple[str, ...]:
        return (STORE_WIDE,) if self.spec.pool is None else (STORE_WIDE, self.spec.pool)


class Admissions(RuleBasedStateMachine):
    """See the module; ``root`` is where the stores of the examples go."""

    root: Path
    random: Random
    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.store = fast_store(self.root / f"state-{next(_NUMBERS)}")
        self.clock = FakeClock()
        self.sims: dict[str, Sim] = {}
        self.held: dict[str, Held] = {}
        self.limits: dict[str, int] = {}
        self.admitted = 0
        self.last_release: Transition | None = None

    # --- What happens ------------------------------------------------------------------------------------------------

    @initialize(gpu=CAPACITY, disk=CAPACITY, store_wide=CAPACITY, chance=st.randoms())
    def begin(self, gpu: int | None, disk: int | None, store_wide: int | None, chance: Random) -> None:
        self.random = chance
        for scope, capacity in (("gpu", gpu), ("disk", disk), (STORE_WIDE, store_wide)):
            self._set(scope, capacity)

    @rule(target=jobs, pool=st.sampled_from((None, *POOLS)), slots=st.integers(1, 3))
    def submit(self, pool: str | None, slots: int) -> str:
        return self._submit(pool, slots)

    @rule(pool=st.sampled_from((None, *POOLS)), count=st.integers(2, 5))
    def small_ones_pass_a_big_one(self, pool: str | None, count: int) -> None:
        for slots in (1, self.limits.get(pool or STORE_WIDE, 1)):
            self._attempt(self._submit(pool, slots))
        for _ in range(count):
            job_id = self._submit(pool, 1)
            self._attempt(job_id)
            if job_id in self.held:
                self._run(job_id, PLAIN)

    @rule(
        pool=st.sampled_from((None, *POOLS)),
        sizes=st.lists(st.integers(1, 3), min_size=2, max_size=4),
        fate=st.sampled_from(("well", "hung", "dead", "paused")),
    )
    def a_queue_forms(self, pool: str | None, sizes: list[int], fate: str) -> None:
        submitted_ids = [self._submit(pool, slots) for slots in sizes]
        for job_id in submitted_ids:
            self._attempt(job_id)
        queued = [job_id for job_id in submitted_ids if self.sims[job_id].place_ns is not None]
        if queued and fate == "paused":
            self._move(queued[0], "pause")
        elif queued and fate != "well":
            self.sims[queued[0]].responds = fate != "hung"
            self.sims[queued[0]].lives = fate != "dead"

    @rule(job_id=jobs)
    def try_once(self, job_id: str) -> None:
        if self.sims[job_id].lives and self.sims[job_id].responds:
            self._attempt(job_id)

    @rule()
    def everybody_tries(self) -> None:
        self._round(finish=False)

    @rule(job_id=jobs, retry_ns=st.sampled_from((None, 0, SECOND_NS)))
    def run_and_end(self, job_id: str, retry_ns: int | None) -> None:
        """M21: the slots go back whatever follows."""
        if job_id in self.held and self.sims[job_id].lives and self._phase(job_id) != JobPhase.PAUSED:
            self._run(job_id, PLAIN._replace(retry_ns=retry_ns))

    @rule(job_id=jobs)
    def start_running(self, job_id: str) -> None:
        snapshot = self._load(job_id)
        if snapshot.admission is not None and snapshot.run is None and self.sims[job_id].lives:
            self._move(job_id, "reserve")
            self._move(job_id, "start")

    @rule(job_id=jobs)
    def end_backoff(self, job_id: str) -> None:
        if self._phase(job_id) == JobPhase.BACKOFF and self.sims[job_id].lives:
            self._move(job_id, "enqueue_elapsed")

    @rule(job_id=jobs, move=st.sampled_from(("pause", "resume", "pause", "resume", "cancel")))
    def control(self, job_id: str, move: str) -> None:
        snapshot = self._load(job_id)
        if not MOVES[move].legal(snapshot, self._now()) or (move == "cancel" and snapshot.job.phase != "queued"):
            return
        self._move(job_id, move)
        if move == "cancel" and self.sims[job_id].lives:
            self._move(job_id, "finish_cancelled")

    @rule(job_id=jobs, fate=st.sampled_from(("hangs", "goes on", "dies")))
    def a_supervisor(self, job_id: str, fate: str) -> None:
        self.sims[job_id].responds = fate != "hangs"
        self.sims[job_id].lives &= fate != "dies"

    @rule(job_id=jobs, survivors=st.booleans())
    def reconcile(self, job_id: str, *, survivors: bool) -> None:
        """D42: without a process of the run the slots are free at once."""
        snapshot = self._load(job_id)
        if not self.sims[job_id].lives and snapshot.job.phase != JobPhase.COMPLETED:
            self._move(job_id, "lose", PLAIN._replace(release_slots=snapshot.run is None or not survivors))

    @rule(job_id=jobs)
    def last_survivor_ends(self, job_id: str) -> None:
        if job_id in self.held and self._phase(job_id) == JobPhase.COMPLETED:
            self._commit(release_survivors(self._load(job_id), self._now()))

    @rule(scope=st.sampled_from((STORE_WIDE, *POOLS)), capacity=CAPACITY)
    def change_capacity(self, scope: str, capacity: int | None) -> None:
        self._set(scope, capacity)

    @rule(passing_ns=st.integers(0, 2 * IDLE_AFTER_NS))
    def time_passes(self, passing_ns: int) -> None:
        self.clock.advance(passing_ns)

    @rule()
    def the_wall_clock_is_set_back(self) -> None:
        self.clock.set_wall(self.clock.wall_ns() - SECOND_NS)

    @rule()
    def a_release_is_repeated(self) -> None:
        if self.last_release is not None:
            with pytest.raises(RevisionConflictError):
                commit(self.store, self.last_release)

    # --- What always holds -------------------------------------------------------------------------------------------

    @invariant()
    def the_books_agree(self) -> None:
        """Slots are released exactly once, and nothing else is held than was given."""
        rows = self.store.execute("SELECT job_id, pool, slots FROM admissions WHERE released_at_ns IS NULL")
        assert sorted(rows, key=str) == sorted(
            [(job_id, held.pool, held.slots) for job_id, held in self.held.items()], key=str
        )
        assert self.store.execute("SELECT count(*) FROM admissions") == [(self.admitted,)]

    @invariant()
    def indexes_are_disjoint(self) -> None:
        taken = [(held.scope, index) for held in self.held.values() for index in held.indexes]
        assert len(taken) == len(set(taken))

    @invariant()
    def places_are_kept(self) -> None:
        """O.42: the first time counts, and the place goes with the admission or the job."""
        rows = self.store.execute("SELECT job_id, eligible_at_ns, bypassed FROM admission_requests")
        assert {job_id: place_ns for job_id, place_ns, _ in rows} == {
            job_id: sim.place_ns for job_id, sim in self.sims.items() if sim.place_ns is not None
        }
        for job_id, _, bypassed in rows:
            assert self.sims[job_id].bypassed <= bypassed <= BYPASS_BOUND
            self.sims[job_id].bypassed = bypassed

    def teardown(self) -> None:
        """Everybody who responds gets slots in the end, and the others cost no more than D44 says."""
        self._release_everything()
        in_the_way = [job_id for job_id, sim in self.sims.items() if not (sim.lives and sim.responds)]
        stalls, lost_ns = sum(self._phase(job_id) == JobPhase.QUEUED for job_id in in_the_way), 0
        while self._waiting():
            if not self._round(finish=True):
                self.clock.advance(IDLE_AFTER_NS)
                lost_ns += IDLE_AFTER_NS
            assert lost_ns <= stalls * IDLE_AFTER_NS, "somebody is waited for longer than D44 allows"
            self.places_are_kept()
        assert not self.held
        self.the_books_agree()
        self.store.close()

    # --- Playing supervisors -----------------------------------------------------------------------------------------

    def _round(self, *, finish: bool) -> bool:
        """Let everybody try, in any order; return whether anybody went on."""
        waiting = self._waiting()
        self.random.shuffle(waiting)
        went_on = [self._attempt(job_id) for job_id in waiting]
        for job_id in list(self.held) if finish else ():
            self._run(job_id, PLAIN)
        return any(went_on)

    def _waiting(self) -> list[str]:
        trying = [job_id for job_id, sim in self.sims.items() if sim.lives and sim.responds]
        return [job_id for job_id in trying if job_id not in self.held and self._phase(job_id) in _NOT_HOLDING]

    def _attempt(self, job_id: str) -> bool:
        """Do what the loop does about slots; return whether the job goes on, be it to its end."""
        sim, snapshot = self.sims[job_id], self._load(job_id)
        if snapshot.job.phase not in _NOT_HOLDING or snapshot.admission is not None:
            return False
        seen = admission.look(self.store, snapshot, sim.spec, self.clock)
        if seen.verdict.ruling == Ruling.IMPOSSIBLE:
            assert any(sim.spec.slots > self.limits.get(scope, sim.spec.slots) for scope in sim.scopes())
            self._move(job_id, "abort")
            return True
        settled = seen.enqueued and snapshot.job.phase == JobPhase.QUEUED and seen.verdict.mark is None
        if seen.verdict.ruling == Ruling.WAIT and settled:
            return False
        view = load_view(self.store, load_limits(self.store))
        after = admission.attempt(self.store, snapshot, sim.spec, clock=self.clock, now=self._now())
        if after.admission is not None:
            self._is_admitted(job_id, after, view)
            return True
        if sim.place_ns is None:
            sim.place_ns = self._place(job_id, view)
        return False

    def _is_admitted(self, job_id: str, after: Snapshot, view: View) -> None:
        sim, given = self.sims[job_id], after.admission
        assert given is not None
        assert (given.pool, given.slots) == (sim.spec.pool, sim.spec.slots)
        for scope in sim.scopes():
            assert sim.spec.slots <= self._free(scope), f"the capacity of {scope or 'the store'} is exceeded"
        self._check_order(job_id, view)
        self._check_indexes(after)
        self.held[job_id] = Held(given.pool, given.slots, given.slot_scope, given.slot_indexes)
        self.admitted += 1
        sim.place_ns = None

    def _check_order(self, job_id: str, view: View) -> None:
        """Hold the admission to O.41 as far as the head of the whole queue is concerned."""
        mine = (self.sims[job_id].place_ns or self._place(job_id, view), job_id)
        rivals = [one for one in view.queue if one.competes and not is_idle(one, self.clock.boottime_ns())]
        head = min(rivals, key=Request.order, default=None)
        if head is None or head.order() >= mine:
            return
        shared = [scope for scope in head.scopes() if scope in self.limits and scope in self.sims[job_id].scopes()]
        if any(self._free(scope) < head.slots for scope in shared):
            self.sims[head.job_id].passed += 1
            assert self.sims[head.job_id].passed <= BYPASS_BOUND, "passed more often than three times"
        elif shared:
            assert any(self._free(scope) < head.slots for scope in head.scopes()), "one that fits was passed"

    def _check_indexes(self, after: Snapshot) -> None:
        """D34: the lowest that nobody has, of the pool if it is finite, else of the store."""
        given = after.admission
        assert given is not None
        scope = next((scope for scope in (given.pool, STORE_WIDE) if scope in self.limits), None)
        assert given.slot_scope == scope
        taken = {index for held in self.held.values() if held.scope == scope for index in held.indexes}
        free = (index for index in itertools.count() if index not in taken)
        assert given.slot_indexes == (() if scope is None else tuple(itertools.islice(free, given.slots)))

    def _place(self, job_id: str, view: View) -> int:
        """Return where a newcomer stands: never before the newest."""
        assert job_id not in [one.job_id for one in view.queue]
        newest_ns = max((one.eligible_at_ns for one in view.queue), default=0)
        return self.clock.wall_ns() if self.clock.wall_ns() >= newest_ns else newest_ns + 1

    def _free(self, scope: str) -> int:
        used = sum(held.slots for held in self.held.values() if scope in (STORE_WIDE, held.pool))
        return self.limits[scope] - used if scope in self.limits else 10**9

    def _run(self, job_id: str, choice: Choice) -> None:
        snapshot = self._load(job_id)
        if snapshot.run is None:
            self._move(job_id, "reserve")
            self._move(job_id, "start")
        self._move(job_id, "end", choice)

    def _release_everything(self) -> None:
        for job_id, sim in self.sims.items():
            phase = self._phase(job_id)
            if job_id in self.held and phase == JobPhase.COMPLETED:
                self._commit(release_survivors(self._load(job_id), self._now()))
            elif job_id in self.held and not sim.lives:
                self._move(job_id, "lose")
            elif job_id in self.held:
                if phase == JobPhase.PAUSED:
                    self._move(job_id, "resume")
                self._run(job_id, PLAIN)
            elif phase == JobPhase.BACKOFF and sim.lives:
                self._move(job_id, "enqueue_elapsed")

    # --- The store ---------------------------------------------------------------------------------------------------

    def _set(self, scope: str, capacity: int | None) -> None:
        stated = (
            StatedLimits(states_store_wide=True, store_wide=capacity, pools={})
            if scope == STORE_WIDE
            else StatedLimits(states_store_wide=False, store_wide=None, pools={scope: capacity})
        )
        queued = [sim for sim in self.sims.values() if sim.place_ns is not None and scope in sim.scopes()]
        changed = capacity != self.limits.get(scope)
        if changed and capacity is not None and any(sim.spec.slots > capacity for sim in queued):
            with pytest.raises(LimitConflictError):
                apply_stated(self.store, stated)
            return
        apply_stated(self.store, stated)
        self.limits.pop(scope, None)
        if capacity is not None:
            self.limits[scope] = capacity

    def _submit(self, pool: str | None, slots: int) -> str:
        job_id = new_id(self.clock.wall_ns(), len(self.sims).to_bytes(RANDOM_BYTES))
        sim = Sim(pool, slots)
        commit_all(self.store, [submitted(job_id, now=self._now())], sim.spec)
        self.sims[job_id] = sim
        self._move(job_id, "claim")
        return job_id

    def _move(self, job_id: str, name: str, choice: Choice = PLAIN) -> None:
        transition = MOVES[name].apply(self._load(job_id), choice, self._now())
        assert transition is not None
        self._commit(transition)

    def _commit(self, transition: Transition) -> None:
        commit(self.store, transition)
        job, given = transition.after.job, transition.after.admission
        if given is not None and given.released_at_ns is not None:
            del self.held[job.id]
            self.last_release = transition
        if job.phase == JobPhase.COMPLETED:
            self.sims[job.id].place_ns = None

    def _load(self, job_id: str) -> Snapshot:
        return load_snapshot(self.store, job_id)

    def _phase(self, job_id: str) -> JobPhase:
        return self._load(job_id).job.phase

    def _now(self) -> Now:
        return Now(self.clock.wall_ns(), self.clock.monotonic_ns())
