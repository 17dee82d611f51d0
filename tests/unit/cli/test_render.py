"""Tables and labelled fields that people read (contract, A.4 to A.6; A.16; D36)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.render import job_table, job_view, labelled, run_view, status, table
from jobman.cli.report import report_view
from jobman.model.identity import ProcessIdentity
from jobman.model.spec import JobSpec
from jobman.model.state import (
    Diagnostic,
    JobOutcome,
    JobPhase,
    LogIntegrity,
    Problem,
    RecordingHealth,
    RunExit,
    RunLogs,
    RunUsage,
)
from jobman.policy.liveness import Verdict
from jobman.process import Member
from jobman.service.doctor.findings import Finding, Level, Report
from jobman.service.query import Detail, Listed, Summary
from jobman.store.check import Database
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, walk

SUBMITTED = "2027-01-15T08:00:00Z"


def detail() -> Detail:
    """Return a job that has been cancelled in its first run."""
    history = walk("claim", "admit", "reserve", "start", "cancel", "end")
    last = history[-1].after
    assert last.run is not None
    spec = JobSpec(executable="sh", arguments=(), working_directory="/w")
    return Detail(Summary(last.job, "why"), spec, (last.run,), (), last.admission, last.supervisor, None)


def field(text: str, label: str) -> str:
    """Return the value under a label, which must be there once."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"{label}:")]
    return line.partition(":")[2].strip()


# --- Tables ---------------------------------------------------------------------------------------------------------


def test_a_column_is_as_wide_as_its_longest_cell_and_two_and_the_last_as_it_is() -> None:
    assert table([("A", "BBBB", "C"), ("aaa", "b", "ccccc"), ("", "", "")]) == "A    BBBB  C\naaa  b     ccccc\n\n"


@given(st.lists(st.tuples(*[st.text("ab é", max_size=4)] * 3), min_size=1))
def test_every_cell_begins_where_its_column_does(rows: list[tuple[str, str, str]]) -> None:
    widths = [max(len(row[place]) for row in rows) + 2 for place in range(2)]
    for row, line in zip(rows, table(rows).split("\n"), strict=False):
        padded = line.ljust(sum(widths))
        assert padded.startswith(row[0].ljust(widths[0]) + row[1].ljust(widths[1]))
        assert line == line.rstrip(" ")
        assert padded[sum(widths) :].rstrip() == row[2].rstrip()


def test_a_list_has_a_header_even_without_jobs() -> None:
    assert job_table([]) == "ID  NAME  PHASE  OUTCOME  SUBMITTED  REASON\n"


def test_runs_stand_below_their_job_in_the_same_columns() -> None:
    found = detail()
    lines = job_table([Listed(found.summary, found.runs)]).splitlines()
    assert lines[1].split() == [EXAMPLE_JOB_ID, "completed", "cancelled", SUBMITTED, "why"]
    assert lines[2].split() == ["run", found.runs[0].id, "#1", "completed", "cancelled", str(found.runs[0].revision)]
    assert lines[2].startswith("  run ")
    assert lines[1].index(SUBMITTED) == lines[2].rindex(" ") + 1


def test_status_is_one_line_of_five_fields_whatever_they_hold() -> None:
    found = detail()
    odd = Summary(found.summary.job._replace(name="a\x1b"), "line\nline\tfield")
    line = status(odd)
    assert line == f"{EXAMPLE_JOB_ID}\ta\\x1b\tcompleted\tcancelled\tline\\x0aline\\x09field\n"


# --- Views ----------------------------------------------------------------------------------------------------------


def test_values_stand_in_a_column_two_spaces_after_the_longest_label() -> None:
    assert labelled({"ID": "1", "Longest": "2", "Empty": ""}) == "ID:       1\nLongest:  2\nEmpty:\n"


def test_values_are_text_and_those_of_sensitive_labels_are_hidden() -> None:
    """A.16, K.8: human fields use their label as the key."""
    assert labelled({"Name": "a\nb\x1b\udcff"}) == "Name:  a\\x0ab\\x1b\\xff\n"
    assert labelled({"Password": "x", "Cookie": ""}) == "Password:  [REDACTED]\nCookie:\n"


@pytest.mark.parametrize(
    ("state", "supervisor", "survivors"),
    [
        (Verdict.LIVE, "live, pid 4711", False),
        (Verdict.GONE, "gone, pid 4711", False),
        (Verdict.UNVERIFIABLE, "unverifiable, pid 4711", True),
    ],
)
def test_a_supervisor_is_shown_with_what_is_known_of_it(state: Verdict, supervisor: str, *, survivors: bool) -> None:
    text = job_view(detail()._replace(supervisor_state=state))
    assert field(text, "Supervisor") == supervisor
    assert ("Survivors:" in text) == survivors


def test_survivors_of_a_lost_job_are_named_with_what_stops_them() -> None:
    """D25, A.16."""
    member = Member(ProcessIdentity(7, "9", "boot", "1"), "sl\x1beep", "S", 7)
    found = detail()._replace(supervisor_state=None)
    assert "Survivors:" not in job_view(found)
    assert field(job_view(found._replace(survivors=None)), "Survivors") == "unknown"
    shown = field(job_view(found._replace(survivors=(member, member))), "Survivors")
    assert shown == f"pid 7 (sl\\x1beep), pid 7 (sl\\x1beep); jobman cancel {EXAMPLE_JOB_ID} stops them"


