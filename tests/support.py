"""What tests share: the installed command, waiting for a condition, finding processes by their state directory."""

from __future__ import annotations

import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DEADLINE_S = 15.0
_JOBMAN_NAMES = ("JOBMAN_", "XDG_")


def installed_command() -> str:
    """Return the path of the console script beside the interpreter that runs the tests."""
    path = os.path.join(os.path.dirname(sys.executable), "jobman")
    assert os.path.exists(path), "install the package: pip install -e ."
    return path


def clean_environment(state: Path, **more: str) -> dict[str, str]:
    """Return this process's environment without anything of a user's Jobman, pointing at ``state``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_JOBMAN_NAMES)}
    home = state.parent / "home"
    home.mkdir(exist_ok=True)
    return kept | {"JOBMAN_STATE_DIR": str(state), "HOME": str(home)} | more


class Result(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str
    raw: bytes


class Cli:
    """Runs the installed command as a user would, in a state directory of its own."""

    def __init__(self, state: Path, cwd: Path) -> None:
        self.state = state
        self.cwd = cwd
        self.environment = clean_environment(state)

    def __call__(self, *words: str | bytes, status: int | None = 0, **options: Any) -> Result:
        """Run ``jobman WORDS``; ``status`` is the exit status that is expected, ``None`` for any."""
        options.setdefault("cwd", self.cwd)
        options.setdefault("env", self.environment)
        options.setdefault("timeout", DEADLINE_S)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([installed_command(), *words], capture_output=True, check=False, **options)
        out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        assert status is None or done.returncode == status, f"{words}: status {done.returncode}\n{out}{err}"
        check_if_document(words, out)
        return Result(done.returncode, out, err, done.stdout)

    def run(self, *words: str | bytes, flags: Sequence[str] = (), **options: Any) -> str:
        """Submit ``jobman run FLAGS -- WORDS`` and return the job's ID."""
        job_id = self("run", *flags, "--", *words, **options).out
        assert job_id.endswith("\n")
        return job_id.strip()

    def json(self, *words: str) -> Any:
        """Return ``data`` of a command's JSON document, which must keep its schema."""
        return check_document(document_of(words), self(*words, "--json").out)

    def wait(self, job_id: str) -> str:
        """Wait for a job; return its outcome."""
        return self("wait", job_id, status=None).out.strip().partition("\t")[2]

    def finish(self, *words: str | bytes, flags: Sequence[str] = (), **options: Any) -> str:
        """Submit a job, wait for its end, and return its ID."""
        job_id = self.run(*words, flags=flags, **options)
        self.wait(job_id)
        return job_id

    def refuses(self, *words: str | bytes, status: int, says: str = "", **options: Any) -> str:
        """Run a command that must fail: nothing on stdout, one line on stderr that contains ``says``; return it."""
        done = self(*words, status=status, **options)
        assert done.out == "", words
        assert done.err.endswith("\n"), words
        assert done.err.count("\n") == 1, done.err
        assert says in done.err
        return done.err

    def has_no_job(self) -> bool:
        """Say whether nothing was ever submitted here."""
        return bool(self.json("list", "--all") == {"jobs": []})

    def command(self, *words: str | bytes, **options: Any) -> subprocess.Popen[bytes]:
        """Start ``jobman WORDS`` and return it with pipes for its output; the caller ends it."""
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        given |= {"cwd": self.cwd, "env": self.environment} | options
        return subprocess.Popen([installed_command(), *words], **given)

    def phase(self, job_id: str) -> str:
        """Return the phase of a job."""
        return str(self.json("status", job_id)["phase"])

    def await_phase(self, job_id: str, *phases: str) -> None:
        """Wait until a job is in one of ``phases``."""
        eventually(lambda: self.phase(job_id) in phases, f"{job_id} is never {phases}, but {self.phase(job_id)}")


