"""The four-shard example: a preparation, then four analyses in a pool of two slots, with retries (M11, M16 to M22)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman.store.connection import open_store
from tests.support import Cli, clean_environment, eventually, installed_command

EXAMPLE = Path(__file__).parents[2] / "examples" / "shards"
SHARDS = (1, 2, 3, 4)
SECOND_NS = 1_000_000_000
POOL = ("--pool", "analysis", "--slots", "1")
RETRIES = ("--retries", "2", "--retryable-exit-code", "1", "--retry-delay", "1s")


class Held(NamedTuple):
    """One admission: whose, from when to when, and which slots."""

    job_id: str
    acquired_at_ns: int
    released_at_ns: int
    slots: str


def tell(example: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as ``make shards`` does: a bare ``sh``, the installed command first on PATH, nothing on stdin."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = clean_environment(tmp_path / "state", TMPDIR=str(temporary))
    environment["PATH"] = os.path.dirname(installed_command()) + os.pathsep + environment["PATH"]
    script = str(example / "run.sh")
    return subprocess.run(
        ["sh", script], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def nothing_is_left(tmp_path: Path) -> bool:
    """Say whether neither a file nor a process of the story is left."""
    wanted = b"JOBMAN_STATE_DIR=" + os.fsencode(tmp_path / "tmp")
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if wanted in Path(f"/proc/{pid}/environ").read_bytes():
                return False
        except OSError:
            continue
    return os.listdir(tmp_path / "tmp") == []


def admissions(state: Path) -> list[Held]:
    """Return every admission to the pool that ever was, in the order in which they were given."""
    store = open_store(str(state))
    try:
        rows = store.execute(
            "SELECT job_id, acquired_at_ns, released_at_ns, slot_indexes FROM admissions"
            " WHERE pool = 'analysis' ORDER BY acquired_at_ns, rowid"
        )
    finally:
        store.close()
    return [Held(*row) for row in rows]


def submit_shards(cli: Cli, *, after: str) -> list[str]:
    """Submit the four analyses of the example."""
    flags = ("--after-success", after, *POOL, *RETRIES)
    program = (sys.executable, "analyze_shard.py", "--shard")
    return [cli.run(*program, str(shard), flags=("--name", f"shard_{shard}", *flags)) for shard in SHARDS]


def places(cli: Cli) -> dict[str, int]:
    """Return the place of each job that waits in the queue of the pool, as its reason tells."""
    listed = cli.json("list", "--all")["jobs"]
    reasons = {job["id"]: cli("status", job["id"]).out.rstrip("\n").rpartition("\t")[2] for job in listed}
    found = {job_id: re.match(r"#(\d+) for pool analysis \(2/2 slots busy\)", text) for job_id, text in reasons.items()}
    return {job_id: int(match[1]) for job_id, match in found.items() if match}


@pytest.fixture
def work(cli: Cli) -> Path:
    """The working directory, with the programs of the example, and its limits in force."""
    for source in EXAMPLE.iterdir():
        shutil.copy(source, cli.cwd)
    cli("config", "apply", "--config", "jobman.yml")
    return cli.cwd


def test_the_example_tells_its_story_and_leaves_nothing(tmp_path: Path) -> None:
    done = tell(EXAMPLE, tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "3 slots never fit into pool analysis with its 2\nexit status 5\n" in done.stdout
    assert "there is no pool 'rendering'" in done.stdout
    assert "==> run 1 <==\nthe server is busy\n==> run 2 <==\nshard 2: 20 (slot " in done.stdout
    assert done.stdout.endswith("No process is left. Everything was as told.\n")
    assert nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("source", "told", "instead"),
    [
        ("jobman.yml", "analysis: 2", "analysis: 3"),
        ("analyze_shard.py", "return 1", "return 3"),
        ("analyze_shard.py", "DAMAGED = {4}", "DAMAGED = set()"),
    ],
)
def test_the_example_fails_when_something_is_not_as_told(tmp_path: Path, source: str, told: str, instead: str) -> None:
    example = tmp_path / "example"
    shutil.copytree(EXAMPLE, example)
    text = (example / source).read_text()
    assert told in text
    (example / source).write_text(text.replace(told, instead))

    done = tell(example, tmp_path)

    assert done.returncode == 1
    assert "not as told: " in done.stderr
    eventually(lambda: nothing_is_left(tmp_path), "something of the story is left")


def test_the_pool_is_never_overdrawn_and_empty_while_a_shard_backs_off(cli: Cli, work: Path) -> None:
    """M16, M22: at most two hold slots, never the same one, and a retry gives its slot back until its time has come."""
    prepare = cli.run(sys.executable, "prepare_data.py")
    shards = submit_shards(cli, after=prepare)

    outcomes = [cli.wait(job) for job in shards]

    assert outcomes == ["success", "success", "success", "failure"]
    codes = [[run["exit"]["exit_code"] for run in cli.json("show", job)["runs"]] for job in shards]
    assert codes == [[0], [1, 0], [1, 0], [3]]
    held = admissions(cli.state)
    assert len(held) == 6
    for later in held:
        beside = [one for one in held if one.acquired_at_ns < later.acquired_at_ns < one.released_at_ns]
        assert len(beside) <= 1
        assert later.slots not in [one.slots for one in beside]
        assert later.slots in ("0", "1")
    for job in shards:
        for first, second in pairwise([one for one in held if one.job_id == job]):
            assert second.acquired_at_ns - first.released_at_ns >= SECOND_NS
    moments = (work / "moments.txt").read_text().split("\n")[:-1]
    alive = [sum(1 if moment.startswith("begin") else -1 for moment in moments[: index + 1]) for index in range(12)]
    assert max(alive) <= 2
    assert alive[-1] == 0


def test_queued_shards_begin_in_the_order_of_their_places(cli: Cli, work: Path) -> None:
    """M18, O.42: who became eligible first goes first, and who comes back from a failure goes behind them."""
    holder = ("sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    holders = [cli.run(*holder, flags=POOL) for _ in range(2)]
    for job in holders:
        cli.await_phase(job, "running")
    prepare = cli.run(sys.executable, "prepare_data.py")
    shards = submit_shards(cli, after=prepare)
    eventually(lambda: sorted(places(cli).values()) == [1, 2, 3, 4], "the shards never have their places")
    place = places(cli)

    (work / "go").touch()
    outcomes = [cli.wait(job) for job in shards]

    assert outcomes == ["success", "success", "success", "failure"]
    order = [one.job_id for one in admissions(cli.state) if one.job_id not in holders]
    assert order[:4] == sorted(shards, key=place.__getitem__)
    assert sorted(order[4:]) == sorted(shards[1:3])
    for job in holders:
        assert cli.wait(job) == "success"


def test_shards_of_a_preparation_that_fails_are_aborted_and_take_no_slot(cli: Cli, work: Path) -> None:
    """M12: an edge that can never be satisfied ends the job instead of leaving it waiting."""
    shards = submit_shards(cli, after=cli.run("false"))

    assert [cli.wait(job) for job in shards] == ["aborted"] * 4
    assert {cli.json("show", job)["diagnostic_code"] for job in shards} == {"dependency_unsatisfied"}
    assert admissions(cli.state) == []
    assert not (work / "moments.txt").exists()
