"""``jobman notify test``."""

from __future__ import annotations

from jobman.cli.output import err, out
from jobman.cli.redacting import prepare
from jobman.config.load import load
from jobman.config.paths import state_directory
from jobman.config.redaction import redact_text
from jobman.config.subscribing import notifier
from jobman.errors import NotifierError
from jobman.service.notify import try_notifier
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.service.notify import Trial


def run(parsed: Parsed) -> int:
    """Send a test event and print what happened; fail unless it was delivered."""
    prepare(parsed.value("config"), parsed.value("state-dir"))
    chosen = notifier(load(parsed.value("config")).stated, parsed.operand("NOTIFIER"), "notify test")
    tried = try_notifier(chosen, state_directory(parsed.value("state-dir")))
    if tried.output:
        err(redact_text(tried.output.rstrip("\n")))
    if tried.code:
        raise NotifierError(notifier=chosen.name, code=tried.code, detail=tried.text)
    out(f"{chosen.name}\tdelivered\t{_answer(tried)}\n")
    return 0


def _answer(tried: Trial) -> str:
    if tried.command_exit_code is not None:
        return f"exit {tried.command_exit_code}"
    if tried.response_status_code is not None:
        return f"status {tried.response_status_code}"
    return f"message {tried.message_id}"
