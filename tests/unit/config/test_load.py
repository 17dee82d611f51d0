"""What configuration says of concurrency, and which source wins (contract, K.1, K.3, K.4 and K.7; D9)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.config import paths
from jobman.config.load import ENVIRONMENT, load, stated_limits
from jobman.errors import ConfigFileError, InvalidConfigError
from jobman.policy.limits import StatedLimits

ALLOWED = "expected a number of slots from 1 to 4294967295, or unlimited"
pytestmark = pytest.mark.usefixtures("sources")  # no test may see the configuration of the machine
KEYS_OF_A_FILE = (
    "schema_version, trusted_project_roots, concurrency, retention, secrets, redaction, wait_conditions, notifiers, "
    "job_specs or profiles"
)
NOTHING = StatedLimits(states_store_wide=False, store_wide=None, pools={})
BAD_LIMITS = (
    *("0", "-1", "+1", "4294967296", "9" * 30, "9" * 5000, "'1'", "0x10", "010", "0b1", "1_000", "1:30", "1.0", "1e3"),
    *("null", "~", "", "true", "[]", "[1]", "{}", "{a: 1}", "Unlimited", "unlimited ever", "!other unlimited", ".inf"),
    *("!other 4", "!!int '4'", "!!int four", "!!str 4", "2026-11-29", "\u0664"),
)
BAD_VALUES = (
    *("", " ", "0", "-1", "+1", "4294967296", "9" * 5000, "0" * 19 + "1" + "9" * 11, "0x10", "1_0", "1.0", " 1", "1\n"),
    *("null", "Unlimited", "'1'", "four", "\u0664", "\udcff"),
)


class Concurrency(NamedTuple):
    """What is stated of concurrency, and by how many sources."""

    limits: StatedLimits
    sources: int


def load_concurrency(explicit: str) -> Concurrency:
    """Return what the sources say of concurrency."""
    configured = load(explicit)
    return Concurrency(stated_limits(configured), configured.sources)


class Sources:
    """The files of a machine with no other configuration."""

    def __init__(self, root: Path) -> None:
        self.system = root / "etc" / "jobman.yml"
        self.user = root / "config" / "jobman" / "jobman.yml"
        self.explicit = root / "explicit.yml"
        for path in (self.system, self.user):
            path.parent.mkdir(parents=True)

    def load(self, text: str) -> Concurrency:
        """Return what an explicit file with this text says."""
        self.explicit.write_text(text)
        return load_concurrency(str(self.explicit))

    def limits(self, concurrency: str) -> StatedLimits:
        """Return what an explicit file with this value of ``concurrency`` says."""
        return self.load(f"concurrency: {concurrency}\n").limits

    def refusal(self, text: str) -> str:
        """Return why an explicit file with this text is refused, without its path."""
        with pytest.raises(InvalidConfigError) as caught:
            self.load(text)
        prefix = f"invalid configuration: {self.explicit}:"
        assert str(caught.value).startswith(prefix)
        return str(caught.value).removeprefix(prefix)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    """No source but those that a test makes."""
    found = Sources(tmp_path)
    monkeypatch.setattr(paths, "SYSTEM_CONFIG", str(found.system))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    return found


def test_without_a_source_nothing_is_stated() -> None:
    assert load_concurrency("") == Concurrency(NOTHING, 1)


def test_without_a_source_two_files_are_asked_for_and_none_is_opened(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1: this is paid by every ``jobman run``."""
    asked = []
    look = os.stat

    def stat(path: str) -> os.stat_result:
        asked.append(path)
        return look(path)

    def refuse(path: object, *_arguments: object) -> int:
        raise AssertionError(path)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "open", refuse)

    load_concurrency("")

    assert asked == [str(sources.system), str(sources.user)]


@pytest.mark.parametrize("text", ["", "schema_version: 1\n", "concurrency: {}\n", "concurrency: {pools: {}}\n"])
def test_a_file_that_states_no_limit_is_a_source_all_the_same(sources: Sources, text: str) -> None:
    assert sources.load(text) == Concurrency(NOTHING, 2)


@pytest.mark.parametrize(
    ("text", "slots"),
    [("1", 1), ("4", 4), ("4294967295", 2**32 - 1), ("unlimited", None), ("'unlimited'", None), ("!!int 4", 4)],
)
def test_a_limit_is_a_number_or_unlimited(sources: Sources, text: str, slots: int | None) -> None:
    limits = sources.limits(f"{{max_active_slots: {text}, pools: {{p: {text}}}}}")

    assert limits == StatedLimits(states_store_wide=True, store_wide=slots, pools={"p": slots})


