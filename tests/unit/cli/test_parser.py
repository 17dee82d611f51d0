from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobman.cli import flags
from jobman.cli.parser import Parsed, parse
from jobman.errors import JobmanError, UsageError

MINUTE = 60_000_000_000
JOB_ID = "01a2b3c4-d5e6-7f80-9a1b-2c3d4e5f6071"


def words(line: str) -> list[str]:
    return line.split()


def refusal(*argv: str) -> str:
    with pytest.raises(UsageError) as raised:
        parse(argv)
    assert raised.value.exit_status == 2
    message = str(raised.value)
    assert message.startswith("invalid command usage: ")
    assert "\n" not in message
    return message.removeprefix("invalid command usage: ")


# --- Values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("logs J --lines 5", "lines", 5),
        ("logs J --lines=5", "lines", 5),
        ("logs J -n 5", "lines", 5),
        ("logs J -n5", "lines", 5),
        ("logs J -n=5", "lines", 5),
        ("logs J -fn5", "lines", 5),
        ("logs J -fn 5", "lines", 5),
        ("logs J --lines -1", "lines", -1),
        ("logs J -n-1", "lines", -1),
        ("logs J --run -1", "run", -1),
        ("logs --run -1 J", "run", -1),
        ("logs --run +2 J", "run", 2),
        ("logs --run all J", "run", "all"),
        ("logs J --stream stderr", "stream", "stderr"),
        ("logs J -f", "follow", True),
        ("logs J --follow=false", "follow", False),
        ("logs J -f=F", "follow", False),
        ("list --name -x", "name", "-x"),
        ("list --name --json", "name", "--json"),
        ("list --name --", "name", "--"),
        ("list --name=", "name", ""),
        ("list --name=a=b", "name", "a=b"),
        ("list --limit 0x10", "limit", 16),
        ("list --limit 1_000", "limit", 1_000),
        ("list --submitted-after 1970-01-01T00:00:01Z", "submitted-after", 1_000_000_000),
        (f"list --before {JOB_ID}", "before", JOB_ID),
        ("list --phase running,paused --phase queued", "phase", ("running", "paused", "queued")),
        ("list --tag a,b --tag c", "tag", ("a,b", "c")),
        ("list --limit 1 --limit 2", "limit", 2),
        ("list --json --json=false", "json", False),
        ("run --success-exit-code 0,3 --success-exit-code +5 -- x", "success-exit-code", (0, 3, 5)),
        ("run --env A=1 --env B==,2 -- x", "env", ("A=1", "B==,2")),
        ("run --retries 0b11 -- x", "retries", 3),
        ("run --run-timeout 1m -- x", "run-timeout", MINUTE),
        ("run --log-segment-bytes 4KiB -- x", "log-segment-bytes", 4096),
        ("run --log-segments 0x10 -- x", "log-segments", 16),
        ("run --log-retention 0 -- x", "log-retention", 0),
        ("run --log-retention unlimited -- x", "log-retention", "unlimited"),
        ("run --after-success a --after-success b -- x", "after-success", ("a", "b")),
        ("wait J --timeout 0", "timeout", 0),
        ("--state-dir /d status J", "state-dir", "/d"),
        ("status --state-dir /d J", "state-dir", "/d"),
        ("status J --state-dir=/d", "state-dir", "/d"),
        ("--state-dir /c status J --state-dir /d", "state-dir", "/d"),
    ],
)
def test_a_value_is_read_however_it_is_attached(line: str, name: str, value: object) -> None:
    parsed = parse(words(line))
    assert parsed.given(name)
    assert parsed.value(name) == value
    assert type(parsed.value(name)) is type(value)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"])
def test_a_boolean_has_twelve_spellings(text: str) -> None:
    assert parse(["list", f"--json={text}"]).value("json") is (text in {"1", "t", "T", "TRUE", "true", "True"})


