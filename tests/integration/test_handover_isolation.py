"""What a supervisor and its target keep of the terminal, the shell and the process that submitted them (M5)."""

from __future__ import annotations

import os
import pty
import resource
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.injection import owner_of, rows, started
from tests.support import Cli, Result, installed_command, require_tool

HIGH = 1000
JOBMAN = shlex.quote(installed_command())


def shell(cli: Cli, script: str, **options: object) -> Result:
    """Run ``script`` in the shell of a user; ``jobman`` is the installed command."""
    text = f'jobman() {{ {JOBMAN} "$@"; }}\n{script}'
    done = subprocess.run(
        ["bash", "-c", text],
        capture_output=True,
        check=False,
        timeout=15,
        cwd=cli.cwd,
        **({"env": cli.environment} | options),
    )  # type: ignore[call-overload]  # options of subprocess.run
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return Result(done.returncode, out, err, done.stdout)


def supervisor_of(cli: Cli, job_id: str) -> int:
    """The PID of the recorded supervisor."""
    owner = owner_of(cli.state, job_id)
    assert owner is not None
    return owner.identity.pid


def target_of(cli: Cli, job_id: str) -> int:
    """The PID of the job's running target."""
    cli.await_phase(job_id, "running")
    ((pid,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ?", job_id)
    return int(pid)


def links(pid: int) -> dict[int, str]:
    """The open descriptors of a process."""
    directory = f"/proc/{pid}/fd"
    return {int(fd): os.readlink(f"{directory}/{fd}") for fd in os.listdir(directory)}


def ended(cli: Cli, job_id: str) -> str:
    """Cancel a job and wait for its end."""
    cli("cancel", job_id)
    return cli.wait(job_id)


def output_of(cli: Cli, job_id: str) -> str:
    """What a job wrote to standard output, once it has ended."""
    cli.wait(job_id)
    return cli("logs", "--stream", "stdout", job_id).out


# --- Descriptors ---------------------------------------------------------------------------------------------------


def test_no_descriptor_of_the_submitter_reaches_supervisor_or_target(cli: Cli, tmp_path: Path) -> None:
    """D18, field cases 11 and 32: neither low nor high descriptors, files, pipes or sockets."""
    leak = tmp_path / "leak"
    script = f"exec 7>{leak} 9<>{leak} {HIGH}<{leak} 11> >(cat >/dev/null); jobman run -- sleep 60"
    leak.touch()

    job_id = shell(cli, script).out.strip()

    target = target_of(cli, job_id)
    assert sorted(links(target)) == [0, 1, 2]
    assert links(target)[0] == "/dev/null"
    opened = links(supervisor_of(cli, job_id))
    assert not [name for name in opened.values() if name == str(leak)]
    own = str(cli.state)
    assert {
        fd: name for fd, name in opened.items() if fd > 2 and not name.startswith((own, "pipe:", "anon_inode:"))
    } == {}
    assert (opened[0], opened[1]) == ("/dev/null", "/dev/null")
    assert opened[2] == f"{own}/run/{job_id}.log"
    assert ended(cli, job_id) == "cancelled"


def test_a_target_sees_three_descriptors(cli: Cli, tmp_path: Path) -> None:
    """D18: as the target itself finds them; ``ls`` has one more for the directory that it reads."""
    job_id = shell(cli, f"exec 5<{tmp_path} 250<{tmp_path}; jobman run -- ls /proc/self/fd").out.strip()

    assert output_of(cli, job_id).split() == ["0", "1", "2", "3"]


def test_descriptors_above_a_lowered_limit_are_closed(cli: Cli, tmp_path: Path) -> None:
    """D18: the limit on descriptors may have been lowered after they were opened."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert limit > HIGH

    job_id = shell(cli, f"exec {HIGH}<{tmp_path}; ulimit -n 200; jobman run -- ls /proc/self/fd").out.strip()

    assert output_of(cli, job_id).split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_descriptors_of_the_submitter_do_no_harm(cli: Cli, closed: str) -> None:
    """Differences, traps: a closed descriptor must not become the database."""
    shell(cli, f"jobman run --name closed -- sh -c 'cat; echo out; echo err >&2' {closed}")

    assert cli.wait("closed") == "success"
    assert cli("logs", "--stream", "stdout", "closed").out == "out\n"
    assert cli("logs", "--stream", "stderr", "closed").out == "err\n"


def test_a_command_substitution_returns_at_once(cli: Cli) -> None:
    """Field case 11: the job holds neither the pipe of ``$(…)`` nor that of standard error."""
    job_id = shell(cli, 'out=$(jobman run -- sleep 60 2>&1); echo "$out"').out.strip()

    # The shell has read to the end of the pipe, so nobody else holds it; and the job goes on.
    target_of(cli, job_id)
    assert ended(cli, job_id) == "cancelled"


def test_a_remote_shell_session_ends_at_once(cli: Cli) -> None:
    """Field case 11: as under sshd, which waits until nobody holds the session's pipes any more."""
    reader, writer = os.pipe()
    with started(
        cli, [installed_command(), "run", "--", "sleep", "60"], stdin=reader, stdout=writer, stderr=writer
    ) as client:
        os.close(writer)
        output = b""
        while block := os.read(reader, 4096):
            output += block
        assert client.wait(15) == 0
    os.close(reader)

    assert ended(cli, output.decode().strip()) == "cancelled"


def test_a_loop_over_lines_submits_one_job_for_each(cli: Cli) -> None:
    """Field case 12: the first job does not eat the input of the loop."""
    shell(cli, "seq 5 | while read n; do jobman run --name n$n -- sh -c 'cat; echo got'; done")

    for number in range(1, 6):
        assert output_of(cli, f"n{number}") == "got\n"


# --- Session, group, terminal --------------------------------------------------------------------------------------


def test_supervisor_and_target_have_a_session_without_a_terminal(cli: Cli) -> None:
    """Issue 2, hand-over: a new session, led by the supervisor; the target leads its own group in it."""
    job_id = cli.run("sleep", "60")

    target, supervisor = target_of(cli, job_id), supervisor_of(cli, job_id)
    assert os.getsid(supervisor) == supervisor
    assert os.getpgid(supervisor) == supervisor
    assert os.getsid(target) == supervisor
    assert os.getpgid(target) == target
    for pid in (supervisor, target):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        assert fields[4] == "0", "a controlling terminal"
    assert os.readlink(f"/proc/{supervisor}/cwd") == "/"
    assert ended(cli, job_id) == "cancelled"


def test_a_job_outlives_the_terminal_it_was_submitted_from(cli: Cli) -> None:
    """M5: ``script`` gives the shell a terminal and takes it away when the command line has ended."""
    script = require_tool("script")
    line = f"{JOBMAN} run --name tty -- sh -c 'while [ ! -e go ]; do sleep 0.02; done; test -t 0 || echo detached'"

    shell(cli, f"{script} -qc {shlex.quote(line)} /dev/null")

    (cli.cwd / "go").touch()
    assert output_of(cli, "tty") == "detached\n"


@pytest.mark.parametrize("end", [signal.SIGHUP, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_a_job_outlives_the_killed_session_of_its_submitter(cli: Cli, end: signal.Signals) -> None:
    """M5: every process of the submitting session is signalled, as at the end of a login."""
    line = "jobman run --name orphan -- sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo done'; sleep 60"
    with started(cli, ["bash", "-c", f'jobman() {{ {JOBMAN} "$@"; }}\n{line}'], start_new_session=True) as session:
        assert session.stdout is not None
        job_id = session.stdout.readline().decode().strip()
        cli.await_phase(job_id, "running")
        for pid in _of_session(session.pid):
            os.kill(pid, end)
    (cli.cwd / "go").touch()

    assert cli.wait(job_id) == "success"
    assert output_of(cli, job_id) == "done\n"


def test_a_job_outlives_a_terminal_that_hangs_up(cli: Cli) -> None:
    """M5: the kernel itself sends SIGHUP to the session and its foreground group when the terminal goes away."""
    line = "jobman run --name hangup -- sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo done'; sleep 60"
    text = f'jobman() {{ {JOBMAN} "$@"; }}\n{line}'
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cli.cwd)
        os.execvpe("bash", ["bash", "-c", text], cli.environment)
    job_id = os.read(terminal, 100).decode().strip()
    cli.await_phase(job_id, "running")

    os.close(terminal)

    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGHUP
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"


def test_the_supervisor_is_not_found_by_the_command_line_of_the_job(cli: Cli) -> None:
    """Architecture, Supervisor process: ``pkill -f script.py`` hits the target, never who looks after it."""
    job_id = cli.run("sleep", "61.25")

    target_of(cli, job_id)
    command = Path(f"/proc/{supervisor_of(cli, job_id)}/cmdline").read_bytes()

    assert b"61.25" not in command
    assert ended(cli, job_id) == "cancelled"


# --- Signals, limits, masks ----------------------------------------------------------------------------------------


STATUS = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
CLEAN = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"


def _block_everything() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def _ignore_everything() -> None:
    for signo in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(signo, signal.SIG_IGN)


@pytest.mark.parametrize("prepare", [_block_everything, _ignore_everything])
def test_a_target_starts_with_an_empty_mask_and_default_handlers(cli: Cli, prepare: Callable[[], None]) -> None:
    """Field case 9, whatever the submitter has blocked or ignored."""
    job_id = cli.run(*STATUS, preexec_fn=prepare)

    assert output_of(cli, job_id) == CLEAN


@pytest.mark.parametrize("prefix", ["nohup", "trap '' PIPE INT HUP TERM;"])
def test_the_shells_ways_of_ignoring_signals_do_not_reach_a_target(cli: Cli, prefix: str) -> None:
    """Field case 9: ``nohup`` and ``trap ''`` work by inheritance."""
    words = " ".join(shlex.quote(word) for word in STATUS)

    shell(cli, f"{prefix} {JOBMAN} run --name sig -- {words}")

    assert output_of(cli, "sig") == CLEAN


def test_a_supervisor_can_be_asked_to_end_although_its_submitter_blocked_signals(cli: Cli) -> None:
    """D43: SIGTERM works in any case, so that a session's end reaches the target."""
    job_id = cli.run("sleep", "60", preexec_fn=_block_everything)
    target_of(cli, job_id)

    os.kill(supervisor_of(cli, job_id), signal.SIGTERM)

    assert cli.wait(job_id) == "cancelled"


@pytest.mark.parametrize("mask", ["000", "022", "077", "777"])
def test_a_target_has_the_umask_of_its_submitter(cli: Cli, mask: str) -> None:
    """Field case 29; and nothing in the store is open to others whatever it is."""
    job_id = shell(cli, f"umask {mask}; jobman run -- sh -c umask").out.strip()

    assert output_of(cli, job_id) == f"0{mask}\n"
    loose = [path for path in cli.state.rglob("*") if path.lstat().st_mode & 0o077]
    assert loose == []


def test_a_target_has_the_limits_priority_and_processors_of_its_submitter(cli: Cli) -> None:
    """Differences, traps: every limit, soft and hard, also that on files, which a supervisor lifts for itself."""
    processors = {min(os.sched_getaffinity(0))}
    shown = ("sh", "-c", "nice; grep Cpus_allowed_list /proc/self/status; cat /proc/self/limits")

    def restrict() -> None:
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (123, 456))
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000_000, 20_000_000))
        resource.setrlimit(resource.RLIMIT_STACK, (4_000_000, 5_000_000))
        os.sched_setaffinity(0, processors)

    job_id = cli.run(*shown, preexec_fn=restrict)

    there = subprocess.run(shown, preexec_fn=restrict, capture_output=True, check=True, text=True).stdout
    assert "10000000             20000000" in there
    assert output_of(cli, job_id) == there


