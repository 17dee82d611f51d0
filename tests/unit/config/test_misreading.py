"""What a text means is what everybody reads there, in a configuration and in a flag; or it is refused (D15).

The targets of ``make fuzz`` hold every reader of text to a grammar that was written a second time (`fuzz.grammar`).
Here they read what fuzzing began with and has found, and what Hypothesis makes up.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import grammar
from fuzz.seeds import SEEDS, TRICKY, UNUSUAL
from fuzz.targets import PLACES, REFUSED, TARGETS, quoted, stated_at
from jobman.errors import InvalidValueError
from jobman.model.scalars import parse_duration, parse_size

PLAIN = st.sampled_from(TRICKY) | st.text("0123456789._+-xXeobBKiMhmswdTZ:", min_size=1, max_size=8)
ANY = st.sampled_from((*TRICKY, *UNUSUAL)) | st.text(max_size=8)


@pytest.mark.parametrize("name", TARGETS)
def test_what_fuzzing_has_found_is_read_as_it_is_meant(name: str) -> None:
    for data in SEEDS[name]:
        TARGETS[name](data)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("document", PLACES)
@given(text=PLAIN)
def test_without_quotes_a_scalar_is_what_it_looks_like_or_refused(tmp_path: Path, document: str, text: str) -> None:
    """Neither octal, nor hexadecimal, nor base 60, nor yes for true; a colon or a dash may be of YAML's own grammar."""
    looks = PLACES[document][0](text)
    assert stated_at(str(tmp_path / "jobman.yml"), document, text) in (REFUSED, looks)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("document", PLACES)
@given(text=ANY)
def test_in_quotes_a_text_means_what_it_means_to_the_flags(tmp_path: Path, document: str, text: str) -> None:
    means = PLACES[document][1](text)
    assert stated_at(str(tmp_path / "jobman.yml"), document, quoted(text)) == means


def test_what_is_plain_is_not_refused(tmp_path: Path) -> None:
    for document, text in zip(PLACES, ("1.5d", "10", "4KiB", "true", "a", "2027-01-01T00:00:00Z"), strict=True):
        assert stated_at(str(tmp_path / "jobman.yml"), document, text) == PLACES[document][0](text) != REFUSED


@pytest.mark.parametrize(
    ("text", "nanoseconds"), [(".5d", 43_200 * 10**9), ("0", 0), ("07s", 7 * 10**9), ("1_000s", None), ("0x10s", None)]
)
def test_the_second_grammar_says_what_the_documentation_says(text: str, nanoseconds: int | None) -> None:
    """Both could be wrong in the same way, if nothing held either to a number."""
    assert grammar.duration(text) == nanoseconds
    if nanoseconds is not None:
        assert parse_duration(text) == nanoseconds
    else:
        with pytest.raises(InvalidValueError):
            parse_duration(text)
    assert (grammar.size("4KiB"), parse_size("4KiB")) == (4096, 4096)
    assert grammar.instant("1970-01-01T00:00:01.5Z") == 1_500_000_000
    assert (grammar.integer("0x_1f"), grammar.integer("010"), grammar.integer("-1_000")) == (31, 8, -1000)
    assert (grammar.exit_codes("1,2"), grammar.run_number("-1"), grammar.run_number("0")) == ((1, 2), -1, None)
