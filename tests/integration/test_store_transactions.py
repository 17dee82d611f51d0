"""One way to write: queueing, patience, failure of the disk, and what other processes see of it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.errors import StoreBusyError, StoreFailureError
from jobman.store.connection import Store, open_store
from tests.moves import EXAMPLE_JOB_ID, submitted, walk
from tests.stores import await_line, commit_all, dump, dump_at, fast_store, fresh_id, outputs, start_python, tell
from tests.support import require_tool

_INSERT = "INSERT INTO schema_migrations VALUES (?, 0, '', '')"
_SHORT_NS = 50_000_000
_LONG_NS = 15_000_000_000

# Holds the writers' lock, or SQLite's, until it is told to let go.
_HOLDER = """
import sys
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
with store.write():
    print("ready", flush=True)
    sys.stdin.readline()
"""
_STRANGER = """
import sys, apsw
connection = apsw.Connection(sys.argv[1] + "/jobman.db")
connection.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


@pytest.fixture
def held(store: Store, state: Path) -> Iterator[object]:
    """Another process that is writing; closing its input ends it."""
    holder = start_python(state, _HOLDER, store.root)
    await_line(holder)
    yield holder
    holder.kill()
    holder.communicate()


def _write(store: Store, number: int = 1_000) -> None:
    with store.write():
        store.execute(_INSERT, (number,))


# --- Waiting --------------------------------------------------------------------------------------------------------


def test_a_second_writer_waits_and_then_succeeds(store: Store, state: Path) -> None:
    holder = start_python(state, _HOLDER, store.root)
    await_line(holder)
    store.patience_ns = _LONG_NS
    threading.Timer(0.1, tell, (holder,)).start()
    _write(store)
    outputs([holder])
    assert store.execute("SELECT 1 FROM schema_migrations WHERE version = 1000") == [(1,)]


@pytest.mark.usefixtures("held")
@pytest.mark.parametrize("patience_ns", [0, 1, _SHORT_NS])
def test_a_writer_whose_patience_ends_says_that_the_store_is_busy_and_changes_nothing(
    store: Store, patience_ns: int
) -> None:
    before = dump(store)
    store.patience_ns = patience_ns
    with pytest.raises(StoreBusyError, match="the store is busy") as caught:
        _write(store)
    assert caught.value.exit_status == 1
    assert dump(store) == before
    assert not store.in_transaction()


@pytest.mark.usefixtures("held")
def test_a_writer_in_a_thread_has_the_same_patience(store: Store) -> None:
    """Only the main thread can be woken by a signal."""
    store.patience_ns = _SHORT_NS
    caught: list[BaseException] = []

    def write() -> None:
        try:
            store.lock.acquire(store.patience_ns)
        except StoreBusyError as error:
            caught.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(_LONG_NS / 1e9)
    assert [type(error) for error in caught] == [StoreBusyError]


def test_a_writer_in_a_thread_waits_and_then_succeeds(store: Store, state: Path) -> None:
    holder = start_python(state, _HOLDER, store.root)
    await_line(holder)
    store.patience_ns = _LONG_NS
    thread = threading.Thread(target=_write, args=(store,))
    thread.start()
    tell(holder)
    thread.join(_LONG_NS / 1e9)
    outputs([holder])
    assert store.execute("SELECT 1 FROM schema_migrations WHERE version = 1000") == [(1,)]


@pytest.mark.usefixtures("held")
def test_waiting_leaves_signals_as_they_were(store: Store) -> None:
    """A blocked SIGALRM, which a process inherits, must not make the wait endless either."""

    def handler(_signal: int, _frame: object) -> None: ...

    before = signal.signal(signal.SIGALRM, handler)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGALRM, signal.SIGUSR2))
    try:
        store.patience_ns = _SHORT_NS
        with pytest.raises(StoreBusyError):
            _write(store)
        assert signal.getsignal(signal.SIGALRM) is handler
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= {signal.SIGALRM, signal.SIGUSR2}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGALRM, before)


