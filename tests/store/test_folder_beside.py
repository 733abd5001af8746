# SPDX-License-Identifier: Apache-2.0
"""The folder FILE-sqs: who may use it, and what happens when it disappears."""

import contextlib
import os
import shutil
import stat
from pathlib import Path

import pytest

import sqsqlite
from tests.store.inspection import bodies
from tests.store.processes import Program

OPEN_AS_NOBODY = """
import os, sqsqlite, tempfile
with tempfile.TemporaryDirectory() as folder:  # a user without rights may not read Python's own modules: load them now
    sqsqlite.connect(folder + "/queues.db").close()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with sqsqlite.connect(sys.argv[1]) as sqs:
        sqs.queue("orders").send("hi")
except sqsqlite.errors.StoreError as error:
    say(type(error).__name__, error)
else:
    say("sent")
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def let_all_pass(path):
    """Open pytest's folders to other users."""
    path.parent.chmod(0o777)
    for folder in path.parent.parents:
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)


def hear_nobody(path):
    with Program(OPEN_AS_NOBODY, path) as program:
        return program.hear()


def test_folder_removed_under_an_open_queue_is_made_again(path):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        shutil.rmtree(f"{path}-sqs")
        sqs._store.file.headroom.release()  # so that the next send looks
        queue.send("hi")
        assert bodies(queue) == ["hi"]
    assert os.listdir(f"{path}-sqs")


def descriptors_of(path):
    """The descriptors of this process that lead to a file."""
    wanted, found = os.stat(path), []
    for number in map(int, os.listdir("/dev/fd")):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself
            if os.path.samestat(os.fstat(number), wanted):
                found.append(number)
    return found


def test_ballast_stays_open_as_long_as_the_file(path):
    ballast = Path(f"{path}-sqs/ballast")
    with sqsqlite.connect(path) as sqs:
        assert len(descriptors_of(ballast)) == 1
        sqs.create_queue("orders").send("hi")
        assert len(descriptors_of(ballast)) == 1
    assert descriptors_of(ballast) == []


def test_removed_ballast_takes_no_space_once_another_is_made(path):
    ballast, seen = Path(f"{path}-sqs/ballast"), Path(f"{path}-seen")
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        os.link(ballast, seen)
        ballast.unlink()
        sqs._store.file.headroom.release()  # so that the next send looks
        queue.send("hi")
        assert descriptors_of(seen) == []
        assert len(descriptors_of(ballast)) == 1


def test_file_that_got_the_ballasts_descriptor_is_left_alone(path, tmp_path):
    """A daemon may have closed all descriptors, and then opened files of its own."""
    other = tmp_path / "other"
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        [number] = descriptors_of(f"{path}-sqs/ballast")
        with other.open("xb") as own:
            os.dup2(own.fileno(), number)
            queue.send("hi")
            assert len(descriptors_of(f"{path}-sqs/ballast")) == 1
    assert other.stat().st_size == 0
    os.close(number)


@needs_root
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666])
def test_folder_and_its_files_have_the_rights_of_the_database(path, mode):
    path.touch()
    path.chmod(mode)
    os.chown(path, 65534, 65534)
    sqsqlite.connect(path).close()
    for name in ("waiting-room", "turn", "ballast"):
        found = os.stat(f"{path}-sqs/{name}")
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (mode, 65534, 65534)
    found = os.stat(f"{path}-sqs")
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (mode | (mode & 0o444) >> 2, 65534)


@needs_root
def test_queue_that_another_user_opened_to_all_can_be_used(path):
    path.touch()
    path.chmod(0o666)
    let_all_pass(path)
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        assert hear_nobody(path) == "sent"
        assert bodies(queue) == ["hi"]


@needs_root
@pytest.mark.parametrize("name", ["waiting-room", "turn", "ballast", ""])
def test_file_in_the_folder_that_this_user_may_not_write_is_named(path, name):
    path.touch()
    path.chmod(0o666)
    let_all_pass(path)
    sqsqlite.connect(path).close()
    os.chmod(f"{path}-sqs/{name}", 0o644)
    said = hear_nobody(path)
    assert said.startswith(f"ReadOnlyFile {path}-sqs{'/' * bool(name)}{name}: this user may not")
    assert "remove" in said


@needs_root
def test_file_in_a_folder_closed_to_this_user_cannot_be_opened(path):
    let_all_pass(path)
    path.parent.chmod(0o700)
    said = hear_nobody(path)
    assert said.startswith(f"CannotOpen {path}: this user may not open {path.parent}")
