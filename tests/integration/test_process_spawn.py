"""Detached starts: the new process is cut off from everything of its starter but its pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from jobman.errors import UnsupportedPlatformError
from jobman.process import spawn
from jobman.process.spawn import Detached, spawn_detached
from jobman.service import launch
from tests.integration.test_process_helpers import (
    PATH,
    descriptors,
    nobody_left,  # noqa: F401  # a fixture
    python,
    read_all,
)
from tests.moves import EXAMPLE_JOB_ID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("nobody_left")

ENVIRONMENT = {b"PATH": PATH}


def output_of(detached: Detached, given: bytes = b"") -> bytes:
    os.write(detached.input_fd, given)
    os.close(detached.input_fd)
    output = read_all(detached.output_fd)
    os.waitpid(detached.pid, 0)
    return output


def run_python(code: str, environment: Mapping[str, str]) -> str:
    done = subprocess.run(python(code), env=environment, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_input_and_output_are_pipes_of_the_starter() -> None:
    assert output_of(spawn_detached(["/bin/cat"], ENVIRONMENT), b"over the pipe\n") == b"over the pipe\n"


def test_the_process_leads_its_own_session() -> None:
    detached = spawn_detached(["/bin/sh", "-c", "cut -d' ' -f6 /proc/$$/stat"], ENVIRONMENT)
    assert int(output_of(detached)) == detached.pid


def test_standard_error_is_the_null_device() -> None:
    assert output_of(spawn_detached(["/bin/readlink", "/proc/self/fd/2"], ENVIRONMENT)) == b"/dev/null\n"


def test_signals_that_the_starter_ignored_or_blocked_reach_the_process() -> None:
    """Field case 9."""
    old = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGRTMAX)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    try:
        detached = spawn_detached(["/bin/grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], ENVIRONMENT)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in old.items():
            signal.signal(number, handler)
    _, blocked, _, ignored = output_of(detached).split()
    # The C library ignores its own two signals here; the launch of a target undoes that.
    assert (int(blocked, 16), int(ignored, 16) & ~(0b11 << 31)) == (0, 0)


def test_our_ends_of_the_pipes_are_closed_in_the_process() -> None:
    """Otherwise it would never see the end of its own input."""
    first = spawn_detached(["/bin/cat"], ENVIRONMENT)
    second = spawn_detached(["/bin/sh", "-c", "echo /proc/$$/fd/*"], ENVIRONMENT)
    fds = output_of(second).split()
    assert output_of(first) == b""
    assert [fd.rpartition(b"/")[2] for fd in fds if fd.rpartition(b"/")[2] in (b"0", b"1", b"2")] == [b"0", b"1", b"2"]
    assert not {os.path.basename(fd).decode() for fd in fds} & {str(first.input_fd), str(first.output_fd)}


def test_arguments_and_environment_are_exact_bytes() -> None:
    """Field case 27."""
    environment = {b"A B": b"1", b"X": b"\nY=2", b"B": b"\xff", b"EMPTY": b""}
    listed = output_of(spawn_detached(["/usr/bin/env", "-0"], environment))
    assert sorted(listed.split(b"\0")[:-1]) == sorted(name + b"=" + value for name, value in environment.items())


def test_a_missing_executable_is_an_error_that_leaves_nothing_open() -> None:
    before = descriptors()
    with pytest.raises(FileNotFoundError):
        spawn_detached(["/nowhere/to/be/found"], ENVIRONMENT)
    assert descriptors() == before


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_a_starter_with_closed_standard_descriptors_still_reaches_the_process(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    code = f"""
import os
for fd in {closed}: os.close(fd)
from jobman.process.spawn import spawn_detached
started = spawn_detached(["/bin/sh", "-c", "cat; readlink /proc/$$/fd/2"], {{}})
os.write(started.input_fd, b"given\\n"); os.close(started.input_fd)
output = b""
while piece := os.read(started.output_fd, 4096): output += piece
assert min(started.input_fd, started.output_fd) > 2
result = os.open({str(tmp_path / "result")!r}, os.O_WRONLY | os.O_CREAT)
os.write(result, output)
"""
    run_python(code, {})
    assert (tmp_path / "result").read_bytes() == b"given\n/dev/null\n"


def test_standard_descriptors_are_opened_where_they_were_closed(tmp_path: Path) -> None:
    result = tmp_path / "result"
    code = f"""