def test_the_lock_is_free_again_after_every_end_of_a_write(store: Store) -> None:
    with pytest.raises(StoreFailureError), store.write():
        store.execute("this is not SQL")
    _assert_lock_is_free(store)
    with pytest.raises(KeyboardInterrupt), store.write():
        raise KeyboardInterrupt
    _assert_lock_is_free(store)
    _write(store)
    _assert_lock_is_free(store)


def _assert_lock_is_free(store: Store) -> None:
    descriptor = os.open(f"{store.root}/run/writer.lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(descriptor)


def test_somebody_who_does_not_know_the_lock_is_waited_for_too(store: Store, state: Path) -> None:
    """Another program that writes to the database meets the busy handler."""
    stranger = start_python(state, _STRANGER, store.root)
    await_line(stranger)
    threading.Timer(0.1, tell, (stranger,)).start()
    _write(store)
    outputs([stranger])


def test_a_stranger_that_never_ends_is_given_up_on_in_bounded_time(
    store: Store, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobman.store.connection._BUSY_LIMIT_MS", 100)
    stranger = start_python(state, _STRANGER, store.root)
    await_line(stranger)
    before = dump(store)
    with pytest.raises(StoreBusyError):
        _write(store)
    assert dump(store) == before
    _assert_lock_is_free(store)
    tell(stranger)
    outputs([stranger])


# --- Readers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [_HOLDER, _STRANGER], ids=["a writer", "a stranger"])
def test_opening_and_reading_need_no_write_lock(store: Store, state: Path, program: str) -> None:
    """O.66."""
    commit_all(store, walk())
    holder = start_python(state, program, store.root)
    await_line(holder)
    began = time.monotonic()
    seen = dump_at(state)
    assert time.monotonic() - began < 4, "it must not have waited for a lock"
    assert [row[0] for row in seen["jobs"]] == [EXAMPLE_JOB_ID]
    tell(holder)
    outputs([holder])


_COMMITTER = """
import sys
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
with store.write():
    store.execute("INSERT INTO schema_migrations VALUES (1000, 0, '', '')")
"""


def test_the_data_version_tells_of_another_process(store: Store, state: Path) -> None:
    """APSW's own Connection.data_version() would not (traps for Python)."""
    before = store.data_version()
    assert store.data_version() == before
    outputs([start_python(state, _COMMITTER, store.root)])
    assert store.data_version() != before


def test_a_removed_or_replaced_store_is_noticed(store: Store, state: Path) -> None:
    """D43."""
    assert not store.is_replaced()
    shutil.rmtree(state)
    assert store.is_replaced()
    other = open_store(str(state))
    assert store.is_replaced()
    assert not other.is_replaced()
    other.close()


# --- Nesting --------------------------------------------------------------------------------------------------------


def test_a_failure_inside_takes_back_the_inner_part_only(store: Store) -> None:
    with store.write():
        store.execute(_INSERT, (1_000,))
        with pytest.raises(StoreFailureError), store.write():  # noqa: PT012  # one write of two steps
            store.execute(_INSERT, (1_001,))
            store.execute(_INSERT, (1_001,))
        with store.write():
            store.execute(_INSERT, (1_002,))
    found = store.execute("SELECT version FROM schema_migrations WHERE version >= 1000 ORDER BY version")
    assert found == [(1_000,), (1_002,)]


def test_when_sqlite_itself_rolls_back_the_first_error_is_the_one_that_is_told(store: Store) -> None:
    """After a full disk there is no savepoint left to go back to; saying so would hide the reason."""
    before = dump(store)
    with pytest.raises(StoreFailureError, match="NOT NULL"), store.write():  # noqa: PT012, SIM117  # two transactions
        with store.write():
            store.execute(_INSERT, (1_000,))
            # OR ROLLBACK does on purpose what SQLITE_FULL does.
            store.execute("INSERT OR ROLLBACK INTO schema_migrations VALUES (1001, NULL, '', '')")
    assert not store.in_transaction()
    assert dump(store) == before
    _assert_lock_is_free(store)


# --- A full disk ----------------------------------------------------------------------------------------------------

_FULL = """
import sys
from jobman.errors import StoreFailureError
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
store.execute("SELECT * FROM jobs")
try:
    with store.write():
        store.execute("INSERT INTO schema_migrations VALUES (1000, 0, '', zeroblob(0) || ?)", ("x" * 100_000,))
except StoreFailureError as error:
    print(type(error).__name__, error, store.in_transaction())
"""


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync,fsync"])
def test_a_commit_that_the_disk_refuses_is_told_and_leaves_the_store_sound(
    store: Store, state: Path, call: str, tmp_path: Path
) -> None:
    strace = require_tool("strace")
    commit_all(store, [submitted(fresh_id())])
    before = dump(store)
    # Both calls first happen in the commit: opening a current store writes nothing.
    wrapper = tmp_path / "program.py"
    wrapper.write_text(_FULL)
    code = (
        "import os, sys; os.execv(sys.argv[1], ['strace', '-qq', '-o', '/dev/null', '-e', 'trace=' + sys.argv[2],"
        " '-e', 'inject=' + sys.argv[2] + ':error=ENOSPC', sys.executable, sys.argv[3], sys.argv[4]])"
    )
    printed = outputs([start_python(state, code, strace, call, str(wrapper), store.root)])[0]
    assert printed.startswith("StoreFailureError the store cannot be used: ")
    assert printed.endswith(" False\n")
    assert dump(store) == before
    assert store.execute("PRAGMA integrity_check") == [("ok",)]
    _write(store)


# --- Many processes -------------------------------------------------------------------------------------------------

_MANY = """
import sys
from jobman.store.connection import open_store
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS
store = open_store(sys.argv[1])
store.patience_ns = SUPERVISOR_PATIENCE_NS
first = int(sys.argv[2]) * 100 + 1000
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    with store.write():
        store.execute("INSERT INTO schema_migrations VALUES (?, 0, '', '')", (first + number,))
"""


@pytest.mark.timeout(120)
def test_many_writers_never_meet_a_busy_store(store: Store, state: Path) -> None:
    """The kernel wakes one waiter at a time: 32 processes, 20 transactions each, none refused, none lost."""
    writers = [start_python(state, _MANY, store.root, str(number)) for number in range(32)]
    for writer in writers:
        await_line(writer)
    for writer in writers:
        tell(writer)
    outputs(writers, within=100)
    assert store.execute("SELECT count(*) FROM schema_migrations WHERE version >= 1000") == [(32 * 20,)]


# --- The write-ahead log --------------------------------------------------------------------------------------------


def _begin_to_read(store: Store) -> None:
    store.execute("BEGIN")
    store.execute("SELECT count(*) FROM jobs")


def _read_all_the_time(state: Path, ended: threading.Event) -> None:
    """Begin to read on one connection before the other ends, and so on: at no moment does nobody read."""
    one, other = fast_store(state), fast_store(state)
    _begin_to_read(one)
    while not ended.is_set():
        _begin_to_read(other)
        one.execute("ROLLBACK")
        one, other = other, one
    for store in (one, other):
        store.close()


def test_the_write_ahead_log_is_bounded_though_somebody_always_reads(store: Store, state: Path) -> None:
    """SQLite begins it anew only at a moment when nobody reads: by itself it would be 40 MB here, and so on."""
    ended, name = threading.Event(), "x" * 200_000
    reader = threading.Thread(target=_read_all_the_time, args=(state, ended))
    reader.start()
    try:
        for number in range(200):
            with store.write():
                store.execute(
                    "INSERT OR REPLACE INTO concurrency_limits (scope, capacity) VALUES (?, ?)", (name, number + 1)
                )
    finally:
        ended.set()
        reader.join()
    assert (state / "jobman.db-wal").stat().st_size < 16 << 20


def test_a_reader_who_stays_stops_no_writer(store: Store, state: Path) -> None:
    reader = fast_store(state)
    _begin_to_read(reader)
    with store.write():
        store.execute("INSERT INTO concurrency_limits (scope) VALUES (?)", ("x" * (9 << 20),))
    before = time.monotonic()
    with store.write():
        store.execute("INSERT INTO concurrency_limits (scope) VALUES ('gpu')")
    assert time.monotonic() - before < 4
    assert reader.execute("SELECT count(*) FROM concurrency_limits") == [(0,)]
    reader.execute("ROLLBACK")
    reader.close()
    assert store.execute("SELECT count(*) FROM concurrency_limits") == [(2,)]
