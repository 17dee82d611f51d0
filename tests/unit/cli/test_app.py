"""What becomes of failures that no command expects."""

from __future__ import annotations

import pytest

from jobman.cli import app


def _fail(words: object) -> None:
    raise ValueError(f"secret of {words}")


def test_a_defect_is_one_line_that_names_its_kind_and_place_and_no_value(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "parse", _fail)

    status = app.run(["status", "x"])

    told = capfd.readouterr()
    assert status == 1
    assert told.out == ""
    assert told.err.startswith("internal error: ValueError at test_app.py:")
    assert told.err.count("\n") == 1
    assert "secret" not in told.err


def test_running_out_of_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def exhaust(_words: object) -> None:
        raise MemoryError

    monkeypatch.setattr(app, "parse", exhaust)

    assert app.run(["list"]) == 1
    assert capfd.readouterr().err == "out of memory\n"


def test_a_message_is_no_longer_than_a_terminal_can_hold(capfd: pytest.CaptureFixture[str]) -> None:
    assert app.run(["list", "--limit", "9" * 100_000]) == 2

    told = capfd.readouterr().err
    assert told.startswith("invalid command usage: --limit: invalid value '999")
    assert "9 [...] 9" in told
    assert told.endswith("': expected an integer, 1 or more\n")
    assert len(told) < 2_100
