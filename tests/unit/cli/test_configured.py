"""A job of the configuration under the flags of ``run`` (contract, A.2, K.5; D8, O.4, O.35)."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.cli import flags
from jobman.cli.commands import _configured
from jobman.cli.commands._spec import specify
from jobman.cli.parser import parse
from jobman.config.load import load
from jobman.config.schema import JobSpec as Schema
from jobman.errors import InvalidSpecError, UsageError
from jobman.model.scalars import MINUTE, SECOND
from jobman.model.secrets import SecretVariable
from jobman.model.spec import Backoff, Delay, Environment, JobSpec, Limit, StdinPolicy, StopPolicy
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits

DIRECTORY = "/here"
FILE = """\
concurrency: {pools: {gpu: 4}}
retention: {completed_log_max_age: 3d}
secrets: {one: env:ONE, two: file:/run/two}
wait_conditions:
  soon: {type: delay, delay: 1s}
  late: {type: until, until: 2027-01-01T00:00:00Z}
  data: {type: file-exists, file_exists: {path: data/done, type: file}}
  up:
    type: probe
    probe: {command: [ask, it], environment: {set: {Q: '1'}, unset: [Z], secrets: {S: one}}, timeout: 2s}
job_specs:
  all:
    command: [train, --fast]
    name: named
    tags: [z, a]
    groups: [g]
    working_directory: /srv
    environment: {set: {A: '1', B: '1'}, unset: [X], secrets: {S: one}}
    stdin: live
    stop: {grace_period: 20s, drain_timeout: 1s, leave_descendants: true}
    dependencies: []
    wait: {mode: any, conditions: [soon, up], abort_at: 2027-02-01T00:00:00Z}
    admission: {pool: gpu, slots: 2}
    completion: {max_runs: unlimited, success_target: 2, failure_limit: 5, success_exit_codes: [0, 3],
                 retryable_exit_codes: [7], retryable_signals: [SIGTERM], retry_timeouts: true}
    delay: {strategy: exponential, initial: 2s, max_delay: 1m, base: 3, jitter: 1s}
    timeouts: {run: 1h, job: unlimited}
  strict: {command: [x], completion: {success_exit_codes: []}}
  plain: {command: [x]}
profiles:
  brief: {overrides: {timeouts: {run: unlimited, job: 1m}, delay: {max_delay: unlimited}}}
  none: {overrides: {tags: [t]}}
"""


@pytest.fixture(scope="module")
def stated(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the file states."""
    file = tmp_path_factory.mktemp("configured") / "jobman.yml"
    file.write_text(FILE)
    return load(str(file)).stated


def spec_of(stated: Any, *words: str) -> JobSpec:
    """Return the specification of ``jobman run WORDS``."""
    wanted = _configured.request(parse(["run", *words]), stated, DIRECTORY)
    path = wanted.flags.value("stdin-file") or None
    return wanted.complete(specify(wanted.flags, DIRECTORY, path, configured=wanted.waits))


def test_every_key_that_a_row_names_has_its_flag() -> None:
    known = {flag.name for flag in flags.flags_of(flags.load("run"))}
    assert {flag for _, flag in (*_configured._TEXTS, *_configured._LISTS)} <= known


def test_every_key_of_a_job_spec_reaches_the_job(stated: Any) -> None:
    spec = spec_of(stated, "--job-spec", "all")

    assert (spec.executable, spec.arguments, spec.name) == ("train", ("--fast",), "named")
    assert (spec.tags, spec.groups, spec.working_directory) == (("a", "z"), ("g",), "/srv")
    secrets = (SecretVariable("S", "env", "ONE"),)
    assert spec.environment == Environment((("A", "1"), ("B", "1")), ("X",), secrets)
    assert spec.stop == StopPolicy(20 * SECOND, force_after_grace=True, drain_ns=SECOND, leave_descendants=True), "D8"
    assert spec.stdin == StdinPolicy.LIVE
    assert (spec.pool, spec.slots) == ("gpu", 2)
    assert spec.completion[:3] == (Limit(None), Limit(2), Limit(5))
    rules = spec.classification
    assert (rules.success_codes, rules.retryable_codes, rules.retry_timeout) == ((0, 3), ((7, 7),), True)
    assert rules.retryable_signals == ("terminated",)
    delay = Delay(2 * SECOND, Backoff.EXPONENTIAL, 3, MINUTE, SECOND)
    assert (spec.failure_delay, spec.success_delay) == (delay, delay)
    assert spec.timeouts == (60 * MINUTE, 0)
    assert spec.logging.retention_ns == 3 * 24 * 60 * MINUTE


