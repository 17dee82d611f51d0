"""What the machine says of logins and limits, read from files of our own making (field case 13)."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from jobman.process.session import Session, login_session, resource_limits

SCOPE = "1:name=systemd:/\n0::/user.slice/user-1000.slice/session-3.scope\n"
SERVICE = "1:name=systemd:/system.slice/cron.service\n"
MANAGER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/terminal.scope\n"


def _machine(tmp_path: Path, files: dict[str, str]) -> str:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return str(tmp_path)


SYSTEMD = {"run/systemd/system/x": ""}
LOGIND = "etc/systemd/logind.conf"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Session(managed=False, unit="", lingering=False, kills=None)),
        (SYSTEMD | {"proc/self/cgroup": SCOPE}, Session(True, "session-3.scope", False, None)),
        (SYSTEMD | {"proc/self/cgroup": MANAGER}, Session(True, "user@1000.service", False, None)),
        (SYSTEMD | {"proc/self/cgroup": SERVICE}, Session(True, "cron.service", False, None)),
        (SYSTEMD | {"proc/self/cgroup": "garbage\n\n::\n"}, Session(True, "", False, None)),
        ({"var/lib/systemd/linger/ada": ""}, Session(False, "", True, None)),
        ({LOGIND: "[Login]\n#KillUserProcesses=no\n"}, Session(False, "", False, False)),
        ({LOGIND: "[Login]\n#KillUserProcesses=no\nKillUserProcesses = yes\n"}, Session(False, "", False, True)),
        ({LOGIND: "KillUserProcesses=yes\n#KillUserProcesses=no\n"}, Session(False, "", False, True)),
        (
            {LOGIND: "KillUserProcesses=yes\n", "usr/lib/systemd/logind.conf": "KillUserProcesses=no\n"},
            Session(False, "", False, True),
        ),
        (
            {
                LOGIND: "#KillUserProcesses=no\n",
                f"{LOGIND}.d/50-a.conf": "KillUserProcesses=yes\n",
                "usr/lib/systemd/logind.conf.d/50-a.conf": "KillUserProcesses=no\n",
                "run/systemd/logind.conf.d/10-b.conf": "KillUserProcesses=no\n",
                f"{LOGIND}.d/README": "KillUserProcesses=no\n",
            },
            Session(False, "", False, True),
        ),
    ],
)  # fmt: skip
def test_files_tell_how_a_session_is_managed(tmp_path: Path, files: dict[str, str], expected: Session) -> None:
    assert login_session("ada", _machine(tmp_path, files)) == expected


def test_the_limits_are_those_of_this_process() -> None:
    found = resource_limits()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert found.open_files == (None if soft == resource.RLIM_INFINITY else soft)
    assert found.running >= 1
