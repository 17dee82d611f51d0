"""The scripts of ``jobman completion`` in the real shells (D47): what TAB makes of a line, keys and quotes included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.moves import instant, perform, submitted
from tests.shells import Typist
from tests.stores import commit_all, fast_store, fresh_id
from tests.support import Cli, require_tool

# What precedes the word in progress, that word, and what becomes of it.
WORDS = (
    ("", "sta", "status "),
    ("list ", "--phase=runn", "--phase=running "),
    ("list --phase ", "running,ba", "running,backoff "),
    ("--config=file.yml status ", "tra", "train "),
    ("status ", "my", "my\\ job "),
    ("status ", "a:", "a:b "),
    ("status -- ", "-o", "-odd "),
    ("--config ", "fi", "file.yml "),
    ("status ", "--config=fi", "--config=file.yml "),
    ("run --cwd ", "fo", "folder/"),
    ("run ", "--cwd=fo", "--cwd=folder/"),
    ("run ", "--after-outcome=tr", "--after-outcome=train="),
    ("logs --run ", "-", "-1 "),
    ("run --name -- -- ", "unhea", "unheard-of "),
    ("run --name x -- cat ", "fi", "file.yml "),
    ("nonsense ", "tr", "tr"),
)
QUOTED = (("status ", "'my", "'my job' "), ("status ", '"my', '"my job" '))


@pytest.fixture
def home(cli: Cli) -> Path:
    """A directory with a file and a folder, and a store of jobs whose names are hard to type."""
    store = fast_store(cli.state)
    for name in ("train", "my job", "a:b", "-odd"):
        history = [submitted(fresh_id(), name)]
        perform(history, "claim", instant(1))
        commit_all(store, history)
    store.close()
    # A command that only the PATH of this test knows.
    command = cli.cwd / "bin" / "unheard-of"
    command.parent.mkdir()
    command.touch(mode=0o755)
    cli.environment["PATH"] = f"{command.parent}:{os.path.dirname(sys.executable)}:{cli.environment['PATH']}"
    (cli.cwd / "file.yml").write_text("{}\n")
    (cli.cwd / "folder").mkdir()
    return cli.cwd


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes_the_line(shell: str, cli: Cli, home: Path) -> None:
    typist = Typist(shell, require_tool(shell), home, cli.environment)
    try:
        for before, word, after in (*WORDS, *QUOTED):
            assert typist.press_tab(f"jobman {before}{word}") == f"jobman {before}{after}"
    finally:
        typist.leave()


def test_fish_completes_the_line(cli: Cli, home: Path) -> None:
    lines = "".join(f"echo (complete -C {_quoted(f'jobman {before}{word}')})\n" for before, word, _ in WORDS)
    script = f"jobman completion fish | source\n{lines}"

    done = subprocess.run(
        [require_tool("fish"), "--no-config"],
        input=script,
        capture_output=True,
        check=True,
        text=True,
        cwd=home,
        env=cli.environment,
    )

    assert done.stderr == ""
    for (before, word, after), found in zip(WORDS, done.stdout.splitlines(), strict=True):
        wanted = after.strip().replace("\\", "")
        assert found.split("\t")[0] == ("" if wanted == word else wanted), before + word


def test_descriptions_are_asked_for_unless_they_are_not_wanted(cli: Cli) -> None:
    assert " __complete " in cli("completion", "zsh").out
    bare = cli("completion", "--no-descriptions", "zsh").out
    assert " __complete_bare " in bare
    assert " __complete " not in bare


def test_there_is_a_script_for_known_shells_only(cli: Cli) -> None:
    cli.refuses("completion", "tcsh", status=2, says="bash, zsh or fish")


def _quoted(line: str) -> str:
    return "'" + line.replace("\\", "\\\\").replace("'", "\\'") + "'"
