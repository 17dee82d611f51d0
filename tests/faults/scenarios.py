"""Commands that change something, each with the store it begins in and what is true after any fault in it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cleaning import add_job, add_logs, tree
from tests.faults.injection import assert_sound, outcomes, rows, run_under, settled
from tests.moves import derived_id
from tests.stores import fast_store
from tests.support import Cli, Result, eventually, processes_of

TYPED = b"text\n"
POOLS = "concurrency:\n  max_active_slots: 9\n  pools: {a: 2, b: 3}\n"
NOBODY = derived_id("fault", "job", 1)


class Scenario(NamedTuple):
    """A command, and its world.

    Attributes:
        words: the command.
        prepare: makes the store; the job of interest is named ``j``.
        settle: tells what must be true afterwards, whether the command was carried out or not.
        calls: how many system calls of each kind it makes, rounded up; a test holds that none is left out.
    """

    words: tuple[str, ...]
    prepare: Callable[[Cli], None]
    settle: Callable[[Cli], None]
    calls: Mapping[str, int]

    def run(self, cli: Cli, prefix: Sequence[str]) -> Result:
        """Run the command behind ``prefix``; whoever reads gets a line of text."""
        typed = cli.cwd / "typed"
        typed.write_bytes(TYPED)
        with typed.open("rb") as stdin:
            return run_under(cli, prefix, *self.words, stdin=stdin)


def points(scenario: Scenario, *syscalls: str) -> list[tuple[str, int]]:
    """Every call of a scenario, or those of ``syscalls``."""
    chosen = syscalls or tuple(scenario.calls)
    return [(syscall, n + 1) for syscall in chosen for n in range(scenario.calls.get(syscall, 0))]


# --- Worlds --------------------------------------------------------------------------------------------------------


def _is_in(cli: Cli, phase: str) -> bool:
    return bool(rows(cli.state, "SELECT 1 FROM jobs WHERE name = 'j' AND phase = ?", phase))


def _running(cli: Cli) -> None:
    cli.run("sleep", "60", flags=("--name", "j", "--stop-grace", "100ms"))
    eventually(lambda: _is_in(cli, "running"))


def _paused(cli: Cli) -> None:
    _running(cli)
    cli("pause", "j")


def _reading(cli: Cli) -> None:
    cli.run("cat", flags=("--name", "j", "--stdin", "live"))
    eventually(lambda: _is_in(cli, "running"))


def _ended(cli: Cli) -> None:
    cli.finish("sh", "-c", "echo text; echo ran >>ran", flags=("--name", "j"))
    eventually(lambda: not processes_of(cli.state))


def _with_pools(cli: Cli) -> None:
    (cli.cwd / "pools.yml").write_text(POOLS)
    cli("list")


def _abandoned(cli: Cli) -> None:
    """A job whose supervisor and target were killed, and files of nobody."""
    _running(cli)
    for (pid,) in rows(cli.state, "SELECT pid FROM runs UNION SELECT pid FROM supervisors"):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: not processes_of(cli.state))
    (cli.state / "run" / f"{NOBODY}.wake").touch(0o600)


def _stocked(cli: Cli) -> None:
    store = fast_store(cli.state)
    add_job(store, NOBODY)
    add_logs(store, NOBODY)
    store.close()


def _nothing(cli: Cli) -> None:
    assert not cli.state.exists()


# --- Afterwards ----------------------------------------------------------------------------------------------------


def _goes_on(cli: Cli) -> None:
    """The job runs, or can be resumed, and ends when it is told to."""
    assert _is_in(cli, "running") or _is_in(cli, "paused")
    cli("pause", "j")
    cli("resume", "j")
    eventually(lambda: _is_in(cli, "running"))
    _can_be_cancelled(cli)


def _can_be_cancelled(cli: Cli) -> None:
    cli("cancel", "--wait", "j")
    assert list(outcomes(cli).values()) == ["cancelled"]


def _takes_input(cli: Cli) -> None:
    """What was sent came whole or not at all, and more is taken."""
    cli("input", "j", input=b"more\n")
    cli("input", "--eof", "j")
    assert cli.wait("j") == "success"
    assert cli("logs", "j").out in {"more\n", "text\nmore\n"}


def _has_ended_its_input(cli: Cli) -> None:
    assert cli("input", "--eof", "j", status=None).status in {0, 5}
    assert cli.wait("j") == "success"


def _ran_as_often_as_it_says(cli: Cli) -> None:
    found = list(settled(cli).values())
    assert set(found) <= {"success", "submission_failed"}
    assert 1 <= found.count("success") == len((cli.cwd / "ran").read_text().splitlines()) <= 2
    assert len(found) <= 2


def _has_all_limits_or_none(cli: Cli) -> None:
    limits = "SELECT scope, capacity FROM concurrency_limits WHERE capacity IS NOT NULL ORDER BY scope"
    assert len(rows(cli.state, limits)) in {0, 3}
    cli("config", "apply", "--config", "pools.yml")
    assert len(rows(cli.state, limits)) == 3


def _is_healthy_when_repaired(cli: Cli) -> None:
    cli("doctor", "--repair")
    assert cli("doctor").out.startswith("healthy\t")
    assert list(outcomes(cli).values()) == ["lost"]
    assert {path.suffix for path in (cli.state / "run").iterdir() if path.name != "writer.lock"} <= {".log"}
    assert not list((cli.state / "logs").rglob(".active"))


def _has_a_whole_copy_or_none(cli: Cli) -> None:
    copy = cli.cwd / "copy.db"
    assert not copy.exists() or _jobs_in(copy) == ["success"]
    copy.unlink(missing_ok=True)
    cli("doctor", "--backup", "copy.db")
    assert _jobs_in(copy) == ["success"]


def _jobs_in(copy: Path) -> list[str]:
    copied = copy.parent / "copied"
    copied.mkdir()
    subprocess.run(["cp", copy, copied / "jobman.db"], check=True)
    assert_sound(copied)
    found = [outcome for (outcome,) in rows(copied, "SELECT outcome FROM jobs")]
    subprocess.run(["rm", "-r", copied], check=True)
    return found


def _is_clean(cli: Cli) -> None:
    cli("clean", "--all", "--force")
    assert tree(cli.state) == {}
    assert rows(cli.state, "SELECT * FROM jobs") == []


def _works(cli: Cli) -> None:
    cli("list")
    cli("doctor")


# One change of one job, as cancel, pause and resume make it; the wake-up is a write, and the answer another.
_CHANGE = {"fdatasync": 3, "write": 3, "flock": 3, "pwrite64": 20}
SCENARIOS = {
    "cancel": Scenario(("cancel", "j"), _running, _can_be_cancelled, _CHANGE),
    "pause": Scenario(("pause", "j"), _running, _goes_on, _CHANGE),
    "resume": Scenario(("resume", "j"), _paused, _goes_on, _CHANGE),
    "input": Scenario(("input", "j"), _reading, _takes_input, {"sendto": 2, "write": 2}),
    "eof": Scenario(("input", "--eof", "j"), _reading, _has_ended_its_input, _CHANGE | {"sendto": 2, "pwrite64": 8}),
    "rerun": Scenario(
        ("rerun", "j"), _ended, _ran_as_often_as_it_says, _CHANGE | {"fdatasync": 4, "pwrite64": 44, "ftruncate": 2}
    ),
    "apply": Scenario(
        ("config", "apply", "--config", "pools.yml"),
        _with_pools,
        _has_all_limits_or_none,
        _CHANGE | {"fdatasync": 6, "pwrite64": 40, "ftruncate": 2, "unlink": 3},
    ),
    "repair": Scenario(
        ("doctor", "--repair"),
        _abandoned,
        _is_healthy_when_repaired,
        {"fdatasync": 8, "write": 2, "flock": 8, "unlink,unlinkat": 12, "pwrite64": 96, "ftruncate": 6},
    ),
    "backup": Scenario(
        ("doctor", "--backup", "copy.db"),
        _ended,
        _has_a_whole_copy_or_none,
        {
            "fdatasync": 8,
            "fsync": 4,
            "write": 2,
            "link,linkat,rename": 2,
            "unlink,unlinkat": 12,
            "pwrite64": 96,
            "ftruncate": 6,
        },
    ),
    "clean": Scenario(
        ("clean", "--all", "--force"),
        _stocked,
        _is_clean,
        {"write": 2, "pwrite64": 120, "fdatasync": 8, "fsync": 10, "ftruncate": 4},
    ),
    "run": Scenario(
        ("run", "--", "sh", "-c", "echo ran >>ran"),
        _ended,
        _ran_as_often_as_it_says,
        {"ftruncate": 3, "fdatasync": 4, "write": 3, "pwrite64": 44},
    ),
    "first": Scenario(("list",), _nothing, _works, {"fdatasync": 12, "write": 2, "pwrite64": 190, "ftruncate": 3}),
}
