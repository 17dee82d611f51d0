"""``jobman completion``."""

from __future__ import annotations

import os

from jobman.cli.output import out
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed

_SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts")


def run(parsed: Parsed) -> int:
    """Print the script for a shell."""
    with open(f"{_SCRIPTS}/jobman.{parsed.operand('SHELL')}", encoding="utf-8") as file:
        script = file.read()
    out(script.replace("__complete ", "__complete_bare ") if parsed.value("no-descriptions") else script)
    return 0
