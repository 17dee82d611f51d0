"""What is left of a lost job: its supervisor is dead, so the client has to look for it, and to stop it (D25, D42)."""

from __future__ import annotations

import time

from jobman import process, recovery, signals
from jobman.model.transitions._change import Now
from jobman.recovery.losing import give_back, survivors_of
from jobman.store.jobs import load_runs, load_snapshot, load_supervisor
from jobman.store.specs import load_spec
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.store.connection import Store

_LOOK_EVERY_S = 0.02
_INSISTENCE_NS = 5_000_000_000


def survivors(store: Store, job_id: str) -> tuple[process.Member, ...] | None:
    """Return what is alive of a lost job's last run; ``None`` if that cannot be known from here.

    Worth asking only while the job holds its slots: they are released on proof that nothing is alive.
    """
    supervisor = load_supervisor(store, job_id)
    runs = load_runs(store, [job_id]).get(job_id, [])
    return survivors_of(runs[-1], supervisor) if supervisor is not None and runs else ()


def are_unknown(store: Store, job_id: str) -> bool:
    """Whether a lost job holds slots, and nothing can be told from here of what may be alive of it.

    Its processes belonged to another PID namespace, such as that of a container, which may be gone for good.
    """
    return load_snapshot(store, job_id).admission is not None and survivors(store, job_id) is None


def give_up(store: Store, job_id: str, clock: Clock) -> None:
    """Release the slots of such a job on the word of the user that nothing of it is alive."""
    give_back(store, load_snapshot(store, job_id), Now(clock.wall_ns(), clock.monotonic_ns()))


def stop_survivors(store: Store, job_id: str, clock: Clock) -> None:
    """Ask the living processes of a lost job's last run to end, insist after the job's grace, and free its slots.

    Only processes that are proved to belong to the run are signalled; where that cannot be known, none is.
    """

    def alive() -> tuple[process.Member, ...]:
        return survivors(store, job_id) or ()

    for member in alive():
        process.signal_member(member, signals.SIGTERM)
        process.signal_member(member, signals.SIGCONT)
    stop = load_spec(store, job_id).stop
    deadline_ns = clock.monotonic_ns() + stop.grace_ns
    while alive() and clock.monotonic_ns() < deadline_ns:
        time.sleep(_LOOK_EVERY_S)
    deadline_ns = clock.monotonic_ns() + _INSISTENCE_NS
    while stop.force_after_grace and alive() and clock.monotonic_ns() < deadline_ns:
        process.kill_all(alive)
        time.sleep(_LOOK_EVERY_S)
    recovery.reconcile(store, job_id, clock)