@pytest.mark.parametrize("text", BAD_LIMITS)
def test_any_other_limit_is_refused_with_its_place_its_key_and_what_is_allowed(sources: Sources, text: str) -> None:
    said = sources.refusal(f"concurrency:\n  max_active_slots: {text}\n")
    assert said.startswith("2:")
    assert said.endswith(f": concurrency.max_active_slots: {ALLOWED}")

    said = sources.refusal(f"concurrency:\n  pools:\n    gpu: {text}\n")
    assert said.startswith("3:")
    assert said.endswith(f": concurrency.pools.gpu: {ALLOWED}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("limits: 1\n", f"1:1: limits: unknown key: expected {KEYS_OF_A_FILE}"),
        ("# a line\nretentoin:\n  max_jobs: 1\n", f"2:1: retentoin: unknown key: expected {KEYS_OF_A_FILE}"),
        (
            "secrets: {a b: 'env:A'}\n",
            "1:11: secrets.a b: expected a name of letters, digits, dots, dashes and underscores, at most 128",
        ),
        ("concurrency: {slots: 1}\n", "1:15: concurrency.slots: unknown key: expected max_active_slots or pools"),
        ("concurrency:\n", "1:13: concurrency: expected a mapping with the keys max_active_slots, pools"),
        ("concurrency: null\n", "1:14: concurrency: expected a mapping with the keys max_active_slots, pools"),
        ("concurrency: 4\n", "1:14: concurrency: expected a mapping with the keys max_active_slots, pools"),
        ("concurrency: []\n", "1:14: concurrency: expected a mapping with the keys max_active_slots, pools"),
        ("concurrency: {pools: null}\n", "1:22: concurrency.pools: expected a mapping"),
        ("concurrency: {pools: [a]}\n", "1:22: concurrency.pools: expected a mapping"),
    ],
)
def test_a_key_or_a_shape_that_is_not_known_is_refused(sources: Sources, text: str, says: str) -> None:
    assert sources.refusal(text) == says


@pytest.mark.parametrize("version", ["2", "0", "'1'", '"1"', "!!int '1'", "1.0", "0x1", "01", "null", "", "[1]", "one"])
def test_the_version_of_the_schema_is_the_plain_integer_one(sources: Sources, version: str) -> None:
    assert sources.refusal(f"schema_version: {version}\n").endswith(": schema_version: expected the integer 1")


@pytest.mark.parametrize("name", ["a", "7", "GPU", "a.b-c_d", "0-", "x" * 128])
def test_names_of_pools_are_words(sources: Sources, name: str) -> None:
    assert sources.limits(f"{{pools: {{'{name}': 2}}}}").pools == {name: 2}


@pytest.mark.parametrize("name", ["-a", ".a", "_a", "a b", "a/b", "ä", "a\u0664", "x" * 129, " a", "*", "a:b"])
def test_any_other_name_of_a_pool_is_refused(sources: Sources, name: str) -> None:
    said = sources.refusal(f"concurrency:\n  pools:\n    '{name}': 2\n")

    assert said.startswith("3:")
    assert f"concurrency.pools.{name}: expected a name of letters, digits, dots, dashes and" in said


