"""What a target writes is captured byte for byte, whatever and however much it is (issue 2; field cases 17 to 20)."""

from __future__ import annotations

import hashlib
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support import Cli, eventually, installed_command, supervisor_pids

MEGABYTE = 1_000_000
HELD = "until [ -e go ]; do sleep 0.01; done"


def peak_rss(pid: int) -> int:
    """Return the largest resident set that a process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


def stream_path(cli: Cli, job_id: str, stream: str) -> Path:
    """Return the file of a stream of the first run."""
    return cli.state / "logs" / job_id / "1" / f"{stream}.log"


def digest_of_logs(cli: Cli, job_id: str) -> str:
    """Return the SHA-256 of what ``logs`` prints when it may not use more than 150 MB of address space."""
    limited = ("sh", "-c", 'ulimit -v 150000; exec "$0" "$@"', installed_command(), "logs", job_id)
    with subprocess.Popen(limited, env=cli.environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = hashlib.file_digest(process.stdout, "sha256").hexdigest()  # type: ignore[arg-type]  # a binary pipe
    assert process.returncode == 0
    return found


def test_a_silent_target_leaves_empty_logs(cli: Cli) -> None:
    job_id = cli.finish("true")
    for words in ((), ("--stream", "stdout"), ("--stream", "stderr"), ("--all", "--raw"), ("--follow",)):
        assert cli("logs", *words, job_id).raw == b""
    logs = cli.json("show", "run", job_id, "1")["logs"]
    assert (logs["integrity"], logs["recording_health"]) == ("valid", "healthy")
    assert "stdout_size" not in logs


def test_200_megabytes_on_one_line_are_captured_in_constant_memory(cli: Cli) -> None:
    """Field case 20: blocks are copied, never lines."""
    size = 200 * MEGABYTE
    script = f"head -c {size} /dev/zero | tr '\\0' a; echo; echo after; {HELD}"
    job_id = cli.run("sh", "-c", script)
    path = stream_path(cli, job_id, "stdout")
    eventually(lambda: path.exists() and path.stat().st_size == size + 7, "the output never arrived", within=18)
    (supervisor,) = supervisor_pids(cli.state)
    assert peak_rss(supervisor) < 60 * MEGABYTE
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"

    assert digest_of_logs(cli, job_id) == hashlib.sha256(b"a" * size + b"\nafter\n").hexdigest()
    assert cli("logs", "--lines", "1", job_id).out == "after\n"
    logs = cli.json("show", "run", job_id, "1")["logs"]
    assert logs["stdout_size"] == size + 7
    assert (logs["integrity"], logs["recording_health"]) == ("valid", "healthy")


ALTERNATE = """
import os
letters = bytes.maketrans(b"0123456789", b"abcdefghij")
for number in range(100_000):
    line = b"%d\\n" % number
    os.write(1, line)
    os.write(2, line.translate(letters))
