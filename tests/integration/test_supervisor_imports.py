"""A supervisor has loaded everything it may ever need before its first decision: the package may be replaced meanwhile.

Architecture, Imports in a supervisor; field case 36.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import jobman
from tests.faults.injection import DRIVER, run_with, started, traced, wrapped_interpreter
from tests.support import Cli, eventually, processes_of, supervisor_pids

STORIES = {
    "success": ("true",),
    "retry": ("--retries", "1", "--retry-delay", "10ms", "--", "false"),
    "no such program": ("/nonexistent",),
    "live input": ("--stdin", "live", "--", "true"),
    "run timeout": (
        "--run-timeout",
        "300ms",
        "--stop-grace",
        "50ms",
        "--",
        "sh",
        "-c",
        "trap '' TERM; sleep 60 & wait; wait",
    ),
    "job timeout": ("--job-timeout", "1s", "--", "sleep", "60"),
    "left behind": ("--stop-grace", "50ms", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo text"),
}


@pytest.mark.parametrize("words", STORIES.values(), ids=STORIES.keys())
def test_nothing_is_imported_once_the_target_has_been_forked(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Every module and library is opened before the first fork, whatever the job comes to."""
    log = tmp_path / "log"
    python = wrapped_interpreter(tmp_path / "python", traced("openat", "fork,vfork,clone,clone3,mkdir", log=log))
    words = words if "--" in words else ("--", *words)

    done = run_with(cli, python, *words)

    assert done.status == 0, done.err
    cli.wait(done.out.strip())
    eventually(lambda: not processes_of(cli.state))
    # A run begins with its log directory; what cannot be started is never forked.
    _, found, after = log.read_text().partition(f"logs/{done.out.strip()}")
    assert found
    assert re.findall(r'"[^"]*\.(?:py|pyc|so)(?:\.\d+)?"[^\n]*', after) == []


class Copy:
    """A copy of the package from which jobs are submitted, and which can then be done away with."""

    def __init__(self, cli: Cli, place: Path) -> None:
        self.place = place
        self._cli = cli
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(jobman.__file__).parent, place / "jobman", ignore=ignored)

    def run(self, *words: str) -> str:
        """Submit a job whose supervisor runs the code of the copy; return its ID."""
        path = f"import sys; sys.path.insert(0, {str(self.place)!r})"
        argv = [sys.executable, "-c", f"{path}\n{DRIVER}", sys.executable]
        with started(self._cli, [*argv, "run", *words]) as client:
            return client.communicate(timeout=15)[0].decode().strip()

    def remove(self) -> None:
        """Take everything away, as ``pip uninstall`` does."""
        shutil.rmtree(self.place)

    def break_(self) -> None:
        """Put something in its place that cannot even be loaded."""
        for cache in list(self.place.rglob("__pycache__")):
            shutil.rmtree(cache)
        for module in self.place.rglob("*.py"):
            module.write_text("raise SystemExit('of another version')\n")


@pytest.mark.parametrize("fate", [Copy.remove, Copy.break_], ids=["removed", "replaced"])
def test_jobs_end_with_the_code_they_began_with(cli: Cli, tmp_path: Path, fate: Callable[[Copy], None]) -> None:
    """Issue 5, field case 36: jobs that wait, queue, run, back off and are halted, and a stubborn target."""
    config = tmp_path / "jobman.yml"
    config.write_text("schema_version: 1\nconcurrency: {pools: {one: 1}}\n")
    cli("config", "apply", "--config", str(config))
    copy, until = Copy(cli, tmp_path / "site"), "while [ ! -e go ]; do sleep 0.02; done"
    stubborn = copy.run("--stop-grace", "100ms", "--", "sh", "-c", "trap '' TERM; echo ready; sleep 60 & wait; wait")
    jobs = {
        "running": copy.run("--pool", "one", "--", "sh", "-c", until),
        "queued": copy.run("--pool", "one", "--", "true"),
        "paused": copy.run("--", "sh", "-c", until),
        "backoff": copy.run("--retries", "99", "--retry-delay", "300ms", "--", "sh", "-c", "[ -e go ]"),
    }
    jobs["waiting"] = copy.run("--after-success", jobs["running"], "--wait-file", "go", "--", "true")
    cli.await_phase(jobs["paused"], "running")
    cli("pause", jobs["paused"])
    for phase, job_id in jobs.items():
        cli.await_phase(job_id, phase)
    eventually(lambda: cli("logs", stubborn, status=None).out == "ready\n")
    assert len(supervisor_pids(cli.state)) == 6
    assert any(str(copy.place) in command for command in processes_of(cli.state).values())

    fate(copy)
    (cli.cwd / "go").touch()
    cli("resume", jobs["paused"])
    cli("cancel", stubborn)

    assert {phase: cli.wait(job_id) for phase, job_id in jobs.items()} == dict.fromkeys(jobs, "success")
    assert cli.wait(stubborn) == "cancelled"
    eventually(lambda: not processes_of(cli.state))
    assert not list((cli.state / "run").glob("*.log")), "a supervisor had trouble"


def test_what_a_supervisor_imports_late_it_has_loaded_before() -> None:
    """Whatever a job comes to: every import inside a function is of a module that is there, or is done with by then."""
    code = "import sys, jobman.supervisor.ownership, jobman.supervisor.loop, jobman.process._api; print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())

    late = {
        (module.removeprefix("jobman."), function, wanted)
        for module in loaded
        if module.partition(".")[0] == "jobman"
        for function, wanted in _imports_inside_functions(module)
        if wanted not in loaded
    }

    assert late <= BEFORE_THE_FIRST_DECISION


BEFORE_THE_FIRST_DECISION = {
    *(("handshake", "digest", name) for name in ("_sha2", "_sha256", "hashlib")),
    ("model.spec_rules", "_check_notifications", "jobman.model.notifiers"),
    ("model.canonical", "load", "json"),
    *(("model.spec_json", name, "jobman.model.notifiers_json") for name in ("_notifications", "_told")),
    *(("process._linux_library", "_c_function", name) for name in ("_ctypes", "ctypes")),
    *(("supervisor.stdin", "offer", name) for name in ("jobman.process.endpoint", "jobman.supervisor.input")),
    ("store.migrations", "_create", "jobman.store.migrations._apply"),
    ("store.migrations", "_upgrade", "jobman.store.migrations._apply"),
}


def _imports_inside_functions(module: str) -> Iterator[tuple[str, str]]:
    """Yield the function and the module of each import that is not executed when its module is loaded."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    yield from ((function.name, alias.name) for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                    modules = [name for name in names if _is_module(name)]
                    yield from ((function.name, name) for name in modules or [node.module])


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
