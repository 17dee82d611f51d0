r"""Writing to whatever standard output and error are: bytes as given, and control characters as text (A.16)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.output import printable


def in_a_child(code: str, **options: int) -> subprocess.CompletedProcess[bytes]:
    """Run a few lines that use ``jobman.cli.output``, with descriptors of the test's choice."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    words = (sys.executable, "-c", f"from jobman.cli.output import *\n{code}")
    return subprocess.run(words, check=False, timeout=15, env=os.environ | {"LC_ALL": "C"}, **given)  # type: ignore[call-overload,no-any-return]  # descriptors only


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("é 😀 \u00a0", "é 😀 \u00a0"),
        ("\x00\t\n\r\x1b\x7f", "\\x00\\x09\\x0a\\x0d\\x1b\\x7f"),
        ("\x80\x9b\x9f", "\\x80\\x9b\\x9f"),
        ("\udc80\udcff", "\\x80\\xff"),
        ("", ""),
    ],
)
def test_what_could_move_a_cursor_comes_out_as_text(text: str, shown: str) -> None:
    """A.16."""
    assert printable(text) == shown


@given(st.text())
def test_nothing_but_what_is_kept_controls_a_terminal(text: str) -> None:
    shown = printable(text, keep="\n")
    assert not any(char < " " or "\x7f" <= char < "\xa0" for char in shown.replace("\n", ""))
    assert shown.count("\n") == text.count("\n")


def test_output_is_utf_8_whatever_the_locale_says() -> None:
    """Field case 19."""
    done = in_a_child("out('é\\udcff\\n'); write_bytes(b'\\xff\\x00'); err('ü\\x1b\\udcfe')")
    assert done.stdout == "é\\udcff\n".encode() + b"\xff\x00"
    assert done.stderr == "ü\\x1b\\xfe\n".encode()


def test_a_message_that_nobody_can_hear_is_no_error() -> None:
    with open("/dev/full", "wb") as full:
        assert in_a_child("err('x')", stderr=full.fileno()).returncode == 0


@pytest.mark.parametrize("call", ["out('x')", "write_bytes(b'x')"])
def test_a_reader_that_has_gone_and_a_full_disk_are_told_apart(call: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    code = (
        "try:\n    {}\nexcept BrokenPipeError:\n    raise SystemExit(3)\nexcept OutputError:\n    raise SystemExit(4)"
    )
    assert in_a_child(code.format(call), stdout=writer).returncode == 3
    os.close(writer)
    with open("/dev/full", "wb") as full:
        assert in_a_child(code.format(call), stdout=full.fileno()).returncode == 4


def test_a_pipe_that_does_not_block_gets_everything() -> None:
    """A shell may leave a terminal or a pipe non-blocking; short and refused writes go on where they stopped."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    words = (sys.executable, "-c", "from jobman.cli.output import write_bytes; write_bytes(bytes(300_000))")
    with subprocess.Popen(words, stdout=writer) as process:
        os.close(writer)
        with open(reader, "rb") as pipe:
            assert pipe.read() == bytes(300_000)
    assert process.returncode == 0


def test_an_empty_text_writes_nothing() -> None:
    assert in_a_child("out(''); write_bytes(b'')").stdout == b""
