"""A person who types at a real shell: lines and TAB in, what the shell makes of the line out."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support import DEADLINE_S

_PROMPT = b"ready: "
# Bound to a key: what the line is now goes to a file.
_TELL = b"\x18\x04"
_EMPTY = b"\x01\x0b"
_SETUPS = {
    "bash": r"""
PS1='ready: '
bind 'set bell-style none'
source <(jobman completion bash)
tell() { printf '%s\n' "$READLINE_LINE" >>told; }
bind -x '"\C-x\C-d": tell'
""",
    "zsh": r"""
PROMPT='ready: '
autoload -Uz compinit
compinit -u -D
source <(jobman completion zsh)
tell() { print -r -- "$BUFFER" >>told }
zle -N tell
bindkey -e
bindkey '^X^D' tell
""",
}


class Typist:
    """An interactive bash or zsh that knows the completion of jobman, at a terminal of its own."""

    def __init__(self, shell: str, path: str, directory: Path, environment: Mapping[str, str]) -> None:
        """Start ``shell``, which lies at ``path``, in ``directory``."""
        self._told = directory / "told"
        self._told.touch()
        self._screen = b""
        setup = "setup" if shell == "bash" else ".zshrc"
        (directory / setup).write_text(_SETUPS[shell])
        words = [path, "--noprofile", "--rcfile", setup, "-i"] if shell == "bash" else [path, "-i"]
        search = f"{os.path.dirname(sys.executable)}:{environment['PATH']}"
        given = {**environment, "PATH": search, "TERM": "dumb", "ZDOTDIR": str(directory)}
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve(path, words, given)
        self._read_until(lambda: _PROMPT in self._screen)

    def press_tab(self, line: str) -> str:
        """Type ``line`` and TAB; return the line as it is then."""
        before = self._told.read_bytes().count(b"\n")
        os.write(self._terminal, line.encode() + b"\t" + _TELL + _EMPTY)
        self._read_until(lambda: self._told.read_bytes().count(b"\n") > before)
        return self._told.read_text().split("\n")[before]

    def leave(self) -> None:
        """End the shell."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def _read_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self._screen[-2000:].decode("utf-8", "replace")
            if select.select([self._terminal], [], [], 0.01)[0]:
                self._screen += os.read(self._terminal, 65536)