import os
os.close(0); os.close(2)
from jobman.process.spawn import ensure_standard_descriptors
ensure_standard_descriptors()
open({str(result)!r}, "w").write(" ".join(os.readlink(f"/proc/self/fd/{{fd}}") for fd in (0, 1, 2)))
assert os.get_inheritable(0) and os.get_inheritable(2)
"""
    run_python(code, {})
    first, second, third = result.read_text().split()
    assert (first, third) == ("/dev/null", "/dev/null")
    assert second.startswith("pipe:")


@pytest.mark.parametrize("listable", [True, False])
def test_inherited_descriptors_are_closed_and_kept_ones_stay(*, listable: bool) -> None:
    """D18, field case 11."""
    code = f"""
import os
from jobman.process import spawn
for fd in range(5, 90): os.dup2(1, fd)
listdir = os.listdir
if not {listable}:
    def refuse(path): raise PermissionError
    os.listdir = refuse
spawn.close_inherited_descriptors(keep=(7, 50))
print(sorted(fd for fd in map(int, listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{{fd}}")))
"""
    assert json.loads(run_python(code, {})) == [0, 1, 2, 7, 50]


CASES = {
    "none given": ({}, None),
    "LC_ALL=C": ({"LC_ALL": "C"}, None),
    "LANG=C": ({"LANG": "C"}, None),
    "given and coerced": ({"LC_CTYPE": "C"}, "C"),
    "given and kept": ({"LC_CTYPE": "C.UTF-8"}, "C.UTF-8"),
    "given and unusual": ({"LC_CTYPE": "xx_YY"}, "xx_YY"),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_the_submitter_environment_is_what_was_given(given: dict[str, str], expected: str | None) -> None:
    """CPython adds LC_CTYPE to its own environment, also when isolated."""
    code = """
import json
from jobman.process.spawn import submitter_environment
print(json.dumps({k.decode(): v.decode() for k, v in submitter_environment().items()}))
"""
    environment = json.loads(run_python(code, {"KEEP": "1", **given}))
    assert environment == {"KEEP": "1", **given}
    assert environment.get("LC_CTYPE") == expected


def test_changes_of_the_program_are_part_of_the_submitter_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_BY_THE_PROGRAM", "1")
    assert spawn.submitter_environment()[b"SET_BY_THE_PROGRAM"] == b"1"


def test_start_up_modules_load_nothing_expensive() -> None:
    code = """
before = set(sys.modules)
import jobman.process.spawn, jobman.process.liveness, jobman.process.wake
expensive = {"typing", "enum", "re", "contextlib", "signal", "subprocess", "struct", "select", "functools", "ctypes"}
print(sorted(expensive & (set(sys.modules) - before)))
"""
    assert json.loads(run_python(code, {})) == []


@pytest.mark.parametrize("shown", ["4711", None])
def test_no_supervisor_is_started_where_nobody_could_tell_its_processes(
    shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I.1: a ``/proc`` of another PID namespace shows us under another number; one that is missing shows nothing."""

    def readlink(path: str) -> str:
        if shown is None:
            raise FileNotFoundError(path)
        return shown

    monkeypatch.setattr(os, "readlink", readlink)
    with pytest.raises(UnsupportedPlatformError):
        launch.start(EXAMPLE_JOB_ID, "/nowhere")


@pytest.mark.parametrize(("platform", "name"), [("darwin", "macOS"), ("win32", "Windows"), ("freebsd14", "freebsd14")])
def test_unverified_platforms_are_refused_by_name(platform: str, name: str) -> None:
    code = f"""
from jobman.errors import UnsupportedPlatformError
sys.platform = {platform!r}
try:
    import jobman.process
except UnsupportedPlatformError as error:
    print(error)
"""
    assert run_python(code, {}) == f"jobman does not support {name} yet\n"
