"""What people read: tables and labelled fields (contract, A.4 to A.6; A.16)."""

from __future__ import annotations

from jobman.cli.output import printable
from jobman.config.redaction import redact_text
from jobman.model.scalars import format_duration, format_timestamp
from jobman.policy.liveness import Verdict
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from jobman.model.state import Admission, Run
    from jobman.service.maintain import Totals
    from jobman.service.query import Detail, Listed, Summary

    Cells = Sequence[str]

_GAP = 2
_MEBIBYTE = 1024 * 1024
_LIST_HEADER = ("ID", "NAME", "PHASE", "OUTCOME", "SUBMITTED", "REASON")
_RUN_HEADER = ("RUN", "PHASE", "OUTCOME", "STARTED", "COMPLETED", "LOGS")


def status(summary: Summary) -> str:
    """Return the line of ``status``: ID, name, phase, outcome and reason, separated by tabs."""
    job = summary.job
    return "\t".join((job.id, _name(job.name), job.phase, job.outcome or "", _reason(summary.reason))) + "\n"


def table(rows: Iterable[Cells]) -> str:
    """Return rows as columns: each as wide as its longest cell and two spaces, the last one as it is."""
    cells = [tuple(row) for row in rows]
    widths = [max(len(row[place]) for row in cells) + _GAP for place in range(len(cells[0]) - 1)]
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + row[-1] for row in cells)
    return "".join(line.rstrip() + "\n" for line in lines)


def job_table(jobs: Iterable[Listed]) -> str:
    """Return the table of ``list``; the header is there even when no job is."""
    rows: list[Cells] = [_LIST_HEADER]
    for listed in jobs:
        rows.extend(_list_rows(listed))
    return table(rows)


def job_view(detail: Detail, without_logs: Collection[int] = ()) -> str:
    """Return what ``show JOB`` prints; ``without_logs`` are the numbers of runs whose files are not there."""
    fields = dict(_job_fields(detail))
    text = labelled(fields)
    if detail.runs:
        text += "\n" + table([_RUN_HEADER, *(_run_row(run, without_logs) for run in detail.runs)])
    return text


def run_view(run: Run, without_logs: Collection[int] = ()) -> str:
    """Return what ``show run`` prints; arguments as for `job_view`."""
    fields = {
        "ID": run.id,
        "Number": str(run.number),
        "Phase": run.phase.value,
        "Outcome": run.outcome or "",
        "Revision": str(run.revision),
        "Resolved executable": run.resolved_executable or "",
        "Reserved": format_timestamp(run.reserved_at_ns),
        "Started": _time(run.started_at_ns),
        "Completed": _time(run.completed_at_ns),
        "Exit": _exit(run),
        "Logs": _logs(run, without_logs),
    }
    if run.usage is not None:
        fields["Peak memory"] = f"{run.usage.max_rss_bytes / _MEBIBYTE:.1f} MiB"
        user, system = format_duration(run.usage.user_cpu_ns), format_duration(run.usage.system_cpu_ns)
        fields["CPU time"] = f"{user} user, {system} system"
    if run.logs.stdout_bytes is not None:
        fields["Captured"] = f"{run.logs.stdout_bytes} bytes of stdout, {run.logs.stderr_bytes or 0} bytes of stderr"
    if run.problem is not None:
        fields["Diagnostic"] = f"{run.problem.text} ({run.problem.code})"
    return labelled(fields)


def cleaning(totals: Totals, *, applied: bool, forced: bool) -> str:
    """Return the line of ``clean``; who did not say ``--force`` is told of it."""
    runs, files, size, jobs = totals
    done = "removed" if applied else "would remove"
    advice = "" if forced else "; run with `--force` to remove"
    return f"{done} {runs} runs, {files} files, {size} bytes, {jobs} jobs{advice}\n"


def labelled(fields: dict[str, str]) -> str:
    """Return one line per field: the label, a colon, and the value in a column of its own."""
    width = max(len(label) for label in fields) + 1 + _GAP
    lines = (f"{label + ':':<{width}}{printable(redact_text(value, label))}" for label, value in fields.items())
    return "".join(line.rstrip() + "\n" for line in lines)


