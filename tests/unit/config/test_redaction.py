"""What must not be shown is not, keeps its type, and costs no time whatever a pattern says (contract, K.8; O.2)."""

from __future__ import annotations

import time

import pytest

from jobman.config.redaction import REDACTED, Redactor

TEXTS = ("caf\u00e9 sk-abcd", "\udcff sk-abcd", "\ud800 sk-abcd", "\u2028 sk-abcd")
STATED = {"names": ["Owner"], "patterns": ["sk-[a-z0-9]{4,}", "z*", "(a+)+$"]}


def test_names_hide_values_of_any_type_and_keep_it() -> None:
    value = {"owner": ["x"], "OWNER": {"a": 1}, "owners": "x", "api_token": "x", "My-Cookie": 3, "secret": True}

    assert Redactor(STATED).value(value) == {
        "owner": [],
        "OWNER": {},
        "owners": "x",
        "api_token": REDACTED,
        "My-Cookie": 0,
        "secret": False,
    }
    assert Redactor().value({"owner": "x", "password": None}) == {"owner": "x", "password": None}


def test_patterns_hide_what_they_match_everywhere_else() -> None:
    hide = Redactor(STATED)

    assert hide.value({"argv": ["--key", "sk-abcd1 sk-ef", 3]}) == {"argv": ["--key", f"{REDACTED} sk-ef", 3]}
    assert hide.text("before sk-00000, after") == f"before {REDACTED}, after"
    assert hide.text("plain") == "plain", "what matches nothing hides nothing"
    assert hide.text("x", "Owner") == REDACTED
    assert hide.text("", "Owner") == ""


@pytest.mark.parametrize("text", TEXTS)
def test_text_that_is_no_ascii_or_no_text_at_all_passes(text: str) -> None:
    assert Redactor(STATED).text(text) == text.replace("sk-abcd", REDACTED)


def test_no_pattern_takes_longer_than_its_text() -> None:
    """A backtracking engine would need 2**100000 steps here."""
    began = time.process_time()

    Redactor(STATED).text("a" * 100_000 + "!")

    assert time.process_time() - began < 5
