"""The tree of a run: whatever its target left behind, at any depth, and nothing that is somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, NamedTuple

import pytest

from jobman import process
from jobman.clock import SystemClock
from jobman.model.identity import ProcessIdentity
from jobman.process import GatedChild, RunTree, _linux, tree
from jobman.process.spawn import spawn_detached
from tests.integration.test_process_helpers import (
    PATH,
    finish,
    launch,
    nobody_left,  # noqa: F401  # a fixture
    python,
    read_line,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Start = Callable[[bytes], "Running"]
    Orphan = Callable[[bytes], "Orphaned"]

pytestmark = [
    pytest.mark.usefixtures("nobody_left"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]

RUN = str(uuid.uuid4())  # its own in every process: survivors are looked for on the whole machine
OTHER_RUN = "01900000-0000-7000-8000-00000000000b"
ENVIRONMENT = {b"PATH": PATH, b"JOBMAN_RUN_ID": RUN.encode()}


class Running:
    """A leader that runs a shell script, and the tree this process, its supervisor, sees."""

    def __init__(self, script: bytes) -> None:
        ignored = process.adopted(os.getpid())
        self.child: GatedChild = launch(b"sh", b"-c", script, environment=ENVIRONMENT)
        self.tree = RunTree(os.getpid(), self.child.pid, RUN, ignored)
        self.stopped = False

    def line(self) -> list[bytes]:
        return read_line(self.child.stdout_fd).split()

    def pids(self) -> set[int]:
        return {member.identity.pid for member in process.members(self.tree)}

    def others(self) -> set[int]:
        return self.pids() - {self.child.pid}

    def end(self) -> None:
        until(lambda: process.observe_exit(self.child.pid) is not None, what="the end of the leader")

    def stop(self) -> None:
        """Kill all of it; may be called twice."""
        if self.stopped:
            return
        self.stopped = True
        until(self._pass, what="the death of the tree")
        process.reap_adopted(self.tree)
        finish(self.child, closed=(self.child.gate_fd,))

    def _pass(self) -> bool:
        process.kill_all(lambda: process.members(self.tree))
        return not process.has_members(self.tree)


@pytest.fixture
def run() -> Iterator[Callable[[bytes], Running]]:
    started: list[Running] = []

    def start(script: bytes) -> Running:
        started.append(Running(script))
        return started[-1]

    yield start
    for running in started:
        running.stop()


# --- Members ---------------------------------------------------------------------------------------------------------


def test_a_leader_alone_is_the_only_member(run: Start) -> None:
    running = run(b"exec sleep 60")
    (member,) = process.members(running.tree)
    assert member.identity == process.inspect(running.child.pid)
    assert member.name in ("sh", "sleep")
    assert member.state in "RSD"
    assert member.pgid == running.child.pid
    assert process.has_members(running.tree)


def test_children_at_any_depth_are_members(run: Start) -> None:
    """Field case 2."""
    running = run(b"sh -c 'sleep 60 & echo $$ $!; wait'; true")
    pids = {int(pid) for pid in running.line()}
    assert len(pids) == 2
    assert running.others() == pids


def test_children_that_outlive_the_leader_are_members(run: Start) -> None:
    """D33, field case 3: listed before anything is killed, and found when their parent is gone."""
    running = run(b"sleep 60 & echo $!")
    survivor = int(running.line()[0])
    running.end()
    assert running.pids() == {survivor}
    assert process.has_members(running.tree)


def test_a_double_fork_into_a_session_of_its_own_is_found(run: Start) -> None:
    """D28."""
    running = run(b"(setsid sh -c 'echo $$; exec sleep 60' &) ; echo")
    lines = sorted([running.line(), running.line()])
    escaped = int(lines[1][0])
    running.end()
    assert running.pids() == {escaped}
    assert os.getsid(escaped) == escaped
    assert process.has_members(running.tree)


def test_a_descendant_with_an_empty_environment_is_found(run: Start) -> None:
    running = run(b"(setsid env -i sh -c 'echo $$; exec sleep 60' &)")
    escaped = int(running.line()[0])
    running.end()
    assert running.pids() == {escaped}


@pytest.mark.parametrize(
    "mark",
    ["JOBMAN_SUPERVISOR=x", "JOBMAN_EVENT_ID=x", f"JOBMAN_RUN_ID={OTHER_RUN}"],
)
def test_a_nested_job_and_its_children_are_not_members(run: Start, mark: str) -> None:
    """D40: also those of its children that carry no mark of their own."""
    nested = f"setsid env -u JOBMAN_RUN_ID {mark} sh -c 'env -i sleep 60 & echo $$ $!; wait' &".encode()
    running = run(nested + b" sleep 60 & echo $!; wait")
    lines = sorted([running.line(), running.line()], key=len)
    own, nested_shell, nested_child = (int(pid) for line in lines for pid in line)
    assert running.others() == {own}
    os.kill(nested_shell, signal.SIGKILL)
    os.kill(nested_child, signal.SIGKILL)


def test_a_nested_job_alone_is_no_member(run: Start) -> None:
    running = run(b"setsid env JOBMAN_SUPERVISOR=x sh -c 'echo $$; exec sleep 60' &")
    foreign = int(running.line()[0])
    running.end()
    assert not process.has_members(running.tree)
    os.kill(foreign, signal.SIGKILL)


def test_a_leader_at_its_gate_is_a_member_although_it_looks_like_its_supervisor() -> None:
    """Until its exec it has the environment of the supervisor, which carries the mark of one."""
    code = f"""
