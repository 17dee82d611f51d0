"""Documents say what the code does: no command, flag, status or word is missing, and no link leads nowhere."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import jobman
from jobman import errors
from jobman.cli import flags
from jobman.cli.help import EXITS
from jobman.model import state

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STATES = (DOCS / "guide" / "states.md").read_text()
COMMANDS = (DOCS / "reference" / "commands.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
VOCABULARY = (
    state.JobPhase,
    state.JobOutcome,
    state.RunPhase,
    state.RunOutcome,
    state.Reason,
    state.Diagnostic,
)


def generator() -> ModuleType:
    """Return ``docs/generate.py`` as a module."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables() -> Iterator[type[flags.Command]]:
    """Yield every command but the root."""
    for verb in flags.verbs():
        command = flags.load(verb)
        yield command
        yield from command.subcommands


def section(command: type[flags.Command]) -> str:
    """Return what the page of commands says of one."""
    _, heading, rest = COMMANDS.partition(f"# `jobman {' '.join(command.path)}`\n")
    assert heading, f"there is no section on {command.path}"
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def statuses() -> set[int]:
    """Return every exit status that an error stands for."""
    conditions = [value for value in vars(errors).values() if isinstance(value, type)]
    return {0, *(value.exit_status for value in conditions if issubclass(value, errors.JobmanError))}


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_the_page_of_commands_is_what_the_tables_say() -> None:
    assert generator().page() == COMMANDS, "run: make docs"


@pytest.mark.parametrize("command", list(tables()), ids=lambda command: " ".join(command.path))
def test_every_command_flag_and_exit_status_is_on_the_page_of_commands(command: type[flags.Command]) -> None:
    text = section(command)

    for line in command.synopsis:
        assert f"jobman {line}" in text
    for _, group in command.groups:
        for flag in group:
            assert re.search(rf"^\| `(-\w, )?--{flag.name}\b", text, re.MULTILINE), flag.name
    for status in command.exits:
        assert f"`{status}`" in text


def test_every_persistent_flag_is_on_the_page_of_commands() -> None:
    root = COMMANDS.partition("## `jobman run`")[0]

    assert all(f"--{flag.name}" in root for flag in flags.PERSISTENT)


@pytest.mark.parametrize("status", sorted(statuses() | set(EXITS)))
def test_every_exit_status_is_explained(status: int) -> None:
    assert f"\n| `{status}` | " in STATES


@pytest.mark.parametrize("word", sorted({word.value for kind in VOCABULARY for word in kind}))
def test_every_phase_outcome_reason_and_diagnostic_is_explained(word: str) -> None:
    assert f"`{word}`" in STATES


@pytest.mark.parametrize("word", [word.value for kind in (state.LogIntegrity, state.RecordingHealth) for word in kind])
def test_every_word_about_a_record_is_explained(word: str) -> None:
    assert f"| `{word}` | " in (DOCS / "guide" / "logs.md").read_text()


@pytest.mark.parametrize("page", sorted(DOCS.glob("guide/*.md")), ids=lambda page: page.name)
def test_guides_speak_of_no_flag_that_is_not_there(page: Path) -> None:
    commands: list[type[flags.Command]] = [flags.Root, *tables()]
    known = {flag.name for command in commands for flag in flags.flags_of(command)}
    mentioned = set(re.findall(r"--([a-z][a-z-]*[a-z])", page.read_text()))

    assert mentioned <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_readme_shows_the_example_that_is_run() -> None:
    story = (ROOT / "examples" / "pipeline" / "run.sh").read_text()
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"^\$ (.*)$", readme, re.MULTILINE)

    assert "make demo" in readme
    assert "make test" in readme
    assert len(shown) > 5
    for command in shown:
        assert command in story


def test_every_page_can_be_found_from_the_first() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name in ("guide", "reference")]

    assert [page.name for page in pages if f"]({page.relative_to(DOCS)})" not in index] == []


@pytest.mark.parametrize("target", ["demo", "shards", "test", "faults", "check", "bench", "docs"])
def test_every_target_for_developers_is_explained(target: str) -> None:
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()
    assert f"\nmake {target} " in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert f"\n## [{jobman.__version__}]\n" in (ROOT / "CHANGELOG.md").read_text()


def test_every_decision_is_listed() -> None:
    listed = (DOCS / "adr" / "README.md").read_text()

    assert [record.name for record in sorted(DOCS.glob("adr/0*.md")) if f"]({record.name})" not in listed] == []
