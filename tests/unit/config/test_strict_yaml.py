"""What a configuration file may look like (contract, K.1), and that every other one is refused with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.config import strict_yaml
from jobman.config.strict_yaml import MAX_BYTES, MAX_DEPTH, MAX_NODES, Value, read
from jobman.errors import ConfigFileError, InvalidConfigError

LOADERS = [strict_yaml._LOADER, yaml.SafeLoader]


@pytest.fixture(params=LOADERS, ids=lambda loader: loader.__name__)
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser in C, and the one that is used where PyYAML was built without it."""
    monkeypatch.setattr(strict_yaml, "_LOADER", request.param)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a configuration file."""
    return tmp_path / "jobman.yml"


def reading(file: Path, content: str | bytes) -> Value:
    """Return what is read from a file with this content."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(str(file))


def refusal(file: Path, content: str | bytes) -> str:
    """Return why a file with this content is refused, without the path of the file."""
    with pytest.raises(InvalidConfigError) as caught:
        reading(file, content)
    assert caught.value.exit_status == 2
    message = str(caught.value)
    assert message.startswith(f"invalid configuration: {file}:")
    return message.removeprefix(f"invalid configuration: {file}:")


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("content", ["", "\n", "# nothing yet\n", "{}", "%YAML 1.1\n---\n{}\n"])
def test_an_empty_file_is_an_empty_mapping(file: Path, content: str) -> None:
    assert reading(file, content).members == {}


@pytest.mark.usefixtures("_parser")
def test_every_value_knows_its_place(file: Path) -> None:
    document = reading(file, "a: 1\nb:\n  c: [x, 'y']\n")

    assert document.members["a"].where == f"{file}:1:4"
    items = document.members["b"].members["c"].items
    assert [(item.text, item.where, item.plain) for item in items] == [
        ("x", f"{file}:3:7", True),
        ("y", f"{file}:3:10", False),
    ]


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_what_yaml_calls_text_is_read(file: Path, encoding: str) -> None:
    assert reading(file, "größe: 1\n".encode(encoding)).members["größe"].text == "1"


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1: the key 'a' is given twice"),
        ("a: 1\nb: {c: 1, c: 2}\n", "2:11: the key 'c' is given twice"),
        ("a: 1\n'a': 2\n", "2:1: the key 'a' is given twice"),
        ('"x\\ny": 1\n"x\\ny": 1\n', r"2:1: the key 'x\ny' is given twice"),
        ("a: &here 1\n", "1:4: anchors and aliases are not allowed"),
        ("a: &here {}\n", "1:4: anchors and aliases are not allowed"),
        ("a: 1\nb: *here\n", "2:4: anchors and aliases are not allowed"),
        ("a: ! 07\n", "1:4: a tag without a name is not allowed"),
        ("! a: 1\n", "1:1: a tag without a name is not allowed"),
        ("<<: {a: 1}\n", "1:1: merge keys are not allowed"),
        ("a:\n  <<: {b: 1}\n", "2:3: merge keys are not allowed"),
        ("a: 1\n---\nb: 2\n", "2:1: a second document begins here, and only one is allowed"),
        ("---\n---\n", "2:1: a second document begins here, and only one is allowed"),
        ("- a\n", "1:1: expected a mapping"),
        ("a\n", "1:1: expected a mapping"),
        ("null\n", "1:1: expected a mapping"),
        ("!other {a: 1}\n", "1:1: expected a mapping"),
        ("4: 2\n", "1:1: keys must be text; a number or a word like yes needs quotes"),
        ("a: {yes: 2}\n", "1:5: keys must be text; a number or a word like yes needs quotes"),
        ("? [a]\n: 1\n", "1:3: keys must be text; a number or a word like yes needs quotes"),
        ("'': 1\n", "1:1: keys must be text; a number or a word like yes needs quotes"),
        ("~: 1\n", "1:1: keys must be text; a number or a word like yes needs quotes"),
        (b"a: 1\nb: \xff\n", "2:4: is not text that YAML allows: "),
        (b"a: 1\nb: \0\n", "2:4: is not text that YAML allows: "),
        ("a: b: c\n", "1:5: mapping values are not allowed"),
        ("\ta: 1\n", "1:1: found character "),
        (
            "a: 1\nb: x\u2028c: 2\n",
            r"2:5: U+2028 would end the line here: in text it is written \u2028, in double quotes",
        ),
        ("a: 'x\u2029y'\n", r"1:6: U+2029 would end the line here: in text it is written \u2029"),
        ("a: 1  #\x85b: 2\n", r"1:8: U+0085 would end the line here: in text it is written \x85"),
        ("a: 1\u2028b: 2\n".encode("utf-16"), "1:5: U+2028 would end the line here"),
        ("a: 1  # c\rb: 2\n", r"1:10: a carriage return without a line feed would end the line here"),
        ("a: 1\r\n\rb: 2\r\n", r"2:1: a carriage return without a line feed would end the line here"),
        ("a: 1\nb: '\\ud83d'\n".replace("'", '"'), "2:"),
        ('"\\udcff": 1\n', "1:"),
        ("%YAML 9.9\n---\na: 1\n", "1:1: found incompatible YAML document"),
    ],
)
def test_what_is_not_allowed_is_refused_with_line_and_column(file: Path, content: str | bytes, says: str) -> None:
    assert refusal(file, content).startswith(says)


