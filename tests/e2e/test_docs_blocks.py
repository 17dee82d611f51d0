"""What the documentation shows is what its reader gets: the marked blocks of a page are run in order, in one shell."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blocks import PAGES, ROOT, Block, Shell, blocks_of, perform, shows, steps_of
from tests.support import clean_environment, eventually, installed_command, supervisor_pids

# What a test cannot do for a reader: install the package, show a page, train on GPUs, open a window on a desktop.
NOT_RUN = ("$ pip install .\n", "$ man -M ", "$ jobman run --pool gpu --slots 2 -- ", "$ jobman notify test desktop\n")
CONSOLE = [block for page in PAGES for block in blocks_of(page) if block.language == "console"]


@pytest.fixture
def shell(state: Path, tmp_path: Path) -> Iterator[Shell]:
    """A shell in a directory that holds the examples; the jobs that a page leaves are asked to end."""
    shutil.copytree(ROOT / "examples", tmp_path / "work" / "examples")
    environment = clean_environment(state)
    environment["PATH"] = os.path.dirname(installed_command()) + os.pathsep + environment["PATH"]
    shell = Shell(tmp_path / "work", environment)
    yield shell
    shell.close()
    for pid in supervisor_pids(state):
        os.kill(pid, signal.SIGTERM)
    eventually(lambda: not supervisor_pids(state), "the jobs of the page do not end")


def follow(block: Block, shell: Shell) -> None:
    """Do what a reader does with a block."""
    kind, _, detail = block.mark.partition(": ")
    if kind == "file":
        shell(f"mkdir -p $(dirname {detail})\ncat >> {detail} <<'END'\n{block.text}END")
        return
    expected = int(detail.removeprefix("exit ") or 0)
    for step in steps_of(block.text):
        printed = perform(shell, step)
        if step.shown:
            assert shows(step.shown, printed), f"$ {step.command}{step.shown}--- but it printed:\n{printed}"
        assert shell.status == expected, f"$ {step.command}exit status {shell.status}\n{printed}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.mark for block in blocks_of(page))], ids=lambda page: page.name
)
def test_a_reader_gets_what_the_page_shows(page: Path, shell: Shell) -> None:
    for block in blocks_of(page):
        if block.mark:
            follow(block, shell)


def test_all_console_blocks_are_run_but_for_a_few() -> None:
    run = [block for block in CONSOLE if block.mark.startswith("run")]

    assert [block.text for block in CONSOLE if block not in run and not block.text.startswith(NOT_RUN)] == []
    assert len(run) * 3 >= len(CONSOLE) * 2


def test_whatever_a_reader_types_stands_in_a_console_block() -> None:
    """A prompt in a block of another language would be neither run nor counted."""
    others = [block for page in PAGES for block in blocks_of(page) if block.language != "console"]

    assert [block.text for block in others if block.text.startswith(("$ ", "jobman "))] == []
    assert all(block.text.startswith("$ ") for block in CONSOLE)


def test_every_mark_is_one_that_the_tests_know() -> None:
    marks = {block.mark.partition(":")[0] for page in PAGES for block in blocks_of(page)}

    assert marks <= {"", "run", "file"}


def test_no_name_is_given_twice_so_that_all_pages_can_be_tried_in_one_store() -> None:
    """A name that several jobs share is ambiguous: a reader of two pages would get exit status 4."""
    names = [name for block in CONSOLE if block.mark for name in re.findall(r"--name (\S+)", block.text)]

    assert len(names) > 10
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("01a22880-7af9-765e-aa6c-1dbac831d29e\tgo\n", "01ffffff-0000-765e-aa6c-1dbac831d29e\tgo\n", True),
        ("01a22880-7af9-765e-aa6c-1dbac831d29e\tgo\n", "01a22880\tgo\n", False),
        ("at 2026-11-29T19:13:56.1Z\n", "at 2027-01-01T00:00:00.123456789Z\n", True),
        ("1    done  12 KiB\n", "1  done     1.5 MiB\n", True),
        ("1 done\n", "1  done\n", False),
        ("a … b\n", "a long way to b\n", True),
        ("a … b\n", "a\nb\n", False),
        ("first\n…\nlast\n", "first\nlast\n", True),
        ("first\n…\nlast\n", "first\n2\n3\nlast\n", True),
        ("first\n", "first\nsecond\n", False),
        ("tar (pid 4711).\n", "tar (pid 1).\n", True),
        ("tar (pid 4711).\n", "tar (pid 1)!\n", False),
        ("Reason:\n", "Reason:   \n", True),
    ],
)
def test_what_differs_each_time_is_compared_by_its_form(shown: str, printed: str, *, same: bool) -> None:
    assert shows(shown, printed) is same
