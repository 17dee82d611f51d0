"""Stories of a supervisor before its first run: wait conditions and probes, on a clock that is told when to go on.

Run as a program, as `tests.integration.stepped_supervisor` says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from jobman.clock import Clock
from jobman.model.spec import Environment, JobSpec, Timeouts
from jobman.model.state import Job
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits
from jobman.policy.conditions import ConditionState
from jobman.policy.limits import StatedLimits
from jobman.service import control
from jobman.store.conditions import load_evaluations, record_evaluations
from jobman.store.connection import Store, open_store
from jobman.store.limits import apply_stated
from jobman.supervisor import perform
from jobman.testing import FakeClock
from tests.integration.stepped_supervisor import DAY, HOUR, SECOND, TICK, Story, shell
from tests.support import processes_of

POLL = 250_000_000


def waiting(*conditions: WaitCondition, mode: WaitMode = WaitMode.ALL, **members: Any) -> JobSpec:
    """A job that waits for ``conditions``."""
    return shell("exit 0", waits=Waits(mode, conditions), **members)


def path_exists(path: Path, kind: FileKind = FileKind.ANY, **members: Any) -> WaitCondition:
    """A condition that holds while ``path`` exists."""
    return WaitCondition(WaitKind.FILE_EXISTS, path=str(path), file_kind=kind, **members)


def delay(ns: int, **members: Any) -> WaitCondition:
    """A condition that holds ``ns`` after the claim."""
    return WaitCondition(WaitKind.DELAY, delay_ns=ns, **members)


def asking(script: str, *, executable: str = "/bin/sh", poll_ns: int = SECOND, **members: Any) -> WaitCondition:
    """A condition that holds when ``script`` says so."""
    arguments = ("-c", script) if executable == "/bin/sh" else (script,)
    return WaitCondition(WaitKind.PROBE, probe=Probe(executable, arguments, **members), poll_interval_ns=poll_ns)


def evaluation(story: Story, place: int = 0) -> ConditionState:
    """What the store says of a condition."""
    return load_evaluations(story.store, [story.job_id])[story.job_id][place]


def ended(story: Story) -> tuple[str, str]:
    """Go round until the job is completed; return its outcome, and the code that explains it or ""."""
    story.until_phase("completed")
    job = story.snapshot().job
    return str(job.outcome), str(job.problem.code) if job.problem else ""


def ask(story: Story, verb: Callable[[Store, str, Clock], Job]) -> None:
    """Do to the job what a client would, on a connection of its own: a supervisor does not notice its own commits."""
    store = open_store(story.store.root)
    verb(store, story.job_id, story.clock)
    store.close()


def times(state: str) -> None:
    """H.2: a delay runs from the claim, whatever the wall clock does and while the machine sleeps; a time does not."""
    story = Story(state, waiting(delay(HOUR)))
    story.until_phase("waiting")
    story.clock.set_wall(story.clock.wall_ns() + DAY)
    story.pass_time(HOUR - 1)
    assert story.phase() == "waiting"
    story.pass_time(1)
    assert ended(story) == ("success", "")
    story = Story(state, waiting(delay(HOUR)))
    story.until_phase("waiting")
    story.clock.sleep(HOUR)
    story.pass_time(POLL)
    assert ended(story) == ("success", "")
    until = WaitCondition(WaitKind.UNTIL, until_ns=FakeClock().wall_ns() + HOUR)
    story = Story(state, waiting(until))
    story.until_phase("waiting")
    story.pass_time(HOUR - 1)
    assert story.phase() == "waiting"
    story.clock.set_wall(story.clock.wall_ns() + 1)
    story.pass_time(0)
    assert story.phase() == "waiting", "a clock that was set is noticed at the next poll"
    story.pass_time(POLL)
    assert ended(story) == ("success", "")


def files(state: str) -> None:
    """A.2: any file type counts, a link is not followed, and a path may appear or lie in what is no directory."""
    room = Path(state).parent / "room"
    room.mkdir()
    dangling, folder, pipe = room / "link", room / "folder", room / "pipe"
    late, odd = room / "late", room / "pipe" / "below"
    dangling.symlink_to("nowhere")
    folder.mkdir()
    os.mkfifo(pipe)
    present = [path_exists(dangling), path_exists(folder), path_exists(pipe)]
    kinds = [path_exists(dangling, FileKind.SYMLINK), path_exists(folder, FileKind.DIRECTORY)]
    story = Story(state, waiting(*present, *kinds, path_exists(late), path_exists(odd)))
    story.until_phase("waiting")
    story.settle()
    held = [state.satisfied_at_ns is not None for state in load_evaluations(story.store, [story.job_id])[story.job_id]]
    assert held == [True] * 5 + [False] * 2
    assert evaluation(story, 6).code is None, "missing is an answer, not an error"
    late.write_text("")
    pipe.unlink()
    pipe.mkdir()
    odd.write_text("")
    story.settle()
    assert story.phase() == "waiting", "nobody looks before the next poll"
    story.pass_time(POLL)
    assert ended(story) == ("success", "")
    wrong = [path_exists(dangling, FileKind.REGULAR), path_exists(folder, FileKind.REGULAR)]
    story = Story(state, waiting(*wrong, path_exists(late, FileKind.DIRECTORY), delay(HOUR), mode=WaitMode.ANY))
    story.until_phase("waiting")
    story.pass_time(HOUR - 1)
    assert story.phase() == "waiting"
    story.pass_time(1)
    assert ended(story) == ("success", "")


def errors(state: str) -> None:
    """H.2: a path that cannot be looked at is an error that is shown and waited out."""
    path = Path(state).parent / "loop"
    path.symlink_to("loop")
    story = Story(state, waiting(path_exists(path / "below")))
    story.until_phase("waiting")
    story.settle()
    assert (evaluation(story).code, evaluation(story).satisfied_at_ns) == ("wait_evaluation_error", None)
    path.unlink()
    path.mkdir()
    (path / "below").write_text("")
    story.pass_time(POLL)
    assert ended(story) == ("success", "")
    assert evaluation(story).code is None, "an answer clears the error"


def modes(state: str) -> None:
    """M14: all must hold at the same look; of any, one is enough."""
    first, second = Path(state).parent / "first", Path(state).parent / "second"
    story = Story(state, waiting(path_exists(first), path_exists(second)))
    story.until_phase("waiting")
    first.write_text("")
    story.pass_time(POLL)
    satisfied_ns = evaluation(story).satisfied_at_ns
    assert satisfied_ns == story.clock.wall_ns()
    first.unlink()
    second.write_text("")
    story.pass_time(POLL)
    assert story.phase() == "waiting", "what held once does not hold for ever"
    first.write_text("")
    story.pass_time(POLL)
    assert ended(story) == ("success", "")
    assert evaluation(story).satisfied_at_ns == satisfied_ns, "the first time is kept"
    story = Story(state, waiting(path_exists(first), path_exists(Path("/nowhere/at/all")), mode=WaitMode.ANY))
    assert ended(story) == ("success", "")


def deadlines(state: str) -> None:
    """H.2: the abort deadline of any condition counts, also while queued, and no longer once a run has begun."""
    abort_ns = FakeClock().wall_ns() + HOUR
    nowhere = path_exists(Path("/nowhere"))
    story = Story(state, waiting(delay(0), nowhere._replace(abort_at_ns=abort_ns), mode=WaitMode.ALL))
    story.until_phase("waiting")
    story.pass_time(HOUR - 1)
    assert story.phase() == "waiting"
    story.pass_time(1)
    assert ended(story) == ("aborted", "wait_abort_deadline")
    apply_stated(story.store, StatedLimits(states_store_wide=True, store_wide=1, pools={}))
    holder = Story(state, shell("while :; do sleep 0.02; done"))
    holder.until_phase("running")
    story = Story(state, waiting(nowhere._replace(abort_at_ns=abort_ns), delay(0), mode=WaitMode.ANY))
    story.until_phase("queued")
    story.pass_time(HOUR - 1)
    assert story.phase() == "queued"
    story.pass_time(1)
    assert ended(story) == ("aborted", "wait_abort_deadline")
    ask(holder, control.cancel)
    holder.until_phase("completed", tick_ns=TICK)
    long = "while :; do sleep 0.02; done"
    story = Story(state, waiting(delay(0, abort_at_ns=abort_ns))._replace(arguments=("-c", long)))
    story.until_phase("running")
    story.pass_time(DAY)
    assert story.phase() == "running"
    ask(story, control.cancel)
    story.until_phase("completed", tick_ns=TICK)


def records(state: str) -> None:
    """C4: of a condition that nothing is new of, at most one row a second is written; news at once."""
    written: list[tuple[int, ConditionState]] = []

    def counting(store: Any, job_id: str, states: Any) -> None:
        written.extend((story.clock.monotonic_ns(), state) for state in states)
        record_evaluations(store, job_id, states)

    perform.record_evaluations = counting  # type: ignore[attr-defined]  # the counter
    path = Path(state).parent / "late"
    story = Story(state, waiting(path_exists(path), delay(HOUR)))
    story.until_phase("waiting")
    for _ in range(40):
        story.clock.advance(POLL)
        for _ in range(5):
            story._loop.step()
    for place in (0, 1):
        at = [now_ns for now_ns, state in written if state.place == place]
        assert all(later - earlier >= SECOND for earlier, later in pairwise(at)), at
        assert 10 <= len(at) <= 11
        assert evaluation(story, place).attempts >= 37
    story.pass_time(POLL)
    path.write_text("")
    story.pass_time(POLL)
    assert evaluation(story).satisfied_at_ns == story.clock.wall_ns(), "news is not kept back"


def answers(state: str) -> None:
    """H.2, D7: what a probe's end means; beside a death by signal, only what is asked to be fatal is."""
    room = Path(state).parent
    story = Story(state, waiting(asking(f"echo >>{room}/asked; test -e {room}/ready")))
    story.until(lambda: evaluations_of(story) == 1, "the first answer")
    assert (story.phase(), evaluation(story).code) == ("waiting", None)
    story.settle()
    assert (room / "asked").read_text() == "\n", "asked again before its interval"
    story.pass_time(SECOND)
    story.until(lambda: evaluations_of(story) == 2, "the second answer")
    (room / "ready").write_text("")
    story.pass_time(SECOND)
    assert ended(story) == ("success", "")
    bad = {
        "missing": asking("x", executable="/nowhere/probe"),
        "no directory": asking("exit 0", working_directory="/nowhere"),
    }
    story = Story(state, waiting(asking("kill -KILL $$")))
    assert ended(story) == ("aborted", "wait_condition_failed"), "killed by a signal is always fatal (H.2)"
    for what, condition in bad.items():
        story = Story(state, waiting(condition))
        story.until(lambda: evaluations_of(story) == 1, what)  # noqa: B023  # used in this round only
        assert (story.phase(), evaluation(story).code) == ("waiting", "wait_evaluation_error"), what
        ask(story, control.cancel)
        assert ended(story)[0] == "cancelled"
        assert condition.probe is not None
        fatal = condition._replace(probe=condition.probe._replace(fatal_on_error=True))
        story = Story(state, waiting(fatal))
        assert ended(story) == ("aborted", "wait_condition_failed"), what
    fatal = asking("x", executable="/nowhere/probe", fatal_on_error=True)
    story = Story(state, waiting(delay(0), fatal, mode=WaitMode.ANY))
    assert ended(story) == ("aborted", "wait_condition_failed"), "what is fatal overrides what holds"
    story = Story(state, waiting(asking("exit 1", fatal_on_error=True)))
    story.until(lambda: evaluations_of(story) == 1, "no is an answer")
    assert story.phase() == "waiting"


