"""Tell a chat what happened to a job: a hook for a notifier of the type command.

    chat.py slack       URL: an incoming web hook
    chat.py ntfy        URL: a topic, such as https://ntfy.sh/jobs-of-xk7qv0
    chat.py telegram    URL: https://api.telegram.org/botTOKEN/sendMessage, CHAT: the ID of the chat

The event comes on standard input. URL and CHAT are variables, so that both can be secrets of the configuration.
"""

import html
import json
import os
import sys
import urllib.parse
import urllib.request
from typing import Any

Body = tuple[bytes, dict[str, str]]


def slack(line: str, _event: dict[str, Any]) -> Body:
    """A web hook takes a JSON document with a text, in which three characters are markup."""
    text = html.escape(line, quote=False)
    return json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}


def ntfy(line: str, event: dict[str, Any]) -> Body:
    """A topic takes plain text; headers say how it is shown."""
    failed = event["type"] not in ("job_succeeded", "run_succeeded")
    return line.encode(), {"Title": "Jobman", "Tags": "warning" if failed else "white_check_mark"}


def telegram(line: str, _event: dict[str, Any]) -> Body:
    """A bot takes a form."""
    form = {"chat_id": os.environ["CHAT"], "text": line}
    return urllib.parse.urlencode(form).encode(), {"Content-Type": "application/x-www-form-urlencoded"}


def main() -> None:
    """Read the event, and post what a person wants to read of it."""
    event = json.loads(sys.stdin.buffer.read())
    said = event["detail"]["summary"]
    what = event["type"].replace("_", " ")
    code = f", exit code {said['exit_code']}" if said.get("exit_code") else ""
    line = f"{said.get('job_name') or event['job_id'][:8]}: {what}{code} (jobman show {event['job_id']})"
    body, headers = {"slack": slack, "ntfy": ntfy, "telegram": telegram}[sys.argv[1]](line, event)
    request = urllib.request.Request(os.environ["URL"].strip(), body, headers)  # noqa: S310  # the user's own address
    with urllib.request.urlopen(request, timeout=8):  # noqa: S310  # as above
        pass


main()
