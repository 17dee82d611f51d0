"""The console blocks of the documentation: finding them, running them in one shell, comparing with what a page shows.

A comment above a fence, which neither GitHub nor mkdocs shows, says what the tests do with the block::

    <!-- run -->           its commands end with status 0 and print what follows each of them, if something does
    <!-- run: exit 5 -->   the same, but each ends with 5
    <!-- file: NAME -->    the reader adds this block to that file
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from docs import generate

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Generated pages have nothing to be typed.
_FOUND = (page for part in (".", "guide", "reference") for page in sorted((DOCS / part).glob("*.md")))
PAGES = (ROOT / "README.md", *(page for page in _FOUND if page.name not in generate.pages()))

_FENCE = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands that only look. A reader types slower than a test, so these are given time to find what the page shows.
_LOOKS = re.compile(r"jobman (status|list|show|logs|doctor|config show)\b")
_DEADLINE_S = 15.0
_END = "\036"

# What differs from one time to the next, and how it looks on a page and in an output alike.
_VARYING = (
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z",
    r"\d+(?:\.\d+)? (?:B|[KMGT]iB)",
    r"pid \d+",
)
_PIECE = re.compile("(?P<lines>^…\n)|(?P<gap> {2,})|(?P<any>…)|(" + ")|(".join(_VARYING) + ")", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the name of its page, its mark or "", its language or "", and what it holds."""

    page: str
    mark: str
    language: str
    text: str


class Step(NamedTuple):
    """A command, of several lines perhaps, and the output that the page shows below it, or ""."""

    command: str
    shown: str


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found = _FENCE.findall(page.read_text("utf-8"))
    return [Block(page.name, mark or "", language, text) for mark, language, text in found]


def steps_of(text: str) -> list[Step]:
    """Return the commands of a console block, each behind ``$``, with the output that follows it."""
    steps: list[Step] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            steps.append(Step(line[2:], ""))
        elif not steps[-1].shown and steps[-1].command.endswith("\\\n"):
            steps[-1] = steps[-1]._replace(command=steps[-1].command + line)
        else:
            steps[-1] = steps[-1]._replace(shown=steps[-1].shown + line)
    return steps


def shows(shown: str, printed: str) -> bool:
    """Say whether ``printed`` is what a page shows: ``…``, IDs, times, sizes, PIDs and gaps stand for any."""
    pattern, end = "", 0
    for piece in _PIECE.finditer(shown):
        pattern += re.escape(shown[end : piece.start()]) + _pattern(piece)
        end = piece.end()
    pattern += re.escape(shown[end:])
    return re.fullmatch(pattern, re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE)) is not None


def _pattern(piece: re.Match[str]) -> str:
    special = {"lines": r"(?:.*\n)*?", "gap": " {2,}", "any": r"[^\n]*?"}
    return special.get(piece.lastgroup or "") or f"(?:{_VARYING[(piece.lastindex or 0) - len(special) - 1]})"


class Shell:
    """One ``sh`` for a page: variables and the working directory stay from block to block; nothing is on stdin."""

    def __init__(self, cwd: Path, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            ["sh"],
            cwd=cwd,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.status = 0

    def __call__(self, command: str) -> str:
        """Run a command; return what it printed on both streams, and keep its exit status."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # The marker ends what was printed; it must not become the status that `$?` tells the next command.
        script = f"(exit {self.status}); {{ {command}\n}} </dev/null; printf '{_END}%s\\n' $?\n"
        guard = threading.Timer(_DEADLINE_S, os.killpg, (self.process.pid, signal.SIGKILL))
        guard.start()
        try:
            self.process.stdin.write(script)
            self.process.stdin.flush()
            printed = ""
            while _END not in printed:
                line = self.process.stdout.readline()
                assert line, f"the shell ended, or had to be ended after {_DEADLINE_S} s: {command}{printed}"
                printed += line
        finally:
            guard.cancel()
        printed, _, status = printed.partition(_END)
        self.status = int(status)
        return printed

    def close(self) -> None:
        """End the shell."""
        self.process.communicate()


def perform(shell: Shell, step: Step) -> str:
    """Run the command of a step and return its output; if it only looks, until it prints what is shown."""
    deadline = time.monotonic() + _DEADLINE_S
    printed = shell(step.command)
    while step.shown and not shows(step.shown, printed) and _LOOKS.match(step.command) and time.monotonic() < deadline:
        time.sleep(0.02)
        printed = shell(step.command)
    return printed