def test_a_boolean_never_takes_a_separate_word() -> None:
    parsed = parse(["status", "--json", "false"])
    assert parsed.value("json") is True
    assert parsed.positionals == ("false",)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("run -- x", "name", ""),
        ("run -- x", "tag", ()),
        ("run -- x", "success-exit-code", ()),
        ("run -- x", "retries", 0),
        ("run -- x", "retry-delay", 0),
        ("run -- x", "stop-grace", 10_000_000_000),
        ("run -- x", "log-segment-bytes", 0),
        ("run -- x", "log-segments", None),
        ("run -- x", "log-retention", 30 * 24 * 60 * MINUTE),
        ("run -- x", "wait", False),
        ("list", "limit", 100),
        ("list", "before", ""),
        ("list", "submitted-after", None),
        ("list", "state-dir", ""),
        ("wait J", "timeout", None),
        ("logs J", "run", -1),
        ("logs J", "lines", -1),
        ("logs J", "stream", "both"),
    ],
)
def test_an_absent_flag_has_its_default(line: str, name: str, value: object) -> None:
    parsed = parse(words(line))
    assert not parsed.given(name)
    assert parsed.value(name) == value


def test_a_flag_of_another_command_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(KeyError):
        parse(["status", "J"]).value("retries")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "run --retry-delay 5x -- x",
            "--retry-delay: invalid value '5x': expected a duration such as 90s, 1h30m or 2d",
        ),
        ("run --retry-delay=-5s -- x", "--retry-delay: invalid value '-5s': expected a duration"),
        ("run --retry-delay -- x", "--retry-delay: invalid value '--': expected a duration"),
        ("run --log-capture stdin -- x", "--log-capture: invalid value 'stdin': expected both, stdout, stderr or none"),
        ("run --log-segment-bytes 8EiB -- x", "--log-segment-bytes: invalid value '8EiB': expected bytes such as"),
        ("run --log-segments 0 -- x", "--log-segments: invalid value '0': expected an integer, 1 or more"),
        (
            "run --log-retention never -- x",
            "--log-retention: invalid value 'never': expected a duration such as 90s, 1h30m or 2d, or unlimited",
        ),
        ("run --retries -1 -- x", "--retries: invalid value '-1': expected an integer, 0 or more"),
        ("run --retries= -- x", "--retries: invalid value '': expected an integer, 0 or more"),
        ("run --success-exit-code 1,,2 -- x", "--success-exit-code: invalid value '1,,2': expected decimal integers"),
        ("run --success-exit-code 0x1 -- x", "--success-exit-code: invalid value '0x1': expected decimal integers"),
        ("run --retryable-exit-code -1 -- x", "--retryable-exit-code: invalid value '-1': expected decimal integers"),
        ("run --env A -- x", "--env: invalid value 'A': expected NAME=VALUE"),
        ("run --env =secret -- x", "--env: invalid value '': expected NAME=VALUE"),
        ("run --wait=yes -- x", "--wait: invalid value 'yes': expected true or false"),
        ("run --after-success= -- x", "--after-success: invalid value '': expected a job's ID"),
        ("logs J --lines -2", "--lines: invalid value '-2': expected an integer, -1 or more"),
        ("logs J -n x", "-n: invalid value 'x': expected an integer, -1 or more"),
        ("logs J --run 0", "--run: invalid value '0': expected a run number such as 1, -1 for the latest run, or all"),
        ("logs J --run first", "--run: invalid value 'first': expected a run number"),
        ("logs J --run 9223372036854775808", "--run: invalid value '9223372036854775808': expected a run number"),
        ("logs J --stream x", "--stream: invalid value 'x': expected stdout, stderr or both"),
        ("list --limit 0", "--limit: invalid value '0': expected an integer, 1 or more"),
        ("list --phase running,x", "--phase: invalid value 'x': expected submitting, waiting"),
        ("list --outcome lost,", "--outcome: invalid value '': expected success, failure"),
        ("list --submitted-after now", "--submitted-after: invalid value 'now': expected an RFC 3339 time"),
        ("list --before 01a2b3c4", "--before: invalid value '01a2b3c4': expected a whole job ID"),
        ("logs J --lines", "logs: --lines needs a value: --lines N"),
        ("logs J -n", "logs: -n needs a value: -n N"),
        ("show run J 0", "RUN: invalid value '0': expected a run number such as 1, or -1 for the latest run"),
        ("cancel run J latest", "RUN: invalid value 'latest': expected a run number"),
    ],
)
def test_a_refusal_names_the_flag_the_value_and_what_is_valid(line: str, message: str) -> None:
    assert refusal(*words(line)).startswith(message)