def _of_session(leader: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == leader:
                found.append(int(name))
        except ProcessLookupError:
            continue
    return found


# --- Imports -------------------------------------------------------------------------------------------------------


def test_modules_in_the_working_directory_are_not_imported(cli: Cli) -> None:
    """Architecture, Supervisor process: a project may have a ``json.py`` or a ``jobman`` of its own."""
    for name in ("json.py", "apsw.py", "select.py", "signal.py", "jobman/__init__.py", "sitecustomize.py"):
        path = cli.cwd / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise SystemExit('a module of the working directory was imported')\n")

    assert cli.wait(cli.run("true")) == "success"


def test_a_module_entry_in_the_working_directory_is_not_imported_by_the_supervisor(cli: Cli, tmp_path: Path) -> None:
    """The same with ``PYTHONPATH`` naming it: the client is the user's, the supervisor is isolated."""
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "select.py").write_text("raise SystemExit('imported through PYTHONPATH')\n")
    (trap / "fcntl.py").write_text("raise SystemExit('imported through PYTHONPATH')\n")
    argv = [sys.executable, "-I", "-m", "jobman", "run", "--name", "isolated", "--", "true"]

    done = subprocess.run(
        argv, env=cli.environment | {"PYTHONPATH": str(trap)}, cwd=trap, capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert cli.wait("isolated") == "success"


def test_a_job_submitted_from_a_directory_that_is_gone_says_so(cli: Cli) -> None:
    """Field case 16."""
    done = shell(cli, "mkdir d; cd d; rmdir ../d; jobman run -- true")

    assert done.status == 1
    assert "the current directory cannot be used" in done.err
    assert not (cli.state / "jobman.db").exists()
