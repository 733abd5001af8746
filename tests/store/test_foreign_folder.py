# SPDX-License-Identifier: Apache-2.0
"""The folder FILE-sqs and its files are used only if a user trusted with the database made them."""

import contextlib
import os
import shutil
import stat

import pytest

import sqsqlite
from sqsqlite.errors import CannotOpen
from sqsqlite.store import beside
from tests.store.inspection import bodies
from tests.store.processes import Program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and links are POSIX's")
needs_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can be many users")
FILES = ("waiting-room", "turn", "ballast")
OWNER, STRANGER, THIRD, GROUP, OTHER_GROUP = 4001, 4002, 4003, 4100, 4200

# The arguments are user, group and further groups, then the file.
SEND_AS = """
import os, sqsqlite, tempfile
with tempfile.TemporaryDirectory() as folder:  # the user may be unable to read Python's own modules: load them now
    sqsqlite.connect(folder + "/queues.db").close()
user, group, *others = map(int, sys.argv[2].split())
os.setgroups(others); os.setgid(group); os.setuid(user); os.umask(int(sys.argv[3], 8))
try:
    with sqsqlite.connect(sys.argv[1]) as sqs:
        sqs.create_queue("orders").send("hi")
except sqsqlite.errors.StoreError as error:
    say(type(error).__name__, error)
else:
    say("sent")
"""


def send_as(path, user, *groups, umask=0o022):
    """The output of a process of this user that sends a message."""
    with Program(SEND_AS, path, " ".join(map(str, (user, *groups))), f"{umask:o}") as program:
        return program.hear()


def let_all_pass(path):
    """Open pytest's folders to other users."""
    for folder in path.parent.parents:
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)


