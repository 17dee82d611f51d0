"""Where the state of a user lives (contract, D.2)."""

from __future__ import annotations

import os

from jobman.errors import StateDirectoryError

SYSTEM_CONFIG = "/etc/jobman/jobman.yml"


def state_directory(flag: str) -> str:
    """Return the state root: the flag, ``JOBMAN_STATE_DIR``, ``$XDG_STATE_HOME/jobman``, ``~/.local/state/jobman``.

    Raises:
        StateDirectoryError: none of them says where.
    """
    chosen = flag or os.environ.get("JOBMAN_STATE_DIR") or _default()
    try:
        return os.path.abspath(chosen)
    except OSError as error:
        detail = "the path is relative and the current directory is gone"
        raise StateDirectoryError(path=chosen, detail=detail) from error


def config_files(explicit: str) -> list[tuple[str, str, bool]]:
    """Return the configuration files in ascending precedence: kind, path, and whether it must exist."""
    files = [("system", SYSTEM_CONFIG, False)]
    base = os.environ.get("XDG_CONFIG_HOME", "")
    home = _home()
    if not os.path.isabs(base) and os.path.isabs(home):
        base = os.path.join(home, ".config")
    if os.path.isabs(base):
        files.append(("user", os.path.join(base, "jobman", "jobman.yml"), False))
    if explicit:
        files.append(("explicit", explicit, True))
    return files


def _default() -> str:
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        home = _home()
        if not os.path.isabs(home):
            raise StateDirectoryError(path="~", detail="there is no home directory")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "jobman")


def _home() -> str:
    # An empty HOME is no home; expanduser would make "/" of it. A missing one is looked up by user ID.
    return os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