@pytest.mark.usefixtures("_parser")
@pytest.mark.parametrize("content", ["a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2\r", 'a: "1"\nb: "2\\r"\n'])
def test_a_carriage_return_may_stand_before_a_line_feed_at_the_end_and_in_an_escape(file: Path, content: str) -> None:
    assert [value.text.strip() for value in reading(file, content).members.values()] == ["1", "2"]


@pytest.mark.usefixtures("_parser")
def test_a_character_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(InvalidConfigError):
        reading(file, r'a: "\UFFFFFFFF"')


@pytest.mark.usefixtures("_parser")
def test_nesting_has_a_limit(file: Path) -> None:
    deepest = MAX_DEPTH - 1
    assert reading(file, "a: " + "[" * deepest + "]" * deepest)

    assert f"is nested deeper than {MAX_DEPTH} levels" in refusal(file, "a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_a_file_that_is_nothing_but_nesting_overflows_no_stack(file: Path, opening: str) -> None:
    """Composing recurses, in C too: a limit that is looked at afterwards would never be reached."""
    assert "deep" in refusal(file, opening * 100_000) or "nesting" in refusal(file, opening * 100_000)


@pytest.mark.usefixtures("_parser")
def test_the_number_of_values_has_a_limit(file: Path) -> None:
    # The mapping, its key, and the list are values too.
    assert reading(file, "a: [" + "1," * (MAX_NODES - 3) + "]")

    assert f"has more than {MAX_NODES} values" in refusal(file, "a: [" + "1," * (MAX_NODES - 2) + "]")


def test_the_size_has_a_limit(file: Path) -> None:
    assert reading(file, b"#" * MAX_BYTES).members == {}

    file.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(InvalidConfigError, match=f"is larger than {MAX_BYTES} bytes"):
        read(str(file))


def test_a_missing_file_is_no_matter_of_content(file: Path) -> None:
    with pytest.raises(ConfigFileError, match="no such file or directory") as caught:
        read(str(file))

    assert caught.value.exit_status == 1


def test_what_is_no_regular_file_is_refused_without_waiting(file: Path) -> None:
    """K.1: opening a FIFO would wait for a writer that never comes."""
    os.mkfifo(file)
    before = os.listdir("/proc/self/fd")
    for path in (str(file), "/dev/null", str(file.parent)):
        with pytest.raises(ConfigFileError, match=r"is not a regular file|is a directory") as caught:
            read(path)
        assert caught.value.exit_status == 1
    assert os.listdir("/proc/self/fd") == before


def test_a_symbolic_link_to_a_file_is_followed(file: Path) -> None:
    (file.parent / "target.yml").write_text("a: 1\n")
    file.symlink_to("target.yml")

    assert read(str(file)).members["a"].text == "1"


FRAGMENTS = st.sampled_from(
    (
        *(
            "a: 1\n",
            "- x\n",
            "[",
            "]",
            "{",
            "}",
            "&a ",
            "*a",
            "<<: ",
            "? ",
            ": ",
            "---\n",
            "...\n",
            "%TAG ! x:\n",
            "!!int ",
        ),
        *(
            '"\\ud800"',
            '"\\UFFFFFFFF"',
            "'",
            '"',
            "|2\n",
            ">\n",
            "  ",
            "\t",
            "#",
            "\n",
            "\r",
            "\x85",
            "\ufeff",
            "\0",
            "é",
        ),
    )
)
TEXTS = st.lists(FRAGMENTS, max_size=20).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass"))


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=40), TEXTS), loader=st.sampled_from(LOADERS))
def test_no_bytes_give_anything_but_a_mapping_or_a_refusal(
    file: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, loader: object
) -> None:
    monkeypatch.setattr(strict_yaml, "_LOADER", loader)
    try:
        document = reading(file, data)
    except InvalidConfigError as error:
        where = str(error.fields["where"])
    else:
        where = document.where
        assert all(document.members)
    assert where.startswith(str(file))
