"""What follows from what was seen: each row one finding, and whether it says what to do (field cases 13, 32)."""

from __future__ import annotations

import pytest

from jobman.process.session import Limits, Session
from jobman.service.doctor.files import Holdings, judge_disk, judge_files, judge_place
from jobman.service.doctor.findings import Disk, Finding, Level, Report, size_in_words
from jobman.service.doctor.machine import judge_library, judge_limits, judge_session

GIB = 1 << 30


@pytest.mark.parametrize(
    ("session", "level", "says"),
    [
        (Session(managed=False, unit="session-3.scope", lingering=False, kills=True), Level.OK, "nothing is known"),
        (Session(managed=True, unit="", lingering=False, kills=True), Level.OK, "nothing is known"),
        (Session(True, "user@7.service", True, None), Level.OK, "lingers"),
        (Session(True, "user@7.service", False, None), Level.NOTE, "loginctl enable-linger ada"),
        (Session(True, "session-3.scope", False, False), Level.OK, "KillUserProcesses=no"),
        (Session(True, "session-3.scope", False, True), Level.NOTE, "logging out ends jobs"),
        (Session(True, "session-3.scope", False, None), Level.NOTE, "logging out may end jobs"),
        (Session(True, "session-3.scope", True, True), Level.NOTE, "systemd-run --user --scope"),
        (Session(True, "cron.service", True, True), Level.NOTE, "when cron.service is stopped"),
    ],
)  # fmt: skip
def test_whether_jobs_outlive_the_session(session: Session, level: Level, says: str) -> None:
    found = judge_session(session, "ada")
    assert found.level == level
    assert says in f"{found.text}; {found.advice}"
    assert bool(found.advice) == (level == Level.NOTE)


@pytest.mark.parametrize(
    ("version", "safe"), [("3.51.3", True), ("3.54.1", True), ("4.0", True), ("3.51.2", False), ("3.40.1", False)]
)
def test_a_library_that_can_damage_its_log_is_named(version: str, *, safe: bool) -> None:
    found = judge_library(version)
    assert [finding.level for finding in found] == ([] if safe else [Level.PROBLEM])
    assert all("pip install --upgrade apsw" in finding.advice for finding in found)


@pytest.mark.parametrize(
    ("limits", "level", "says"),
    [
        (Limits(None, None, None, 9), Level.OK, "any number of open files per process, any number of processes"),
        (Limits(1024, 500, None, 100), Level.OK, "1024 open files per process, about 400 more processes"),
        (Limits(32, None, None, 9), Level.NOTE, "ulimit -n"),
        (Limits(1024, 100, 4096, 90), Level.NOTE, "about 10 more processes, files of at most 4096 bytes"),
        (Limits(1024, 100, None, 200), Level.NOTE, "about 0 more processes"),
    ],
)
def test_whether_the_limits_leave_room_for_jobs(limits: Limits, level: Level, says: str) -> None:
    (found,) = judge_limits(limits)
    assert found.level == level
    assert says in f"{found.text}; {found.advice}"


def test_no_limit_on_processes_binds_a_privileged_user() -> None:
    (found,) = judge_limits(Limits(1024, 100, None, 200), privileged=True)
    assert (found.level, found.advice) == (Level.OK, "")


@pytest.mark.parametrize(
    ("kind", "level"),
    [("ext4", Level.OK), ("", Level.OK), ("tmpfs", Level.NOTE), ("lustre", Level.NOTE), ("fuse.sshfs", Level.NOTE)],
)
def test_what_the_file_system_means(kind: str, level: Level) -> None:
    (found,) = judge_place("/state", kind)
    assert found.level == level
    assert ("JOBMAN_STATE_DIR" in found.advice) == (level == Level.NOTE)


@pytest.mark.parametrize(
    ("disk", "levels"),
    [
        (Disk(1, 1, 1, 1, GIB), [Level.OK]),
        (Disk(1, 1, 1, 1, 4096), [Level.NOTE]),
        (Disk(GIB, GIB, 1, 1, GIB), [Level.OK, Level.NOTE]),
    ],
)
def test_what_disk_use_means(disk: Disk, levels: list[Level]) -> None:
    assert [found.level for found in judge_disk(disk)] == levels


def test_files_that_are_not_private_are_named_the_first_few() -> None:
    strange = tuple(f"logs/{number} has mode 0644" for number in range(8))
    (found,) = judge_files(Holdings(Disk(), strange, (), ()))
    assert found.level == Level.PROBLEM
    assert "logs/4 has mode 0644, and 3 more" in found.text
    assert "logs/5" not in found.text


def test_what_is_no_log_is_named_with_what_it_is_in_the_way_of() -> None:
    strange, foreign = judge_files(Holdings(Disk(), ("run has mode 0755",), (), (), ("logs/x",)))
    assert (strange.level, foreign.level) == (Level.PROBLEM, Level.PROBLEM)
    assert foreign.text == "no logs, and they keep logs from being cleaned: logs/x"


@pytest.mark.parametrize(("level", "healthy"), [(level, level != Level.PROBLEM) for level in Level])
def test_only_a_problem_is_unhealthy(level: Level, *, healthy: bool) -> None:
    assert Report("/state", "3", (Finding(Level.OK, "a", "b"), Finding(level, "c", "d"))).healthy is healthy


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5120.0 GiB")]
)
def test_sizes_read_well(count: int, words: str) -> None:
    assert size_in_words(count) == words
