"""What the machine does to background processes: at logout, and when there are many."""

from __future__ import annotations

import os
import pwd

from jobman.process.session import login_session
from jobman.service.doctor.findings import Finding, Level
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.process.session import Limits, Session

_FEW_FILES = 64
_FEW_PROCESSES = 32
_TOPIC = "session"
_SAFE_SQLITE = (3, 51, 3)


def judge_machine(limits: Limits) -> list[Finding]:
    """Return what is to be said of the session and of the limits of the caller."""
    user = _user()
    return [judge_session(login_session(user), user), *judge_limits(limits, privileged=os.geteuid() == 0)]


def judge_library(version: str) -> list[Finding]:
    """Name a library whose write-ahead log two writers can damage (D.5); nothing is to be said of a newer one."""
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    if numbers >= _SAFE_SQLITE:
        return []
    needed = ".".join(str(number) for number in _SAFE_SQLITE)
    text = f"SQLite {version} is in use, whose write-ahead log can be damaged by two that write at once"
    return [Finding(Level.PROBLEM, "library", text, f"pip install --upgrade apsw brings {needed} or newer")]


def judge_session(session: Session, user: str) -> Finding:
    """Say whether jobs that are submitted from here outlive the session of ``user`` (field case 13)."""
    unit = session.unit
    linger = f"loginctl enable-linger {user}"
    if not session.managed or not unit:
        return Finding(Level.OK, _TOPIC, "nothing is known to end background processes at logout")
    if unit.startswith("user@"):
        if session.lingering:
            return Finding(Level.OK, _TOPIC, f"jobs outlive it: user {user} lingers")
        text = f"jobs end with the last session of user {user}, whose manager ({unit}) they belong to"
        return Finding(Level.NOTE, _TOPIC, text, f"{linger} keeps it")
    if not unit.startswith("session-"):
        advice = "submit from a login, or through systemd-run --user --scope, what is to outlive it"
        return Finding(Level.NOTE, _TOPIC, f"jobs that are submitted from here end when {unit} is stopped", advice)
    if session.kills is False:
        return Finding(Level.OK, _TOPIC, "jobs outlive it: KillUserProcesses=no")
    sure = "ends" if session.kills else "may end"
    text = f"logging out {sure} jobs that were submitted from it (KillUserProcesses={'yes' if session.kills else '?'})"
    return Finding(Level.NOTE, _TOPIC, text, f"{linger}, then systemd-run --user --scope jobman run ...")


def judge_limits(limits: Limits, *, privileged: bool = False) -> list[Finding]:
    """Say whether another job could be started; the limit on processes binds no privileged user."""
    left = None if limits.processes is None or privileged else max(0, limits.processes - limits.running)
    files = "any number of" if limits.open_files is None else str(limits.open_files)
    more = "any number of" if left is None else f"about {left} more"
    text = f"{files} open files per process, {more} processes"
    if limits.file_size is not None:
        text += f", files of at most {limits.file_size} bytes"
    few_files = limits.open_files is not None and limits.open_files < _FEW_FILES
    if few_files or (left is not None and left < _FEW_PROCESSES):
        return [Finding(Level.NOTE, "limits", text, "ulimit -n and ulimit -u raise them; each job takes two processes")]
    return [Finding(Level.OK, "limits", text)]


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