def _job_fields(detail: Detail) -> Iterator[tuple[str, str]]:
    job, spec = detail.summary.job, detail.spec
    yield "ID", job.id
    yield "Name", job.name
    yield "Phase", job.phase
    yield "Outcome", job.outcome or ""
    yield "Reason", detail.summary.reason
    yield "Submitted", format_timestamp(job.submitted_at_ns)
    yield "Executable", spec.executable
    yield "Working directory", spec.working_directory
    yield "Completed runs", str(job.counters.runs)
    yield "Successful runs", str(job.counters.successes)
    yield "Failed runs", str(job.counters.failures)
    yield "Dependencies", str(len(detail.dependencies))
    yield "Wait evaluations", str(len(detail.conditions))
    yield "Admission", _admission(detail.admission)
    if detail.supervisor is not None and detail.supervisor_state is not None:
        yield "Supervisor", f"{detail.supervisor_state}, pid {detail.supervisor.identity.pid}"
    if detail.supervisor_state == Verdict.UNVERIFIABLE or detail.survivors is None:
        yield "Survivors", "unknown"
    elif detail.survivors:
        named = ", ".join(f"pid {member.identity.pid} ({member.name})" for member in detail.survivors)
        yield "Survivors", f"{named}; jobman cancel {job.id} stops them"
    # Of a job that is not over, or a success, only the run knows what is wrong.
    problem = job.problem or (detail.runs[-1].problem if detail.runs else None)
    if problem is not None:
        yield "Diagnostic", f"{problem.text} ({problem.code})"
    if detail.diagnostics_path:
        yield "Supervisor's notes", detail.diagnostics_path
    yield "Notification deliveries", str(len(detail.deliveries))
    yield "Pending notifications", str(sum(delivery.completed_at_ns is None for delivery in detail.deliveries))
    yield "Notification attempts", str(len(detail.attempts))
    for delivery in detail.deliveries:
        if delivery.diagnostic_code is not None:
            told = f": {delivery.diagnostic}" if delivery.diagnostic else ""
            yield f"Not told {delivery.notifier}", f"{delivery.event_type}, {delivery.diagnostic_code}{told}"


def _list_rows(listed: Listed) -> Iterator[Cells]:
    job = listed.summary.job
    submitted = format_timestamp(job.submitted_at_ns)
    reason = _reason(listed.summary.reason)
    yield (job.id, _name(job.name), job.phase, job.outcome or "", submitted, reason)
    for run in listed.runs:
        yield (f"  run {run.id}", f"#{run.number}", run.phase, run.outcome or "", str(run.revision), "")


def _run_row(run: Run, without_logs: Collection[int]) -> Cells:
    times = (_time(run.started_at_ns), _time(run.completed_at_ns))
    return (str(run.number), run.phase, run.outcome or "", *times, _logs(run, without_logs))


def _name(name: str) -> str:
    return printable(redact_text(name, "name"))


def _reason(reason: str) -> str:
    return printable(redact_text(reason, "reason"))


def _admission(admission: Admission | None) -> str:
    if admission is None:
        return "none"
    state = "active" if admission.released_at_ns is None else "released"
    scope = "global" if admission.pool is None else f"pool {admission.pool}"
    return f"{state}, {scope}, {admission.slots} slot(s)"


def _exit(run: Run) -> str:
    if run.exit is None:
        return ""
    if run.exit.exit_code is not None:
        return f"code {run.exit.exit_code}"
    return f"signal: {run.exit.signal}" if run.exit.signal is not None else run.exit.platform_reason or ""


def _logs(run: Run, without_logs: Collection[int]) -> str:
    if run.pruning is not None:
        return f"pruned {format_timestamp(run.pruning.at_ns)}"
    word = "unavailable" if run.number in without_logs else "available"
    if run.logs.diagnostic_code is not None:
        return f"{word}, {run.logs.integrity}, {run.logs.health} ({run.logs.diagnostic_code})"
    return word


def _time(time_ns: int | None) -> str:
    return "" if time_ns is None else format_timestamp(time_ns)