def overtaken(state: str) -> None:
    """A probe that another condition has made needless is gone before the run begins: it is not the run's to reap."""
    story = Story(state, waiting(delay(SECOND), asking("trap '' TERM; sleep 600 & sleep 600"), mode=WaitMode.ANY))
    story.until(lambda: len(processes_of(Path(state))) >= 3, "the probe and its children")
    story.clock.advance(SECOND)
    story.until(lambda: story.stage() not in ("", "absent"), "the launch")
    assert not [command for command in processes_of(Path(state)).values() if "trap" in command]
    assert ended(story) == ("success", "")
    story.until(lambda: not processes_of(Path(state)), "the probe's children end too")


def evaluations_of(story: Story) -> int:
    """How often the first condition has been evaluated, as the store says."""
    found = load_evaluations(story.store, [story.job_id]).get(story.job_id, [])
    return found[0].attempts if found else 0


def probe_timeouts(state: str) -> None:
    """D7: a probe that is too slow is ended with its children and asked again; fatal only if that was said."""
    slow = asking("sleep 600 & sleep 600", timeout_ns=5 * SECOND)
    story = Story(state, waiting(slow))
    story.until(lambda: len(processes_of(Path(state))) >= 3, "the probe and its children")
    story.pass_time(5 * SECOND - 1)
    assert evaluations_of(story) == 0
    story.pass_time(1)
    assert (story.phase(), evaluation(story).code) == ("waiting", "probe_timeout")
    story.until(lambda: not processes_of(Path(state)), "the probe's children end too")
    story.pass_time(SECOND)
    story.until(lambda: len(processes_of(Path(state))) >= 3, "it is asked again")
    ask(story, control.cancel)
    assert ended(story)[0] == "cancelled"
    story.until(lambda: not processes_of(Path(state)), "a cancellation ends the probe")
    assert slow.probe is not None
    story = Story(state, waiting(slow._replace(probe=slow.probe._replace(fatal_on_error=True))))
    story.until(lambda: len(processes_of(Path(state))) >= 3, "the probe and its children")
    story.pass_time(5 * SECOND)
    assert ended(story) == ("aborted", "wait_condition_failed")


