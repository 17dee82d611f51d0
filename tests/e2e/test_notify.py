"""Being told of jobs: by a hook, by a web hook, by a letter; and never in the way (D5, D6; contract, L)."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.receivers import Authority, appender, web_server
from tests.support import Cli, eventually, processes_of, supervisor_pids

ALL = ["job_started", "run_started", "run_succeeded", "run_failed", "retry_scheduled", "job_succeeded", "job_failed"]
Configure = Callable[..., Path]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "told"


@pytest.fixture
def authority(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path, monkeypatch)
    cli.environment |= {"SSL_CERT_FILE": str(made.path)}
    return made


@pytest.fixture
def configure(cli: Cli, told: Path) -> Configure:
    """Write the user's configuration: a hook that appends to ``told``, and whatever else is given."""

    def write(**notifiers: Any) -> Path:
        hook = {"type": "command", "events": ALL, "budget": "5s", "command": {"command": appender(told)}}
        path = Path(cli.environment["HOME"]) / ".config" / "jobman" / "jobman.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        secrets = {"token": "env:HOOK_TOKEN", "absent": "env:ABSENT_TOKEN"}
        path.write_text(json.dumps({"secrets": secrets, "notifiers": {"hook": hook, **notifiers}}))
        return path

    return write


def events(told: Path) -> list[str]:
    return [json.loads(line)["type"] for line in told.read_text().splitlines()] if told.exists() else []


def statuses(cli: Cli, job_id: str) -> set[str]:
    return {one["status"] for one in cli.json("show", job_id)["notification_deliveries"]}


def no_sender(cli: Cli) -> bool:
    return not any("delivery/__main__.py" in command for command in processes_of(cli.state).values())


def test_a_job_tells_a_hook_and_a_web_hook_of_everything_that_happens_to_it(
    cli: Cli, configure: Configure, told: Path, authority: Authority
) -> None:
    cli.environment |= {"HOOK_TOKEN": "xyzzy-plugh"}
    with web_server(authority.context("localhost")) as server:
        http = {"url": server.url, "allow_private_hosts": True, "secret_headers": {"Authorization": "token"}}
        configure(web={"type": "http", "budget": "5s", "http": http})
        job_id = cli.finish(
            *("sh", "-c", "test -e ran || { touch ran; exit 3; }"),
            flags=("--name", "demo", "--retries", "1", "--notify", "hook", "--notify", "web", *_on(ALL)),
        )
        eventually(lambda: statuses(cli, job_id) == {"succeeded"}, str(cli.json("show", job_id)))

        expected = sorted([*ALL, "run_started"])
        expected.remove("job_failed")
        assert sorted(events(told)) == expected
        assert sorted(json.loads(request.body)["type"] for request in server.requests) == expected
        assert {request.headers["Authorization"] for request in server.requests} == {"xyzzy-plugh"}
        keys = {request.headers["Idempotency-Key"] for request in server.requests}
        assert keys == {json.loads(request.body)["id"] for request in server.requests}
    view = cli("show", job_id).out
    assert "Notification deliveries:  14" in view
    assert "Pending notifications:    0" in view
    assert "Notification attempts:    14" in view
    eventually(lambda: no_sender(cli))
    # O.58: a secret is in no row, and in no other file of the state directory.
    for path in cli.state.rglob("*"):
        assert not path.is_file() or b"xyzzy-plugh" not in path.read_bytes(), path


def _on(names: list[str]) -> list[str]:
    return [word for name in names for word in ("--notify-on", name)]


def test_a_slow_hook_delays_neither_the_start_nor_a_timeout_nor_the_end(
    cli: Cli, configure: Configure, tmp_path: Path
) -> None:
    """D6: the hooks of all that happened are still asleep when the client has been told of the end."""
    asleep = tmp_path / "asleep"
    script = f"echo $$ >> {asleep}; exec /bin/sleep 60"
    slow = {"type": "command", "events": ["job_started", "run_started"], "timeout": "50s", "retry": {"max_attempts": 1}}
    configure(slow=slow | {"command": {"command": ["/bin/sh", "-c", script]}})

    flags = ("--notify", "slow", "--wait", "--run-timeout", "200ms")
    job_id = cli.run("sleep", "60", flags=flags, status=1)

    assert cli.json("show", job_id)["runs"][0]["outcome"] == "timed_out"
    eventually(lambda: asleep.exists() and len(asleep.read_text().split()) == 2)
    assert statuses(cli, job_id) == {"delivering"}
    for pid in asleep.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    eventually(lambda: no_sender(cli))
    assert statuses(cli, job_id) == {"failed"}


