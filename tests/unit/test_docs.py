"""Documents say what the code does: no command, flag, status or word is missing, and no link leads nowhere.

The keys of a configuration are held by ``tests/unit/config/test_sample.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import jobman
from docs import generate, site_hooks
from jobman import errors
from jobman.cli import flags
from jobman.cli.help import EXITS
from jobman.model import state

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
STATES = (DOCS / "guide" / "states.md").read_text()
REFERENCE = DOCS / "reference"
COMMANDS = (REFERENCE / "commands.md").read_text()
SCHEMAS = {path.name.removesuffix(".schema.json") for path in REFERENCE.glob("schemas/*.json")} - {"common"}
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def section(command: type[flags.Command]) -> str:
    """Return what the page of commands says of one."""
    _, heading, rest = COMMANDS.partition(f"# `jobman {' '.join(command.path)}`\n")
    assert heading, f"there is no section on {command.path}"
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def statuses() -> set[int]:
    """Return every exit status that an error stands for."""
    conditions = [value for value in vars(errors).values() if isinstance(value, type)]
    return {0, *(value.exit_status for value in conditions if issubclass(value, errors.JobmanError))}


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(generate.pages()))
def test_every_generated_page_is_what_the_code_says(name: str) -> None:
    assert generate.pages()[name] == (REFERENCE / name).read_text(), "run: make reference"


@pytest.mark.parametrize("command", list(flags.tables()), ids=lambda command: " ".join(command.path))
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
    assert f"\n| `{status}` | " in (REFERENCE / "exit-statuses.md").read_text()


@pytest.mark.parametrize("word", [word.value for kind in (state.JobPhase, state.JobOutcome) for word in kind])
def test_every_phase_and_outcome_of_a_job_is_explained(word: str) -> None:
    assert f"\n| `{word}` | " in STATES


@pytest.mark.parametrize("word", sorted({word.value for kind in (state.RunPhase, state.RunOutcome) for word in kind}))
def test_every_phase_and_outcome_of_a_run_is_named(word: str) -> None:
    assert f"`{word}`" in STATES.partition("\n## Runs\n")[2]


@pytest.mark.parametrize("word", sorted({word.value for kind in (state.Reason, state.Diagnostic) for word in kind}))
def test_every_reason_and_diagnostic_is_explained(word: str) -> None:
    rows = re.findall(r"^\| (`.*?) \|", (REFERENCE / "diagnostics.md").read_text(), re.MULTILINE)

    assert any(f"`{word}`" in row for row in rows)


def test_every_json_document_is_explained() -> None:
    documents = (REFERENCE / "documents.md").read_text()

    assert [name for name in sorted(SCHEMAS) if f"\n## `{name}`\n" not in documents] == []


def test_every_command_that_prints_json_has_a_schema() -> None:
    for command in flags.tables():
        if any(flag.name == "json" for flag in flags.flags_of(command)):
            name = "-".join(command.path)
            assert {name, f"{name}-job"} & SCHEMAS, command.path


@pytest.mark.parametrize("word", [word.value for kind in (state.LogIntegrity, state.RecordingHealth) for word in kind])
def test_every_word_about_a_record_is_explained(word: str) -> None:
    assert f"| `{word}` | " in (DOCS / "guide" / "logs.md").read_text()


@pytest.mark.parametrize("page", sorted(DOCS.glob("guide/*.md")), ids=lambda page: page.name)
def test_guides_speak_of_no_flag_that_is_not_there(page: Path) -> None:
    commands: list[type[flags.Command]] = [flags.Root, *flags.tables()]
    known = {flag.name for command in commands for flag in flags.flags_of(command)}
    mentioned = set(re.findall(r"--([a-z][a-z-]*[a-z])", page.read_text()))

    assert mentioned <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_readme_shows_the_example_that_is_run() -> None:
    story = (ROOT / "examples" / "pipeline" / "run.sh").read_text()
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"^\$ (.*jobman .*)$", readme, re.MULTILINE)

    assert "make demo" in readme
    assert "make test" in readme
    assert len(shown) > 5
    for command in shown:
        assert command in story


def test_every_page_can_be_found_from_the_first() -> None:
    index = (DOCS / "index.md").read_text()
    pages = [page for page in DOCS.rglob("*.md") if page.parent.name != "adr" and page.name != "index.md"]

    assert [page.name for page in pages if f"]({page.relative_to(DOCS)})" not in index] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = str(site_hooks.navigation())

    assert [page.name for page in DOCS.rglob("*.md") if f"'{page.relative_to(DOCS)}'" not in listed] == []


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_links_of_the_site_stay_in_it(page: Path) -> None:
    """What ``mkdocs build --strict`` would refuse, without the site."""
    for target in re.findall(r"\]\(([^)#]+)", site_hooks.on_page_markdown(prose(page))):
        if not target.startswith("https://"):
            found = (page.parent / target).resolve().relative_to(DOCS)
            assert (ROOT / found if found.parts[0] == "examples" else DOCS / found).is_file(), target


@pytest.mark.parametrize("target", ["demo", "shards", "test", "faults", "fuzz", "check", "bench", "docs", "reference"])
def test_every_target_for_developers_is_explained(target: str) -> None:
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()
    assert f"\nmake {target} " in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_changelog_has_an_entry_for_this_version() -> None:
    assert f"\n## [{jobman.__version__}]\n" in (ROOT / "CHANGELOG.md").read_text()


def test_every_decision_is_listed() -> None:
    listed = (DOCS / "adr" / "README.md").read_text()

    assert [record.name for record in sorted(DOCS.glob("adr/0*.md")) if f"]({record.name})" not in listed] == []