import os
from jobman.process import LaunchRequest, RunTree, has_members, launch_gated, members
child = launch_gated(LaunchRequest(b"/bin/true", (b"true",), {{}}, b"/", 0o22))
tree = RunTree(os.getpid(), child.pid, {RUN!r})
print(has_members(tree) and [m.identity.pid for m in members(tree)] == [child.pid])
"""
    environment = {"JOBMAN_SUPERVISOR": "x"}
    done = subprocess.run(python(code), env=environment, capture_output=True, text=True, timeout=10, check=False)
    assert done.stdout == "True\n", done.stderr


def test_helpers_and_their_children_are_not_members(run: Start) -> None:
    command = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as helper:
        assert helper.stdout is not None
        helper.stdout.readline()
        running = run(b"exec sleep 60")
        tree_without_knowledge = running.tree._replace(ignored=frozenset())
        listed = process.members(tree_without_knowledge, helpers=(helper.pid,))
        assert {member.identity.pid for member in listed} == {running.child.pid}
        assert len(process.members(tree_without_knowledge)) == 3
        os.killpg(helper.pid, signal.SIGKILL)


def test_what_was_adopted_before_the_leader_was_forked_is_not_a_member(run: Start) -> None:
    earlier = run(b"setsid sh -c 'echo $$; exec sleep 60' &")
    left = int(earlier.line()[0])
    earlier.end()
    later = run(b"exec sleep 60")
    assert left in {identity.pid for identity in later.tree.ignored}
    assert later.pids() == {later.child.pid}
    os.kill(later.child.pid, signal.SIGKILL)
    later.end()
    assert not process.has_members(later.tree)


def test_a_zombie_is_not_a_member(run: Start) -> None:
    running = run(b"true")
    running.end()
    assert process.members(running.tree) == ()
    assert not process.has_members(running.tree)


def test_the_quick_answer_does_not_read_the_table(run: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = run(b"true & exit 0")
    running.end()
    with monkeypatch.context() as patched:
        patched.setattr(tree, "table", lambda: pytest.fail("the table was read"))
        until(lambda: not process.has_members(running.tree))


def test_a_supervisor_that_adopts_nobody_reads_the_whole_table(run: Start) -> None:
    running = run(b"sleep 60 & echo $!")
    survivor = int(running.line()[0])
    running.end()
    # As if the orphan had gone to init: it is not below a supervisor that has no child at all.
    elsewhere = running.tree._replace(supervisor_pid=survivor, adopts=False)
    assert process.has_members(elsewhere)
    assert not process.has_members(elsewhere._replace(adopts=True))


def test_children_are_found_on_kernels_without_a_list_of_them(run: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = run(b"sleep 60 & echo $!; wait")
    child = int(running.line()[0])
    read = _linux._read

    def old_kernel(path: str, piece: int) -> bytes:
        if path.endswith("/children"):
            raise FileNotFoundError(path)
        return read(path, piece)

    with monkeypatch.context() as patched:
        patched.setattr(_linux, "_read", old_kernel)
        assert _linux.children(running.child.pid) == (child,)
        assert running.child.pid in _linux.children(os.getpid())


def test_a_child_born_while_the_table_was_read_is_a_member(run: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = run(b"(setsid sh -c 'echo $$; exec sleep 60' &)")
    born = int(running.line()[0])
    running.end()
    stale = {pid: found for pid, found in _linux.table().items() if pid != born}
    with monkeypatch.context() as patched:
        patched.setattr(tree, "table", lambda: stale)
        assert running.pids() == {born}


def test_a_child_adopted_while_the_children_were_looked_at_is_noticed(
    run: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = run(b"(setsid sh -c 'echo $$; exec sleep 60' &)")
    adopted = int(running.line()[0])
    running.end()
    # The leader is a zombie by the time it is looked at: its child came to us after the first list was read.
    lists = [(running.child.pid,), (running.child.pid, adopted)]
    with monkeypatch.context() as patched:
        patched.setattr(tree, "children", lambda _: lists.pop(0))
        assert process.has_members(running.tree)


def test_processes_that_vanish_while_the_table_is_read_do_not_disturb(run: Start) -> None:
    running = run(b"echo $$; while :; do true & true & wait; /bin/true; done")
    running.line()
    for _ in range(50):
        assert running.child.pid in running.pids()
        assert process.has_members(running.tree)


# --- Reaping ---------------------------------------------------------------------------------------------------------


def test_adopted_zombies_are_reaped_and_the_leader_and_helpers_are_kept(run: Start) -> None:
    """D33, field case 10."""
    with subprocess.Popen(["true"]) as helper:
        running = run(b"(setsid sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo' &)")
        running.end()
        running.line()
        until(lambda: not process.has_members(running.tree, helpers=(helper.pid,)))
        until(lambda: process.observe_exit(helper.pid) is not None)
        usage = process.reap_adopted(running.tree, helpers=(helper.pid,))
        assert usage.user_cpu_ns + usage.system_cpu_ns > 0
        assert usage.max_rss_bytes > 0
        assert process.observe_exit(running.child.pid) == (0, None, None, None)
        assert process.observe_exit(helper.pid) == (0, None, None, None)
        assert process.reap_adopted(running.tree, helpers=(helper.pid,)) == process.Usage()


# --- Killing ---------------------------------------------------------------------------------------------------------


def test_a_stale_member_is_never_signalled(run: Start) -> None:
    """Field case 8."""
    running = run(b"exec sleep 60")
    (member,) = process.members(running.tree)
    stale = member._replace(identity=member.identity._replace(creation_id="1"))
    assert not process.signal_member(stale, signal.SIGKILL)
    assert process.kill_all(lambda: [stale]) == 0
    assert process.observe_exit(running.child.pid) is None
    assert process.signal_member(member, signal.SIGTERM)
    running.end()
    assert not process.signal_member(member, signal.SIGTERM)


def test_a_stubborn_tree_in_many_sessions_is_killed_to_the_last(run: Start) -> None:
    """Field case 3, D28."""
    stubborn = b"trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 60 & echo $!; wait' &); sleep 60 & wait"
    running = run(stubborn)
    running.line()
    until(lambda: len(running.pids()) == 4, what="a tree of four")
    running.stop()
    assert process.members(running.tree) == ()


FORKING = b"""
grow() { while :; do sleep 60 & (setsid sleep 60 &) ; done; }
echo started
grow & grow & grow
"""


def test_a_tree_that_forks_as_fast_as_it_can_is_stopped(run: Start) -> None:
    running = run(FORKING)
    running.line()
    until(lambda: len(running.pids()) > 20, what="the growth of the tree")
    running.stop()
    assert process.members(running.tree) == ()


CHAIN = """
import os
os.write(1, b"started\\n")
while True:
    if os.fork(): os._exit(0)
    os.setsid()