def test_notes_of_a_supervisor_are_named_if_there_are_any() -> None:
    """D24."""
    assert "Supervisor's notes" not in job_view(detail())
    noted = job_view(detail()._replace(diagnostics_path="/state/run/x.log"))
    assert field(noted, "Supervisor's notes") == "/state/run/x.log"


@pytest.mark.parametrize(
    ("database", "first_line"),
    [
        (Database(2, ("ok",), 0), "unhealthy\tschema=2\tsqlite=3.54.1\tforeign_keys=0"),
        (Database(None, ("malformed",), None), "unhealthy\tschema=unknown\tsqlite=3.54.1\tforeign_keys=unknown"),
        (None, "unhealthy\tschema=unknown\tsqlite=3.54.1\tforeign_keys=unknown"),
    ],
)
def test_a_report_begins_as_programs_expect_and_has_a_line_for_each_finding(
    database: Database | None, first_line: str
) -> None:
    """D46."""
    findings = (Finding(Level.OK, "disk", "room"), Finding(Level.PROBLEM, "files", "a\nb", "chmod"))
    text = report_view(Report("/state", "3.54.1", findings, database=database))
    assert text == f"{first_line}\nok        disk: room\nproblem   files: a\\x0ab; chmod\n"


def test_an_admission_is_active_until_it_is_released() -> None:
    found = detail()
    assert found.admission is not None
    assert field(job_view(found), "Admission") == "released, global, 1 slot(s)"
    held = found.admission._replace(released_at_ns=None, slots=3)
    assert field(job_view(found._replace(admission=held)), "Admission") == "active, global, 3 slot(s)"
    assert field(job_view(found._replace(admission=None)), "Admission") == "none"


def test_a_job_without_runs_has_no_table_of_them() -> None:
    assert "RUN" not in job_view(detail()._replace(runs=()))
    assert "\n\nRUN  PHASE" in job_view(detail())


def test_a_problem_of_a_job_is_shown_with_its_code() -> None:
    found = detail()
    job = found.summary.job._replace(problem=Problem(Diagnostic.DEPENDENCY_UNSATISFIED, "in words"))
    text = job_view(found._replace(summary=Summary(job, "in words")))
    assert field(text, "Diagnostic") == "in words (dependency_unsatisfied)"
    assert field(text, "Reason") == "in words"


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        (RunExit(EPOCH_NS, exit_code=0), "code 0"),
        (RunExit(EPOCH_NS, exit_code=255), "code 255"),
        (RunExit(EPOCH_NS, signal="segmentation fault"), "signal: segmentation fault"),
        (RunExit(EPOCH_NS, platform_reason="process_terminated"), "process_terminated"),
        (None, ""),
    ],
)
def test_a_run_is_shown_with_its_end(end: RunExit | None, shown: str) -> None:
    assert field(run_view(detail().runs[0]._replace(exit=end)), "Exit") == shown


def test_a_run_is_shown_with_its_usage_its_logs_and_its_problem() -> None:
    """D24, D35."""
    run = detail().runs[0]
    bare = run_view(run)
    assert "Peak memory" not in bare
    assert "Diagnostic" not in bare
    assert field(bare, "Logs") == "available"
    degraded = RunLogs(LogIntegrity.PARTIAL, RecordingHealth.DEGRADED, Diagnostic.LOG_CAPTURE_DEGRADED)
    text = run_view(
        run._replace(
            usage=RunUsage(3 * 1024 * 1024 + 600_000, 1_500_000_000, 250_000),
            logs=degraded,
            problem=Problem(Diagnostic.EXECUTABLE_NOT_FOUND, "executable 'x' was not found"),
        )
    )
    assert field(text, "Peak memory") == "3.6 MiB"
    assert field(text, "CPU time") == "1.5s user, 250µs system"
    assert "Captured" not in text, "not known before the end"
    assert field(text, "Logs") == "available, partial, degraded (log_capture_degraded)"
    assert field(text, "Diagnostic") == "executable 'x' was not found (executable_not_found)"


def test_a_job_without_a_problem_of_its_own_shows_that_of_its_last_run() -> None:
    """D33: what is left, or cannot be killed, is named where one looks first."""
    shown = detail()
    assert "Diagnostic" not in job_view(shown)
    run = shown.runs[0]._replace(problem=Problem(Diagnostic.DESCENDANTS_LEFT, "left running: d (pid 7)"))
    assert field(job_view(shown._replace(runs=(run,))), "Diagnostic") == "left running: d (pid 7) (descendants_left)"


@pytest.mark.parametrize("phase", [phase for phase in JobPhase if phase != JobPhase.COMPLETED])
def test_a_job_that_has_not_ended_has_an_empty_outcome(phase: JobPhase) -> None:
    job = detail().summary.job._replace(phase=phase, outcome=None)
    assert status(Summary(job, "")) == f"{EXAMPLE_JOB_ID}\t\t{phase.value}\t\t\n"


@pytest.mark.parametrize("outcome", list(JobOutcome))
def test_outcomes_are_printed_as_they_are_spelled(outcome: JobOutcome) -> None:
    job = detail().summary.job._replace(outcome=outcome)
    assert status(Summary(job, "")).split("\t")[3] == outcome.value
