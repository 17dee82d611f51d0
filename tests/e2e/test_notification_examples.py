"""The ready-made hooks of examples/notifications, against the receiving side."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import pytest

from tests.blocks import ROOT
from tests.receivers import MESSAGE, Authority, outgoing, web_server
from tests.support import DEADLINE_S

EXAMPLES = ROOT / "examples" / "notifications"
PAGE = ROOT / "docs" / "guide" / "notifications.md"
TEXT = f"<näme>: job failed, exit code 3 (jobman show {MESSAGE.job_id})"
EVENT = outgoing(message=MESSAGE._replace(summary={"job_name": "<näme>", "exit_code": 3})).body


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    return Authority(tmp_path, monkeypatch)


@pytest.mark.parametrize("service", ["slack", "ntfy", "telegram"])
def test_a_chat_is_told_in_its_own_words(authority: Authority, service: str) -> None:
    with web_server(authority.context("localhost")) as server:
        environment = {"URL": server.url + "\n", "CHAT": "17", "SSL_CERT_FILE": str(authority.path)}
        argv = [sys.executable, str(EXAMPLES / "chat.py"), service]
        subprocess.run(argv, input=EVENT, env=environment, check=True, timeout=DEADLINE_S)
    [request] = server.requests
    assert _said(service, request.body.decode()) == TEXT


def _said(service: str, body: str) -> str:
    if service == "slack":
        text = json.loads(body)["text"]
        # What it shows, after what it takes for a link or for a mention of somebody.
        return html.unescape(re.sub("<.*?>", "", text))
    return body if service == "ntfy" else urllib.parse.parse_qs(body)["text"][0]


def test_the_desktop_shows_which_job_and_what(tmp_path: Path) -> None:
    shown = tmp_path / "notify-send"
    shown.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/shown\n')
    shown.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "JOBMAN_EVENT_TYPE": "job_failed"}

    subprocess.run([EXAMPLES / "desktop.sh"], input=outgoing().body, env=environment, check=True, timeout=DEADLINE_S)

    assert (tmp_path / "shown").read_text() == "--|Jobman: job failed|\\u003cnäme\\u003e|"


def test_the_programs_that_the_page_names_are_among_the_examples() -> None:
    named = set(re.findall(r"examples/notifications/(\S+?)`", PAGE.read_text()))

    assert named == {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    for service in ("slack", "ntfy", "telegram"):
        assert f"chat.py, {service}]" in PAGE.read_text()
