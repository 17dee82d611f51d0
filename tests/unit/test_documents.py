"""The JSON documents: their envelope, and that they and their schemas agree both ways (contract, A.1 to A.6, A.16)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from jobman import documents
from jobman.documents import doctor
from jobman.model.events import Transition
from jobman.model.identity import ProcessIdentity
from jobman.model.spec import (
    Classification,
    Completion,
    Dependency,
    Environment,
    ExitCodeRange,
    JobSpec,
    Logging,
    Predicate,
    StdinPolicy,
    StopPolicy,
)
from jobman.model.state import (
    Diagnostic,
    JobOutcome,
    JobPhase,
    LogIntegrity,
    Pause,
    Problem,
    Pruning,
    RunExit,
    RunLogs,
    RunUsage,
)
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits
from jobman.policy.conditions import EVALUATION_ERROR, PROBE_TIMEOUT, ConditionState
from jobman.policy.liveness import Verdict
from jobman.policy.waiting import DependencyState
from jobman.process import Member
from jobman.process.session import Limits
from jobman.service.doctor.findings import Disk, Finding, Level, Report, Survivor
from jobman.service.maintain import Totals
from jobman.service.query import Detail, Listed, Summary
from jobman.store.check import Database
from jobman.store.live_input import LiveInput
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, HOUR_NS, SITUATIONS, walk
from tests.notifiers import ATTEMPT, DELIVERY, NOTIFIERS, SUBSCRIPTIONS
from tests.strategies import dependencies, histories, job_specs
from tests.support import SCHEMAS, check_document, document_validator

ROOT = "/state"
MEMBER = Member(ProcessIdentity(7, "9", "boot", "4026531836"), "sleep", "S", 7)
NAMES = ("clean", "doctor", "status", "list", "show-job", "show-run")


# --- Jobs to print --------------------------------------------------------------------------------------------------


def detail_of(history: list[Transition], spec: JobSpec | None = None, *, reason: str = "") -> Detail:
    """Return what ``show`` would know of a job after a history."""
    last = history[-1].after
    runs = {change.after.run.id: change.after.run for change in history if change.after.run is not None}
    admissions = [change.after.admission for change in history if change.after.admission is not None]
    owned = last.supervisor is not None and last.supervisor.released_at_ns is None
    return Detail(
        summary=Summary(last.job, reason),
        spec=spec or JobSpec(executable="true", arguments=(), working_directory="/"),
        runs=tuple(runs.values()),
        dependencies=(),
        admission=admissions[-1] if admissions else None,
        supervisor=last.supervisor,
        supervisor_state=Verdict.LIVE if owned else None,
    )


def edge_states(edges: tuple[Dependency, ...]) -> st.SearchStrategy[tuple[DependencyState, ...]]:
    """Dependencies on jobs that are active, completed, or completed and recorded as such."""
    outcomes = st.sampled_from(tuple(JobOutcome))
    states = [
        st.builds(
            DependencyState,
            edge=st.just(edge),
            name=st.just("other"),
            phase=st.sampled_from(tuple(JobPhase)),
            revision=st.integers(1, 9),
            outcome=outcomes,
            observed_outcome=st.none() | outcomes,
            observed_revision=st.none() | st.integers(1, 9),
            satisfied_at_ns=st.none() | st.just(EPOCH_NS),
        )
        for edge in edges
    ]
    return st.tuples(*states)


def evaluations(waits: Waits) -> st.SearchStrategy[tuple[ConditionState, ...]]:
    """What is recorded of conditions: nothing, or a look that found something, nothing, or no answer."""
    looks = [
        st.builds(
            ConditionState,
            place=st.just(place),
            kind=st.just(condition.kind.value),
            attempts=st.integers(1, 9),
            evaluated_at_ns=st.just(EPOCH_NS),
            satisfied_at_ns=st.none() | st.just(EPOCH_NS),
            code=st.sampled_from((None, EVALUATION_ERROR, PROBE_TIMEOUT)),
        )
        for place, condition in enumerate(waits.conditions)
    ]
    return st.tuples(*looks) | st.just(())


@st.composite
def details(draw: st.DrawFn) -> Detail:
    """Jobs anywhere in a legal history, with any specification."""
    history = draw(histories(max_moves=12))
    detail = detail_of(history, draw(job_specs()), reason=draw(st.text(max_size=8)))
    edges = draw(dependencies().flatmap(edge_states))
    return detail._replace(dependencies=edges, conditions=draw(evaluations(detail.spec.waits)))


def full_spec() -> JobSpec:
    """Return a specification with every optional member of scheduling."""
    probe = Probe("test", ("-e", "ready"), assignments=(("MODE", "fast"),), removals=("LANG",))
    conditions = (
        WaitCondition(WaitKind.UNTIL, until_ns=EPOCH_NS, abort_at_ns=EPOCH_NS),
        WaitCondition(WaitKind.DELAY, delay_ns=1),
        WaitCondition(WaitKind.FILE_EXISTS, path="/ready", file_kind=FileKind.ANY),
        WaitCondition(WaitKind.PROBE, probe=probe),
    )
    return JobSpec(
        executable="true",
        arguments=(),
        working_directory="/",
        name="named",
        stop=StopPolicy(drain_ns=1, leave_descendants=True),
        completion=Completion(retry_abort_at_ns=EPOCH_NS),
        classification=Classification(retryable_codes=(ExitCodeRange(1, 2),), retryable_signals=("terminated",)),
        dependencies=(Dependency(EXAMPLE_JOB_ID, Predicate.SUCCESS),),
        pool="gpu",
        slots=2,
        waits=Waits(WaitMode.ANY, conditions),
        stdin=StdinPolicy.FILE,
        stdin_path="/data",
        logging=Logging(retention_stated=True),
        subscriptions=SUBSCRIPTIONS,
        notifiers=NOTIFIERS,
    )


def full_detail() -> Detail:
    """Return a detail with every member that can be printed, though no job is ever all of that at once."""
    problem = Problem(Diagnostic.LOG_CAPTURE_DEGRADED, "words")
    detail = detail_of(walk("claim", "admit", "reserve", "start", "cancel", "end"))
    run = detail.runs[0]._replace(
        exit=RunExit(EPOCH_NS, exit_code=0),
        logs=RunLogs(LogIntegrity.VALID, diagnostic_code=problem.code, stdout_bytes=1, stderr_bytes=2),
        usage=RunUsage(1, 2, 3),
        problem=problem,
    )
    job = detail.summary.job._replace(
        name="named",
        problem=problem,
        next_run_at_ns=EPOCH_NS,
        pause=Pause(JobPhase.RUNNING, EPOCH_NS, 0),
        prerequisites_satisfied_at_ns=EPOCH_NS,
    )
    edge = DependencyState(
        Dependency(EXAMPLE_JOB_ID, Predicate.SUCCESS),
        name="",
        phase=JobPhase.COMPLETED,
        revision=5,
        outcome=JobOutcome.SUCCESS,
        observed_outcome=JobOutcome.SUCCESS,
        observed_revision=5,
        satisfied_at_ns=EPOCH_NS,
    )
    return detail._replace(
        summary=Summary(job, "why"),
        spec=full_spec(),
        runs=(run,),
        dependencies=(edge,),
        admission=detail.admission and detail.admission._replace(pool="gpu", slot_scope="gpu", slot_indexes=(0, 3)),
        supervisor_state=Verdict.GONE,
        conditions=(ConditionState(0, "until", 1, EPOCH_NS, EPOCH_NS, EVALUATION_ERROR),),
        survivors=(MEMBER,),
        diagnostics_path="/state/run/x.log",
        deliveries=(DELIVERY,),
        attempts=(ATTEMPT,),
    )


def full_report() -> Report:
    """Return a report with every member that can be printed."""
    return Report(
        root=ROOT,
        sqlite_version="3.54.1",
        findings=(Finding(Level.PROBLEM, "survivors", "alive", "cancel", EXAMPLE_JOB_ID),),
        file_system="ext4",
        database=Database(2, ("ok",), 0),
        survivors=(Survivor(EXAMPLE_JOB_ID, MEMBER),),
        disk=Disk(1, 2, 3, 4, 5),
        limits=Limits(1, 2, 3, 4),
        backup_path="/copy",
        migration_backup="/state/backups/x",
        reconciled=1,
        wal_merged=True,
    )


def pruned(detail: Detail) -> Detail:
    """Return a detail whose run has lost its logs."""
    return detail._replace(runs=(detail.runs[0]._replace(pruning=Pruning(EPOCH_NS + HOUR_NS, 3, 111)),))


def document(name: str, detail: Detail) -> str:
    """Return one of the documents, about a job unless it is of ``clean``."""
    if name == "clean":
        return documents.envelope(documents.cleaning(Totals(runs=1, files=2, bytes=3, jobs=0), applied=True))
    if name == "list":
        return "".join(documents.job_list([Listed(detail.summary, detail.runs)], with_runs=True, root=ROOT))
    content = {
        "doctor": lambda: doctor.report(full_report()),
        "status": lambda: documents.summary(detail.summary),
        "show-job": lambda: documents.job_detail(detail, ROOT),
        "show-run": lambda: documents.run_document(detail.runs[0], ROOT),
    }
    return documents.envelope(content[name]())


def objects_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, the outermost first."""
    if isinstance(value, dict):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_of(member)