@pytest.fixture
def folder(path):
    """The folder of a file that was used and closed."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    return path.with_name("queues.db-sqs")


@pytest.fixture
def victim(tmp_path):
    """A file that does not belong to SQSQLite."""
    file = tmp_path / "victim"
    file.write_text("0123456789")
    return file


def test_folder_that_is_a_link_is_refused(path, folder, tmp_path):
    moved = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(moved)
    with pytest.raises(CannotOpen, match=f"{folder}: must be a folder that SQSQLite made, and is a link"):
        sqsqlite.connect(path)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_link_in_place_of_a_file_is_refused_and_its_target_kept(path, folder, victim, name, make):
    (folder / name).unlink()
    make(victim, folder / name)
    with pytest.raises(CannotOpen, match=f"{folder / name}: must be a file of one name .* is a link"):
        sqsqlite.connect(path)
    assert victim.read_text() == "0123456789"


@pytest.mark.parametrize("name", FILES)
def test_pipe_in_place_of_a_file_makes_no_process_wait(path, folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(CannotOpen, match=f"{folder / name}: must be a file of one name .* is something else"):
        sqsqlite.connect(path)


@pytest.mark.parametrize("make", [os.symlink, os.link, lambda _, path: os.mkfifo(path)])
def test_ballast_replaced_by_a_link_in_use_is_not_followed(path, folder, victim, make):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue("orders")
        (folder / "ballast").unlink()
        make(victim, folder / "ballast")
        sqs._store.file.headroom._looked_at = float(
            "-inf"
        )  # The next send checks the folder, as happens every tenth of a second.
        with contextlib.suppress(CannotOpen):
            queue.send("hi")
    assert victim.read_text() == "0123456789"


def test_folder_removed_and_replaced_by_a_link_in_use_is_refused(path, folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with sqsqlite.connect(path) as sqs:
        queue = sqs.queue("orders")
        shutil.rmtree(folder)
        folder.symlink_to(elsewhere)
        sqs._store.file.headroom._looked_at = float("-inf")
        with contextlib.suppress(CannotOpen):
            queue.send("hi")
    assert os.listdir(elsewhere) == []


@needs_root
@pytest.mark.parametrize("name", [*FILES, ""])
def test_file_of_a_stranger_is_refused_with_a_remedy(path, folder, name):
    """A stranger's lock file would make this process's writers wait for the stranger."""
    os.chown(folder / name, STRANGER, STRANGER)
    with pytest.raises(CannotOpen) as refused:
        sqsqlite.connect(path)
    assert str(refused.value).startswith(f"{folder / name}: belongs to user {STRANGER}, who is neither root")
    assert f"remove {folder} while no process has the queue open" in str(refused.value)
    shutil.rmtree(folder)
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == []


@needs_root
@pytest.mark.parametrize("name", [*FILES, ""])
def test_open_waits_for_a_folder_or_file_that_another_user_is_creating(path, folder, name, monkeypatch):
    """A new folder or file is closed to others for an instant, until it gets the rights of the database."""
    os.chown(folder / name, STRANGER, STRANGER)
    is_being_made = beside._is_being_made

    def give_rights(looked_at):
        os.chown(folder / name, 0, 0)
        return is_being_made(looked_at)

    monkeypatch.setattr(beside, "_is_being_made", give_rights)
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == []


@pytest.mark.slow  # processes of several users
@needs_root
def test_folder_is_trusted_if_the_owner_of_the_database_or_root_made_it(path, tmp_path):
    tmp_path.chmod(0o777)
    let_all_pass(path)
    path.touch()
    path.chmod(0o666)
    os.chown(path, OWNER, OWNER)
    assert send_as(path, OWNER, OWNER) == "sent"
    folder = path.with_name("queues.db-sqs")
    assert folder.stat().st_uid == OWNER
    assert send_as(path, STRANGER, STRANGER) == "sent"
    assert send_as(path, 0, 0) == "sent"
    os.chown(folder, 0, 0)
    assert send_as(path, STRANGER, STRANGER) == "sent"


@pytest.mark.slow  # processes of several users
@needs_root
def test_folder_is_trusted_if_the_group_that_writes_the_database_made_it(path, tmp_path):
    tmp_path.chmod(0o777)
    let_all_pass(path)
    path.touch()
    path.chmod(0o664)
    os.chown(path, OWNER, GROUP)
    assert send_as(path, OWNER, GROUP) == "sent"
    folder = path.with_name("queues.db-sqs")
    for each in (folder, *folder.iterdir()):
        os.chown(each, STRANGER, GROUP)
    assert send_as(path, THIRD, GROUP) == "sent"
    os.chown(folder, STRANGER, OTHER_GROUP)
    folder.chmod(0o777)
    assert send_as(path, THIRD, GROUP).startswith(f"CannotOpen {folder}: belongs to user {STRANGER}")
    os.chown(folder, STRANGER, GROUP)
    folder.chmod(0o755)
    assert send_as(path, THIRD, GROUP).startswith(f"CannotOpen {folder}: belongs to user {STRANGER}")


@pytest.mark.slow  # processes of several users
@needs_root
def test_group_that_shares_a_folder_shares_the_queue_in_it(path, tmp_path):
    """As with plain SQLite: each user has a group of his own, and the folder hands its group down."""
    tmp_path.chmod(0o2775)
    os.chown(tmp_path, OWNER, GROUP)
    tmp_path.chmod(0o2775)
    let_all_pass(path)
    for user in (OWNER, THIRD, OWNER):
        assert send_as(path, user, user, GROUP, umask=0o002) == "sent"
    folder = path.with_name("queues.db-sqs")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2775
    for name in FILES:
        (folder / name).unlink()
    for user in (THIRD, OWNER):
        assert send_as(path, user, user, GROUP, umask=0o022) == "sent"
    assert {(each.stat().st_gid, stat.S_IMODE(each.stat().st_mode)) for each in folder.iterdir()} == {
        (GROUP, 0o664)
    }


@pytest.mark.slow  # processes of several users
@needs_root
def test_files_made_by_a_user_of_the_databases_group_have_that_group(path, tmp_path):
    tmp_path.chmod(0o777)
    let_all_pass(path)
    path.touch()
    path.chmod(0o664)
    os.chown(path, OWNER, GROUP)
    assert send_as(path, THIRD, THIRD, GROUP) == "sent"
    folder = path.with_name("queues.db-sqs")
    assert {each.stat().st_gid for each in (folder, *folder.iterdir())} == {GROUP}
    assert send_as(path, STRANGER, STRANGER, GROUP) == "sent"


@pytest.mark.parametrize("umask", [0o077, 0o027, 0o022, 0o002])
def test_new_files_follow_the_umask(path, umask):
    before = os.umask(umask)
    try:
        with sqsqlite.connect(path) as sqs:
            sqs.create_queue("orders")
            files = (path, *path.parent.glob("queues.db-*"), *path.parent.glob("queues.db-sqs/*"))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files}
    finally:
        os.umask(before)
    assert modes.pop("queues.db-sqs") == 0o777 & ~umask
    assert {"queues.db", "queues.db-wal", "queues.db-shm", *FILES} <= modes.keys()
    assert set(modes.values()) == {0o666 & ~umask}