def test_conditions_of_a_job_spec_come_first_and_give_up_together(stated: Any) -> None:
    abort_ns = 1_801_440_000 * SECOND
    soon = WaitCondition(WaitKind.DELAY, delay_ns=SECOND, abort_at_ns=abort_ns)
    secrets = (SecretVariable("S", "env", "ONE"),)
    probe = Probe("ask", ("it",), "", (("Q", "1"),), ("Z",), 2 * SECOND, 65536, secrets=secrets)
    up = WaitCondition(WaitKind.PROBE, probe=probe, poll_interval_ns=SECOND, abort_at_ns=abort_ns)

    assert spec_of(stated, "--job-spec", "all").waits == Waits(WaitMode.ANY, (soon, up))


def test_named_conditions_follow_and_flags_of_the_command_line_are_for_them(stated: Any) -> None:
    """O.4: ``--wait-poll`` is for all; A.2: ``--wait-abort-at`` is not for those of the job spec."""
    words = ("--wait-condition", "data", "--wait-delay", "3s", "--wait-poll", "7s", "--wait-mode", "all")
    waits = spec_of(stated, "--job-spec", "all", *words, "--wait-abort-at", "2027-03-01T00:00:00Z").waits

    assert waits.mode == WaitMode.ALL
    assert [condition.kind for condition in waits.conditions] == ["delay", "probe", "file_exists", "delay"]
    assert {condition.poll_interval_ns for condition in waits.conditions} == {7 * SECOND}
    assert len({condition.abort_at_ns for condition in waits.conditions[:2]}) == 1
    assert waits.conditions[1].abort_at_ns != waits.conditions[2].abort_at_ns == waits.conditions[3].abort_at_ns
    assert (waits.conditions[2].path, waits.conditions[2].file_kind) == ("/here/data/done", FileKind.REGULAR)


def test_flags_win_over_the_configuration(stated: Any) -> None:
    words = ("--name", "n", "--tag", "t", "--env", "B=2", "--env", "C=3", "--unset-env", "Y", "--secret-env", "S=two")
    more = ("--cwd", "/tmp", "--pool", "gpu", "--slots", "1", "--stop-grace", "1s", "--retry-delay", "9s")
    spec = spec_of(stated, "--job-spec", "all", *words, *more)

    assert (spec.name, spec.tags, spec.groups, spec.slots) == ("n", ("t",), ("g",), 1)
    secrets = (SecretVariable("S", "file", "/run/two"),)
    assert spec.environment == Environment((("A", "1"), ("B", "2"), ("C", "3")), ("Y",), secrets)
    assert spec.stop.grace_ns == SECOND
    assert (spec.failure_delay.base_ns, spec.success_delay.base_ns) == (9 * SECOND, 2 * SECOND)
    assert spec.working_directory == DIRECTORY, "run.py has made --cwd absolute"


def test_the_client_decides_alone_what_a_job_in_the_foreground_reads(stated: Any) -> None:
    quiet = {"profiles": {"quiet": {"overrides": {"stdin": "null", "stop": {"force_after_grace": False}}}}}

    assert spec_of(quiet, "--profile", "quiet", "--foreground", "--", "x").stdin == StdinPolicy.LIVE
    assert spec_of(stated, "--job-spec", "all", "--stdin", "null").stdin == StdinPolicy.NULL
    assert spec_of(stated, "--job-spec", "all", "--stdin-file", "/x").stdin == StdinPolicy.FILE
    spec = spec_of(quiet, "--profile", "quiet", "--stop-grace", "1s", "--", "x")
    assert (spec.stop.grace_ns, spec.stop.force_after_grace) == (SECOND, False), "O.35"


