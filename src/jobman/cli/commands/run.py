"""``jobman run``: the hottest path of all.

The order matters twice: the supervisor's interpreter is started as soon as the words are understood, so that it boots
while the rest is imported and checked here; and nothing is stored before everything that can be refused has been.
"""

from __future__ import annotations

import os

from jobman.cli.output import tell
from jobman.clock import SystemClock
from jobman.config.paths import state_directory
from jobman.errors import (
    DetachedError,
    InterruptedClientError,
    OutputError,
    UntoldError,
    UsageError,
    WorkingDirectoryError,
)
from jobman.service.launch import new_job_id, start

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.cli.parser import Parsed
    from jobman.config.load import Configured
    from jobman.model.spec import JobSpec
    from jobman.service.launch import Candidate
    from jobman.store.connection import Store

# What needs more of a configuration than its limits.
_OWN_DESCRIPTORS = ("/dev/stdin", "/dev/fd/", "/proc/self/", "/proc/thread-self/")
_NAMING = ("job-spec", "profile", "wait-condition", "secret-env", "notify", "notify-on")


def run(parsed: Parsed) -> int:
    """Submit a job, print its ID, and with ``--wait`` or ``--foreground`` stay until it has ended."""
    if parsed.given("rerun"):
        from jobman.cli.commands.rerun import run_rerun  # another way to say what is to be run

        return run_rerun(parsed)
    stays = parsed.value("wait") or parsed.value("foreground")
    if parsed.value("exit-code") and not stays:
        raise UsageError(detail="run --exit-code needs --wait or --foreground")
    directory = _absolute(parsed.value("cwd"))
    store, job_id = submitted(parsed, lambda store: _specification(parsed, store, directory))
    heard = announce(job_id)
    if parsed.value("foreground"):
        if not heard:
            raise DetachedError(job=job_id)
        _stay(store, job_id)
    return await_outcome(parsed, store, job_id) if stays else 0


def submitted(parsed: Parsed, specification: Callable[[Store], JobSpec]) -> tuple[Store, str]:
    """Submit what ``specification`` says once the store is open, and return both."""
    root = os.path.realpath(state_directory(parsed.value("state-dir")))
    candidate = start(new_job_id(SystemClock()), root)
    try:
        return _submit(candidate, root, specification), candidate.job_id
    except BaseException:
        candidate.abandon()
        raise


def announce(job_id: str) -> bool:
    """Print the ID of a submitted job; return whether anybody reads it."""
    try:
        return tell(f"{job_id}\n")
    except OutputError as error:
        # The only place left where its ID can be said.
        raise UntoldError(job=job_id, **error.fields) from error


def _submit(candidate: Candidate, root: str, specification: Callable[[Store], JobSpec]) -> Store:
    from jobman.service.submit import submit
    from jobman.store.connection import open_store

    store = open_store(root)
    submit(store, candidate, specification(store), SystemClock())
    return store


def _specification(parsed: Parsed, store: Store, directory: str) -> JobSpec:
    from jobman.cli.commands._spec import settle, specify
    from jobman.config.load import load

    stdin_path = _stdin_path(parsed)
    configured = load(parsed.value("config"), store.root, SystemClock())
    if any(parsed.given(flag) for flag in _NAMING) or "retention" in configured.stated:
        from jobman.cli.commands._configured import request  # only for those who name something

        wanted = request(parsed, configured.stated, directory)
        parsed = wanted.flags
        spec = wanted.complete(specify(parsed, directory, stdin_path, configured=wanted.waits))
    else:
        spec = specify(parsed, directory, stdin_path)
    apply_limits(configured, store)
    return settle(parsed, store, spec)


def apply_limits(configured: Configured, store: Store) -> None:
    """Set the limits that a configuration states, so that they hold for this job already (D9)."""
    from jobman.config.load import stated_limits

    limits = stated_limits(configured)
    if limits.states_store_wide or limits.pools:
        from jobman.store.limits import apply_stated  # nothing to apply is the usual case

        apply_stated(store, limits)


def await_outcome(parsed: Parsed, store: Store, job_id: str) -> int:
    """Wait for the end of a job; return the status that tells of it."""
    from jobman.cli.commands._backend import clock
    from jobman.cli.commands._interrupt import Interruptible
    from jobman.cli.commands._outcome import exit_code, report
    from jobman.service.control import wait_for

    with Interruptible("wait for job"):
        job = next(wait_for(store, [job_id], clock()))
    succeeded = report(job)
    if parsed.command == ("run",) and parsed.value("exit-code"):
        return exit_code(store, job)
    return 0 if succeeded else 1


def _stay(store: Store, job_id: str) -> None:
    from jobman.cli.commands._backend import clock
    from jobman.cli.commands._interrupt import Interruptible
    from jobman.cli.output import err, write_bytes, write_error_bytes
    from jobman.logs.layout import View
    from jobman.service.foreground import attach

    outlets = ((View.STDOUT, write_bytes), (View.STDERR, write_error_bytes))
    try:
        with Interruptible("stay with job"):
            notices = attach(store, job_id, outlets, clock(), stdin=0)
    except (InterruptedClientError, BrokenPipeError):
        # Whoever has read enough (head -1) does not know how the job ended, and neither do we: that is no success.
        raise DetachedError(job=job_id) from None
    except OutputError as error:
        raise UntoldError(job=job_id, **error.fields) from error
    for notice in notices:
        err(notice)


def _stdin_path(parsed: Parsed) -> str | None:
    path = parsed.value("stdin-file")
    if not parsed.given("stdin-file"):
        return None
    if not path:
        raise UsageError(detail="--stdin-file: the path is empty")
    found = _absolute(path)
    if found.startswith(_OWN_DESCRIPTORS):
        # In the supervisor it would mean a descriptor of that one: an empty input, or its database.
        detail = f"--stdin-file: {path} means another file to each process; --foreground and jobman input copy a pipe"
        raise UsageError(detail=detail)
    return found


def _absolute(flag: str) -> str:
    """Return a path, or the present directory for an empty one, absolute and clean; it need not exist yet."""
    try:
        found = os.path.abspath(os.path.join(os.getcwd(), flag) if flag else os.getcwd())
    except OSError as error:
        if not flag.startswith("/"):
            raise WorkingDirectoryError(detail=(error.strerror or str(error)).lower()) from error
        found = os.path.normpath(flag)
    # POSIX lets two leading slashes mean something else, and normpath keeps them; here they never do.
    found = "/" + found.lstrip("/")
    return os.fsencode(found).decode("utf-8", "surrogateescape")