"""


def test_100000_lines_on_both_streams_are_all_there_and_in_order(cli: Cli) -> None:
    job_id = cli.finish(sys.executable, "-c", ALTERNATE)
    out = b"".join(b"%d\n" % number for number in range(100_000))
    err = out.translate(bytes.maketrans(b"0123456789", b"abcdefghij"))
    assert cli("logs", "--stream", "stdout", job_id).raw == out
    assert cli("logs", "--stream", "stderr", job_id).raw == err
    # The streams use different characters, so each can be told from the combined view.
    both = cli("logs", job_id).raw
    assert both.translate(None, b"abcdefghij\n") == out.replace(b"\n", b"")
    assert both.translate(None, b"0123456789\n") == err.replace(b"\n", b"")
    assert both.count(b"\n") == 200_000


def test_a_target_that_fills_stderr_first_does_not_block(cli: Cli) -> None:
    job_id = cli.finish("sh", "-c", f"head -c {3 * MEGABYTE} /dev/zero >&2; echo done; head -c 70000 /dev/zero >&2")
    assert cli.json("status", job_id)["outcome"] == "success"
    assert cli("logs", "--stream", "stderr", job_id).raw == bytes(3 * MEGABYTE + 70_000)
    assert cli("logs", "--stream", "stdout", job_id).raw == b"done\n"


def test_bytes_that_are_not_text_are_kept_and_the_last_line_needs_no_end(cli: Cli) -> None:
    """Field cases 17 and 18."""
    content = bytes(range(256)) * 300 + b"\377\376\301\n\033]0;x\007\r\b\177 no end"
    (cli.cwd / "content").write_bytes(content)
    job_id = cli.finish("cat", "content")
    assert cli("logs", job_id).raw == content
    assert cli("logs", "--stream", "stdout", "--lines", "1", job_id).raw == content.rpartition(b"\n")[2]
    assert cli("logs", "--follow", job_id).raw == content
    cli.json("show", job_id)


def test_output_is_visible_while_the_target_runs(cli: Cli) -> None:
    """Field case 25: our side adds no delay."""
    job_id = cli.run("sh", "-c", f"echo now; {HELD}")
    eventually(lambda: cli("logs", job_id, status=None).out == "now\n")
    assert cli.json("show", "run", job_id, "1")["logs"]["integrity"] == "pending"
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"


def test_control_characters_never_reach_the_terminal_but_through_logs(cli: Cli) -> None:
    """A.16; field case 18: reasons, executables and paths print as text."""
    title = "\x1b]0;x\x07"
    job_id = cli.finish(title, "a\x1bb")
    for words in (
        ("show", job_id),
        ("show", "run", job_id, "1"),
        ("status", job_id),
        ("list",),
        ("list", "--show-runs"),
    ):
        printed = cli(*words).out
        assert all(char in "\n\t" or char.isprintable() for char in printed), words
    assert "\\x1b]0;x\\x07" in cli("show", job_id).out
    assert cli.json("show", job_id)["specification"]["executable"] == title
    refused = cli.refuses("status", title, status=3)
    assert refused[:-1].isprintable()


def test_a_poor_locale_stops_nothing(cli: Cli) -> None:
    """Field case 19."""
    job_id = cli.finish("printf", "é…\\n", flags=("--name", "ü"))
    poor = cli.environment | {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    for locale in ("C", "oops", "POSIX"):
        given = poor | {"LC_ALL": locale}
        assert cli("logs", "--follow", "ü", env=given).out == "é…\n"
        assert f"{job_id}  ü " in cli("list", env=given).out
        assert "ü" in cli("show", "ü", env=given).out
        assert '"name":"ü"' in cli("status", "ü", "--json", env=given).out


def test_the_target_starts_with_default_signals(cli: Cli) -> None:
    """Field case 9: a broken pipe kills the target's own pipelines quietly."""
    job_id = cli.finish("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}")
    assert cli("logs", job_id).out == f"y\n{128 + signal.SIGPIPE}\n"


def test_no_thread_and_no_parent_takes_the_target_with_it(cli: Cli) -> None:
    """Field case 1: a death signal is tied to the thread that started a process; a target has none."""
    code = "import ctypes; n = ctypes.c_int(9); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    assert cli("logs", cli.finish(sys.executable, "-c", code)).out == "0\n"


def test_a_job_is_submitted_even_if_nobody_can_be_told_its_id(cli: Cli) -> None:
    """The traps for closed and failing outputs; the supervisor's pipes never take the place of a closed descriptor."""
    cases = {"<&- >&- 2>&-": 0, ">&-": 0, ">/dev/full": 1, "| true": 0}
    for number, (redirection, status) in enumerate(cases.items()):
        script = f'set -o pipefail; "$0" run --name n{number} -- echo hello {redirection}'
        words = ("bash", "-c", script, installed_command())
        done = subprocess.run(words, cwd=cli.cwd, env=cli.environment, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (status, b""), redirection
        assert done.stderr.count(b"\n") == status
        job_id = cli("wait", f"n{number}").out.removesuffix("\tsuccess\n")
        untold = f"standard output: no space left on device; job {job_id} was submitted and goes on: "
        assert done.stderr.decode().startswith(untold if status else "")
        assert cli("logs", f"n{number}").out == "hello\n"
