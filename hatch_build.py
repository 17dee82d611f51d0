"""Puts the manual pages into the wheel, below ``share/man/man1``: they are generated whenever it is built."""

from __future__ import annotations

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ManualPages(BuildHookInterface[Any]):
    """The hook that hatchling calls before it builds a wheel, an editable one too."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatchling's signature
        """Write the pages and have them installed."""
        # What is built is not installed yet; docs/manpages.py needs nothing else.
        sys.path[:0] = [os.path.join(self.root, "src"), os.path.join(self.root, "docs")]
        import manpages

        directory = os.path.join(self.root, "build", "man")
        os.makedirs(directory, exist_ok=True)
        for name, text in manpages.pages().items():
            path = os.path.join(directory, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            build_data["shared_data"][path] = f"share/man/man1/{name}"