def test_what_a_killed_supervisor_leaves_is_told_by_whoever_finds_the_job(
    cli: Cli, configure: Configure, told: Path
) -> None:
    configure()
    job_id = cli.run("sleep", "60", flags=("--notify", "hook", "--notify-on", "run_lost", "--notify-on", "job_lost"))
    cli.await_phase(job_id, "running")
    target = cli.json("show", job_id)["runs"][0]["process"]["pid"]
    [supervisor] = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(target, signal.SIGKILL)

    assert cli.wait(job_id) == "lost"

    eventually(lambda: sorted(events(told)) == ["job_lost", "run_lost"])
    eventually(lambda: statuses(cli, job_id) == {"succeeded"})


def test_what_a_killed_sender_leaves_is_sent_when_the_next_one_waits(
    cli: Cli, configure: Configure, told: Path, tmp_path: Path
) -> None:
    """The first sender dies with its hook; ``wait`` starts another, which takes over at once."""
    first = tmp_path / "first"
    script = f"PATH=/bin; test -e {first} || {{ echo $PPID $$ > {first}; exec sleep 60; }}; {appender(told)[2]}"
    command = {"command": ["/bin/sh", "-c", script]}
    configure(twice={"type": "command", "events": ALL, "command": command})
    job_id = cli.finish("true", flags=("--notify", "twice", "--notify-on", "job_succeeded"))
    eventually(lambda: first.exists() and first.read_text().endswith("\n"))
    for pid in first.read_text().split():
        os.kill(int(pid), signal.SIGKILL)

    cli.wait(job_id)

    eventually(lambda: events(told) == ["job_succeeded"])
    eventually(lambda: statuses(cli, job_id) == {"succeeded"})
    [attempt] = cli.json("show", job_id)["notification_attempts"]
    assert attempt["attempt_number"] == 1


def test_a_choice_that_cannot_be_met_leaves_nothing(cli: Cli, configure: Configure) -> None:
    """O.5; what else is refused stands in the tests of the configuration."""
    configure()
    cli.refuses("run", "--notify", "nobody", "--", "true", status=2, says="unknown name 'nobody': expected hook")
    cli.refuses("run", "--notify-on", "job_failed", "--", "true", status=2, says="--notify-on needs a notifier")
    assert cli.has_no_job()


def test_a_notifier_is_tried_with_a_marked_event(cli: Cli, configure: Configure, told: Path) -> None:
    loud = {"command": ["/bin/sh", "-c", "echo what went wrong; exit 4"], "environment": {"secrets": {"T": "token"}}}
    lacking = {"command": ["/bin/true"], "environment": {"secrets": {"TOKEN": "absent"}}}
    configure(loud={"type": "command", "command": loud}, lacking={"type": "command", "command": lacking})
    cli.environment |= {"HOOK_TOKEN": "xyzzy"}

    assert cli("notify", "test", "hook").out == "hook\tdelivered\texit 0\n"
    [event] = [json.loads(line) for line in told.read_text().splitlines()]
    assert (event["type"], event["detail"]["summary"]["reason"]) == ("test", "test")

    failed = cli("notify", "test", "loud", status=1)
    assert failed.err == "what went wrong\nnotifier loud: rejected: /bin/sh exited with status 4\n"
    cli.refuses("notify", "test", "lacking", status=1, says="invalid: secret missing: variable ABSENT_TOKEN")
    cli.refuses("notify", "test", "nobody", status=2, says="unknown name 'nobody': expected hook, lacking, loud")
    assert not cli.state.exists() or cli.has_no_job()


def test_a_job_without_notifications_starts_no_sender_and_leaves_no_trace_of_any(
    cli: Cli, configure: Configure
) -> None:
    configure()
    cli.finish("true")
    assert not [path.name for path in (cli.state / "run").iterdir() if path.name.startswith("deliver")]


def test_a_repair_sends_what_was_left(cli: Cli, configure: Configure, told: Path) -> None:
    configure()
    held = cli.state / "run" / "deliver-0.lock"
    held.parent.mkdir(parents=True, mode=0o700)
    cli.state.chmod(0o700)
    # As if the sender of the job had been killed at once: its place was taken, and nobody is there.
    with held.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        job_id = cli.finish("true", flags=("--notify", "hook", "--notify-on", "job_succeeded"))
    assert statuses(cli, job_id) == {"pending"}

    assert cli.json("doctor", "--repair")["notifications_recovered"]

    eventually(lambda: events(told) == ["job_succeeded"])
    eventually(lambda: no_sender(cli))
    assert not cli.json("doctor", "--repair")["notifications_recovered"]