def test_a_refused_assignment_does_not_repeat_what_may_be_secret() -> None:
    assert "secret" not in refusal("run", "--env", "=secret", "--", "x")


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_d16_an_empty_selector_is_a_usage_error(blank: str) -> None:
    assert refusal("status", blank).startswith("JOB: invalid value")


# --- Words that are not understood ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("statsu J", "unknown command 'statsu': did you mean status?"),
        ("version", "unknown command 'version': jobman --help lists what there is"),
        ("lst", "unknown command 'lst': did you mean list?"),
        ("help bogus", "help: unknown command 'bogus': jobman --help lists what there is"),
        ("help show jobs", "help: unknown command 'show jobs': jobman --help lists what there is"),
        ("list --jsn", "list: unknown flag --jsn: did you mean --json?"),
        ("run --retry -- x", "run: unknown flag --retry: did you mean --retry-delay?"),
        ("run --frobnicate -- x", "run: unknown flag --frobnicate: jobman run --help lists what there is"),
        ("show run J 1 --jsno", "show run: unknown flag --jsno: did you mean --json?"),
        ("list -x", "list: unknown flag -x: jobman list --help lists what there is"),
        ("logs -fx J", "logs: unknown flag -x: jobman logs --help lists what there is"),
        ("list ---json", "list: unknown flag ---json: did you mean --json?"),
        ("list --=1", "list: unknown flag --: jobman list --help lists what there is"),
        ("--json list", "unknown flag --json: jobman --help lists what there is"),
        ("--version status J", "status: unknown flag --version: jobman status --help lists what there is"),
        ("-- status J", "a command must come before --"),
    ],
)
def test_an_unknown_word_is_named_with_what_may_be_meant(line: str, message: str) -> None:
    assert refusal(*words(line)) == message


@pytest.mark.parametrize("line", ["list --js", "list --show", "run --nam x -- y", "statu J"])
def test_nothing_is_abbreviated(line: str) -> None:
    assert "unknown" in refusal(*words(line))


def test_a_message_stays_one_printable_line() -> None:
    assert refusal("list", "--a\nb\udcff").startswith("list: unknown flag '--a\\nb\\xff'")
    assert refusal("list", "-\n").startswith("list: unknown flag '-\\n'")
    assert refusal("a\nb").startswith("unknown command 'a\\nb'")


# --- Operands ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "command", "positionals"),
    [
        ("status J", ("status",), ("J",)),
        ("status --json J", ("status",), ("J",)),
        ("status J --json", ("status",), ("J",)),
        ("status -- --json", ("status",), ("--json",)),
        ("status -", ("status",), ("-",)),
        ("list", ("list",), ()),
        ("list --", ("list",), ()),
        ("wait A --any B -- -C", ("wait",), ("A", "B", "-C")),
        ("show J", ("show",), ("J",)),
        ("show job J", ("show", "job"), ("J",)),
        ("show job job", ("show", "job"), ("job",)),
        ("show -- job", ("show",), ("job",)),
        ("show run J 1", ("show", "run"), ("J", "1")),
        ("show run J -1 --json", ("show", "run"), ("J", "-1")),
        ("show run --json J -1", ("show", "run"), ("J", "-1")),
        ("show run J --json -1", ("show", "run"), ("J", "-1")),
        ("show --json run J -12", ("show", "run"), ("J", "-12")),
        ("show run -- -J -1", ("show", "run"), ("-J", "-1")),
        ("show run J -- -1", ("show", "run"), ("J", "-1")),
        ("cancel --wait J", ("cancel",), ("J",)),
        ("cancel job J", ("cancel", "job"), ("J",)),
        ("cancel --wait run J -1", ("cancel", "run"), ("J", "-1")),
    ],
)
def test_flags_and_operands_mix_and_the_first_word_may_name_a_subcommand(
    line: str, command: tuple[str, ...], positionals: tuple[str, ...]
) -> None:
    parsed = parse(words(line))
    assert (parsed.command, parsed.positionals, parsed.trailing) == (command, positionals, None)


