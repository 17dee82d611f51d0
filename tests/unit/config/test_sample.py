"""The sample of a configuration file says nothing that is not true, as shipped and with everything put in force."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from jobman.config import paths
from jobman.config.load import VARIABLES, load
from jobman.config.schema import json_schema
from jobman.errors import InvalidConfigError

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "examples" / "jobman.yml"
PAGE = (ROOT / "docs" / "reference" / "configuration.md").read_text()
SYSTEM_CONFIG = paths.SYSTEM_CONFIG


@pytest.fixture(autouse=True)
def _no_other_source(no_source: Path) -> None:
    """No test here may see the configuration of the machine."""


def uncommented() -> str:
    """Return the sample with every key in force; prose has a space after its hash."""
    return re.sub(r"^( *)#(?! |$)", r"\1", SAMPLE.read_text(), flags=re.MULTILINE)


def read_sample() -> Any:
    """Return the sample with every key in force, times as text."""
    return yaml.safe_load(re.sub(r"(\S+Z)$", r"'\1'", uncommented(), flags=re.MULTILINE))


def keys_of(schema: dict[str, Any]) -> Iterator[str]:
    """Yield every key that a configuration file may have, names of the user's aside."""
    for block in (schema, *schema["$defs"].values()):
        yield from block["properties"]


def test_the_sample_states_nothing_as_shipped() -> None:
    assert load(str(SAMPLE)).stated == {"schema_version": 1}


def test_the_sample_is_valid_with_every_line_uncommented(tmp_path: Path) -> None:
    file = tmp_path / "sample.yml"
    file.write_text(uncommented())

    stated = load(str(file)).stated

    assert stated["concurrency"] == {"max_active_slots": 16, "pools": {"gpu": 4, "licence": 1, "batch": "unlimited"}}
    assert set(stated["notifiers"]) == {"script", "chat", "letter"}


def test_the_sample_keeps_the_schema_for_editors() -> None:
    """JSON knows no dates: an editor sees the text."""
    document = read_sample()
    Draft202012Validator.check_schema(json_schema())

    assert [error.message for error in Draft202012Validator(json_schema()).iter_errors(document)] == []


def test_every_key_is_in_the_sample_and_on_the_page() -> None:
    sample, keys = uncommented(), sorted(set(keys_of(json_schema())))

    assert len(keys) > 70
    assert [key for key in keys if not re.search(rf"(^|[ {{]){key}:", sample, re.MULTILINE)] == []
    assert [key for key in keys if not re.search(rf"`([a-z_]+\.)*{key}(\.[a-z_]+)*`", PAGE)] == []


def paths_below(blocks: dict[str, Any], name: str, before: str) -> Iterator[str]:
    """Yield the keys of a block with those above them, ``stop.grace_period``, as far as they are not the user's."""
    for key, value in blocks[name]["properties"].items():
        inner = value.get("$ref", "").rpartition("/")[2]
        yield from paths_below(blocks, inner, f"{before}{key}.") if inner else (f"{before}{key}",)


@pytest.mark.parametrize(
    ("section", "definition", "before"),
    [
        ("Limits", "Concurrency", "concurrency."),
        ("Retention", "Retention", "retention."),
        ("Redaction", "Redaction", "redaction."),
        ("Wait conditions", "WaitCondition", ""),
        ("Notifiers", "Notifier", ""),
        ("Job specs", "JobSpec", ""),
    ],
)
def test_every_key_has_a_row_in_its_section(section: str, definition: str, before: str) -> None:
    """The same name means different things in different places: `timeout` of a probe is not that of a notifier."""
    text = PAGE.partition(f"\n### {section}\n")[2].partition("\n##")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    rows = set(re.findall("`([^`]*)`", " ".join(cells)))

    paths = list(paths_below(json_schema()["$defs"], definition, before))
    # A row may be of a whole block, such as an environment.
    assert [path for path in paths if not rows & {path, path.rpartition(".")[0]}] == []


def test_every_variable_and_the_system_file_are_on_the_page() -> None:
    assert [name for name in (*VARIABLES, SYSTEM_CONFIG) if f"`{name}`" not in PAGE] == []


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value, the document aside."""
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in pairs:
        yield from places(member, (*path, key))


def replaced(value: Any, path: tuple[str | int, ...], by: object) -> Any:
    """Return a document with another value at one place."""
    if not path:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


def test_no_value_of_the_sample_can_be_a_fraction_or_nothing_and_the_key_is_named(tmp_path: Path) -> None:
    """No key takes anything it should not, and each refusal says where."""
    file, document = tmp_path / "jobman.yml", read_sample()
    for path in places(document):
        # What is nothing is no value either, but for stdin, where it is a word.
        by = 1.5 if path[-1] == "stdin" or len(path) % 2 else None
        file.write_text(json.dumps(replaced(document, path, by)))
        with pytest.raises(InvalidConfigError) as caught:
            load(str(file))
        keys = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        assert f": {keys[1:]}: expected " in str(caught.value)
