"""The models say what the model does without them, and what `config show` prints is a configuration again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from jobman.config.leaves import EVENTS
from jobman.config.report import effective, with_origins
from jobman.config.schema import Configuration, validated
from jobman.errors import ConfigFileError, InvalidConfigError

pytestmark = pytest.mark.usefixtures("no_source")
DEFAULTS = {
    "schema_version": 1,
    "trusted_project_roots": [],
    "concurrency": {"max_active_slots": "unlimited", "pools": {}},
    "retention": {
        "completed_metadata_max_age": "unlimited",
        "completed_log_max_age": "720h0m0s",
        "max_jobs": "unlimited",
        "max_runs_per_job": "unlimited",
        "max_log_bytes_per_job": "unlimited",
        "max_total_log_bytes": "unlimited",
    },
    "secrets": {},
    "redaction": {"names": [], "patterns": []},
    "wait_conditions": {},
    "notifiers": {},
    "job_specs": {},
    "profiles": {},
}


def test_the_defaults_are_those_of_the_contract() -> None:
    assert effective("") == DEFAULTS
    assert len(EVENTS) == 15


def test_what_is_shown_can_be_configured_again(tmp_path: Path) -> None:
    file = tmp_path / "a.yml"
    file.write_text("job_specs: {a: {command: [x], delay: {initial: 90s}}}\nprofiles: {p: {overrides: {name: n}}}\n")
    shown = effective(str(file))

    assert shown["job_specs"]["a"]["delay"]["initial"] == "1m30s"
    assert shown["job_specs"]["a"]["logging"].pop("completed_log_max_age") is None
    assert shown["profiles"] == {"p": {"overrides": {"name": "n"}}}
    assert isinstance(validated(json.loads(json.dumps(shown))), Configuration)


def test_every_value_has_an_origin(tmp_path: Path, no_source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_source.parent.mkdir(parents=True)
    no_source.write_text("concurrency: {pools: {a: 1, b: 1}}\nredaction: {names: [x]}\n")
    explicit = tmp_path / "a.yml"
    explicit.write_text("concurrency: {pools: {b: 2}}\n")
    monkeypatch.setenv("JOBMAN_RETENTION_MAX_JOBS", "7")
    monkeypatch.setenv("JOBMAN_RETENTION_COMPLETED_LOG_MAX_AGE", "2d")

    report = with_origins(str(explicit))

    user = {"kind": "user", "name": "user", "path": str(no_source)}
    given = {"kind": "explicit", "name": "explicit", "path": str(explicit)}
    built_in = {"kind": "built-in", "name": "built-in defaults"}
    environment = {"kind": "environment", "name": "JOBMAN_ environment"}
    assert report["sources"] == [built_in, user, given, environment]
    origins = report["origins"]
    assert origins["concurrency.pools.a"] == user
    assert origins["concurrency.pools.b"] == given
    assert origins["redaction.names"] == user
    assert origins["redaction.patterns"] == built_in
    assert origins["retention.max_jobs"] == origins["retention.completed_log_max_age"] == environment
    assert report["config"]["retention"]["max_jobs"] == 7
    assert report["config"]["retention"]["completed_log_max_age"] == "48h0m0s"
    assert "secrets" not in origins, "an empty mapping has none"


def contents(schema: Any = None) -> st.SearchStrategy[Any]:
    """Documents that have the keys of a configuration, and almost anything under them."""
    scalar = st.sampled_from(SCALARS)
    kinds: list[st.SearchStrategy[Any]] = [scalar, st.lists(scalar, max_size=2)]
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        fields = {field.alias or name: field.annotation for name, field in schema.model_fields.items()}
        known = {name: contents(annotation) for name, annotation in fields.items()}
        kinds = [st.fixed_dictionaries({}, optional=known)] * 4 + kinds
    elif get_origin(schema) in (dict, list):
        member = contents(get_args(schema)[-1])
        names = st.sampled_from(("a", "b", "A", "a b"))
        made = (
            st.lists(member, max_size=2) if get_origin(schema) is list else st.dictionaries(names, member, max_size=2)
        )
        kinds = [made] * 4 + kinds
    elif get_args(schema):
        kinds = [contents(next(one for one in get_args(schema) if one is not type(None)))]
    return st.one_of(kinds)


SCALARS = (
    *("a", "b", "10s", "unlimited", "A", "env:A", "/x", "until", "delay", "probe", "http", "smtp", "command", "x@y"),
    *("https://[", "a:1", "job_failed", "success", "(", "", "\u2028", 0, 1, -1, 2**70, 1.5, True, None),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(content={"trusted_project_roots": ["/nowhere"]})
@given(content=contents(Configuration))
def test_any_document_is_a_configuration_or_is_refused_with_its_place(tmp_path: Path, content: Any) -> None:
    """Nothing crashes, and what is accepted says the same when it is written out and read again."""
    file = tmp_path / "jobman.yml"
    file.write_text(json.dumps(content))
    where, shown = read(file)
    assert where.startswith(str(file))
    if shown is not None:
        file.write_text(json.dumps(shown))
        assert read(file) == (str(file), shown)


def read(file: Path) -> tuple[str, Any]:
    """Return what a file comes to, without what is not there; or where it is refused, and None."""
    try:
        shown = effective(str(file))
    except InvalidConfigError as refused:
        return str(refused.fields["where"]), None
    except ConfigFileError:
        return str(file), None  # a trusted root that is not there: the directory is named, not the place in the file
    for spec in shown["job_specs"].values():
        spec["logging"] = {name: value for name, value in spec["logging"].items() if value is not None}
    return str(file), shown
