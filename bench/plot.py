"""What growth costs, as curves: commands in a store of ever more jobs, the machine with ever more that wait.

``python -m bench --plot`` measures both and writes ``growth.json`` and the drawings into the documentation; with
``--quick`` it measures a little, prints that, and writes nothing.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

from bench import admission
from bench.bed import Bed, p95, take_turns
from bench.filling import Filling
from bench.waiting import Crowd, meminfo, proportional, spend
from jobman.store.check import sqlite_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    Point = dict[str, float]

DIRECTORY = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "reference", "performance"
)
_JOBS = (10, 1_000, 10_000, 100_000, 200_000)
_SUPERVISORS = (10, 50, 100, 200, 350, 500)
_QUEUED = 60
# Drawn in stand-ins for the colours of the page, which follow the reader's light or dark.
_INK, _GRID, _GROUND = "#010203", "#040506", "#070809"
_STYLE = """<style>
svg { --ink: #24292f; --grid: #d8dee4; --ground: #ffffff }
@media (prefers-color-scheme: dark) { svg { --ink: #d7dde4; --grid: #3d444d; --ground: #16191d } }
</style>
"""
_COLOURS = {"run": "#d55e00", "list": "#0a84c8", "show": "#009e73", "python": "#8c8c8c"}
_NAMES = {"run": "jobman run -- true", "list": "jobman list", "show": "jobman show ID", "python": "python -c pass"}


def main(*, quick: bool) -> int:
    """Measure, and draw what was measured."""
    data = {
        "machine": {
            "cores": os.cpu_count(),
            "memory_gb": round(meminfo("MemTotal") / 1e9, 1),
            "python": platform.python_version(),
            "sqlite": sqlite_version(),
        },
        "jobs": _in_growing_stores(quick=quick),
        "waiting": _in_growing_crowds(quick=quick),
    }
    text = json.dumps(data, indent=2) + "\n"
    if quick:
        print(text, end="")
        return 0
    os.makedirs(DIRECTORY, exist_ok=True)
    with open(f"{DIRECTORY}/growth.json", "w", encoding="utf-8") as file:
        file.write(text)
    return draw()


def draw() -> int:
    """Draw what ``growth.json`` says."""
    with open(f"{DIRECTORY}/growth.json", encoding="utf-8") as file:
        data = json.load(file)
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is missing: make bench PLOT=1, or pip install -e '.[plot]'", file=sys.stderr)
        return 2
    plain = {"svg.fonttype": "none", "svg.hashsalt": "jobman", "font.size": 10, "font.family": "sans-serif"}
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _INK)
    grounds = dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), _GROUND)
    with mpl.rc_context(plain | inks | grounds | {"grid.color": _GRID, "legend.edgecolor": _GRID}):
        for name, panels in (("jobs", (_commands, _admission)), ("waiting", (_memory, _processor))):
            figure = Figure(figsize=(9, 3.6), layout="constrained")
            for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
                panel(axes, data[name])
                axes.grid(visible=True, linewidth=0.6)
                axes.set_ylim(bottom=0)
            _save(figure, f"{DIRECTORY}/{name}.svg")
    print(f"written: jobs.svg, waiting.svg and growth.json in {os.path.relpath(DIRECTORY)}")
    return 0


# --- Measuring -----------------------------------------------------------------------------------------------------


def _in_growing_stores(*, quick: bool) -> list[Point]:
    """Measure in turns in a store of each size, so that all of them see the same machine."""
    with Bed(quick=quick) as bed:
        stores = [_store(bed, jobs) for jobs in (_JOBS if not quick else (2, 20))]
        _say("commands in each")
        commands = [_commands_of(one) for one in stores]
        times = take_turns(bed.pick(20, 1), *(measure for named in commands for measure in named.values()))
        _say("admission in each")
        queues = [admission.Queue(one.state, bed.pick(_QUEUED, 5)) for one, _ in stores]
        attempts = take_turns(bed.pick(30, 2), *(measure for queue in queues for measure in queue.measures()))
        for queue in queues:
            queue.close()
        points: list[Point] = []
        for _, filling in stores:
            point: Point = {"jobs": filling.jobs}
            for name in commands[0]:
                taken = times.pop(0)
                point |= {f"{name}_ms": round(median(taken) / 1e6, 2), f"{name}_p95_ms": round(p95(taken) / 1e6, 2)}
            for name in ("write", "admitted", "refused"):
                point[f"{name}_ms"] = round(median(attempts.pop(0)) / 1e6, 3)
            points.append(point)
        return points


def _store(bed: Bed, jobs: int) -> tuple[Bed, Filling]:
    _say(f"a store of {jobs:,} jobs", "filling")
    one = bed.beside(f"of-{jobs}")
    filling = Filling(one)
    filling.grow(jobs)
    return one, filling


def _commands_of(store: tuple[Bed, Filling]) -> dict[str, Callable[[], int]]:
    bed, filling = store
    return {
        "run": lambda: bed.time_run("--", "true"),
        "list": lambda: bed.time(bed.words("list")),
        "show": lambda: bed.time(bed.words("show", filling.job_id)),
        "python": lambda: bed.time((bed.python, "-c", "pass")),
    }


def _in_growing_crowds(*, quick: bool) -> list[Point]:
    points = []
    with Bed(quick=quick) as bed:
        crowd = Crowd(bed)
        for count in _SUPERVISORS if not quick else (1, 2):
            _say(f"{count} waiting supervisors")
            pids = crowd.grow(count)
            used_ns, elapsed_ns = spend(pids, bed.pick(10_000, 100))
            memory, percent = count * proportional(pids) / 1e6, 100 * used_ns / elapsed_ns
            points.append({"supervisors": count, "memory_mb": round(memory, 1), "cpu_percent": round(percent, 2)})
    return points


def _say(what: str, doing: str = "measuring") -> None:
    print(f"{doing} {what} ...", file=sys.stderr)


# --- Drawing -------------------------------------------------------------------------------------------------------


def _commands(axes: Axes, points: list[Point]) -> None:
    jobs = [point["jobs"] for point in points]
    for name, colour in _COLOURS.items():
        medians, tails = ([point[f"{name}{end}"] for point in points] for end in ("_ms", "_p95_ms"))
        axes.plot(jobs, medians, marker="o", markersize=4, color=colour, label=_NAMES[name])
        axes.fill_between(jobs, medians, tails, color=colour, alpha=0.18, linewidth=0)
    axes.set(xscale="log", xlabel="jobs in the store", ylabel="ms, median to p95", title="Commands")
    axes.legend(fontsize=8)


def _admission(axes: Axes, points: list[Point]) -> None:
    jobs = [point["jobs"] for point in points]
    for name, colour, label in (
        ("admitted", _COLOURS["run"], "attempt that is admitted"),
        ("refused", _COLOURS["list"], "attempt that has to wait"),
        ("write", _COLOURS["python"], "a committed write of one row"),
    ):
        axes.plot(jobs, [point[f"{name}_ms"] for point in points], marker="o", markersize=4, color=colour, label=label)
    axes.set(xscale="log", xlabel="jobs in the store", ylabel="ms, median", title=f"Admission, {_QUEUED} queued")
    axes.legend(fontsize=8)


def _memory(axes: Axes, points: list[Point]) -> None:
    _of_supervisors(axes, points, "memory_mb")
    axes.set(ylabel="MB in all (PSS)", title="Memory")


def _processor(axes: Axes, points: list[Point]) -> None:
    _of_supervisors(axes, points, "cpu_percent")
    axes.set(ylabel="% of one core in all", title="Processor")


def _of_supervisors(axes: Axes, points: list[Point], name: str) -> None:
    counts = [point["supervisors"] for point in points]
    axes.plot(counts, [point[name] for point in points], marker="o", markersize=4, color=_COLOURS["list"])
    axes.set(xlabel="waiting supervisors")


def _save(figure: Any, path: str) -> None:
    figure.savefig(path, format="svg", metadata={"Date": None})
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for stand_in, name in ((_INK, "ink"), (_GRID, "grid"), (_GROUND, "ground")):
        text = text.replace(stand_in, f"var(--{name})")
    head, tag, rest = text.partition(" <metadata>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(line.rstrip() + "\n" for line in (head + _STYLE + tag + rest).splitlines()))
