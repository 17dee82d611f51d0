"""What ``make docs`` does beside rendering pages: the navigation, and links that leave the pages.

The navigation follows the first page, from which a test demands that every page can be found; so a new guide need not
be entered twice. Examples lie outside of ``docs`` for those who read the sources; the site has them as files.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_DOCS = os.path.dirname(os.path.abspath(__file__))
_EXAMPLES = os.path.join(os.path.dirname(_DOCS), "examples")
# What leads somewhere in the sources, and what it becomes: a directory is no page of a site.
_LINKS = (("](../../examples/", "](../examples/"), ("](schemas)", "](documents.md)"))


def navigation() -> list[dict[str, Any]]:
    """Return the navigation: the pages in the order in which the first one names them, by directory."""
    with open(os.path.join(_DOCS, "index.md"), encoding="utf-8") as file:
        pages = list(dict.fromkeys(re.findall(r"\]\(([a-z/-]+\.md)\)", file.read())))
    first = "guide/getting-started.md"
    records = sorted(name for name in os.listdir(os.path.join(_DOCS, "adr")) if name[0].isdigit())
    return [
        {"Jobman": "index.md"},
        {"Getting started": first},
        {"Guides": [page for page in pages if page.startswith("guide/") and page != first]},
        {"Reference": [page for page in pages if page.startswith("reference/")]},
        {"Comparison": "comparison.md"},
        {"Decisions": ["adr/README.md", *(f"adr/{name}" for name in records)]},
    ]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation."""
    config.nav = navigation()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the examples."""
    from mkdocs.structure.files import File

    for directory, _, names in os.walk(_EXAMPLES):
        for name in names:
            path = os.path.join(directory, name)
            uri = f"examples/{os.path.relpath(path, _EXAMPLES)}"
            if "__pycache__" not in uri:
                files.append(File.generated(config, uri, abs_src_path=path))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead links that leave the pages to what the site has instead."""
    for there, here in _LINKS:
        markdown = markdown.replace(there, here)
    return markdown