def test_a_later_source_wins_over_an_earlier_one(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """K.1: system, user, explicit, environment."""
    seen = []
    sources.system.write_text("concurrency: {max_active_slots: 1}\n")
    seen.append(load_concurrency(""))
    sources.user.write_text("concurrency: {max_active_slots: 2}\n")
    seen.append(load_concurrency(""))
    seen.append(sources.load("concurrency: {max_active_slots: 3}\n"))
    monkeypatch.setenv(ENVIRONMENT, "4")
    seen.append(load_concurrency(str(sources.explicit)))

    assert [(found.limits.store_wide, found.sources) for found in seen] == [(1, 2), (2, 3), (3, 4), (4, 5)]


def test_pools_of_all_sources_are_merged_by_name(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    sources.system.write_text("concurrency: {max_active_slots: 8, pools: {system: 1, shared: 1, opened: 1}}\n")
    sources.user.write_text("concurrency: {pools: {user: 2, shared: 2, opened: unlimited}}\n")
    found = sources.load("concurrency: {pools: {explicit: 3, shared: 3}}\n").limits
    pools = {"system": 1, "user": 2, "explicit": 3, "shared": 3, "opened": None}
    assert found == StatedLimits(states_store_wide=True, store_wide=8, pools=pools)

    monkeypatch.setenv(ENVIRONMENT, "4")
    assert load_concurrency(str(sources.explicit)).limits == StatedLimits(True, 4, pools)


def test_unlimited_is_stated_over_a_limit(sources: Sources) -> None:
    """D9: to say that there is no limit is not to say nothing."""
    sources.user.write_text("concurrency: {max_active_slots: 2}\n")

    assert sources.limits("{max_active_slots: unlimited}") == StatedLimits(True, None, {})
    assert sources.limits("{}") == StatedLimits(True, 2, {})


@pytest.mark.parametrize(
    ("text", "slots"), [("1", 1), ("007", 7), ("4294967295", 2**32 - 1), ("unlimited", None), ("0" * 5000 + "7", 7)]
)
def test_the_environment_states_the_store_wide_limit(
    monkeypatch: pytest.MonkeyPatch, text: str, slots: int | None
) -> None:
    """K.7: digits only, or unlimited."""
    monkeypatch.setenv(ENVIRONMENT, text)

    assert load_concurrency("") == Concurrency(StatedLimits(True, slots, {}), 2)


@pytest.mark.parametrize("text", BAD_VALUES)
def test_any_other_value_of_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(ENVIRONMENT, text)

    with pytest.raises(InvalidConfigError) as caught:
        load_concurrency("")
    assert str(caught.value) == f"invalid configuration: {ENVIRONMENT}: {ALLOWED}"
    assert caught.value.exit_status == 2


def test_other_variables_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBMAN_CONCURRENCY_POOLS", "garbage")

    assert load_concurrency("").sources == 1


def test_an_explicit_file_must_exist(sources: Sources) -> None:
    with pytest.raises(ConfigFileError) as caught:
        load_concurrency(str(sources.explicit))

    assert caught.value.exit_status == 1
    assert str(caught.value) == f"configuration file {sources.explicit}: no such file or directory"


def test_a_system_or_user_file_that_is_there_must_be_valid(sources: Sources) -> None:
    for path in (sources.system, sources.user):
        path.write_text("nonsense: 1\n")
        with pytest.raises(InvalidConfigError, match="unknown key"):
            load_concurrency("")
        path.unlink()


def test_the_user_file_lies_in_the_home_directory_unless_xdg_says_otherwise(
    sources: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """D.2: a relative XDG_CONFIG_HOME counts as none."""
    home = tmp_path / "home" / ".config" / "jobman" / "jobman.yml"
    assert paths.config_files("")[1] == ("user", str(sources.user), False)

    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert paths.config_files("")[1] == ("user", str(home), False)

    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert paths.config_files("")[1] == ("user", str(home), False)


def test_an_empty_home_is_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 14: the root directory is nobody's home."""
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "")

    assert [kind for kind, _, _ in paths.config_files("x.yml")] == ["system", "explicit"]


def test_without_home_the_user_database_says_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME")
    home = pwd.getpwuid(os.getuid()).pw_dir

    assert paths.config_files("")[1] == ("user", f"{home}/.config/jobman/jobman.yml", False)


SCALARS = st.one_of(
    st.integers(-2, 2**33), st.sampled_from(["unlimited", "null", "'4'", "[]", "{}", "~", "yes", "!x 1"])
)
KEYS = st.sampled_from(["max_active_slots", "pools", "pool", "'4'", "4", "a b", "-", "{a: 1}"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stated=SCALARS, pools=st.lists(st.tuples(KEYS, SCALARS), max_size=3), extra=KEYS)
def test_a_file_is_read_or_refused_and_what_is_read_are_limits(
    sources: Sources, stated: object, pools: list[tuple[str, object]], extra: str
) -> None:
    named = ", ".join(f"{name}: {slots}" for name, slots in pools)
    # The last key is unknown, no text, or given twice.
    with pytest.raises(InvalidConfigError):
        sources.limits(f"{{max_active_slots: {stated}, pools: {{{named}}}, {extra}: 1}}")
    try:
        limits = sources.limits(f"{{max_active_slots: {stated}, pools: {{{named}}}}}")
    except InvalidConfigError:
        return
    for capacity in (limits.store_wide, *limits.pools.values()):
        assert capacity is None or 1 <= capacity < 2**32
