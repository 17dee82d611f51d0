"""Reading and following the captured output of a job (contract, A.7 and J.5 to J.6)."""

from __future__ import annotations

import time
from collections.abc import Callable

from jobman import recovery
from jobman.errors import NoRunYetError
from jobman.logs.follow import Follower
from jobman.logs.layout import run_directory
from jobman.logs.reader import Concatenation, copy, open_run, with_header
from jobman.model.state import JobPhase, RunPhase
from jobman.service.query import select_run
from jobman.store.jobs import load_job, load_runs
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.clock import Clock
    from jobman.logs.layout import View
    from jobman.logs.reader import Source
    from jobman.model.state import Job, Run
    from jobman.store.connection import Store

    Outlets = Sequence[tuple[View, "Write"]]

Write = Callable[[bytes], object]
FOLLOW_EVERY_S = 0.05
_INSPECT_EVERY_NS = 1_000_000_000


class Request(NamedTuple):
    """What is to be printed: of which run (-1 is the latest, ``None`` all of them), which view, how many last lines."""

    run: int | None
    view: View
    lines: int = -1
    headers: bool = True


def read(store: Store, job_id: str, wanted: Request, write: Write) -> list[str]:
    """Print captured output; return what is to be said about it on stderr.

    Raises:
        CorruptIndexError: the combined view cannot be trusted; nothing was printed.
        NoRunYetError: the job has not run.
        RunNotFoundError: it has no such run.
    """
    runs = _runs(store, job_id)
    if not runs:
        raise NoRunYetError(job=job_id, phase=load_job(store, job_id).phase.value)
    chosen = runs if wanted.run is None else [select_run(job_id, runs, wanted.run)]
    sources = [_open(store, run, wanted) for run in chosen]
    copy(Concatenation(sources) if len(sources) > 1 else sources[0], write, lines=wanted.lines)
    return [notice.text for source in sources for notice in source.notices]


def follow(store: Store, job_id: str, wanted: Request, write: Write, *, clock: Clock) -> list[str]:
    """Print output as it comes, until the run has ended, or with all runs (D45) the job.

    Waits for the first run of a job that has none yet.

    Raises:
        NoRunYetError: the job ended without a run.
        RunNotFoundError: it has no such run.
    """
    follower = JobFollower(store, job_id, clock)
    outlets = ((wanted.view, write),)
    if wanted.run is not None:
        run = follower.await_run(lambda runs: select_run(job_id, runs, wanted.run or -1) if runs else None)
        return follower.follow_run(run, outlets)
    return follower.follow_runs(outlets, header=write if wanted.headers else None)


class JobFollower:
    """Follows runs of one job, looking at the store only as often as people can tell.

    Args:
        store: the store.
        job_id: the job.
        clock: what says when the job's owner should be looked after again.
        pause: called between two looks, with the number of bytes that the last one has brought; sleeps if that is 0.
    """

    def __init__(
        self, store: Store, job_id: str, clock: Clock, *, pause: Callable[[int], object] | None = None
    ) -> None:
        self._store = store
        self._job_id = job_id
        self._clock = clock
        self._pause = pause or _sleep_unless
        self._inspect_at_ns = 0

    def follow_runs(self, outlets: Outlets, header: Write | None = None) -> list[str]:
        """Follow every run until the job has ended, each after a line for ``header`` that names it (D45).

        Raises:
            NoRunYetError: the job ended without a run.
        """
        notices: list[str] = []
        number = 1
        while (current := self.next_run(number)) is not None:
            if header is not None:
                header(b"==> run %d <==\n" % current.number)
            notices += self.follow_run(current, outlets)
            number = current.number + 1
        return notices

    def await_end(self) -> None:
        """Wait until the job has ended, following nothing."""
        while self._inspect().phase != JobPhase.COMPLETED:
            self._pause(0)

    def await_run(self, choose: Callable[[Sequence[Run]], Run | None]) -> Run:
        """Return the run that ``choose`` takes of those there are, as soon as it takes one.

        Raises:
            NoRunYetError: the job has ended, and there is none.
        """
        while True:
            job = self._inspect()
            run = choose(_runs(self._store, self._job_id))
            if run is not None:
                return run
            if job.phase == JobPhase.COMPLETED:
                raise NoRunYetError(job=self._job_id, phase=job.phase.value)
            self._pause(0)

    def next_run(self, number: int) -> Run | None:
        """Return the first run from ``number`` on, ``None`` if the job ends without another."""

        def choose(runs: Sequence[Run]) -> Run | None:
            return next((run for run in runs if run.number >= number), None)

        try:
            return self.await_run(choose)
        except NoRunYetError:
            if number == 1:
                raise
            return None

    def follow_run(self, run: Run, outlets: Outlets) -> list[str]:
        """Print each view to its outlet until the run has ended; return what is to be said about it on stderr."""
        directory = run_directory(self._store.root, self._job_id, run.number)
        tails = [(Follower(directory, view), write) for view, write in outlets]
        while True:
            # Asked before the last look at the files, so that nothing written in between is lost (O.52).
            done = self._is_done(run)
            moved = sum(tail.poll(write) for tail, write in tails)
            if done:
                return [notice.text for tail, _ in tails for notice in tail.notices(run.number)]
            self._pause(moved)

    def _is_done(self, run: Run) -> bool:
        self._inspect()
        runs = _runs(self._store, self._job_id)
        return any(other.id == run.id and other.phase == RunPhase.COMPLETED for other in runs)

    def _inspect(self) -> Job:
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._inspect_at_ns:
            self._inspect_at_ns = now_ns + _INSPECT_EVERY_NS
            recovery.reconcile(self._store, self._job_id, self._clock)
        return load_job(self._store, self._job_id)


def _sleep_unless(moved: int) -> None:
    if not moved:
        time.sleep(FOLLOW_EVERY_S)


def _open(store: Store, run: Run, wanted: Request) -> Source:
    active = run.phase != RunPhase.COMPLETED
    source = open_run(run_directory(store.root, run.job_id, run.number), run.number, view=wanted.view, active=active)
    return with_header(run.number, source) if wanted.run is None and wanted.headers else source


def _runs(store: Store, job_id: str) -> list[Run]:
    return load_runs(store, [job_id]).get(job_id, [])