def probe_output(state: str) -> None:
    """H.2: output beyond the limit is thrown away; it neither ends the probe nor changes its answer."""
    story = Story(state, waiting(asking("head -c 3000000 /dev/zero && echo done >&2", output_limit=10)))
    assert ended(story) == ("success", "")
    assert (evaluation(story).attempts, evaluation(story).code) == (1, None)


def probe_words(state: str) -> None:
    """A probe is executed as given, in the job's directory and environment, changed as it says."""
    room = Path(state).parent
    story = Story(state, waiting(asking(f"$(touch {room}/made); touch {room}/made", executable="/bin/echo")))
    assert ended(story) == ("success", "")
    assert not (room / "made").exists()
    script = 'test "$(pwd):$HOME:$PROBE:${LANG-none}:$JOBMAN_STATE_DIR" = "/usr:/home:set:none:$1"'
    probe = Probe(
        "sh",
        ("-c", script, "sh", str(Path(state).resolve())),
        working_directory="/usr",
        assignments=(("PROBE", "set"),),
        removals=("LANG",),
    )
    condition = WaitCondition(WaitKind.PROBE, probe=probe, poll_interval_ns=SECOND)
    changes = Environment((("HOME", "/home"), ("LANG", "C"), ("PROBE", "lost")))
    story = Story(state, waiting(condition, environment=changes))
    assert ended(story) == ("success", "")


