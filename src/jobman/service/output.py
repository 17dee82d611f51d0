"""Reading and following the captured output of a job (contract, A.7 and J.5 to J.6)."""

from __future__ import annotations

import time

from jobman import recovery
from jobman.errors import NeverRunError, NoRunYetError
from jobman.logs.layout import Labels, run_directory
from jobman.logs.reader import Concatenation, copy, header, open_run, with_header
from jobman.logs.runfiles import Page
from jobman.model.state import JobPhase, RunPhase
from jobman.service.pruned import keep_present, pruned_error, require_present, telling_of_pruning
from jobman.service.query import select_run
from jobman.store.jobs import first_run_from, load_job, load_run, load_runs
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobman.clock import Clock
    from jobman.logs.layout import View
    from jobman.logs.runfiles import Notice
    from jobman.model.state import Job, Run
    from jobman.store.connection import Store

    Write = Callable[[bytes], object]
    Outlets = Sequence[tuple[View, Write]]

FOLLOW_EVERY_S = 0.05
_INSPECT_EVERY_NS = 1_000_000_000


class Request(NamedTuple):
    """What is to be printed: of which run (-1 is the latest, ``None`` all of them), which view, how many last lines.

    ``headers`` are the lines that name the runs if all are printed, ``labels`` what stands before every other line.
    """

    run: int | None
    view: View
    lines: int = -1
    headers: bool = True
    labels: Labels | None = None

    def header(self, run: Run) -> bytes:
        """Return the line that names a run, if there has to be one."""
        return header(run.number) if self.run is None and self.headers else b""


def read(store: Store, job_id: str, wanted: Request, write: Write) -> list[str]:
    """Print captured output; return what is to be said about it on stderr.

    Raises:
        CorruptIndexError: the combined view cannot be trusted; nothing was printed.
        LogsPrunedError: the run's logs were removed; with all runs, that is returned (D17).
        NeverRunError: the job has ended without a run.
        NoRunYetError: the job has not run yet.
        RunNotFoundError: it has no such run.
    """
    runs = _runs(store, job_id)
    if not runs:
        phase = load_job(store, job_id).phase
        raise NeverRunError(job=job_id) if phase == JobPhase.COMPLETED else NoRunYetError(job=job_id, phase=phase.value)
    if wanted.run is None:
        chosen, pruned = keep_present(runs)
    else:
        chosen, pruned = [require_present(select_run(job_id, runs, wanted.run))], []
    printed = _print if wanted.labels is None else _print_lines
    with telling_of_pruning(store, chosen):
        notices = printed(store, chosen, wanted, write)
    return pruned + [notice.text for notice in notices]


def follow(store: Store, job_id: str, wanted: Request, write: Write, *, clock: Clock) -> list[str]:
    """Print output as it comes, until the run has ended, or with all runs (D45) the job.

    Waits for the first run of a job that has none yet.

    Raises:
        LogsPrunedError: the run's logs were removed; with all runs, that is returned (D17).
        NeverRunError: the job ended without a run.
        RunNotFoundError: it has no such run.
    """
    page = Page(write)
    follower = JobFollower(store, job_id, clock, labels=wanted.labels)
    outlets = ((wanted.view, page),)
    if wanted.run is not None:
        run = follower.await_run(lambda: _chosen(store, job_id, wanted.run or -1))
        return follower.follow_run(require_present(run), outlets)

    def begin(number: int) -> None:
        if wanted.labels is not None:
            page.begin()
        if wanted.headers:
            page(header(number))

    return follower.follow_runs(outlets, begin)


