"""``jobman notify test``: send one marked message by a notifier that is given, and say what came of it.

In the sender's process, because only there are secrets looked up; it is given a document and answers with one.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from jobman.clock import SystemClock
from jobman.delivery.sending import Occasion, attempt
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.notifiers_json import notifier_from
from jobman.notify.message import TEST_EVENT, Message
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.policy.delivery import Result

_SECOND_NS = 1_000_000_000


def main() -> None:
    """Read a notifier from standard input, tell it of a test event, and write what happened to standard output."""
    notifier = notifier_from(json.loads(sys.stdin.buffer.read()))
    clock = SystemClock()
    timeout_ns = min(notifier.timeout_ns, notifier.budget_ns)
    occasion = Occasion(timeout_ns / _SECOND_NS, clock.wall_ns(), contextlib.nullcontext())
    result = attempt(notifier, _message(clock), occasion)
    sys.stdout.write(json.dumps(_document(result)))
    sys.stdout.flush()


def _message(clock: SystemClock) -> Message:
    now_ns = clock.wall_ns()
    event_id, job_id = (new_id(now_ns, os.urandom(RANDOM_BYTES)) for _ in range(2))
    return Message(event_id, TEST_EVENT, job_id, now_ns, {"job_name": "jobman notify test", "reason": "test"})


def _document(result: Result) -> dict[str, object]:
    return {
        "code": result.code,
        "text": result.text,
        "response_status_code": result.response_status_code,
        "response_truncated": result.response_truncated,
        "command_exit_code": result.command_exit_code,
        "message_id": result.message_id,
        "output": result.output.decode("utf-8", "replace"),
    }
