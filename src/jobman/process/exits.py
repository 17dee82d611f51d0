"""How a child ended, and what it used: looked at first without reaping, reaped later."""

from __future__ import annotations

import os

from jobman.values import NamedTuple

# The words that Go prints, which stored records and the retry rules of jobs are made of.
_SIGNAL_NAMES = {
    1: "hangup",
    2: "interrupt",
    3: "quit",
    4: "illegal instruction",
    5: "trace/breakpoint trap",
    6: "aborted",
    7: "bus error",
    8: "floating point exception",
    9: "killed",
    10: "user defined signal 1",
    11: "segmentation fault",
    12: "user defined signal 2",
    13: "broken pipe",
    14: "alarm clock",
    15: "terminated",
    16: "stack fault",
    17: "child exited",
    18: "continued",
    19: "stopped (signal)",
    20: "stopped",
    21: "stopped (tty input)",
    22: "stopped (tty output)",
    23: "urgent I/O condition",
    24: "CPU time limit exceeded",
    25: "file size limit exceeded",
    26: "virtual timer expired",
    27: "profiling timer expired",
    28: "window changed",
    29: "I/O possible",
    30: "power failure",
    31: "bad system call",
}


class ExitStatus(NamedTuple):
    """How a process ended: an exit code, the name and number of a signal, or why neither is known."""

    exit_code: int | None = None
    signal: str | None = None
    signal_number: int | None = None
    platform_reason: str | None = None


class Usage(NamedTuple):
    """What reaped processes used: the largest resident set of one, in bytes, and CPU time of all, in nanoseconds.

    The resident set of a launched target counts from the fork, so it is never less than the supervisor's own was.
    """

    max_rss_bytes: int = 0
    user_cpu_ns: int = 0
    system_cpu_ns: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            max(self.max_rss_bytes, other.max_rss_bytes),
            self.user_cpu_ns + other.user_cpu_ns,
            self.system_cpu_ns + other.system_cpu_ns,
        )


def signal_name(signo: int) -> str:
    """The name of a signal in words, ``signal N`` for a real-time one."""
    return _SIGNAL_NAMES.get(signo, f"signal {signo}")


def signal_names() -> dict[int, str]:
    """The names of all signals that have one, by number."""
    return dict(_SIGNAL_NAMES)


def observe_exit(pid: int) -> ExitStatus | None:
    """How our child ``pid`` ended, None while it lives; it stays a zombie, so its PID and group remain its own.

    A child that somebody else reaped gives the platform reason ``process_wait_failed``.
    """
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    except ChildProcessError:
        return ExitStatus(platform_reason="process_wait_failed")
    if found is None:
        return None
    if found.si_code == os.CLD_EXITED:
        return ExitStatus(exit_code=found.si_status)
    return ExitStatus(signal=signal_name(found.si_status), signal_number=found.si_status)


def reap(pid: int) -> Usage | None:
    """Reap our child ``pid`` if it has ended; what it and the children it waited for used.

    None if it lives, or was reaped before.
    """
    try:
        reaped, _, used = os.wait4(pid, os.WNOHANG)
    except ChildProcessError:
        return None
    if reaped == 0:
        return None
    return Usage(used.ru_maxrss * 1024, _nanoseconds(used.ru_utime), _nanoseconds(used.ru_stime))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1_000_000) * 1000