# --- Documents keep their schemas -----------------------------------------------------------------------------------


@given(details())
def test_every_job_that_can_come_to_be_is_printed_as_the_schemas_say(detail: Detail) -> None:
    check_document("status", document("status", detail))
    check_document("show-job", document("show-job", detail))
    check_document("list", document("list", detail))
    check_document("list", "".join(documents.job_list([Listed(detail.summary, ())], with_runs=False, root=ROOT)))
    if detail.runs:
        check_document("show-run", document("show-run", detail))


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_place_in_which_a_job_can_be_is_printed_as_the_schemas_say(situation: str) -> None:
    snapshot = SITUATIONS[situation]
    detail = detail_of([Transition(None, snapshot, ())])
    for name in NAMES if detail.runs else NAMES[:-1]:
        check_document(name, document(name, detail))


def test_every_outcome_of_a_job_and_of_a_run_is_in_the_schema() -> None:
    definitions = json.loads((SCHEMAS / "common.schema.json").read_text("utf-8"))["$defs"]
    assert set(definitions["job_outcome"]["enum"]) == set(JobOutcome)
    assert set(definitions["job_phase"]["enum"]) == set(JobPhase)


# --- Schemas are strict ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_a_schema_is_a_schema_and_names_every_member(path: Any) -> None:
    schema = json.loads(path.read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == path.name
    for part in objects_of(schema):
        if isinstance(part.get("properties"), dict) and part.get("type") == "object":
            assert "additionalProperties" in part


@pytest.mark.parametrize("name", NAMES)
def test_a_member_that_the_schema_does_not_know_is_refused_anywhere(name: str) -> None:
    whole = json.loads(document(name, full_detail()))
    validator = document_validator(name)
    assert validator.is_valid(whole)
    for place in range(len(list(objects_of(whole)))):
        changed = copy.deepcopy(whole)
        part = list(objects_of(changed))[place]
        part["added by nobody"] = 1
        assert not validator.is_valid(changed), sorted(part)


@pytest.mark.parametrize("name", NAMES)
def test_a_member_of_another_type_is_refused_anywhere(name: str) -> None:
    whole = json.loads(document(name, full_detail()))
    validator = document_validator(name)
    for place, part in enumerate(objects_of(whole)):
        for member in part:
            changed = copy.deepcopy(whole)
            list(objects_of(changed))[place][member] = 0.5
            assert not validator.is_valid(changed), member


def test_every_member_of_the_schemas_is_printed_or_belongs_to_a_feature_that_is_not_offered_yet() -> None:
    whole = full_detail()
    texts = [
        document("show-job", whole),
        document("show-run", pruned(whole)),
        *(document(name, whole) for name in ("clean", "doctor")),
    ]
    printed = {member for text in texts for part in objects_of(json.loads(text)) for member in part}
    known: set[str] = set()
    for path in SCHEMAS.glob("[!c]*.json"):  # the configuration is not ours to print in full; common is below
        for part in objects_of(json.loads(path.read_text("utf-8"))):
            if isinstance(part.get("properties"), dict) and part.get("type") == "object":
                known |= part["properties"].keys()
    others = {"jobs", "input_endpoint"}
    exits = {"signal", "platform_reason"}
    assert known - printed <= others | exits


# --- The envelope ---------------------------------------------------------------------------------------------------


def test_a_document_is_one_compact_line_whose_version_comes_first_and_whose_keys_are_sorted() -> None:
    assert documents.envelope({"b": [1, {"z": None, "a": True}], "a": "x y"}) == (
        '{"schema_version":1,"data":{"a":"x y","b":[1,{"a":true,"z":null}]}}\n'
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("<a href='x'>&</a>", "<a href='x'>&</a>"),
        ("é 😀", "é 😀"),
        ("\udcff", "\ufffd"),
        ("\udcc3\udca9", "\ufffd\ufffd"),
        ("😀\udcff", "😀\ufffd"),
        ("\x1b]0;x\x07\n\x00", "\\u001b]0;x\\u0007\\n\\u0000"),
    ],
)
def test_text_is_printed_as_utf_8_and_stays_on_its_line(text: str, printed: str) -> None:
    assert documents.envelope({"a": text}) == f'{{"schema_version":1,"data":{{"a":"{printed}"}}}}\n'
    assert documents.envelope({text: 1}) == f'{{"schema_version":1,"data":{{"{printed}":1}}}}\n'


