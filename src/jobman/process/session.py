"""What becomes of background processes when their user logs out, and how much the system lets a user have.

Only ``doctor`` asks. Everything is read from files, and what they do not tell is ``None``: no tool of the system is
started.
"""

from __future__ import annotations

import os
import resource

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOGIND = "systemd/logind.conf"
# The first that states a setting wins; within a directory of drop-ins the last file does.
_PLACES = ("etc", "run", "usr/local/lib", "usr/lib")
_TRUE = frozenset(("1", "yes", "true", "on"))


class Session(NamedTuple):
    """How the caller's session is managed.

    Attributes:
        managed: systemd runs this machine.
        unit: the innermost scope or service that the caller belongs to, "" if none.
        lingering: the user's manager goes on when nobody is logged in.
        kills: ``KillUserProcesses`` of logind; ``None`` if no file tells.
    """

    managed: bool
    unit: str
    lingering: bool
    kills: bool | None


class Limits(NamedTuple):
    """Soft limits of the caller, ``None`` is unlimited; ``running`` counts the user's processes that can be seen."""

    open_files: int | None
    processes: int | None
    file_size: int | None
    running: int


def login_session(user: str, system: str = "") -> Session:
    """Return how the session of ``user`` is managed.

    Args:
        user: a login name.
        system: where the root of the file system is found.
    """
    managed = os.path.isdir(f"{system}/run/systemd/system")
    lingering = os.path.exists(f"{system}/var/lib/systemd/linger/{user}")
    return Session(managed, _unit(f"{system}/proc/self/cgroup"), lingering, _kills_user_processes(system))


def resource_limits() -> Limits:
    """Return the limits of this process."""
    return Limits(
        _soft(resource.RLIMIT_NOFILE), _soft(resource.RLIMIT_NPROC), _soft(resource.RLIMIT_FSIZE), _count_processes()
    )


def _soft(kind: int) -> int | None:
    limit = resource.getrlimit(kind)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _count_processes() -> int:
    own, count = os.geteuid(), 0
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                count += os.stat(f"/proc/{name}").st_uid == own
            except OSError:
                continue
    return count


def _unit(path: str) -> str:
    """Return the unit that a cgroup belongs to, from the line of the unified hierarchy or of systemd's own."""
    for line in _lines(path):
        _number, controllers, group = (*line.split(":", 2), "", "")[:3]
        if controllers in ("", "name=systemd"):
            units = [part for part in group.split("/") if part.endswith((".scope", ".service"))]
            if units:
                # A service of the user's own manager ends with that manager, whatever its name.
                managers = [unit for unit in units if unit.startswith("user@")]
                return (managers or units[-1:])[0]
    return ""


def _kills_user_processes(system: str) -> bool | None:
    stated = None
    for path in _configurations(system):
        for line in _lines(path):
            name, separator, value = line.partition("=")
            # The shipped file names the default that was compiled in, behind a number sign.
            commented = name.startswith("#")
            if separator and name.lstrip("#").strip() == "KillUserProcesses" and not (commented and stated is not None):
                stated = value.strip().lower() in _TRUE
    return stated


def _configurations(system: str) -> Iterator[str]:
    """Yield the files of logind in ascending precedence."""
    main = [f"{system}/{place}/{_LOGIND}" for place in _PLACES]
    yield from [path for path in main if os.path.exists(path)][:1]
    drop_ins: dict[str, str] = {}
    for place in reversed(_PLACES):
        directory = f"{system}/{place}/{_LOGIND}.d"
        drop_ins.update({name: f"{directory}/{name}" for name in _names(directory) if name.endswith(".conf")})
    yield from (drop_ins[name] for name in sorted(drop_ins))


def _names(directory: str) -> Iterable[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return ()


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