def test_retries_decide_alone_how_often(stated: Any) -> None:
    """A.2: they clear the list of codes too."""
    spec = spec_of(stated, "--job-spec", "all", "--retries", "1")

    assert spec.completion[:3] == (Limit(2), Limit(1), Limit(2))
    assert spec.classification.retryable_codes is None
    assert spec.classification.success_codes == (0, 3)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), [("a", ["job_lost"])]),
        (("--notify-on", "job_failed"), [("a", ["job_failed"])]),
        (("--notify", "b"), [("b", ["job_started"])]),
        (("--notify", "b", "--notify-on", "job_failed"), [("b", ["job_failed"])]),
    ],
)
def test_other_notifiers_tell_of_their_own_events(words: tuple[str, ...], told: list[tuple[str, list[str]]]) -> None:
    """A.2: ``--notify`` replaces what is configured for others, their events included."""
    command = {"type": "command", "command": {"command": ["/x"]}}
    notification = {"notifiers": ["a"], "events": ["job_lost"]}
    stated = {
        "notifiers": {"a": command, "b": command | {"events": ["job_started"]}},
        "job_specs": {"s": {"command": ["x"], "notification": notification}},
    }
    spec = spec_of(stated, "--job-spec", "s", *words)

    assert [(one.notifier, list(one.events)) for one in spec.subscriptions] == told


def test_a_profile_may_lift_what_the_job_spec_limits(stated: Any) -> None:
    spec = spec_of(stated, "--job-spec", "all", "--profile", "brief")

    assert spec.timeouts == (0, MINUTE)
    assert spec.failure_delay == Delay(2 * SECOND, Backoff.EXPONENTIAL, 3, None, SECOND)


def test_no_exit_code_at_all_may_be_a_success(stated: Any) -> None:
    assert spec_of(stated, "--job-spec", "strict").classification.success_codes == ()
    assert spec_of(stated, "--job-spec", "strict", "--success-exit-code", "4").classification.success_codes == (4,)


def test_a_command_may_have_profiles_and_replaces_theirs(stated: Any) -> None:
    spec = spec_of(stated, "--profile", "none", "--", "other", "--flag")

    assert (spec.executable, spec.arguments, spec.tags) == ("other", ("--flag",), ("t",))


def test_a_job_spec_that_says_nothing_is_the_command_alone(stated: Any) -> None:
    """The defaults of the schema, of the flags and of the model are the same ones."""
    stripped = {name: block for name, block in stated.items() if name != "retention"}
    alone = specify(parse(["run", "--", "x"]), DIRECTORY)
    assert spec_of(stripped, "--job-spec", "plain") == alone

    full = Schema(command=["x"]).model_dump(exclude_none=True)
    assert spec_of({"job_specs": {"plain": full}}, "--job-spec", "plain") == alone


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--job-spec", "plain", "--", "x"), "--job-spec and a command exclude each other"),
        (("--profile", "none"), "nothing says what to run"),
        (("--wait-condition", "gone", "--", "x"), "--wait-condition: unknown name 'gone': expected data, late, soon"),
        (("--secret-env", "A=three", "--", "x"), "--secret-env: unknown name 'three': expected one, two"),
        (("--secret-env", "A-B=one", "--", "x"), "--secret-env: invalid name 'A-B'"),
        (("--secret-env", "A", "--", "x"), "--secret-env: invalid value 'A': expected NAME=VALUE"),
        (("--job-spec", "", "--", "x"), "--job-spec"),
    ],
)
def test_what_contradicts_itself_is_refused(stated: Any, words: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        spec_of(stated, *words)


def test_a_variable_can_be_meant_in_one_way_only(stated: Any) -> None:
    with pytest.raises(InvalidSpecError, match="environment variable S is to hold a secret, and is set"):
        spec_of(stated, "--job-spec", "all", "--env", "S=x")


def test_every_key_of_a_job_has_a_flag_or_is_known_to_need_none() -> None:
    """A new key is a row of a table."""
    known = {flag.name for flag in flags.flags_of(flags.load("run"))}
    rows = (*_configured._TEXTS, *_configured._LISTS)
    keys = {path for path, _ in rows} | {"command", "working_directory", "environment.set", "environment.secrets"}
    keys |= {"dependencies", "wait.mode", "wait.conditions", "wait.abort_at", "delay.base"}
    flat = set()
    for name, field in Schema.model_fields.items():
        members = getattr(field.annotation, "model_fields", None)
        flat |= {name} if members is None else {f"{name}.{member}" for member in members}

    assert flat == keys
    assert {flag for _, flag in rows} <= known