def test_an_empty_list_is_a_whole_document() -> None:
    assert "".join(documents.job_list([], with_runs=True, root=ROOT)) == '{"schema_version":1,"data":{"jobs":[]}}\n'


def test_a_list_is_printed_piece_by_piece() -> None:
    """D38: a list of any length is streamed; the second job is not asked for before the first is printed."""

    def jobs() -> Iterator[Listed]:
        yield Listed(full_detail().summary, ())
        raise AssertionError

    pieces = documents.job_list(jobs(), with_runs=False, root=ROOT)
    assert EXAMPLE_JOB_ID in next(pieces) + next(pieces)


def test_a_list_that_cannot_be_read_prints_nothing() -> None:
    """C.1: whatever is on stdout is a whole document."""

    def jobs() -> Iterator[Listed]:
        yield from ()
        raise OSError

    with pytest.raises(OSError):
        next(documents.job_list(jobs(), with_runs=False, root=ROOT))


def test_what_could_not_be_read_of_a_damaged_database_is_left_out() -> None:
    report = full_report()._replace(database=Database(None, ("malformed",), None))
    store = check_document("doctor", documents.envelope(doctor.report(report)))["store"]
    assert (store["healthy"], store["integrity_result"]) == (False, "malformed")
    assert not {"schema_version", "foreign_key_violations"} & store.keys()
    unseen = report._replace(database=None, disk=Disk(), limits=None, survivors=())
    assert check_document("doctor", documents.envelope(doctor.report(unseen)))["disk"]["store_bytes"] == 0


