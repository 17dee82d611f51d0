"""``rerun`` and ``run --rerun``: a new job from the specification of another (A.2, A.3; M8)."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.support import Cli

SHOW = "echo $A $B $(pwd) $(umask) $0"


def test_a_rerun_takes_the_specification_and_the_directory_but_not_the_environment(cli: Cli) -> None:
    """Field cases 27 and 28; the umask is the new submitter's too."""
    first = cli.finish("true")
    labels = ("--name", "old", "--tag", "t", "--group", "g", "--env", "B=set")
    limits = ("--retries", "1", "--job-timeout", "1h", "--wait-until", "2026-01-02T03:04:05Z")
    flags = (*labels, *limits, "--after-success", first)
    words = ("sh", "-c", SHOW, os.fsdecode(b"\xff"))
    old = cli.finish(*words, flags=flags, env=cli.environment | {"A": "1"})
    elsewhere = cli.cwd / "elsewhere"
    elsewhere.mkdir()
    printed = f" set {cli.cwd} ".encode()

    again = cli("rerun", "old", "--wait", env=cli.environment | {"A": "2"}, cwd=elsewhere, umask=0o077).out.strip()
    other = cli("run", "--rerun", old, "--name", "new", "--wait", cwd=elsewhere, umask=0o027).out.strip()

    assert cli("logs", old).raw.startswith(b"1" + printed)
    assert cli("logs", again).raw == b"2" + printed + b"0077 \xff\n"
    assert cli("logs", other).raw == printed[1:] + b"0027 \xff\n"
    shown: dict[str, Any] = {job_id: cli.json("show", job_id) for job_id in (old, again, other)}
    specification = shown[old]["specification"]
    assert specification["name"] == "old"
    assert shown[again]["specification"] == specification
    assert shown[other]["specification"] == specification | {"name": "new"}
    assert [edge["depends_on"] for edge in shown[again]["dependencies"]] == [first]
    assert shown[old]["runtime"]["revision"] == cli.json("status", old)["revision"]
    assert [job["id"] for job in cli.json("list", "--tag", "t", "--group", "g")["jobs"]] == [other, again, old]


def test_the_outcome_is_that_of_the_new_job_and_the_old_one_may_still_run(cli: Cli) -> None:
    os.mkfifo(cli.cwd / "gate")
    job_id = cli.run("sh", "-c", "test ! -e second || exit 7; : >second; read line <gate")
    cli.await_phase(job_id, "running")
    while not (cli.cwd / "second").exists():
        cli("status", job_id)
    done = cli("rerun", "--wait", job_id, status=1)
    assert done.err == f"job {done.out.strip()} completed with outcome failure\n"
    assert cli.phase(job_id) == "running"
    (cli.cwd / "gate").write_text("go\n")
    assert cli.wait(job_id) == "success"
    assert cli("rerun", job_id, "--name", "").out.strip() != job_id


def test_what_cannot_be_repeated_is_refused_and_nothing_is_stored(cli: Cli) -> None:
    (cli.cwd / "pool.yml").write_text("concurrency: {pools: {gpu: 2}}\n")
    (cli.cwd / "bad.yml").write_text("concurrency: 7\n")
    needed = cli.finish("true", flags=("--name", "needed"))
    dependent = cli.finish("true", flags=("--after-success", needed, "--name", "twice"))
    pooled = cli.finish("true", flags=("--pool", "gpu", "--slots", "2", "--config", "pool.yml", "--name", "twice"))
    cli("clean", needed, "--force")
    cli("config", "apply")
    before = cli.json("list")

    cli.refuses("rerun", dependent, status=3, says=f"no job matches '{needed}'")
    cli.refuses("run", "--rerun", pooled, status=5, says="there is no pool 'gpu'")
    cli.refuses("rerun", "twice", status=4, says="matches several jobs")
    cli.refuses("rerun", "needed", "--wait", status=3, says="no job matches 'needed'")
    cli.refuses("rerun", pooled, "--name", "a\nb", status=2, says="--name must not contain control characters")
    cli.refuses("rerun", pooled, "--config", "bad.yml", status=2, says="invalid configuration")
    cli.refuses("rerun", pooled, "more", status=2, says="accepts 1 arg(s), received 2")
    assert cli.json("list") == before
    assert cli("rerun", pooled, "--config", "pool.yml", "--wait").err == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--tag", "t"), "run --rerun takes only --name and --wait, not --tag"),
        (("--exit-code",), "run --rerun takes only --name and --wait, not --exit-code"),
        (("--slots", "1"), "not --slots"),
        (("--", "true"), "run --rerun takes no command"),
        (("more",), "'more' is out of place"),
    ],
)
def test_nothing_else_may_accompany_a_rerun(cli: Cli, words: tuple[str, ...], says: str) -> None:
    """A.2: whatever would change the job is refused before anything is opened."""
    cli.refuses("run", "--rerun", "any", *words, status=2, says=says)
    assert not cli.state.exists()
