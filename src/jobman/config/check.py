"""What the values of a configuration say of each other (contract, K.4 and E.3; D14).

Works on what all sources have stated together, in canonical form; the first problem found is raised with its keys.
"""

from __future__ import annotations

from jobman.config.leaves import EVENTS
from jobman.config.notifiers import check_notifier
from jobman.config.patterns import MAX_PATTERNS
from jobman.config.rules import check_environment, exactly_one, refuse
from jobman.config.scalars import UNLIMITED
from jobman.config.select import merged
from jobman.model.scalars import parse_duration
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from jobman.config.schema import Path

    Block = Mapping[str, Any]

MAX_SECRETS = 256
_CONDITION_PARTS = {"until": "until", "delay": "delay", "file-exists": "file_exists", "probe": "probe"}
_PLACEHOLDER = {"command": ["true"]}


def check(stated: Block) -> None:
    """Hold the whole configuration to the rules that concern more than one value.

    Raises:
        Finding: one of them is broken.
    """
    if len(stated.get("secrets", {})) > MAX_SECRETS:
        refuse(("secrets",), f"expected at most {MAX_SECRETS} secrets")
    if len(stated.get("redaction", {}).get("patterns", ())) > MAX_PATTERNS:
        refuse(("redaction", "patterns"), f"expected at most {MAX_PATTERNS} patterns")
    for name, condition in stated.get("wait_conditions", {}).items():
        _check_condition(stated, ("wait_conditions", name), condition)
    for name, notifier in stated.get("notifiers", {}).items():
        check_notifier(stated, ("notifiers", name), notifier)
    for name, job in stated.get("job_specs", {}).items():
        path = ("job_specs", name)
        if "command" not in job:
            refuse(path, "command must be given")
        _check_job(stated, path, job)
    for name, profile in stated.get("profiles", {}).items():
        _check_profile(stated, ("profiles", name), profile)


def _check_condition(stated: Block, path: Path, condition: Block) -> None:
    part = exactly_one(path, condition, _CONDITION_PARTS)
    if condition["type"] == "file-exists" and "path" not in part:
        refuse((*path, "file_exists"), "path must be given")
    if condition["type"] == "probe":
        if "command" not in part:
            refuse((*path, "probe"), "command must be given")
        _check_command((*path, "probe", "command"), part["command"])
        check_environment(stated, (*path, "probe", "environment"), part.get("environment", {}))


def _check_command(path: Path, words: list[str]) -> None:
    if not words[0]:
        refuse((*path, 0), "expected the name of a program")


def _check_profile(stated: Block, path: Path, profile: Block) -> None:
    base = _PLACEHOLDER
    if "job_spec" in profile:
        specs = stated.get("job_specs", {})
        if profile["job_spec"] not in specs:
            refuse((*path, "job_spec"), f"unknown job spec {profile['job_spec']!r}: expected a name under job_specs")
        base = specs[profile["job_spec"]]
    _check_job(stated, (*path, "overrides"), merged(base, profile.get("overrides", {})))


def _check_job(stated: Block, path: Path, job: Block) -> None:
    _check_command((*path, "command"), job.get("command", ["true"]))
    check_environment(stated, (*path, "environment"), job.get("environment", {}))
    _check_completion((*path, "completion"), job.get("completion", {}))
    _check_delay((*path, "delay"), job.get("delay", {}))
    _check_admission(stated.get("concurrency", {}), (*path, "admission"), job.get("admission", {}))
    _check_logging((*path, "logging"), job.get("logging", {}))
    conditions = job.get("wait", {}).get("conditions", ())
    _check_names((*path, "wait", "conditions"), conditions, stated.get("wait_conditions", {}), "wait condition")
    _check_dependencies((*path, "dependencies"), job.get("dependencies", ()))
    _check_notification(stated.get("notifiers", {}), (*path, "notification"), job.get("notification", {}))


def _check_names(path: Path, names: Iterable[str], known: Block, kind: str) -> None:
    for place, name in enumerate(names):
        if name not in known:
            refuse((*path, place), f"unknown {kind} {name!r}: expected a name under {kind.replace(' ', '_')}s")


def _check_completion(path: Path, completion: Block) -> None:
    successes = completion.get("success_exit_codes", [0])
    for code in completion.get("retryable_exit_codes", ()):
        if code in successes:
            refuse((*path, "retryable_exit_codes"), f"{code} already counts as success")
    target, runs = completion.get("success_target", 1), completion.get("max_runs", 1)
    if UNLIMITED not in (target, runs) and target > runs:
        detail = f"{target} successes need more than {counted(runs, 'run')}: max_runs is too small"
        refuse((*path, "success_target"), detail)


def _check_delay(path: Path, delay: Block) -> None:
    most = delay.get("max_delay", UNLIMITED)
    if most != UNLIMITED and parse_duration(most) < parse_duration(delay.get("initial", "0s")):
        refuse((*path, "max_delay"), "expected at least the initial delay")


def _check_admission(concurrency: Block, path: Path, admission: Block) -> None:
    slots, pool = admission.get("slots", 1), admission.get("pool")
    pools = concurrency.get("pools", {})
    if pool is not None and pool not in pools:
        refuse((*path, "pool"), f"unknown pool {pool!r}: expected a name under concurrency.pools")
    for where, capacity in (
        ("max_active_slots", concurrency.get("max_active_slots", UNLIMITED)),
        (f"pool {pool}", pools.get(pool, UNLIMITED)),
    ):
        if capacity != UNLIMITED and slots > capacity:
            refuse((*path, "slots"), f"{slots} slots never fit into {where}, which is {capacity}")


def _check_logging(path: Path, logging: Block) -> None:
    segments, size = logging.get("segments_per_run", UNLIMITED), logging.get("segment_bytes", UNLIMITED)
    if segments != UNLIMITED and size in (0, UNLIMITED):
        refuse((*path, "segments_per_run"), "needs segment_bytes, the size of a segment")


def _check_dependencies(path: Path, dependencies: Iterable[Block]) -> None:
    known: dict[str, list[str]] = {}
    for place, dependency in enumerate(dependencies):
        outcomes = sorted(dependency["outcomes"])
        if known.setdefault(dependency["job"], outcomes) != outcomes:
            refuse((*path, place), f"contradicts an earlier dependency on {dependency['job']!r}")


def _check_notification(notifiers: Block, path: Path, notification: Block) -> None:
    names = notification.get("notifiers", ())
    _check_names((*path, "notifiers"), names, notifiers, "notifier")
    for place, name in enumerate(names):
        if not notification.get("events") and not notifiers[name].get("events"):
            detail = f"{name!r} is told of nothing: expected events here or there, of {', '.join(EVENTS)}"
            refuse((*path, "notifiers", place), detail)