def test_a_flag_given_before_a_subcommand_counts_for_it() -> None:
    assert parse(words("show --json run J 1")).value("json") is True
    assert parse(words("cancel --wait job J")).value("wait") is True


def test_operands_have_values_by_name() -> None:
    assert parse(words("show run J -1")).operand("RUN") == -1
    assert parse(words("show run J -1")).operand("JOB") == "J"
    assert parse(words("wait A B")).operand("JOB") == ("A", "B")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("status", "status: accepts 1 arg(s), received 0: jobman status JOB [OPTIONS]"),
        ("status A B", "status: accepts 1 arg(s), received 2"),
        ("list A", "list: accepts 0 arg(s), received 1"),
        ("clean A B", "clean: accepts at most 1 arg(s), received 2"),
        ("wait", "wait: accepts at least 1 arg(s), received 0"),
        ("show job", "show job: accepts 1 arg(s), received 0"),
        ("show run J", "show run: accepts 2 arg(s), received 1"),
        ("show run J -1 --json X", "show run: accepts 2 arg(s), received 3"),
        ("cancel run J -1 -2", "cancel run: accepts 2 arg(s), received 3"),
        ("show run -1", "show run: unknown flag -1"),
        ("status -1", "status: unknown flag -1"),
        ("status J -1", "status: unknown flag -1"),
        ("show J run", "show: accepts 1 arg(s), received 2"),
    ],
)
def test_operands_are_counted(line: str, message: str) -> None:
    assert refusal(*words(line)).startswith(message)


def test_the_target_is_what_follows_the_dashes_untouched() -> None:
    target = ["x", "--help", "--name", "", "--", "-1", "\udcff"]
    parsed = parse(["run", "--name", "n", "--", *target])
    assert parsed.trailing == tuple(target)
    assert parsed.positionals == ()
    assert parsed.value("name") == "n"
    assert not parsed.help_requested


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run echo hi", "run: 'echo' is out of place: the command must follow --"),
        ("run --wait false -- x", "run: 'false' is out of place: the command must follow --"),
        ("run --name -- x", "run: 'x' is out of place: the command must follow --"),
        ("run", "run: there is no command to run"),
        ("run --", "run: there is no command to run"),
        ("run --name x", "run: there is no command to run"),
    ],
)
def test_a_target_must_follow_the_dashes(line: str, message: str) -> None:
    assert refusal(*words(line)).startswith(message)


# --- Flags that exclude each other ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("list --active --completed", "list: --active and --completed exclude each other"),
        ("list --limit 5 --all", "list: --all and --limit exclude each other"),
    ],
)
def test_contradictory_flags_are_refused(line: str, message: str) -> None:
    assert refusal(*words(line)) == message


@pytest.mark.parametrize(
    "line", ["list --active=false --completed", "list --all=false --limit 5", "list --all --active"]
)
def test_a_false_boolean_contradicts_nothing(line: str) -> None:
    assert parse(words(line)).command == ("list",)


# --- Help and version ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "topic"),
    [
        ("", ()),
        ("-h", ()),
        ("--help", ()),
        ("-hv", ()),
        ("--state-dir /d", ()),
        ("help", ()),
        ("help run", ("run",)),
        ("help show run", ("show", "run")),
        ("help --help", ("help",)),
        ("run -h", ("run",)),
        ("-h run", ("run",)),
        ("status --help", ("status",)),
        ("status A B --help", ("status",)),
        ("list --active --completed -h", ("list",)),
        ("show -h", ("show",)),
        ("show job -h", ("show", "job")),
        ("show run J -h", ("show", "run")),
        ("logs -fh", ("logs",)),
    ],
)
def test_help_is_asked_for(line: str, topic: tuple[str, ...]) -> None:
    parsed = parse(words(line))
    assert (parsed.help_requested, parsed.version_requested, parsed.command) == (True, False, topic)