"""


def test_a_chain_whose_every_link_forks_and_exits_is_stopped() -> None:
    """Each link lives for a fraction of a millisecond, in a session of its own."""
    ignored = process.adopted(os.getpid())
    child = launch(os.fsencode(sys.executable), b"-I", b"-S", b"-c", CHAIN.encode(), environment=ENVIRONMENT)
    chain = RunTree(os.getpid(), child.pid, RUN, ignored)
    read_line(child.stdout_fd)

    def stop() -> bool:
        process.reap_adopted(chain)
        process.kill_all(lambda: process.members(chain))
        return not process.has_members(chain)

    until(stop, what="the end of the chain")
    process.reap_adopted(chain)
    finish(child, closed=(child.gate_fd,))


# --- Survivors of a dead supervisor ----------------------------------------------------------------------------------

SUPERVISOR = """
import os
from jobman.process import LaunchRequest, inspect, launch_gated, open_gate
environment = {{b"PATH": b"/usr/bin:/bin", b"JOBMAN_RUN_ID": {run!r}}}
child = launch_gated(LaunchRequest(b"/bin/sh", (b"sh", b"-c", {script!r}), environment, b"/", 0o22))
os.write(1, b"%s %s\\n" % (str(child.pid).encode(), inspect(child.pid).creation_id.encode()))
open_gate(child)
os.set_blocking(child.stdout_fd, True)
while piece := os.read(child.stdout_fd, 4096): os.write(1, piece)
os.read(0, 1)
"""


class Orphaned(NamedTuple):
    """A run whose supervisor was killed, and the first line that its target printed."""

    leader: ProcessIdentity
    supervisor_pid: int
    line: tuple[int, ...]

    def survivors(self, *, leader: ProcessIdentity | None, caller_pid: int | None = None) -> set[int] | None:
        """Their PIDs, by what is known of the leader."""
        found = process.survivors(
            leader,
            run_id=RUN,
            reserved_after_ns=SystemClock().wall_ns() - 5_000_000_000,
            caller_pid=os.getpid() if caller_pid is None else caller_pid,
            supervisor_pid=self.supervisor_pid,
        )
        return None if found is None else {member.identity.pid for member in found}


@pytest.fixture
def orphan() -> Iterator[Callable[[bytes], Orphaned]]:
    before = process.adopted(os.getpid())

    def start(script: bytes) -> Orphaned:
        code = SUPERVISOR.format(run=RUN.encode(), script=script)
        detached = spawn_detached(python(code), {b"PATH": PATH, b"JOBMAN_SUPERVISOR": b"x"})
        pid, creation = read_line(detached.output_fd).split()
        line = read_line(detached.output_fd).split()
        os.kill(detached.pid, signal.SIGKILL)
        os.waitpid(detached.pid, 0)
        os.close(detached.input_fd)
        os.close(detached.output_fd)
        leader = process.own_identity()._replace(pid=int(pid), creation_id=creation.decode())
        return Orphaned(leader, detached.pid, tuple(map(int, line)))

    yield start
    until(lambda: not _kill_children(before), what="the death of the orphans")


def _kill_children(before: frozenset[ProcessIdentity]) -> frozenset[ProcessIdentity]:
    """One pass; whoever dies hands its children to us. Returns those that were not dead yet."""
    left = process.adopted(os.getpid()) - before
    for identity in left:
        process.signal_process(identity, signal.SIGKILL)
        process.reap(identity.pid)
    return left


ESCAPES = b"""
trap '' PIPE
setsid sleep 60 & carrier=$!
env -i sleep 60 & in_group=$!
setsid env -u JOBMAN_RUN_ID JOBMAN_SUPERVISOR=x sleep 60 & nested=$!
env JOBMAN_RUN_ID=other sleep 60 & other=$!
until [ "$(cut -d' ' -f6 /proc/$carrier/stat)" = $carrier ] && ! grep -q RUN_ID /proc/$in_group/environ &&
    grep -q SUPERVISOR /proc/$nested/environ && grep -q =other /proc/$other/environ; do :; done
