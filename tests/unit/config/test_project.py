"""A project's file counts only where the user trusts the project (contract, K.1 and K.2; O.63)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.config.load import load
from jobman.config.report import with_origins
from jobman.errors import ConfigFileError, InvalidConfigError
from jobman.testing import FakeClock


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_source: Path) -> Path:
    """A project with a file, in whose subdirectory we are, and a user's file that trusts it."""
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / ".jobman.yml").write_text("concurrency: {pools: {project: 1, shared: 1}}\n")
    no_source.parent.mkdir(parents=True)
    no_source.write_text(f"trusted_project_roots: [{root}]\nconcurrency: {{pools: {{user: 2, shared: 2}}}}\n")
    monkeypatch.chdir(root / "sub")
    return root


def pools(explicit: str = "", **options: object) -> dict[str, int]:
    """Return the pools that are configured."""
    state = str(options.get("state", ""))
    found: dict[str, int] = load(explicit, state, FakeClock()).stated["concurrency"]["pools"]
    return found


def test_a_trusted_project_stands_between_the_user_and_the_explicit_file(project: Path, tmp_path: Path) -> None:
    assert pools() == {"user": 2, "project": 1, "shared": 1}

    explicit = tmp_path / "explicit.yml"
    explicit.write_text("concurrency: {pools: {shared: 3}}\n")
    assert pools(str(explicit))["shared"] == 3
    assert load(str(explicit)).sources == 4
    assert [source["kind"] for source in with_origins(str(explicit))["sources"]] == [
        *("built-in", "user", "project", "explicit")
    ]
    assert project.exists()


def test_an_untrusted_project_is_skipped_silently(project: Path, no_source: Path) -> None:
    no_source.write_text("concurrency: {pools: {user: 2}}\n")

    assert pools() == {"user": 2}
    (project / ".jobman.yml").write_text("{broken")
    assert pools() == {"user": 2}


def test_the_nearest_trusted_one_counts(project: Path, no_source: Path) -> None:
    nested = project / "sub" / ".jobman.yml"
    nested.write_text("concurrency: {pools: {nested: 1}}\n")
    assert "nested" not in pools(), "sub is not trusted itself"

    no_source.write_text(f"trusted_project_roots: [{project}, {project / 'sub'}]\n")
    assert pools() == {"nested": 1}


def test_links_are_resolved_on_both_sides(
    project: Path, no_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    no_source.write_text(f"trusted_project_roots: [{link}]\n")
    monkeypatch.chdir(link / "sub")

    assert pools() == {"project": 1, "shared": 1}


def test_what_is_remembered_knows_projects_apart(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory outside the project does not see it, whoever came first."""
    state = tmp_path / "state"
    state.mkdir()
    for _ in range(2):
        monkeypatch.chdir(project / "sub")
        assert "project" in pools(state=state)
        monkeypatch.chdir(tmp_path)
        assert "project" not in pools(state=state)


def test_the_file_of_the_project_given_with_config_is_read_once(project: Path) -> None:
    assert load(str(project / ".jobman.yml")).sources == 3


def test_a_root_that_does_not_exist_is_an_error(project: Path, no_source: Path) -> None:
    no_source.write_text(f"trusted_project_roots: [{project}/none]\n")

    with pytest.raises(ConfigFileError, match="none: trusted project root: no such file or directory") as caught:
        load("")
    assert caught.value.exit_status == 1


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling"])
def test_what_is_called_like_a_project_file_must_be_a_regular_file(project: Path, kind: str) -> None:
    path = project / "sub" / ".jobman.yml"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")

    with pytest.raises(ConfigFileError, match="is not a regular file"):
        load("")


def test_neither_the_project_nor_the_system_may_say_whom_to_trust(project: Path, tmp_path: Path) -> None:
    (project / ".jobman.yml").write_text("trusted_project_roots: [/]\n")
    with pytest.raises(InvalidConfigError, match=r"\.jobman\.yml:1:24: trusted_project_roots: only the user's file"):
        load("")

    (project / ".jobman.yml").write_text("")
    system = tmp_path / "etc" / "jobman.yml"
    system.parent.mkdir()
    system.write_text("trusted_project_roots: [/]\n")
    with pytest.raises(InvalidConfigError, match="only the user's file"):
        load("")


def test_a_directory_that_is_gone_has_no_project(project: Path) -> None:
    """Field case 16."""
    (project / "sub").rmdir()

    assert pools() == {"user": 2, "shared": 2}