@pytest.mark.parametrize("line", ["-v", "--version", "--state-dir /d -v"])
def test_the_version_is_asked_for(line: str) -> None:
    parsed = parse(words(line))
    assert (parsed.help_requested, parsed.version_requested, parsed.command) == (False, True, ())


def test_help_that_is_declined_is_not_shown() -> None:
    assert not parse(words("status J --help=false")).help_requested


# --- Any words -----------------------------------------------------------------------------------------------------

VOCABULARY = sorted(
    {
        word
        for verb in flags.verbs()
        for row in flags.flags_of(flags.load(verb))
        for word in (f"--{row.name}", f"-{row.short}")
    }
    | {
        *flags.verbs(),
        "job",
        "--",
        "-",
        "-1",
        "5s",
        "all",
        "--json=maybe",
        "-nf",
        "-fn",
        "=",
        "--=",
        "--help=F",
        "",
        "-v",
    }
)
WORDS = (
    st.sampled_from(VOCABULARY)
    | st.text(max_size=8)
    | st.binary(max_size=4).map(lambda raw: raw.decode(errors="surrogateescape"))
)


@given(st.lists(WORDS, max_size=8))
@example(["show", "--", "run"])
@example(["-"])
def test_any_words_are_understood_or_refused(argv: list[str]) -> None:
    try:
        parsed = parse(argv)
    except JobmanError as error:
        assert str(error).startswith("invalid command usage: ")  # noqa: PT017  # words may also be understood
        return
    assert isinstance(parsed, Parsed)
    if parsed.command and not parsed.help_requested:
        read_all_values(parsed)


def read_all_values(parsed: Parsed) -> None:
    command = flags.find(parsed.command)
    assert command is not None
    for row in flags.flags_of(command):
        parsed.value(row.name)


@given(
    st.text() | st.binary().map(lambda raw: raw.decode(errors="surrogateescape")),
    st.sampled_from(["name", "limit", "phase"]),
)
def test_a_value_means_the_same_attached_or_as_a_word_of_its_own(text: str, name: str) -> None:
    assert outcome("list", f"--{name}", text) == outcome("list", f"--{name}={text}")


def outcome(*argv: str) -> object:
    try:
        parsed = parse(argv)
    except JobmanError as error:
        return str(error)
    return parsed.value("name"), parsed.value("limit"), parsed.value("phase")


# --- Start-up ------------------------------------------------------------------------------------------------------

HEAVY = {
    "re",
    "typing",
    "enum",
    "json",
    "argparse",
    "dataclasses",
    "difflib",
    "textwrap",
    "shutil",
    "collections",
    "functools",
}


@pytest.mark.parametrize(
    ("line", "modules"),
    [
        ("status X", {"jobman.cli.flags.status"}),
        ("run --name n -- x", {"jobman.cli.flags.run"}),
        (
            "run --retry-delay 1s -- x",
            {"jobman.cli.flags.run", "jobman.cli.values", "jobman.model", "jobman.model.scalars"},
        ),
    ],
)
def test_parsing_loads_the_table_of_the_command_and_nothing_heavy(line: str, modules: set[str]) -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv.pop(1).split(':'); before = set(sys.modules)\n"
        "from jobman.cli.parser import parse; parse(sys.argv[1:]); print(*(set(sys.modules) - before))"
    )
    roots = ":".join(path for path in sys.path if path)
    # -S: what site loads for the environment of this test would hide what the parser loads.
    command = [sys.executable, "-I", "-S", "-c", program, roots, *words(line)]
    loaded = set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert not loaded & HEAVY
    always = {"jobman", "jobman.cli", "jobman.cli.flags", "jobman.cli.parser", "jobman.errors", "__future__"}
    assert loaded == always | modules
