"""Manual pages say what the tables say, in roff without a mistake, and every wheel carries them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from docs import manpages
from jobman.cli import flags
from tests.support import require_tool

ROOT = Path(__file__).parents[2]
PAGES = manpages.pages()


def roff(text: str) -> str:
    """Return text whose characters are copied from a terminal as they are typed."""
    return text.replace("-", "\\-").replace("'", "\\(aq").replace("~", "\\(ti")


@pytest.mark.parametrize("command", [flags.Root, *flags.tables()], ids=lambda command: "-".join(command.path))
def test_every_command_has_a_page_with_every_flag_and_exit_status(command: type[flags.Command]) -> None:
    page = PAGES["-".join(("jobman", *command.path)) + ".1"]

    for flag in flags.flags_of(command):
        assert roff(f"--{flag.name} {flag.metavar}".rstrip()) + "\\fR\n" in page
    for status in command.exits:
        assert f"\\fB{status}\\fR\n" in page
    for example, _ in command.examples:
        assert roff(example) in page


def test_the_first_page_leads_to_every_command() -> None:
    page = PAGES["jobman.1"].replace("\\-", "-")

    assert all(f"\\fBjobman-{verb}\\fR(1)" in page for verb in flags.verbs())


def test_the_pages_have_no_mistake(tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)

    lint = [require_tool("mandoc"), "-T", "lint", "-W", "warning", *(str(tmp_path / name) for name in PAGES)]
    done = subprocess.run(lint, capture_output=True, check=False, text=True)

    assert (done.returncode, done.stdout) == (0, "")


def test_pages_of_a_dated_build_are_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")

    assert manpages.pages()["jobman.1"].startswith('.TH JOBMAN 1 1970-01-02 "jobman ')


def test_a_wheel_carries_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook itself; hatchling is there only while something is built."""
    interface = ModuleType("interface")
    monkeypatch.setattr(interface, "BuildHookInterface", {Any: object}, raising=False)
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    for name in ("src", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    build: dict[str, dict[str, str]] = {"shared_data": {}}

    hook.ManualPages.initialize(SimpleNamespace(root=str(tmp_path)), "standard", build)

    assert set(build["shared_data"].values()) == {f"share/man/man1/{name}" for name in PAGES}
    assert all(Path(source).read_text().startswith(".TH ") for source in build["shared_data"])


def test_the_hook_is_called_and_part_of_every_source_distribution() -> None:
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]

    assert "custom" in targets["wheel"]["hooks"]
    assert {"hatch_build.py", "docs", "src"} <= set(targets["sdist"]["include"])
