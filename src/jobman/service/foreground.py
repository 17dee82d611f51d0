"""Being there while a job runs: its output as it comes, each stream apart, and our input for it (contract, A.2.1)."""

from __future__ import annotations

from jobman.errors import CorruptIndexError, MissingLogError, NeverRunError, UnsafeLogError
from jobman.service.live_input import Pump
from jobman.service.output import FOLLOW_EVERY_S, JobFollower
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.service.output import Outlets
    from jobman.store.connection import Store

_MOMENT_S = 0.005


def attach(store: Store, job_id: str, outlets: Outlets, clock: Clock, *, stdin: int) -> list[str]:
    """Follow every run of a job to its end and copy a descriptor to them (D2); return what is to be said on stderr.

    Only observes and sends: whoever leaves in between, by an exception of an outlet too, leaves the job as it is.

    Args:
        store: the store.
        job_id: a job that takes live input.
        outlets: where each view of the output goes.
        clock: what says when the job's owner should be looked after again.
        stdin: the descriptor to read from.
    """
    pump = Pump(store, job_id, stdin, clock)
    # Much output must not keep input from being copied, nor the other way round.
    follower = JobFollower(store, job_id, clock, pause=lambda moved: pump.work(_MOMENT_S if moved else FOLLOW_EVERY_S))
    try:
        return follower.follow_runs(outlets)
    except NeverRunError:
        return []  # its outcome says why
    except (CorruptIndexError, MissingLogError, UnsafeLogError) as error:
        # What was not recorded cannot be shown; how the job ends is another matter.
        follower.await_end()
        return [str(error)]
