# SPDX-License-Identifier: Apache-2.0
"""A file with two names would have two WALs, so it is refused, for mounts and for hard links."""

import os
import subprocess
from pathlib import Path

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.operators import backup as backups
from sqsqlite.spark.facts import take_facts
from sqsqlite.store import create, migrate
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program

# Each program runs in mounts of its own, as a container does, with its first argument mounted on its second.
CONTAINER = ("unshare", "--mount", "--", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "-")
SEND = r"""
import sqsqlite
for path in sys.argv[1:]:
    try:
        with sqsqlite.connect(path) as sqs:
            for number in range(20):
                sqs.queue("orders").send(f"{path} {number}")
        say("sent")
    except sqsqlite.errors.CannotOpen as error:
        say(str(error).replace("\n", " "))
"""


@pytest.fixture(autouse=True)
def _mounting(request):
    if "mounted" in request.node.name and os.geteuid() != 0:
        assert not os.environ.get("CI"), "run as root: a file has to be mounted"
        pytest.skip("only root can mount a file")


@pytest.fixture
def shop(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    return path


@pytest.mark.parametrize("name", ["queues.db", "a b\\c\td\ne#.db"], ids=["plain", "escaped"])
@pytest.mark.parametrize("by", ["name", "symbolic link"])
def test_mounted_file_is_refused(shop, tmp_path, name, by):
    """Two containers that each mount one file would overwrite each other's commits."""
    target = tmp_path / name if name != shop.name else shop
    target.touch()
    opened = target
    if by == "symbolic link":
        opened = tmp_path / "link.db"
        opened.symlink_to(target)
    with Program(SEND, opened, before=(*CONTAINER, str(shop), str(target))) as program:
        assert "the file itself is mounted here" in program.hear()
        program.end()
    assert not target.with_name(f"{target.name}-wal").exists() or target == shop


def test_mounted_folder_is_used_by_two_containers_at_once(shop, tmp_path):
    twin = tmp_path / "twin"
    twin.mkdir()
    mounted = (*CONTAINER, str(tmp_path), str(twin))
    with (
        Program(SEND, twin / shop.name, before=mounted) as one,
        Program(SEND, twin / shop.name, before=mounted) as other,
    ):
        assert {one.hear(), other.hear()} == {"sent"}
    with sqsqlite.connect(shop) as sqs:
        assert len(bodies(sqs.queue("orders"))) == 40
        assert_whole(sqs)


def test_mounted_backup_can_be_read(shop, tmp_path):
    """A backup is one file without a WAL: reports and restore can read it under any mount."""
    with sqsqlite.connect(shop) as sqs:
        sqs.queue("orders").send("hello")
        backups.backup(sqs._store, tmp_path / "orders.backup")
    source = """
from sqsqlite.spark.facts import take_facts
from sqsqlite.operators import backup
say(take_facts([sys.argv[1]], sys.argv[2]).messages)
say(backup.restore(sys.argv[1], sys.argv[3]) > 0)
"""
    mounted = tmp_path / "mounted.backup"
    mounted.touch()
    before = (*CONTAINER, str(tmp_path / "orders.backup"), str(mounted))
    with Program(source, mounted, tmp_path / "facts.db", tmp_path / "new.db", before=before) as program:
        assert (program.hear(), program.hear()) == ("1", "True")
        program.end()


def test_file_with_two_hard_links_is_refused_by_either_name(shop):
    """In any process, and also while the file is closed: SQSQLite cannot know which name is used next."""
    twin = shop.with_name("twin.db")
    with sqsqlite.connect(shop) as sqs:
        os.link(shop, twin)
        for name in (shop, twin):
            with pytest.raises(errors.CannotOpen, match=f"{name}: the file has several hard links"):
                sqsqlite.connect(name)
        assert not twin.with_name("twin.db-wal").exists()
        sqs.queue("orders").send("before")
    with Program(SEND, shop, twin) as program:
        for name in (shop, twin):
            said = program.hear()
            assert said.startswith(f"{name}: the file has several hard links")
            assert said.endswith("mount the folder")
        program.end()
    with pytest.raises(errors.CannotOpen, match="hard links"):
        migrate.upgrade(twin)
    with pytest.raises(errors.CannotOpen, match="hard links"):
        take_facts([twin], shop.with_name("facts.db"))
    assert sorted(path.name for path in shop.parent.iterdir()) == [
        "facts.db",
        "queues.db",
        "queues.db-sqs",
        "twin.db",
    ]
    twin.unlink()
    with sqsqlite.connect(shop) as sqs:
        assert bodies(sqs.queue("orders")) == ["before"]


def test_longest_and_latest_mount_of_a_path_counts():
    """Lines as the kernel writes them: optional fields, octal digits, a mount that hides another."""
    lines = rb"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:40 / /srv rw shared:1 master:2 - tmpfs none rw
41 22 0:41 / /srv rw - virtiofs queues rw
42 41 0:42 / /srv/my\040queues rw,relatime shared:7 - fuse.grpcfuse grpcfuse rw,user_id=0
43 41 254:0 /q.db /srv/q.db rw - ext4 /dev/vda rw
"""
    assert create.mount_of(Path("/home/q.db"), lines) == (b"/", "ext4")
    assert create.mount_of(Path("/srv2/q.db"), lines) == (b"/", "ext4")
    assert create.mount_of(Path("/srv/o.db"), lines) == (b"/srv", "virtiofs")
    assert create.mount_of(Path("/srv/my queues/o.db"), lines) == (b"/srv/my queues", "fuse.grpcfuse")
    assert create.mount_of(Path("/srv/q.db"), lines) == (b"/srv/q.db", "ext4")
    assert create.mount_of(Path("/srv/q.db"), b"") == (b"", "")


def test_folder_shared_by_machines_causes_a_warning(path, tmp_path, monkeypatch):
    """The type is simulated: a real one needs a second machine, and only the kernel's name for it matters."""
    table = tmp_path / "mountinfo"
    table.write_bytes(b"22 1 0:40 / / rw - 9p host rw,trans=virtio\n")
    monkeypatch.setattr(create, "MOUNTS", table)
    with pytest.warns(RuntimeWarning, match=r"queues.db: lies on 9p, .* one machine only"):
        sqsqlite.connect(path).close()
    sqsqlite.connect(path).close()  # One warning per folder.


def test_system_without_a_list_of_mounts_opens_files(path, tmp_path, monkeypatch):
    """macOS and Windows have no list."""
    monkeypatch.setattr(create, "MOUNTS", tmp_path / "none")
    sqsqlite.connect(path).close()


def test_tools_for_the_mount_tests_are_installed():
    """Without them the tests above would test nothing."""
    subprocess.run(["unshare", "--version"], check=True, capture_output=True)