def eventually(condition: Callable[[], object], message: str = "", within: float = DEADLINE_S) -> None:
    """Wait until ``condition`` holds, with a hard deadline."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, message or "the condition never came true"
        time.sleep(0.01)


def processes_of(state: Path) -> dict[int, str]:
    """Return the living processes whose environment names ``state``: PID and command line, ourselves excepted."""
    return processes_with("JOBMAN_STATE_DIR", os.fsencode(state))


def processes_with(name: str, value: bytes) -> dict[int, str]:
    """Return the living processes that were started with a variable: PID and command line, ourselves excepted."""
    found = {}
    wanted = name.encode() + b"=" + value
    for pid in _pids():
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            zombie = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if wanted in environment and pid != os.getpid() and not zombie:
            found[pid] = command.strip()
    return found


def assert_no_process(state: Path) -> None:
    """Fail, after a moment of grace, if a process of ``state`` is left; kill it so that it harms no other test."""
    try:
        eventually(lambda: not processes_of(state), within=5.0)
    except AssertionError:
        left = processes_of(state)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        pytest.fail(f"processes left behind: {left}")


def require_tool(name: str) -> str:
    """Return the path of a system tool; without it the test is skipped, or fails where CI demands all tools."""
    path = shutil.which(name)
    if path is None:
        message = f"{name} is not installed"
        if os.environ.get("JOBMAN_REQUIRE_TOOLS") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return path


def unprivileged(cli: Cli, *words: str, **environment: str) -> Result:
    """Run jobman as somebody whom the mode of a directory binds, which root is not."""
    prefix: tuple[str, ...] = ()
    if os.geteuid() == 0:
        prefix = (require_tool("setpriv"), "--bounding-set=-dac_override,-dac_read_search", "--")
    done = subprocess.run(
        [*prefix, installed_command(), *words],
        cwd=cli.cwd,
        env=cli.environment | environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    check_if_document(words, done.stdout.decode())
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode(), done.stdout)


def supervisor_pids(state: Path) -> list[int]:
    """Return the PIDs of the supervisors that live in ``state``.

    Until it executes its target, the child of a supervisor has the same command line, but leads no session.
    """
    found = processes_of(state).items()
    return [pid for pid, command in found if "supervisor/__main__.py" in command and _leads_session(pid)]


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def environment_without(environment: Mapping[str, str], *names: str) -> dict[str, str]:
    """Return a copy of ``environment`` without ``names``."""
    return {name: value for name, value in environment.items() if name not in names}


def await_handler(pid: int, number: signal.Signals) -> None:
    """Wait until a process handles a signal."""

    def is_caught() -> bool:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        caught = next(line for line in lines if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) & 1 << (number - 1))

    eventually(is_caught, f"process {pid} never handles {number.name}")


SCHEMAS = Path(__file__).parent.parent / "docs" / "reference" / "schemas"
ENVELOPE = '{"schema_version":1,"data":'


def document_of(words: Sequence[str | bytes]) -> str:
    """Return the name of the document that a command line prints: ``show-run`` for ``show --json run J 1``."""
    from jobman.cli.parser import parse  # most tests print no document

    parsed = parse([os.fsdecode(word) for word in words])
    path = ("show", "job") if parsed.command == ("show",) else parsed.command
    return "-".join((*path, "origins") if path == ("config", "show") and parsed.value("origins") else path)


def check_if_document(words: Sequence[str | bytes], text: str) -> None:
    """Hold what a command line has printed to its schema, if it is a document (A.1); whoever prints, it is checked."""
    if text.startswith('{"schema_version"'):
        check_document(document_of(words), text)


def check_document(name: str, text: str) -> Any:
    """Return ``data`` of a document, after holding it to the rules of A.1 and to its schema."""
    assert text.startswith(ENVELOPE)
    assert text.endswith("}\n")
    assert text.count("\n") == 1
    assert not any(0xD800 <= ord(char) <= 0xDFFF or char in "\u2028\u2029" for char in text)
    data = json.loads(text)["data"]
    assert text == f"{ENVELOPE}{_canonical(data)}}}\n", "not compact, or keys are not sorted"
    document_validator(name).validate(json.loads(text))
    return data


@functools.cache
def document_validator(name: str) -> Any:
    """Return the validator of one of the documents in docs/reference/schemas."""
    from jsonschema import Draft202012Validator  # most tests read no document
    from referencing import Registry, Resource

    contents = {path.name: json.loads(path.read_text("utf-8")) for path in SCHEMAS.glob("*.json")}
    registry = Registry().with_resources((key, Resource.from_contents(value)) for key, value in contents.items())
    return Draft202012Validator(contents[f"{name}.schema.json"], registry=registry)


def _canonical(data: object) -> str:
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


SUCCEED = ("claim", "admit", "reserve", "start", "end")


def stock(state: Path, count: int, moves: Sequence[str] = SUCCEED) -> list[str]:
    """Fill a store with jobs that went through ``moves`` of tests.moves; return their IDs, the oldest first.

    In one transaction: submitting that many would take minutes.
    """
    from jobman.model.spec import JobSpec
    from jobman.store.commit import commit, commit_submission
    from jobman.store.connection import open_store
    from tests.moves import derived_id, walk

    spec = JobSpec(executable="true", arguments=(), working_directory="/")
    job_ids = sorted(derived_id("stock", "job", number) for number in range(count))
    store = open_store(str(state))
    try:
        with store.write():
            for job_id in job_ids:
                submitted, *changes = walk(*moves, job_id=job_id)
                commit_submission(store, submitted, spec)
                for change in changes:
                    commit(store, change)
    finally:
        store.close()
    return job_ids


@contextmanager
def descriptors_free(number: int) -> Iterator[None]:
    """Let so many descriptors be opened, and no more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(number + 1)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(opened), limits[1]))
    for descriptor in opened:
        os.close(descriptor)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
