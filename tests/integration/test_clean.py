"""Cleaning real directories: totals, refusals, readers, and several at once (J.7; O.53, O.54)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from jobman.errors import (
    ActiveCaptureError,
    JobmanError,
    JobNotFoundError,
    LogsBeingPrunedError,
    LogsPrunedError,
    MissingLogError,
    NotCompletedError,
    StoreFailureError,
    UnsafeLogError,
)
from jobman.logs import cleanup
from jobman.logs.layout import View
from jobman.model.spec import Dependency
from jobman.model.state import JobPhase
from jobman.policy.retention import Retention
from jobman.service.maintain import Scope, Totals, clean, preview
from jobman.service.output import Request, follow, read
from jobman.store.connection import Store
from jobman.store.jobs import load_job, load_runs
from jobman.store.specs import load_spec
from jobman.testing import FakeClock
from tests.cleaning import BYTES, CLOCK, EVERYTHING, FILES, FIRST, SECOND, add_job, add_logs, tree
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, HOUR_NS, PLAIN, derived_id, walk
from tests.stores import commit_all, count_statements, dump, fast_store, multiply, plain_spec
from tests.support import SUCCEED


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def test_a_preview_comes_to_the_totals_of_the_removal_and_changes_nothing(store: Store) -> None:
    """D13, D19."""
    for job_id in (FIRST, SECOND):
        add_job(store, job_id)
        add_logs(store, job_id)
    before = dump(store), tree(store.root)

    seen = preview(store, EVERYTHING, CLOCK)

    assert (dump(store), tree(store.root)) == before
    assert seen == clean(store, EVERYTHING, CLOCK) == Totals(2, 2 * len(FILES), 2 * BYTES, 2)
    assert tree(store.root) == {}
    assert store.execute("SELECT count(*) FROM jobs") == [(0,)]
    assert all(not rows for table, rows in dump(store).items() if table != "schema_migrations")
    assert clean(store, EVERYTHING, CLOCK) == preview(store, EVERYTHING, CLOCK) == Totals(0, 0, 0, 0)


def test_a_tombstone_tells_what_was_removed_and_when(store: Store) -> None:
    add_job(store, FIRST)
    add_logs(store, FIRST)

    clean(store, Scope(with_jobs=False), CLOCK)

    (run,) = load_runs(store, [FIRST])[FIRST]
    assert run.pruning == (CLOCK.wall_ns(), len(FILES), BYTES)
    assert (run.revision, run.logs.stdout_bytes) == (3, 3)
    assert preview(store, EVERYTHING, CLOCK) == Totals(0, 0, 0, 1)


def test_a_tombstone_is_not_older_than_the_run_when_the_clock_was_set_back(store: Store) -> None:
    add_job(store, FIRST)
    clean(store, Scope(with_jobs=False), FakeClock(wall_ns=EPOCH_NS - HOUR_NS))
    (run,) = load_runs(store, [FIRST])[FIRST]
    assert run.pruning is not None
    assert run.pruning.at_ns == run.completed_at_ns


def test_logs_that_somebody_else_has_removed_are_pruned_as_nothing(store: Store) -> None:
    add_job(store, FIRST)
    assert preview(store, EVERYTHING, CLOCK) == clean(store, EVERYTHING, CLOCK) == Totals(1, 0, 0, 1)


def test_only_what_is_old_enough_goes_and_jobs_stay_without_their_logs(store: Store) -> None:
    add_job(store, FIRST)
    add_job(store, SECOND, "claim", "enqueue_full")
    add_logs(store, FIRST)
    age_ns = CLOCK.wall_ns() - (load_job(store, FIRST).completed_at_ns or 0)

    assert preview(store, Scope(age_ns=age_ns + 1), CLOCK) == Totals(0, 0, 0, 0)
    assert clean(store, Scope(age_ns=age_ns, with_jobs=False), CLOCK) == Totals(1, len(FILES), BYTES, 0)
    assert load_job(store, FIRST).phase == JobPhase.COMPLETED


def test_a_retention_removes_jobs_only_by_the_age_of_their_metadata(store: Store) -> None:
    """D11 besides: a retention that was stated for a job counts instead of the configured age."""
    add_job(store, FIRST, logging=plain_spec().logging._replace(retention_ns=None, retention_stated=True))
    add_job(store, SECOND)
    for job_id in (FIRST, SECOND):
        add_logs(store, job_id)

    assert preview(store, Scope(retention=Retention()), CLOCK).runs == 0
    assert clean(store, Scope(retention=Retention(log_age_ns=0)), CLOCK) == Totals(1, len(FILES), BYTES, 0)
    assert Path(store.root, "logs", FIRST).exists()
    gone = clean(store, Scope(retention=Retention(metadata_age_ns=0)), CLOCK)
    assert gone == Totals(1, len(FILES), BYTES, 2)


def test_a_job_that_has_not_ended_is_refused_and_its_ended_runs_are_kept(store: Store) -> None:
    """O.8; candidates are runs of completed jobs."""
    retry = PLAIN._replace(retry_ns=HOUR_NS)
    commit_all(store, walk(*SUCCEED, choice=retry, job_id=FIRST))
    path = add_logs(store, FIRST)
    for act in (preview, clean):
        with pytest.raises(NotCompletedError, match="is backoff: only a completed job can be cleaned"):
            act(store, Scope(FIRST), CLOCK)
        assert act(store, EVERYTHING, CLOCK) == Totals(0, 0, 0, 0)
    assert path.exists()


# --- Jobs that have to stay -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moves", "observed", "stays"),
    [
        pytest.param(("claim", "await_prerequisites"), False, True, id="waits for it"),
        pytest.param(("claim", "await_prerequisites"), True, False, id="waits for others"),
        pytest.param((), False, True, id="is being submitted"),
        pytest.param(("claim", "abort"), False, False, id="has ended without having looked"),
    ],
)
def test_a_job_stays_while_another_has_to_see_how_it_ended(
    store: Store, *, moves: tuple[str, ...], observed: bool, stays: bool
) -> None:
    """O.54; a dependent that knows loses its edge."""
    add_job(store, FIRST)
    commit_all(store, walk(*moves, job_id=SECOND), plain_spec(dependencies=(Dependency(FIRST, "success"),)))
    if observed:
        store.execute(
            "UPDATE dependencies SET observed_revision = 5, observed_outcome = 'success', satisfied_at_ns = 1"
        )
    ended = "claim" in moves and "abort" in moves

    seen = preview(store, EVERYTHING, CLOCK)

    assert seen == clean(store, EVERYTHING, CLOCK)
    assert seen.jobs == (0 if stays else 2 if ended else 1)
    assert bool(store.execute("SELECT 1 FROM jobs WHERE id = ?", (FIRST,))) == stays
    assert bool(store.execute("SELECT 1 FROM dependencies")) == stays
    assert store.execute("PRAGMA foreign_key_check") == []
    if not ended:
        assert load_spec(store, SECOND).dependencies == (Dependency(FIRST, "success"),)


def test_a_lost_job_that_holds_slots_stays(store: Store) -> None:
    """O.54, D42."""
    history = walk(
        "claim", "admit", "reserve", "start", "lose", choice=PLAIN._replace(release_slots=False), job_id=FIRST
    )
    commit_all(store, history)
    assert clean(store, EVERYTHING, CLOCK) == Totals(1, 0, 0, 0)
    assert load_job(store, FIRST).outcome == "lost"


def test_a_job_goes_with_what_its_supervisor_left_unless_that_still_lives(store: Store) -> None:
    add_job(store, FIRST)
    for suffix in ("log", "wake", "lock"):
        Path(store.root, "run", f"{FIRST}.{suffix}").touch()
    clean(store, Scope(FIRST), CLOCK)
    assert os.listdir(f"{store.root}/run") == ["writer.lock"]


# --- Refusals -------------------------------------------------------------------------------------------------------


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _refusal_cases() -> dict[str, tuple[Callable[[Path], object], type[JobmanError]]]:
    return {
        "an active capture": (lambda run: (run / ".active").touch(0o600), ActiveCaptureError),
        "an unknown file": (lambda run: (run / "notes.txt").touch(0o600), UnsafeLogError),
        "a segment that cannot be": (lambda run: (run / "stdout.000001.log").touch(0o600), UnsafeLogError),
        "a summary without a claim": (lambda run: (run / ".cleanup-summary").touch(0o600), UnsafeLogError),
        "a directory": (lambda run: (run / "stderr.000002.log").mkdir(0o700), UnsafeLogError),
        "a link to a file": (lambda run: (run / "stderr.000002.log").symlink_to(run / "stdout.log"), UnsafeLogError),
        "a second link": (lambda run: os.link(run / "stdout.log", run.parents[2] / "kept"), UnsafeLogError),
        "a FIFO": (lambda run: os.mkfifo(run / "stderr.000002.log", 0o600), UnsafeLogError),
        "a file open to others": (lambda run: (run / "stdout.log").chmod(0o644), UnsafeLogError),
        "a run open to others": (lambda run: run.chmod(0o755), UnsafeLogError),
        "a job open to others": (lambda run: run.parent.chmod(0o750), UnsafeLogError),
        "a link to a run": (_linked, UnsafeLogError),
        "a link to a job": (lambda run: _linked(run.parent), UnsafeLogError),
        "a link to all logs": (lambda run: _linked(run.parents[1]), UnsafeLogError),
        "both directories": (lambda run: run.with_name("1.deleting").mkdir(0o700), UnsafeLogError),
        "a claim that is a file": (lambda run: run.with_name("1.deleting").touch(0o600), UnsafeLogError),
    }


REFUSALS = _refusal_cases()


@pytest.mark.parametrize(("spoil", "error"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_not_ours_is_refused_and_left_as_it_is(
    store: Store, spoil: Callable[[Path], object], error: type[JobmanError]
) -> None:
    """O.53: nothing is removed and nothing recorded, by the preview as by the removal (D13)."""
    add_job(store, FIRST)
    spoil(add_logs(store, FIRST))
    before = dump(store), tree(store.root)
    for act in (preview, clean):
        with pytest.raises(error):
            act(store, EVERYTHING, CLOCK)
        assert (dump(store), tree(store.root)) == before


def test_something_unknown_beside_the_runs_keeps_the_job(store: Store) -> None:
    """What would be left on disk of a job that nobody knows any more, nobody would ever remove."""
    add_job(store, FIRST)
    add_logs(store, FIRST)
    Path(store.root, "logs", FIRST, "7").mkdir(0o700)
    for act in (preview, clean):
        with pytest.raises(UnsafeLogError, match="belongs to no run"):
            act(store, EVERYTHING, CLOCK)
    assert load_job(store, FIRST).id == FIRST
    (run,) = load_runs(store, [FIRST])[FIRST]
    assert run.pruning is not None


def test_nothing_is_touched_where_the_store_cannot_be_written_to(store: Store) -> None:
    add_job(store, FIRST)
    add_logs(store, FIRST)
    before = tree(store.root)
    store.read_only = True
    assert preview(store, EVERYTHING, CLOCK).runs == 1
    with pytest.raises(StoreFailureError, match="is read-only"):
        clean(store, EVERYTHING, CLOCK)
    assert tree(store.root) == before


def test_the_first_failure_ends_a_cleaning_and_what_is_done_stays_done(store: Store) -> None:
    for job_id in (FIRST, SECOND):
        add_job(store, job_id)
        add_logs(store, job_id)
    first, second = sorted((FIRST, SECOND))
    Path(store.root, "logs", second, "1", "notes.txt").touch()
    with pytest.raises(UnsafeLogError):
        clean(store, EVERYTHING, CLOCK)
    runs = load_runs(store, [first, second])
    assert [runs[job_id][0].pruning is not None for job_id in (first, second)] == [True, False]
    assert next(iter(tree(store.root))) == second


# --- Readers --------------------------------------------------------------------------------------------------------


def test_a_reader_whose_log_is_removed_meanwhile_is_told_so(store: Store) -> None:
    """The file that is open can still be read; the next one is gone, and it is said why."""
    add_job(store, FIRST)
    large = b"x" * 1_000_000
    (add_logs(store, FIRST) / "stdout.log").write_bytes(large)
    printed: list[bytes] = []

    def write(block: bytes) -> None:
        if not printed:
            clean(store, Scope(with_jobs=False), CLOCK)
        printed.append(block)

    with pytest.raises(LogsPrunedError, match=f"run 1 of job {FIRST} were pruned at 2027-01-15T09:00:00Z"):
        read(store, FIRST, Request(-1, View.STDOUT), write)
    assert len(printed) > 1
    assert large.startswith(b"".join(printed))


def test_a_reader_of_logs_that_are_being_removed_is_told_so(store: Store) -> None:
    add_job(store, FIRST)
    add_logs(store, FIRST)
    with cleanup.JobLogs(store.root, FIRST) as logs:
        logs.claim(1)
    for act in (read, partial(follow, clock=CLOCK)):
        with pytest.raises(LogsBeingPrunedError):
            act(store, FIRST, Request(-1, View.STDOUT), bytes)


def test_a_log_that_is_missing_for_another_reason_is_told_as_that(store: Store) -> None:
    add_job(store, FIRST)
    with pytest.raises(MissingLogError):
        read(store, FIRST, Request(-1, View.STDOUT), bytes)


# --- Several at once, and many jobs ---------------------------------------------------------------------------------


def test_two_cleanings_at_once_remove_everything_once(store: Store, state: Path) -> None:
    ids = [derived_id("clean", "many", number) for number in range(12)]
    for job_id in ids:
        add_job(store, job_id)
        add_logs(store, job_id)
    found: list[Totals] = []

    def work() -> None:
        other = fast_store(state)
        found.append(clean(other, EVERYTHING, CLOCK))
        other.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [sum(column) for column in zip(*found, strict=True)] == [12, 12 * len(FILES), 12 * BYTES, 12]
    assert tree(store.root) == {}


def test_a_plan_takes_as_many_queries_whatever_the_store_holds(store: Store) -> None:
    """C6."""
    add_job(store, EXAMPLE_JOB_ID)
    scopes = (EVERYTHING, Scope(retention=Retention(metadata_age_ns=0, max_jobs=3)))
    few = [count_statements(store, partial(preview, store, scope, CLOCK)) for scope in scopes]
    with store.write():
        multiply(store, 2_000)
    many = [count_statements(store, partial(preview, store, scope, CLOCK)) for scope in scopes]
    assert few == many == [3, 3]
    assert preview(store, EVERYTHING, CLOCK) == Totals(2_001, 0, 0, 2_001)


def test_removing_a_job_looks_at_no_other_job(store: Store) -> None:
    """SQLite checks what refers to a removed row: without indexes it would read every job for each."""
    tables = [row[0] for row in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        keys: dict[int, list[str]] = {}
        for row in store.execute(f"PRAGMA foreign_key_list({table})"):
            keys.setdefault(row[0], []).append(f"{row[3]} = 'x'")  # a key may have several columns
        for columns in keys.values():
            statement = f"SELECT 1 FROM {table} WHERE {' AND '.join(columns)}"  # noqa: S608  # our own
            (plan, *_) = store.execute(f"EXPLAIN QUERY PLAN {statement}")
            assert "SEARCH" in plan[3], (table, columns)


def test_a_dependency_that_is_removed_before_the_submission_is_refused(store: Store) -> None:
    """The job was there when its name was resolved."""
    from jobman.service.launch import Candidate
    from jobman.service.submit import submit

    add_job(store, FIRST)
    clean(store, EVERYTHING, CLOCK)
    before = dump(store)
    candidate = Candidate(SECOND, None)  # type: ignore[arg-type]  # it is refused before any supervisor is spoken to
    with pytest.raises(JobNotFoundError):
        submit(store, candidate, plain_spec(dependencies=(Dependency(FIRST, "success"),)), CLOCK)
    assert dump(store) == before