# --- What is left out, what is not ----------------------------------------------------------------------------------


def test_what_a_fresh_job_does_not_have_is_absent() -> None:
    data = check_document("show-job", document("show-job", detail_of(walk())))
    assert data.keys() == {
        "dependencies",
        "notification_attempts",
        "notification_deliveries",
        "runs",
        "runtime",
        "specification",
        "summary",
        "wait_evaluations",
    }
    assert data["summary"].keys() == {"id", "phase", "revision", "submitted_at"}
    assert data["runtime"].keys() == {
        "failure_count",
        "input_eof_requested",
        "revision",
        "run_count",
        "success_count",
        "total_paused",
    }


def test_live_input_is_shown_while_the_job_takes_it_and_its_end_for_the_latest_run() -> None:
    """I.6: the endpoint is published for the life of the supervisor, the mark of an end is one of a run."""
    running = detail_of(walk("claim", "admit", "reserve", "start"))
    run_id = running.runs[-1].id
    completed = detail_of(walk("claim", "admit", "reserve", "start", "end"))
    for detail, eof_run_id, endpoint, ended in (
        (running, None, "/s", False),
        (running, "another", "/s", False),
        (running, run_id, "/s", True),
        (completed, run_id, None, True),
    ):
        offered = detail._replace(live_input=LiveInput("/s", eof_run_id))
        runtime = check_document("show-job", document("show-job", offered))["runtime"]
        assert (runtime.get("input_endpoint"), runtime["input_eof_requested"]) == (endpoint, ended)


def test_an_exit_code_of_zero_is_shown_and_a_size_of_zero_is_not() -> None:
    detail = full_detail()
    run = detail.runs[0]._replace(logs=RunLogs(LogIntegrity.VALID, stdout_bytes=0, stderr_bytes=7))
    data = documents.run_document(run, ROOT)
    assert data["exit"]["exit_code"] == 0
    assert "stdout_size" not in data["logs"]
    assert data["logs"]["stderr_size"] == 7


def test_logs_that_were_pruned_have_no_paths_or_sizes() -> None:
    detail = full_detail()
    logs = check_document("show-run", document("show-run", pruned(detail)))["logs"]
    assert {name for name in logs if name.endswith(("_path", "_size"))} == set()
    assert (logs["available"], logs["pruned_at"]) == (False, "2027-01-15T09:00:00Z")
    assert (logs["pruned_files"], logs["pruned_bytes"]) == (3, 111)
    assert logs["integrity"] == "valid"


def test_the_integrity_of_an_active_run_is_pending() -> None:
    detail = detail_of(walk("claim", "admit", "reserve", "start"))
    logs = documents.run_document(detail.runs[0], ROOT)["logs"]
    assert logs["integrity"] == "pending"
    assert logs["stdout_path"] == f"{ROOT}/logs/{EXAMPLE_JOB_ID}/1/stdout.log"


def test_nulls_of_the_specification_are_kept() -> None:
    """O.37: an omitted list of retryable codes means "all of them", an empty one "none"."""
    policy = documents.job_detail(detail_of(walk()), ROOT)["specification"]["execution_policy"]
    assert policy["classification"]["retryable_exit_codes"] is None
    assert policy["failure_delay"]["max_delay"] is None


def test_values_under_sensitive_names_are_hidden_and_keep_their_type() -> None:
    """O.2."""
    spec = detail_of(walk()).spec
    spec = spec._replace(environment=Environment((("API_TOKEN", "hunter2"), ("PLAIN", "seen")), ()))
    text = document("show-job", detail_of(walk(), spec))
    assert "hunter2" not in text
    data = check_document("show-job", text)
    assert data["specification"]["environment"]["set"] == {"API_TOKEN": "[REDACTED]", "PLAIN": "seen"}
    assert data["specification"]["execution_policy"]["secret_environment"] == {}
