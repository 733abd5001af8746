# SPDX-License-Identifier: Apache-2.0
"""Upgrading a file: first a backup, then the whole upgrade or nothing, and no other process in between."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.store import migrate
from sqsqlite.store.backup import alone
from tests.store.full_disks import fill_by_another_program, small_disk

# Upgrades the file argv[1] by the revisions of the folder argv[2]; the revision itself stops the process.
UPGRADE = (
    "import sys; from pathlib import Path; from sqsqlite.store import migrate;"
    "migrate.upgrade(Path(sys.argv[1]), scripts=Path(sys.argv[2]))"
)
# Keeps the file argv[1] open until it gets a line.
HOLD = "import sys, sqsqlite; sqs = sqsqlite.connect(sys.argv[1]); print('open', flush=True); input(); sqs.close()"


def bodies(path) -> list[str]:
    with sqsqlite.connect(path) as sqs:
        return sorted(message.body for message in sqs.queue("orders").receive(10))


def python(program: str, *arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", program, *map(str, arguments)], **options)


def test_an_up_to_date_file_is_left_alone(path, tmp_path):
    done = migrate.upgrade(path)
    assert (done.version, done.migrations, done.backup) == (2, (), None)
    assert list(tmp_path.glob("*.backup")) == []


def test_upgrade_backs_up_then_runs_the_steps(path, next_release, tmp_path):
    done = migrate.upgrade(path, scripts=next_release())
    assert [(step.revision, step.description) for step in done.migrations] == [
        ("0003", "Note when a queue was last received from.")
    ]
    assert migrate.current(path) == 3
    assert done.backup is not None
    assert migrate.current(done.backup) == 2
    assert bodies(done.backup) == ["three", "two"]  # The first message is in flight there too.


def test_upgrade_sets_the_version_in_the_header_of_a_file_of_ours(path, next_release):
    migrate.upgrade(path, backup=False, scripts=next_release())
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT version_num FROM sqs_alembic_version").fetchall() == [("0003",)]
    connection.close()


def test_a_dry_run_lists_the_steps_while_others_work_and_changes_nothing(path, next_release, tmp_path):
    with sqsqlite.connect(path) as sqs:
        told = migrate.upgrade(path, dry_run=True, scripts=next_release())
        assert len(sqs.queue("orders")) == 3
    assert ([step.version for step in told.migrations], told.backup) == ([3], None)
    assert migrate.current(path) == 2
    assert list(tmp_path.glob("*.backup")) == []


def test_a_file_open_in_this_process_is_refused(path, next_release):
    with sqsqlite.connect(path) as sqs, pytest.raises(errors.FileInUse, match="has the file open"):
        migrate.upgrade(path, scripts=next_release())
    assert sqs is not None
    assert migrate.current(path) == 2


def test_a_file_open_in_another_process_is_refused_until_it_closes(path, next_release):
    """No process may continue with rows whose meaning has changed."""
    scripts = next_release()
    with python(HOLD, path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "open\n"
        with pytest.raises(errors.FileInUse):
            migrate.upgrade(path, scripts=scripts)
        other.communicate("\n")
    assert migrate.upgrade(path, scripts=scripts).migrations != ()


def test_opening_the_file_during_an_upgrade_waits_and_then_names_the_version(path, next_release):
    """It neither works on the old rows meanwhile nor fails for lack of a lock."""
    scripts = next_release()
    outcome = []

    def open_it() -> None:
        try:
            sqsqlite.connect(path).close()
        except errors.StoreError as error:
            outcome.append(type(error))

    opener = threading.Thread(target=open_it)
    with alone(path, 5) as connection:
        opener.start()
        migrate.run(connection, migrate.pending(2, scripts), scripts)
        assert outcome == []
    opener.join(300)
    assert outcome == [errors.SchemaTooNew]


def test_a_process_killed_in_mid_upgrade_leaves_the_old_version_whole(path, next_release):
    """The kill comes after the statements of the step and before its commit."""
    scripts = next_release("os.kill(os.getpid(), signal.SIGKILL)")
    with python(UPGRADE, path, scripts) as killed:
        assert killed.wait(300) == -signal.SIGKILL
    assert migrate.current(path) == 2
    assert migrate.check(path) == []
    assert bodies(path) == ["three", "two"]


def test_a_step_that_fails_leaves_the_old_version_whole(path, next_release):
    with pytest.raises(ZeroDivisionError):
        migrate.upgrade(path, scripts=next_release("1 / 0"))
    assert migrate.check(path) == []
    assert bodies(path) == ["three", "two"]


def test_a_full_disk_in_mid_upgrade_is_a_typed_error_and_leaves_the_old_version_whole(path, next_release):
    """Here the file may not grow beyond its present pages."""
    full = (
        "pages = connection.exec_driver_sql('PRAGMA page_count').scalar()\n"
        "    connection.exec_driver_sql(f'PRAGMA max_page_count = {pages}')\n"
        "    connection.exec_driver_sql('CREATE TABLE sqs_more AS SELECT zeroblob(1000000) AS a')"
    )
    with pytest.raises(errors.DiskFull):
        migrate.upgrade(path, scripts=next_release(full))
    assert migrate.check(path) == []
    assert bodies(path) == ["three", "two"]


def test_a_link_to_a_file_upgrades_the_file(path, next_release, tmp_path):
    (tmp_path / "link").symlink_to(path)
    done = migrate.upgrade(tmp_path / "link", scripts=next_release())
    assert (done.path, migrate.current(path)) == (path, 3)
    assert not (tmp_path / "link-sqs").exists()


def test_an_upgrade_without_its_backup_changes_nothing(path, next_release, monkeypatch):
    """Here the backup cannot be written because its name is taken."""
    monkeypatch.setattr(migrate.time, "strftime", lambda *_: "now")
    path.with_name("app.db.v2-now.backup").touch()
    with pytest.raises(errors.TargetExists):
        migrate.upgrade(path, scripts=next_release())
    assert migrate.current(path) == 2


def test_a_newer_file_is_refused_by_open_check_and_upgrade(path, next_release):
    migrate.upgrade(path, scripts=next_release())
    with pytest.raises(errors.SchemaTooNew):
        sqsqlite.connect(path)
    with pytest.raises(errors.SchemaTooNew):
        migrate.upgrade(path)
    assert migrate.check(path) == ["schema version 3, known is 2: install a newer SQSQLite"]


def test_error_about_an_older_file_names_the_upgrade_command(path, monkeypatch):
    """By the code of the next release, before its upgrade."""
    monkeypatch.setattr("sqsqlite.sql.schema.SCHEMA_VERSION", 3)
    with pytest.raises(errors.SchemaTooOld, match="db upgrade"):
        sqsqlite.connect(path)
    assert migrate.check(path) == ["schema version 2, needed is 3: run `sqsqlite db upgrade`"]


def test_check_reports_foreign_changes_of_the_schema(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DROP INDEX sqs_ix_leases_age")
        connection.execute("CREATE TABLE sqs_mine (a)")
    connection.close()
    assert migrate.check(path) == [
        "index sqs_ix_leases_age is missing",
        "table sqs_mine is not one of this version",
    ]


def test_a_database_without_queues_is_not_upgraded(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE orders (id)")
    connection.close()
    for action in (migrate.upgrade, migrate.current, migrate.check):
        with pytest.raises(errors.NotAdopted):
            action(tmp_path / "other.db")


def test_upgrading_a_missing_file_creates_none(tmp_path):
    with pytest.raises(errors.CannotOpen):
        migrate.upgrade(tmp_path / "none.db")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("folder", ["50% off", "a?b#c", "naïve"])
def test_paths_with_odd_characters_are_upgraded(folder, tmp_path, path, next_release):
    (tmp_path / folder).mkdir()
    moved = path.rename(tmp_path / folder / "app.db")
    assert migrate.upgrade(moved, scripts=next_release().rename(tmp_path / folder / "next")).migrations != ()
    assert migrate.current(moved) == 3


@pytest.mark.slow
@pytest.mark.parametrize("has_folder", [True, False], ids=["with its folder", "put here as a copy"])
def test_an_upgrade_without_a_free_byte_reports_a_full_disk(tmp_path, next_release, has_folder):
    scripts = next_release()
    with small_disk(tmp_path / "disk", 4) as disk:
        path = disk / "app.db"
        with sqsqlite.connect(path) as sqs:
            sqs.create_queue("orders").send("one")
        if not has_folder:
            shutil.rmtree(f"{path}-sqs")
        fill_by_another_program(disk)
        with pytest.raises(errors.DiskFull):
            migrate.upgrade(path, scripts=scripts)
        (disk / "somebody-elses").unlink()
        assert migrate.upgrade(path, scripts=scripts).migrations
