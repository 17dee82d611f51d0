"""Which file system a path lies on, from a mount table as the kernel writes it (D.5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobman.errors import StateDirectoryError
from jobman.store import safety
from jobman.store.safety import file_system_type, prepare_state_directory

_TABLE = rb"""22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 28 0:35 / /home rw,relatime shared:20 - nfs4 server:/home rw
41 40 254:1 / /home/local rw,relatime - xfs /dev/vdb rw
42 28 0:40 / /mnt/my\040disk rw shared:3 master:2 - fuse.sshfs host: rw
43 28 0:41 / /mnt/tab\011x rw - cifs //server/share rw
44 28 0:42 / /mnt/new\012line rw - 9p share rw
45 28 0:43 / /mnt/back\134slash rw - smb3 //server/share rw
46 28 0:44 / /mnt/back\134040 rw - coda share rw
47 28 0:45 / /mnt/stacked rw - nfs server:/x rw
48 28 254:2 / /mnt/stacked rw - ext4 /dev/vdc rw
49 28 0:46 /- /mnt/dash rw - - none rw
50 28 0:47 / /mnt/\303\251 rw - afs none rw
a broken line
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "mountinfo"
    path.write_bytes(_TABLE)
    return str(path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/var/state", "ext4"),
        ("/home", "nfs4"),
        ("/home/ann/state", "nfs4"),
        ("/home/local", "xfs"),
        ("/home/local/ann", "xfs"),
        ("/home/locality", "nfs4"),
        ("/homes", "ext4"),
        ("/mnt/my disk/state", "fuse.sshfs"),
        ("/mnt/my", "ext4"),
        ("/mnt/tab\tx/state", "cifs"),
        ("/mnt/new\nline/state", "9p"),
        ("/mnt/back\\slash/state", "smb3"),
        ("/mnt/back\\040/state", "coda"),
        ("/mnt/stacked/state", "ext4"),
        ("/mnt/dash/state", "-"),
        ("/mnt/é/state", "afs"),
    ],
)
def test_the_last_longest_mount_point_names_the_type(table: str, path: str, kind: str) -> None:
    """The one on top, its name unescaped."""
    assert file_system_type(path, table) == kind


def test_without_a_mount_table_nothing_is_known(tmp_path: Path) -> None:
    assert not file_system_type("/", str(tmp_path / "missing"))


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "coda", "afs", "fuse", "fuseblk", "fuse.sshfs", "fuse.rclone"],
)
def test_remote_types_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(safety, "file_system_type", lambda _path: kind)
    with pytest.raises(StateDirectoryError, match=f"is on a {kind} file system"):
        prepare_state_directory(str(tmp_path / "state"))


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fusectl", ""])
def test_local_types_and_unknown_ones_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(safety, "file_system_type", lambda _path: kind)
    assert prepare_state_directory(str(tmp_path / "state")) == str(tmp_path / "state")
