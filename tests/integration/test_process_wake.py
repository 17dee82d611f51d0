"""Wake-ups: one byte that reaches a sleeper, and never hurts whoever sends it."""

from __future__ import annotations

import os
import select
import stat
from typing import TYPE_CHECKING

import pytest

from jobman.process.wake import WakeReceiver, wake
from tests.integration.test_process_helpers import nobody_left  # noqa: F401  # a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("nobody_left")


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[WakeReceiver]:
    receiver = WakeReceiver.create(str(tmp_path / "wake"))
    yield receiver
    receiver.close()


def is_readable(receiver: WakeReceiver) -> bool:
    return bool(select.select([receiver], [], [], 0)[0])


def test_a_wake_up_makes_the_receiver_readable_until_it_is_drained(receiver: WakeReceiver) -> None:
    assert not is_readable(receiver)
    wake(receiver.path)
    wake(receiver.path)
    assert is_readable(receiver)
    assert receiver.drain()
    assert not is_readable(receiver)
    assert not receiver.drain()


def test_a_full_fifo_neither_blocks_nor_raises_and_one_drain_empties_it(receiver: WakeReceiver) -> None:
    while select.select([], [receiver], [], 0)[1]:
        os.write(receiver.fileno(), b"\0" * 4096)
    wake(receiver.path)
    assert receiver.drain()
    assert not receiver.drain()


def test_waking_nobody_is_silent(tmp_path: Path) -> None:
    wake(str(tmp_path / "absent"))
    wake(str(tmp_path / "absent" / "deeper"))
    wake("a\0b")


def test_a_fifo_without_a_reader_does_not_block(receiver: WakeReceiver) -> None:
    receiver.close()
    wake(receiver.path)


def test_other_files_of_that_name_are_left_alone(tmp_path: Path, receiver: WakeReceiver) -> None:
    regular, link = tmp_path / "regular", tmp_path / "link"
    regular.write_bytes(b"content")
    link.symlink_to(receiver.path)
    for path in (regular, link, tmp_path):
        wake(str(path))
    assert regular.read_bytes() == b"content"
    assert not is_readable(receiver)


@pytest.mark.parametrize("umask", [0, 0o777])
def test_the_fifo_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Field case 29."""
    old = os.umask(umask)
    try:
        receiver = WakeReceiver.create(str(tmp_path / "wake"))
    finally:
        os.umask(old)
    assert stat.filemode(os.fstat(receiver.fileno()).st_mode) == "prw-------"
    receiver.close()


def test_an_existing_name_is_refused(tmp_path: Path, receiver: WakeReceiver) -> None:
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    for path in (receiver.path, str(dangling)):
        with pytest.raises(FileExistsError):
            WakeReceiver.create(path)
    assert not (tmp_path / "nowhere").exists()


def test_the_descriptor_is_not_inherited(receiver: WakeReceiver) -> None:
    assert not os.get_inheritable(receiver.fileno())


def test_closing_and_removing_may_be_repeated(receiver: WakeReceiver) -> None:
    for _ in range(2):
        receiver.close()
        receiver.unlink()
    assert not os.path.exists(receiver.path)
