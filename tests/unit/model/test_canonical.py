"""Reading and writing JSON with the C module behind ``json``: the same as with ``json``, without loading it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobman.model import canonical

TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
PLAIN = st.none() | st.booleans() | st.integers() | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))
NO_JSON = ["", " ", "{", "[1,]", '{"a" 1}', "[1] x", "nope", '"\n"', "[" * 100_000]


@settings(max_examples=40)
@given(VALUES)
def test_what_is_dumped_is_loaded_again(value: object) -> None:
    assert canonical.load(canonical.dump(value)) == value


@pytest.mark.parametrize("text", [" [1] ", '{"a":{"b":2},"a":3}', "-1.5e3", '"\\ud800"'])
def test_other_json_is_loaded_as_json_does(text: str) -> None:
    assert canonical.load(text) == json.loads(text)
    pairs: Any = list
    assert canonical.load(text, pairs) == json.loads(text, object_pairs_hook=pairs)


@pytest.mark.parametrize("text", NO_JSON, ids=[text[:8] for text in NO_JSON])
def test_what_is_no_json_is_refused_as_json_does(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as expected:
        json.loads(text)
    with pytest.raises(expected.type) as found:
        canonical.load(text)
    assert str(found.value) == str(expected.value)


def test_an_interpreter_without_the_c_module_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("_json.make_scanner")

    assert canonical.load('{"a":[1]}') == {"a": [1]}


def test_json_is_loaded_only_to_say_what_is_wrong() -> None:
    """CPython 3.11 has no exception for what its scanner cannot read while ``json`` is not there."""
    program = """
import sys
from jobman.model.canonical import dump, load
assert load(dump({"a": [1, None]})) == {"a": [1, None]}
print("json" in sys.modules)
try:
    load('{"a" 1}')
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["False", "Expecting ':' delimiter: line 1 column 6 (char 5)"]
