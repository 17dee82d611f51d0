"""What a configuration says must be possible, and every mistake is named with its place (contract, K.1 to K.5; D14)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.config.load import load
from jobman.errors import InvalidConfigError

BASE = """\
concurrency: {max_active_slots: 4, pools: {gpu: 2, batch: unlimited}}
secrets: {token: env:TOKEN}
wait_conditions: {soon: {type: delay, delay: 1s}}
notifiers:
  told: {type: command, events: [job_failed], command: {command: [/bin/tell]}}
  mute: {type: command, command: {command: [/bin/tell]}}
"""
JOBS = (
    ("stop: {grace_period: 30}", "stop.grace_period: expected a duration as text, such as 90s, 1h30m or 2d"),
    ("stop: {grace_period: -1s}", "stop.grace_period: expected a duration"),
    ("stop: {grace: 1s}", "stop.grace: unknown key: expected grace_period, force_after_grace, drain_timeout or"),
    ("stop: {force_after_grace: yes}", "stop.force_after_grace: expected true or false"),
    ("stop: null", "stop: expected a mapping with the keys grace_period, force_after_grace"),
    ("stdin: file", "stdin: expected null or live"),
    ("name: 7", "name: expected text; a number or a word like yes needs quotes"),
    ("name: ' '", "name: expected a name: it must contain a character that is not a space"),
    ("tags: [a, a]", "tags: expected every item once, and 'a' is given twice"),
    ("tags: a", "tags: expected a list"),
    ("tags: [a b]", "tags[0]: expected a name of letters, digits, dots, dashes and underscores, at most 128"),
    ("working_directory: here", "working_directory: expected an absolute path in its shortest form"),
    ("working_directory: /a/../b", "working_directory: expected an absolute path in its shortest form"),
    ("environment: {set: {lower: x}}", "environment.set.lower: expected the name of a variable: capitals"),
    ("environment: {set: {PORT: 80}}", "environment.set.PORT: expected text; a number or a word like yes needs quotes"),
    ("environment: {set: {A: x}, unset: [A]}", "environment.unset: A is also under set: expected it in one of"),
    ("environment: {unset: [A], secrets: {A: token}}", "environment.secrets: A is also under unset"),
    ("environment: {secrets: {A: other}}", "environment.secrets.A: unknown secret 'other': expected a name under"),
    ("dependencies: [{job: a}]", "dependencies[0].outcomes: must be given"),
    ("dependencies: [{job: a, outcomes: []}]", "dependencies[0].outcomes: expected at least one item"),
    ("dependencies: [{job: a, outcomes: [failed]}]", "dependencies[0].outcomes[0]: expected success, failure,"),
    (
        "dependencies: [{job: a, outcomes: [success]}, {job: a, outcomes: [lost]}]",
        "dependencies[1]: contradicts an earlier dependency on 'a'",
    ),
    ("wait: {conditions: [none]}", "wait.conditions[0]: unknown wait condition 'none': expected a name under wait_"),
    ("wait: {mode: some}", "wait.mode: expected all or any"),
    ("wait: {abort_at: tomorrow}", "wait.abort_at: expected a time such as 2026-11-29T15:19:20Z"),
    ("admission: {pool: tpu}", "admission.pool: unknown pool 'tpu': expected a name under concurrency.pools"),
    ("admission: {pool: gpu, slots: 3}", "admission.slots: 3 slots never fit into pool gpu, which is 2"),
    ("admission: {pool: batch, slots: 5}", "admission.slots: 5 slots never fit into max_active_slots, which is 4"),
    ("admission: {slots: 0}", "admission.slots: expected a number of slots from 1 to 4294967295"),
    ("completion: {success_target: 3}", "completion.success_target: 3 successes need more than 1 run: "),
    ("completion: {max_runs: 0}", "completion.max_runs: expected a number from 1 on, or unlimited"),
    ("completion: {max_runs: '3'}", "completion.max_runs: expected a number from 1 on, or unlimited"),
    (
        "completion: {success_exit_codes: [256]}",
        "completion.success_exit_codes[0]: expected an exit code from 0 to 255",
    ),
    ("completion: {retryable_exit_codes: [0]}", "completion.retryable_exit_codes: 0 already counts as success"),
    ("completion: {retryable_signals: [NONE]}", "completion.retryable_signals[0]: expected the name of a signal"),
    (
        "completion: {retryable_signals: [\u017fIGTERM]}",
        "completion.retryable_signals[0]: expected the name of a signal",
    ),
    ("name: 07", "name: expected text; a number or a word like yes needs quotes"),
    ("name: 08", "name: expected text; a number or a word like yes needs quotes"),
    ("logging: {segment_bytes: 0078}", "logging.segment_bytes: expected bytes such as 1048576"),
    ("delay: {initial: 10s, max_delay: 5s}", "delay.max_delay: expected at least the initial delay"),
    ("delay: {base: 0}", "delay.base: expected a number from 1 on"),
    ("timeouts: {run: forever}", "timeouts.run: expected a duration as text, such as 90s, 1h30m or 2d, or unlimited"),
    ("logging: {segments_per_run: 2}", "logging.segments_per_run: needs segment_bytes, the size of a segment"),
    ("logging: {segments_per_run: 2, segment_bytes: 0}", "logging.segments_per_run: needs segment_bytes"),
    ("logging: {segments_per_run: 65536}", "logging.segments_per_run: expected a number from 1 to 65535, or unlimited"),
    ("logging: {segment_bytes: 4KB}", "logging.segment_bytes: expected bytes such as 1048576, 4KiB or 1GiB, or"),
    ("logging: {segment_bytes: 1_000}", "logging.segment_bytes: expected bytes"),
    ("notification: {notifiers: [none]}", "notification.notifiers[0]: unknown notifier 'none': expected a name under"),
    ("notification: {notifiers: [mute]}", "notification.notifiers[0]: 'mute' is told of nothing: expected events"),
    ("notification: {events: [job_end]}", "notification.events[0]: expected job_started, run_started,"),
)
NOTIFIERS = (
    ("{type: command}", ": type command needs command"),
    ("{command: {command: [/bin/x]}}", ": type must be given: command or http or smtp"),
    ("{type: command, command: {command: [x]}}", ".command.command[0]: expected the absolute path of a program"),
    ("{type: command, command: {command: [/x/../y]}}", ".command.command[0]: expected the absolute path"),
    ("{type: command, command: {command: []}}", ".command.command: expected at least one item"),
    ("{type: command, command: {command: [/x], output_limit: 2MiB}}", ".command.output_limit: expected at most"),
    ("{type: command, command: {command: [/x]}, smtp: {}}", ".smtp: does not belong to type command"),
    ("{type: command, timeout: 0s, command: {command: [/x]}}", ".timeout: expected a duration as text, such as"),
    ("{type: command, retry: {max_attempts: 101}, command: {command: [/x]}}", ".retry.max_attempts: expected a number"),
    ("{type: command, retry: {delay: 2m}, command: {command: [/x]}}", ".retry.max_delay: expected at least the delay"),
    ("{type: http, http: {}}", ".http: url must be given"),
    ("{type: http, http: {url: 'http://example.org'}}", ".http.url: expected https, or http with allow_http: true"),
    ("{type: http, http: {url: 'https://'}}", ".http.url: expected a URL with a host"),
    ("{type: http, http: {url: 'https://a:b@example.org'}}", ".http.url: expected a URL without a user"),
    ("{type: http, http: {url: 'example.org/#x'}}", ".http.url: expected a URL without a user, a password or a frag"),
    ("{type: http, http: {url: 'example.org:x'}}", ".http.url: expected a URL such as"),
    *(
        (f"{{type: http, http: {{url: '{host}'}}}}", ".http.url: expected a public host")
        for host in (
            "localhost",
            "a.local",
            "127.0.0.1",
            "10.1.2.3",
            "169.254.0.1",
            "[::1]",
            "0.0.0.0",  # noqa: S104  # refused, not bound
            "[::ffff:10.0.0.1]",
        )
    ),
    ("{type: http, http: {url: a.org, headers: {Cookie: x}}}", ".http.headers.Cookie: expected it under secret_hea"),
    ("{type: http, http: {url: a.org, headers: {Host: x}}}", ".http.headers.Host: is set by Jobman"),
    (
        "{type: http, http: {url: a.org, secret_headers: {Idempotency-Key: token}}}",
        ".Idempotency-Key: is set by Jobman",
    ),
    ("{type: http, http: {url: a.org, headers: {A: x, a: y}}}", ".http.headers.a: is given twice"),
    ("{type: http, http: {url: a.org, headers: {'a b': x}}}", ".http.headers.a b: expected the name of a header"),
    ("{type: http, http: {url: a.org, secret_headers: {A: other}}}", ".http.secret_headers.A: unknown secret 'other'"),
    ("{type: http, http: {url: a.org, signing_secret: other}}", ".http.signing_secret: unknown secret 'other'"),
    ("{type: smtp, smtp: {address: 'a:25', tls: starttls, from: a@b}}", ".smtp: to must be given"),
    ("{type: smtp, smtp: {address: a, tls: starttls, from: a@b, to: [a@b]}}", ".smtp.address: expected HOST:PORT"),
    ("{type: smtp, smtp: {address: 'a:0', tls: implicit, from: a@b, to: [a@b]}}", ".smtp.address: expected HOST:PORT"),
    ("{type: smtp, smtp: {address: 'a:1', tls: none, from: a@b, to: [a@b]}}", ".smtp.tls: expected starttls or impl"),
    ("{type: smtp, smtp: {address: 'a:1', tls: implicit, from: x, to: [a@b]}}", ".smtp.from: expected an address"),
    (
        "{type: smtp, smtp: {address: 'a:1', tls: implicit, from: a@b, to: [a@b], username: u}}",
        ".smtp: username and password_secret must be given together",
    ),
    (
        '{type: smtp, smtp: {address: "a:1", tls: implicit, from: a@b, to: [a@b], subject_prefix: "a\\nb"}}',
        ".smtp.subject_prefix: expected one line",
    ),
)
CONDITIONS = (
    ("{delay: 1s}", ": type must be given: until or delay or file-exists or probe"),
    ("{type: delay}", ": type delay needs delay"),
    ("{type: delay, until: 2027-01-01T00:00:00Z, delay: 1s}", ".until: does not belong to type delay"),
    ("{type: file-exists, file_exists: {type: any}}", ".file_exists: path must be given"),
    ("{type: file_exists}", ".type: expected until, delay, file-exists or probe"),
    ("{type: probe, probe: {}}", ".probe: command must be given"),
    ("{type: probe, probe: {command: ['']}}", ".probe.command[0]: expected the name of a program"),
    ("{type: probe, probe: {command: [x], output_limit: unlimited}}", ".probe.output_limit: expected bytes such as"),
    ("{type: probe, probe: {command: [x], poll_interval: 0s}}", ".probe.poll_interval: expected a duration as text"),
    ("{type: probe, probe: {command: [x], environment: {secrets: {A: other}}}}", ".secrets.A: unknown secret 'other'"),
)
WHOLE = (
    ("job_specs: {a: {name: x}}", "job_specs.a: command must be given"),
    ("job_specs: {a: {command: []}}", "job_specs.a.command: expected at least one item"),
    ("job_specs: {a: {command: ['']}}", "job_specs.a.command[0]: expected the name of a program"),
    ("profiles: {p: {job_spec: none}}", "profiles.p.job_spec: unknown job spec 'none'"),
    ("profiles: {p: {stop: {}}}", "profiles.p.stop: unknown key: expected job_spec or overrides"),
    ("secrets: {a: vault:x}", "secrets.a: expected env:NAME, in capitals, or file:/absolute/path"),
    ("secrets: {a: env:lower}", "secrets.a: expected env:NAME"),
    ("secrets: {a: file:relative}", "secrets.a: expected env:NAME"),
    (f"secrets: {{{', '.join(f's{n}: env:A' for n in range(257))}}}", "secrets: expected at most 256 secrets"),
    ("redaction: {patterns: ['(?=a)']}", "redaction.patterns[0]: expected a regular expression of RE2, of 1 to 1024"),
    ("redaction: {patterns: ['(a)\\1']}", "redaction.patterns[0]: expected a regular expression of RE2"),
    ("redaction: {patterns: ['']}", "redaction.patterns[0]: expected a regular expression of RE2"),
    (f"redaction: {{patterns: ['{'x' * 1025}']}}", "redaction.patterns[0]: expected a regular expression of RE2"),
    (f"redaction: {{patterns: [{', '.join('a' * 65)}]}}", "redaction.patterns: expected at most 64 patterns"),
    ("redaction: {names: [' ']}", "redaction.names[0]: expected text that is not blank"),
    ("retention: {max_jobs: -1}", "retention.max_jobs: expected a number from 0 on, or unlimited"),
    ("retention: {max_total_log_bytes: 9EiB}", "retention.max_total_log_bytes: expected bytes"),
    ("retention: {completed_log_max_age: 30}", "retention.completed_log_max_age: expected a duration as text"),
    ("trusted_project_roots: [relative]", "trusted_project_roots[0]: expected an absolute path"),
    ("trusted_project_roots: [/a, /a]", "trusted_project_roots: expected every item once"),
)
pytestmark = pytest.mark.usefixtures("no_source")


def refusal(tmp_path: Path, text: str) -> str:
    """Return why a file is refused: ``LINE:COLUMN: KEYS: ...``."""
    file = tmp_path / "jobman.yml"
    file.write_text(text)
    with pytest.raises(InvalidConfigError) as caught:
        load(str(file))
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"invalid configuration: {file}:")


def said(tmp_path: Path, text: str, line: int) -> str:
    """Return what is said about one line of a file, without the place."""
    found, _, rest = refusal(tmp_path, text).partition(":")
    assert int(found) == line
    column, _, rest = rest.partition(": ")
    assert int(column) >= 1
    return rest


@pytest.mark.parametrize(("member", "says"), JOBS)
def test_what_a_job_spec_must_not_say(tmp_path: Path, member: str, says: str) -> None:
    text = f"{BASE}job_specs:\n  job:\n    command: [x]\n    {member}\n"

    assert said(tmp_path, text, 10).startswith(f"job_specs.job.{says}")


@pytest.mark.parametrize(("member", "says"), JOBS[::4])
def test_what_a_profile_must_not_say(tmp_path: Path, member: str, says: str) -> None:
    """K.5: each is checked by itself, against a placeholder."""
    text = f"{BASE}profiles:\n  job:\n    overrides:\n      {member}\n"

    assert said(tmp_path, text, 10).startswith(f"profiles.job.overrides.{says}")


@pytest.mark.parametrize(("notifier", "says"), NOTIFIERS)
def test_what_a_notifier_must_not_say(tmp_path: Path, notifier: str, says: str) -> None:
    """D14: what would fail or vanish later is refused at once."""
    text = f"secrets: {{token: env:TOKEN}}\nnotifiers:\n  who: {notifier}\n"

    assert f"notifiers.who{says}" in said(tmp_path, text, 3) or says in said(tmp_path, text, 3)


@pytest.mark.parametrize(("condition", "says"), CONDITIONS)
def test_what_a_wait_condition_must_not_say(tmp_path: Path, condition: str, says: str) -> None:
    text = f"wait_conditions:\n  what: {condition}\n"

    assert says in said(tmp_path, text, 2)


@pytest.mark.parametrize(("text", "says"), WHOLE)
def test_what_a_file_must_not_say(tmp_path: Path, text: str, says: str) -> None:
    assert said(tmp_path, f"\n{text}\n", 2).startswith(says)


def test_a_profile_is_held_to_its_job_spec(tmp_path: Path) -> None:
    text = (
        "job_specs: {a: {command: [x], completion: {max_runs: 2}}}\nprofiles:\n  p:\n    job_spec: a\n    overrides:\n"
    )
    good, bad = "      completion: {success_target: 2}\n", "      completion: {success_target: 3}\n"
    file = tmp_path / "good.yml"
    file.write_text(text + good)
    load(str(file))

    assert said(tmp_path, text + bad, 6).startswith("profiles.p.overrides.completion.success_target: 3 successes need")


def test_of_several_mistakes_the_first_in_the_file_is_named(tmp_path: Path) -> None:
    assert said(tmp_path, "zebra: 1\nretention: {max_jobs: x}\nconcurrency: []\n", 1).startswith("zebra: unknown key")


def test_a_mistake_shows_no_value(tmp_path: Path) -> None:
    """What stands in the wrong place may be a secret."""
    for text in ("secrets: {a: hunter2}\n", "stop: hunter2\n", "job_specs: {a: {environment: {set: hunter2}}}\n"):
        assert "hunter2" not in refusal(tmp_path, text)
