"""What ``make demo`` runs: the two-step pipeline of the mission, told by a script that checks itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import clean_environment, installed_command

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"


def tell(script: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the script as ``make demo`` does: a bare ``sh``, the installed command first on PATH, nothing on stdin."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = clean_environment(tmp_path / "state", TMPDIR=str(temporary))
    environment["PATH"] = os.path.dirname(installed_command()) + os.pathsep + environment["PATH"]
    return subprocess.run(
        ["sh", str(script)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def processes_below(directory: Path) -> list[int]:
    """Return the living processes whose state directory lies below ``directory``."""
    wanted = b"JOBMAN_STATE_DIR=" + os.fsencode(directory)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        found += [int(pid)] if wanted in environment else []
    return found


def test_the_demonstration_tells_the_whole_story_and_leaves_nothing(tmp_path: Path) -> None:
    done = tell(EXAMPLE / "run.sh", tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    verbs = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("$ jobman ")]
    assert done.stdout.count("jobman run ") == 2
    assert list(dict.fromkeys(verbs)) == ["status", "list", "wait", "show", "logs"]
    before, _, _ = done.stdout.partition('$ jobman wait "$analyze"')
    # Unless the machine was so slow that the first step had ended before anybody looked.
    prepared = any("prepare_data" in line and "completed" in line for line in before.splitlines())
    assert prepared or "waiting for prepare_data" in before
    assert "temporary analysis failure" in done.stdout
    assert "result: 42" in done.stdout
    assert '"predicate": "success"' in done.stdout
    assert done.stdout.endswith("No process is left. Everything was as told.\n")
    assert processes_below(tmp_path / "tmp") == []
    assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize(
    ("told", "instead"), [("result:", "answer:"), ("temporary analysis failure", "oops"), ("return 1", "return 3")]
)
def test_the_demonstration_fails_when_something_is_not_as_told(tmp_path: Path, told: str, instead: str) -> None:
    example = tmp_path / "example"
    example.mkdir()
    for source in EXAMPLE.iterdir():
        (example / source.name).write_bytes(source.read_bytes().replace(told.encode(), instead.encode(), 1))
    # The script expects what it expected before.
    (example / "run.sh").write_bytes((EXAMPLE / "run.sh").read_bytes())

    done = tell(example / "run.sh", tmp_path)

    assert done.returncode != 0
    assert "Everything was as told" not in done.stdout
    assert processes_below(tmp_path / "tmp") == []
    assert os.listdir(tmp_path / "tmp") == []
