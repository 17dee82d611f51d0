"""Where a measurement happens: a scratch state directory, the installed command, real processes, and their clocks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from jobman.model.scalars import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECOND_NS = 1_000_000_000
_DEADLINE_NS = 120 * SECOND_NS


class Row(NamedTuple):
    """One line of the table.

    ``value`` and ``budget`` are in ``unit``; ``floor`` is true where the budget is the least and not the most.
    ``measured`` and ``yardstick`` are for people: the two figures behind a ratio.
    """

    name: str
    what: str
    measured: str
    yardstick: str
    value: float
    budget: float
    unit: str = "x"
    floor: bool = False

    def holds(self) -> bool:
        """Say whether the budget is kept."""
        return self.value >= self.budget if self.floor else self.value <= self.budget


class Bed:
    """A scratch directory with a state directory in it; at the end nothing of it is left, neither files nor processes.

    Attributes:
        quick: measure a little of everything, for a test that the benchmark works.
        python: the yardstick, the interpreter of the environment in which Jobman is installed.
    """

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self.python = sys.executable
        self.scratch = ""
        self._jobman = os.path.join(os.path.dirname(sys.executable), "jobman")

    def __enter__(self) -> Self:
        self.scratch = tempfile.mkdtemp(prefix="jobman-bench.")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBMAN_")}
        self.environment["JOBMAN_STATE_DIR"] = f"{self.scratch}/state"
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            _kill(pid)
        await_true(lambda: not self.processes(), "processes survived SIGKILL")
        shutil.rmtree(self.scratch)

    @property
    def state(self) -> str:
        """The state directory."""
        return self.environment["JOBMAN_STATE_DIR"]

    def pick(self, full: int, few: int) -> int:
        """Return how much to measure."""
        return few if self.quick else full

    def words(self, *words: str) -> tuple[str, ...]:
        """Return the argument vector of a ``jobman`` command."""
        return (self._jobman, *words)

    def jobman(self, *words: str) -> str:
        """Run the installed command, which must succeed, and return what it printed."""
        done = subprocess.run(
            self.words(*words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"jobman {' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, *words: str, flags: Sequence[str] = ()) -> str:
        """Submit a job and return its ID."""
        return self.jobman("run", *flags, "--", *words).strip()

    def show(self, job_id: str) -> dict[str, Any]:
        """Return ``data`` of ``show --json``."""
        data: dict[str, Any] = json.loads(self.jobman("show", "--json", job_id))["data"]
        return data

    def time(self, argv: tuple[str, ...], *, output: str = os.devnull) -> int:
        """Run a process to its end, its standard output in a file, and return its nanoseconds; it must succeed."""
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        ]
        began_ns = time.perf_counter_ns()
        pid = os.posix_spawnp(argv[0], argv, self.environment, file_actions=actions)
        _, status = os.waitpid(pid, 0)
        elapsed_ns = time.perf_counter_ns() - began_ns
        if status:
            raise SystemExit(f"{' '.join(argv)}: wait status {status}")
        return elapsed_ns

    def time_run(self, *words: str) -> int:
        """Run ``jobman run WORDS`` and return its nanoseconds, once its job has ended: the next one shall be alone."""
        taken_ns = self.time(self.words("run", *words))
        self.settle()
        return taken_ns

    def processes(self) -> list[int]:
        """Return the living processes that were started with our state directory."""
        wanted = f"JOBMAN_STATE_DIR={self.state}".encode()
        return [pid for pid in _pids() if wanted in _environment(pid)]

    def beside(self, name: str) -> Bed:
        """Return a bed with a state directory of its own in the same scratch directory, for which this one cares.

        Who uses it waits until it is settled.
        """
        other = Bed(quick=self.quick)
        other.scratch = self.scratch
        other.environment = self.environment | {"JOBMAN_STATE_DIR": f"{self.scratch}/{name}"}
        return other

    def supervisors(self) -> list[int]:
        """Return the living supervisors."""
        return [pid for pid in self.processes() if b"supervisor/__main__.py" in _read(f"/proc/{pid}/cmdline")]

    def settle(self) -> None:
        """Wait until nothing of the state directory runs, so that the next measurement has the machine to itself."""
        await_true(lambda: not self.processes(), "jobs do not end")


def nanoseconds(timestamp: str) -> int:
    """Return the Unix time of a timestamp that Jobman printed."""
    return int(parse_timestamp(timestamp))


def interleave(rounds: int, *measures: Callable[[], int]) -> list[float]:
    """Take turns, so that all see the same machine, and return the median nanoseconds of each."""
    return [median(times) for times in take_turns(rounds, *measures)]


def take_turns(rounds: int, *measures: Callable[[], int]) -> list[list[int]]:
    """Take turns, and return the nanoseconds that each has measured."""
    for measure in measures:
        measure()  # caches of files and bytecode are warm for all of them, or for none
    taken: list[list[int]] = [[] for _ in measures]
    for _ in range(rounds):
        for measure, times in zip(measures, taken, strict=True):
            times.append(measure())
    return taken


def p95(times: Sequence[float]) -> float:
    """Return what 95 of 100 measurements stay below."""
    return sorted(times)[len(times) * 95 // 100]


def await_true(condition: Callable[[], object], complaint: str) -> None:
    """Wait until ``condition`` holds."""
    deadline_ns = time.monotonic_ns() + _DEADLINE_NS
    while not condition():
        if time.monotonic_ns() > deadline_ns:
            raise SystemExit(complaint)
        time.sleep(0.005)


def milliseconds(time_ns: float) -> str:
    """Return a time for people."""
    return f"{time_ns / 1e6:.1f} ms"


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it has ended, or is not ours


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
