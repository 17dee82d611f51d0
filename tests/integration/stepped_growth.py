"""A supervisor in a store of many jobs, step by step: it looks at its own job and at what is active, at nothing else.

Run as a program, as `tests.integration.stepped_supervisor` says.
"""

from __future__ import annotations

import os
import sys

from jobman.model.spec import Completion, Delay, Dependency, Limit
from jobman.policy.limits import StatedLimits
from jobman.service import control
from jobman.store.admissions import held_jobs
from jobman.store.connection import open_store
from jobman.store.jobs import load_job
from jobman.store.limits import apply_stated
from tests.integration.stepped_gates import ask, delay, waiting
from tests.integration.stepped_supervisor import HOUR, SECOND, TICK, Story
from tests.moves import EXAMPLE_JOB_ID
from tests.stores import executed, full_scans


def whole_life(state: str) -> None:
    """It waits for a time and for a job whose owner is dead, queues, runs twice with a pause between, is cancelled."""
    store = open_store(state)
    apply_stated(store, StatedLimits(states_store_wide=False, store_wide=None, pools={"gpu": 1}))
    completion = Completion(max_runs=Limit(3), success_target=Limit(1), failure_limit=Limit(3))
    spec = waiting(delay(HOUR), dependencies=(Dependency(EXAMPLE_JOB_ID, "finish"),), pool="gpu", completion=completion)
    spec = spec._replace(arguments=("-c", "exit 1"), failure_delay=Delay(base_ns=HOUR))
    with executed() as statements:
        holder = Story(state, spec._replace(waits=waiting().waits, dependencies=(), arguments=("-c", "sleep 60")))
        holder.until_phase("running")
        story = Story(state, spec)
        story.until_phase("waiting")
        story.pass_time(HOUR)
        story.until_phase("queued", tick_ns=TICK)
        assert held_jobs(store) == [holder.job_id]
        ask(holder, control.cancel)
        holder.until_phase("completed", tick_ns=TICK)
        story.until_phase("backoff", tick_ns=SECOND)
        ask(story, control.pause)
        story.pass_time(HOUR // 2)
        ask(story, control.resume)
        story.pass_time(HOUR)
        story.until(lambda: story.snapshot().job.counters.runs == 2, "the second run", tick_ns=TICK)
        ask(story, control.cancel)
        story.until_phase("completed", tick_ns=TICK)
    assert load_job(store, EXAMPLE_JOB_ID).outcome == "lost"
    assert full_scans(store, statements) == set()
    store.close()


if __name__ == "__main__":
    os.environ["JOBMAN_STATE_DIR"] = sys.argv[2]
    {"whole_life": whole_life}[sys.argv[1]](sys.argv[2])