echo $$ $carrier $in_group $nested $other
wait
"""


def test_survivors_are_the_group_and_those_who_carry_the_run(orphan: Orphan) -> None:
    """D25, D40."""
    orphaned = orphan(ESCAPES)
    leader, carrier, in_group, _, _ = orphaned.line
    assert leader == orphaned.leader.pid
    assert orphaned.survivors(leader=orphaned.leader) == {leader, carrier, in_group}


def test_without_a_recorded_leader_only_carriers_of_the_run_survive(orphan: Orphan) -> None:
    orphaned = orphan(ESCAPES)
    assert orphaned.survivors(leader=None) == set(orphaned.line[:2])


def test_survivors_outlive_their_leader(orphan: Orphan) -> None:
    orphaned = orphan(b"env -i sleep 60 & echo $!")
    until(lambda: process.presence(orphaned.leader) == "gone")
    assert orphaned.survivors(leader=orphaned.leader) == set(orphaned.line)


def test_a_process_older_than_the_run_is_no_survivor(orphan: Orphan) -> None:
    orphaned = orphan(b"echo $$; exec sleep 60")
    future = SystemClock().wall_ns() + 60_000_000_000
    found = process.survivors(
        None, run_id=RUN, reserved_after_ns=future, caller_pid=os.getpid(), supervisor_pid=orphaned.supervisor_pid
    )
    assert found == ()
    later = orphaned.leader._replace(creation_id=str(int(orphaned.leader.creation_id) + 1000))
    assert orphaned.survivors(leader=later) == set()


def test_the_group_of_a_recycled_pid_is_not_ours(orphan: Orphan) -> None:
    """Field case 8: the number of the leader has gone to another process, which leads another group."""
    orphaned = orphan(b"env -i sleep 60 & echo $$ $!; wait")
    leader, _ = orphaned.line
    recycled = orphaned.leader._replace(creation_id=str(int(orphaned.leader.creation_id) - 1))
    until(lambda: orphaned.survivors(leader=recycled) == {leader})
    assert orphaned.survivors(leader=orphaned.leader) == set(orphaned.line)


def test_a_group_in_another_session_is_not_ours(orphan: Orphan) -> None:
    orphaned = orphan(b"env -i sleep 60 & echo $$ $!; wait")
    elsewhere = orphaned._replace(supervisor_pid=orphaned.supervisor_pid + 1)
    # Until its exec the child still carries the run of its parent.
    until(lambda: elsewhere.survivors(leader=orphaned.leader) == {orphaned.line[0]})
    assert orphaned.survivors(leader=orphaned.leader) == set(orphaned.line)


def test_the_caller_and_its_ancestors_are_no_survivors(orphan: Orphan) -> None:
    """``jobman cancel`` may be called by a process of the very run."""
    orphaned = orphan(b"sleep 60 & other=$!; sh -c 'sleep 60 & echo $0 $$ $!; wait' $other; true")
    other, _, caller = orphaned.line
    assert orphaned.survivors(leader=orphaned.leader, caller_pid=caller) == {other}


def test_nobody_survives_a_boot(orphan: Orphan) -> None:
    orphaned = orphan(b"echo $$; exec sleep 60")
    assert orphaned.survivors(leader=orphaned.leader._replace(boot_id="another")) == set()


def test_the_survivors_of_another_pid_namespace_are_unknown(orphan: Orphan) -> None:
    orphaned = orphan(b"echo $$; exec sleep 60")
    assert orphaned.survivors(leader=orphaned.leader._replace(pid_namespace="1")) is None


def test_survivors_can_be_killed(orphan: Orphan) -> None:
    """D25."""
    orphaned = orphan(ESCAPES)

    def none_left() -> bool:
        process.kill_all(
            lambda: (
                process.survivors(
                    orphaned.leader,
                    run_id=RUN,
                    reserved_after_ns=0,
                    caller_pid=os.getpid(),
                    supervisor_pid=orphaned.supervisor_pid,
                )
                or ()
            )
        )
        return orphaned.survivors(leader=orphaned.leader) == set()

    until(none_left)
    assert process.presence(orphaned.leader) == "gone"