def pauses(state: str) -> None:
    """A paused job asks nobody: a probe that runs is ended, and asked anew when the job goes on."""
    story = Story(state, waiting(asking("sleep 600 & sleep 600", timeout_ns=5 * SECOND)))
    story.until(lambda: len(processes_of(Path(state))) >= 3, "the probe and its children")
    ask(story, control.pause)
    story.until(lambda: not processes_of(Path(state)), "the probe ends")
    story.pass_time(HOUR)
    assert (story.phase(), evaluations_of(story)) == ("paused", 0)
    assert not processes_of(Path(state))
    ask(story, control.resume)
    story.until(lambda: len(processes_of(Path(state))) >= 3, "asked anew")
    story.pass_time(5 * SECOND)
    assert (story.phase(), evaluation(story).code) == ("waiting", "probe_timeout")
    ask(story, control.cancel)
    assert ended(story)[0] == "cancelled"


def job_timeout_at_the_gate(state: str) -> None:
    """H.5: the whole-job timeout counts the wait; its precedence is over conditions that hold at the same time."""
    story = Story(state, waiting(delay(HOUR), timeouts=Timeouts(0, HOUR)))
    story.until_phase("waiting")
    story.pass_time(HOUR - 1)
    assert story.phase() == "waiting"
    story.pass_time(1)
    assert ended(story) == ("timed_out", "job_timeout")


STORIES: dict[str, Callable[[str], None]] = {
    "times": times,
    "files": files,
    "errors": errors,
    "modes": modes,
    "deadlines": deadlines,
    "records": records,
    "answers": answers,
    "overtaken": overtaken,
    "probe_timeouts": probe_timeouts,
    "probe_output": probe_output,
    "probe_words": probe_words,
    "pauses": pauses,
    "job_timeout_at_the_gate": job_timeout_at_the_gate,
}

if __name__ == "__main__":
    os.environ["JOBMAN_STATE_DIR"] = sys.argv[2]
    STORIES[sys.argv[1]](sys.argv[2])