class JobFollower:
    """Follows runs of one job, looking at the store only as often as people can tell.

    Args:
        store: the store.
        job_id: the job.
        clock: what says when the job's owner should be looked after again.
        labels: what to put before each line; none if bytes are to be printed as they come.
        pause: called between two looks, with the number of bytes that the last one has brought; sleeps if that is 0.
    """

    def __init__(
        self,
        store: Store,
        job_id: str,
        clock: Clock,
        *,
        labels: Labels | None = None,
        pause: Callable[[int], object] | None = None,
    ) -> None:
        self._store = store
        self._job_id = job_id
        self._clock = clock
        self._labels = labels
        self._pause = pause or _sleep_unless
        self._inspect_at_ns = 0

    def follow_runs(self, outlets: Outlets, begin: Callable[[int], object] | None = None) -> list[str]:
        """Follow every run until the job has ended, each after ``begin`` was called with its number (D45).

        Raises:
            NeverRunError: the job ended without a run.
        """
        notices: list[str] = []
        number = 1
        while (current := self.next_run(number)) is not None:
            if current.pruning is not None:
                notices.append(str(pruned_error(current)))
                number = current.number + 1
                continue
            if begin is not None:
                begin(current.number)
            notices += self.follow_run(current, outlets)
            number = current.number + 1
        return notices

    def await_end(self) -> None:
        """Wait until the job has ended, following nothing."""
        while self._inspect().phase != JobPhase.COMPLETED:
            self._pause(0)

    def await_run(self, look: Callable[[], Run | None]) -> Run:
        """Return the run that ``look`` finds, as soon as it finds one.

        Raises:
            NeverRunError: the job has ended, and there is none.
        """
        while True:
            job = self._inspect()
            run = look()
            if run is not None:
                return run
            if job.phase == JobPhase.COMPLETED:
                raise NeverRunError(job=self._job_id)
            self._pause(0)

    def next_run(self, number: int) -> Run | None:
        """Return the first run from ``number`` on, ``None`` if the job ends without another."""
        try:
            return self.await_run(lambda: first_run_from(self._store, self._job_id, number))
        except NeverRunError:
            if number == 1:
                raise
            return None

    def follow_run(self, run: Run, outlets: Outlets) -> list[str]:
        """Print each view to its outlet until the run has ended; return what is to be said about it on stderr."""
        from jobman.logs.follow import Follower  # not for those who only read

        directory = run_directory(self._store.root, self._job_id, run.number)
        tails = [(Follower(directory, view, self._labels), write) for view, write in outlets]
        while True:
            # Asked before the last look at the files, so that nothing written in between is lost (O.52).
            done = self._is_done(run)
            with telling_of_pruning(self._store, [run]):
                moved = sum(tail.poll(write) for tail, write in tails)
            if done:
                for tail, write in tails:
                    tail.finish(write)
                return [notice.text for tail, _ in tails for notice in tail.notices(run.number)]
            self._pause(moved)

    def _is_done(self, run: Run) -> bool:
        self._inspect()
        # This one only: a job may have thousands, and this is asked twenty times a second.
        now = load_run(self._store, run.id)
        return now is not None and now.phase == RunPhase.COMPLETED

    def _inspect(self) -> Job:
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._inspect_at_ns:
            self._inspect_at_ns = now_ns + _INSPECT_EVERY_NS
            recovery.reconcile(self._store, self._job_id, self._clock)
        return load_job(self._store, self._job_id)


def _sleep_unless(moved: int) -> None:
    if not moved:
        time.sleep(FOLLOW_EVERY_S)


def _print(store: Store, runs: Sequence[Run], wanted: Request, write: Write) -> Sequence[Notice]:
    sources = []
    for run in runs:
        source = open_run(_directory(store, run), run.number, view=wanted.view, active=_is_active(run))
        sources.append(with_header(run.number, source) if wanted.header(run) else source)
    whole = sources[0] if len(sources) == 1 else Concatenation(sources)
    copy(whole, write, lines=wanted.lines)
    return whole.notices


def _print_lines(store: Store, runs: Sequence[Run], wanted: Request, write: Write) -> Sequence[Notice]:
    from jobman.logs.lines import copy_lines, open_lines  # asked for rarely

    labels = wanted.labels or Labels()
    sections = []
    for run in runs:
        directory, active = _directory(store, run), _is_active(run)
        source = open_lines(directory, run.number, view=wanted.view, labels=labels, active=active)
        sections.append((wanted.header(run), source))
    copy_lines(sections, write, lines=wanted.lines)
    return [notice for _, source in sections for notice in source.notices]


def _directory(store: Store, run: Run) -> str:
    return run_directory(store.root, run.job_id, run.number)


def _is_active(run: Run) -> bool:
    return run.phase != RunPhase.COMPLETED


def _chosen(store: Store, job_id: str, number: int) -> Run | None:
    runs = _runs(store, job_id)
    return select_run(job_id, runs, number) if runs else None


def _runs(store: Store, job_id: str) -> list[Run]:
    return load_runs(store, [job_id]).get(job_id, [])
