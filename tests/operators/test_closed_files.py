# SPDX-License-Identifier: Apache-2.0
"""Files that are not open are only read by what checks them or plans an upgrade."""

import os
import sqlite3
import stat
import subprocess
import sys
from functools import partial

import pytest

import sqsqlite
from sqsqlite import errors
from tests.store.processes import Program

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or mount")
LOOK = """
import os, sqsqlite, tempfile
from sqsqlite import check, errors, schema_state, upgrade
with tempfile.TemporaryDirectory() as folder:  # the other user may be unable to read Python's own modules
    sqsqlite.connect(folder + "/queues.db").close()
    list(map(lambda look: look(folder + "/queues.db"), (check, schema_state)))
    upgrade(folder + "/queues.db", dry_run=True)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = sys.argv[1]
for look in (check, schema_state, lambda path: upgrade(path, dry_run=True)):
    try:
        say(look(path))
    except errors.StoreError as error:
        say(type(error).__name__, error)
"""


@pytest.fixture
def backup(sqs, queue, tmp_path):
    queue.send("a")
    (tmp_path / "kept").mkdir()
    sqs.backup(tmp_path / "kept" / "a.backup")
    return tmp_path / "kept" / "a.backup"


def _closed_to_others(path):
    """Others may read the file, and write neither it nor its folder."""
    for folder in path.parents:
        if folder.stat().st_uid == os.getuid():
            folder.chmod((folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH) & ~stat.S_IWOTH)
    path.chmod(0o444)


def _looks(path):
    with Program(LOOK, path) as program:
        return [program.hear() for _ in range(3)]


@pytest.mark.parametrize(
    "look", [sqsqlite.check, sqsqlite.schema_state, partial(sqsqlite.upgrade, dry_run=True)]
)
def test_a_backup_stays_as_it_is(look, backup):
    before = backup.read_bytes()
    look(backup)
    assert backup.read_bytes() == before
    assert list(backup.parent.iterdir()) == [backup]


def test_a_backup_with_several_names_is_checked(backup):
    """Links of `rsync --link-dest`, say. Only a WAL is found by its file's name, and a backup has none."""
    os.link(backup, backup.with_name("again"))
    assert sqsqlite.check(backup) == []


@needs_root
@pytest.mark.slow
def test_a_backup_is_checked_by_a_user_who_may_only_read_it(backup):
    _closed_to_others(backup)
    findings, state, plan = _looks(backup)
    assert findings == "[]"
    assert "differences=()" in state
    assert "migrations=()" in plan


@needs_root
@pytest.mark.slow
def test_a_file_in_wal_mode_in_a_folder_that_the_user_may_not_write_says_what_to_do(path, sqs):
    sqs.close()
    _closed_to_others(path)
    for said in _looks(path):
        assert said.startswith("ReadOnlyFile")
        assert "copy the file" in said


def test_a_file_in_use_is_checked_while_a_process_writes(sqs, queue, path):
    with sqs.transaction():
        queue.send("a")
        assert sqsqlite.check(path, bodies=True) == []


def test_an_applications_database_is_not_said_to_be_damaged(tmp_path):
    """Nor is it to be adopted, which would write to it."""
    with sqlite3.connect(tmp_path / "app.db") as application:
        application.execute("CREATE TABLE orders (id INTEGER)")
    application.close()
    with pytest.raises(errors.NotAdopted) as refused:
        sqsqlite.check(tmp_path / "app.db")
    assert str(refused.value) == f"{tmp_path}/app.db: a SQLite database without queues"


def test_a_folder_is_no_backup(tmp_path):
    with pytest.raises(errors.CannotOpen, match="is a folder, not a file"):
        sqsqlite.restore(tmp_path, tmp_path / "new.db")


@pytest.mark.parametrize("name", ["a\0b", "", ":memory:"])
def test_a_path_that_names_no_file_is_refused_with_its_value(name, sqs, backup, tmp_path):
    for call in (
        sqsqlite.check,
        sqsqlite.schema_state,
        sqsqlite.upgrade,
        sqs.backup,
        partial(sqsqlite.restore, backup),
        lambda name: sqsqlite.restore(name, tmp_path / "new.db"),
    ):
        with pytest.raises(ValueError, match=r"^path="):
            call(name)


@pytest.mark.parametrize("name", ["n" * 300, "n" * 5000], ids=["name", "path"])
def test_a_name_that_is_too_long_is_an_error_of_ours(name, backup, tmp_path):
    looks = (
        sqsqlite.check,
        sqsqlite.schema_state,
        sqsqlite.upgrade,
        lambda name: sqsqlite.restore(name, tmp_path / "new.db"),
    )
    for look in looks:
        with pytest.raises(errors.CannotOpen):
            look(tmp_path / name)


@pytest.mark.parametrize("look", [sqsqlite.check, sqsqlite.schema_state, sqsqlite.upgrade])
def test_a_path_may_be_bytes_as_for_connect(look, backup):
    look(os.fsencode(backup))


def test_a_restore_without_an_upgrade_loads_neither_alembic_nor_sqlalchemy(backup, tmp_path):
    """They take longer to load than a small backup takes to restore."""
    code = (
        "import sys, sqsqlite; sqsqlite.restore(*sys.argv[1:]); "
        "print([name for name in ('alembic', 'sqlalchemy') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, backup, tmp_path / "new.db"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "[]\n"
