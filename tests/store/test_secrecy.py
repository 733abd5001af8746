# SPDX-License-Identifier: Apache-2.0
"""Who may read a file with access keys, and that no byte of a removed key remains in it."""

import os
import shutil
import stat
import subprocess

import pytest

import sqsqlite
from sqsqlite.access.keys import add_key, list_keys, remove_key, rotate_key
from sqsqlite.sql.access import LIST_ACCESS_KEYS
from tests.store.processes import Program

ACCOUNT = "111122223333"
ENDINGS = ("", "-wal", "-shm")
posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")

BEGIN = """
import sqsqlite.store.driver
connection = sqsqlite.store.driver.dbapi.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
except sqsqlite.store.driver.dbapi.OperationalError as error:
    say(error)
else:
    say("begun")
"""


def modes(path):
    found = [f"{path}{ending}" for ending in ENDINGS if os.path.exists(f"{path}{ending}")]
    return {stat.S_IMODE(os.stat(each).st_mode) for each in found}


def places(path, secrets):
    """Where secrets are found, as (ending of the file, secret).

    Another process reads: closing drops a process's locks.
    """
    found = []
    for ending in ENDINGS:
        if os.path.exists(f"{path}{ending}"):
            content = subprocess.run(["cat", f"{path}{ending}"], capture_output=True, check=True).stdout
            found += [(ending, secret) for secret in secrets if secret.encode() in content]
    return found


@pytest.fixture
def path_for_all(path):
    """A file that every user may read, with its -wal and -shm."""
    path.touch()
    path.chmod(0o644)
    return path


@posix
@pytest.mark.parametrize(
    ("mode", "narrow"),
    [(0o644, 0o600), (0o640, 0o600), (0o600, 0o600), (0o664, 0o660), (0o660, 0o660), (0o666, 0o666)],
)
def test_first_key_closes_the_files_to_users_who_may_not_write_them(path, mode, narrow):
    path.touch()
    path.chmod(mode)
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
        assert modes(path) == {mode}
        sqs._store.write(add_key, ACCOUNT, "")
        assert modes(path) == {narrow}


@posix
def test_next_open_closes_the_wal_of_a_file_that_was_closed_in_use(path_for_all):
    """After the advised `chmod 600`, SQLite leaves the -wal and the -shm as they were, with the secret in them."""
    with sqsqlite.connect(path_for_all) as sqs:
        key = sqs._store.write(add_key, ACCOUNT, "")
        for ending in ENDINGS:
            os.chmod(f"{path_for_all}{ending}", 0o644)
        assert ("-wal", key.secret_access_key) in places(path_for_all, [key.secret_access_key])
        path_for_all.chmod(0o600)
        sqsqlite.connect(path_for_all).close()
        assert modes(path_for_all) == {0o600}


@posix
def test_files_are_closed_to_others_under_an_old_c_library(path_for_all, monkeypatch):
    """glibc before 2.32, as on Debian 11 and RHEL 8: the test raises what os.chmod raises there."""
    chmod = os.chmod

    def follow(path, mode, *, follow_symlinks=True):
        if not follow_symlinks:
            raise NotImplementedError("chmod: follow_symlinks unavailable on this platform")
        chmod(path, mode)

    monkeypatch.setattr(os, "chmod", follow)
    with sqsqlite.connect(path_for_all) as sqs:
        sqs._store.write(add_key, ACCOUNT, "")
        assert modes(path_for_all) == {0o600}


ADD_WITHOUT_PROC = """
import os, sqsqlite, subprocess
from sqsqlite.access.keys import add_key
subprocess.run(["mount", "-t", "tmpfs", "none", "/proc"], check=True)
with sqsqlite.connect(sys.argv[1]) as sqs:
    sqs._store.write(add_key, "111122223333", "")
    say(*(oct(os.stat(sys.argv[1] + ending).st_mode & 0o777) for ending in ("", "-wal", "-shm")))
"""


@pytest.mark.slow  # another process
def test_files_are_closed_to_others_where_proc_is_hidden(path_for_all):
    """The C library uses /proc to change a mode without following links."""
    allowed = (
        shutil.which("unshare") and not subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    )
    if not allowed:
        pytest.skip("no mount of its own is allowed here")
    with Program(ADD_WITHOUT_PROC, path_for_all, before=("unshare", "--mount")) as program:
        assert program.hear() == "0o600 0o600 0o600"


@posix
def test_file_without_keys_keeps_its_mode(path_for_all):
    with sqsqlite.connect(path_for_all) as sqs:
        sqs.create_queue("orders").send("hi")
        sqsqlite.connect(path_for_all).close()
        assert modes(path_for_all) == {0o644}


@posix
def test_wal_that_is_a_link_is_not_followed(path_for_all, tmp_path):
    """The link replaces a missing -wal. SQLite does not follow it either."""
    with sqsqlite.connect(path_for_all) as sqs:
        sqs._store.write(add_key, ACCOUNT, "")
    path_for_all.chmod(0o600)
    victim = tmp_path / "victim"
    victim.touch()
    victim.chmod(0o644)
    os.symlink(victim, f"{path_for_all}-wal")
    with pytest.raises(sqsqlite.errors.StoreError):
        sqsqlite.connect(path_for_all)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644


@posix
def test_locks_survive_the_change_of_modes(path_for_all):
    """Opening and closing a file would drop the locks that SQLite holds on it in this process."""
    with sqsqlite.connect(path_for_all) as sqs, sqs.transaction():
        sqs._store.write(add_key, ACCOUNT, "")
        assert modes(path_for_all) == {0o600}
        with Program(BEGIN, path_for_all) as other:
            assert other.hear() == "database is locked"


def test_removed_key_remains_in_no_file(path):
    with sqsqlite.connect(path) as sqs:
        key = sqs._store.write(add_key, ACCOUNT, "")
        assert places(path, [key.secret_access_key])
        sqs._store.write(remove_key, key.access_key_id)
        assert places(path, [key.secret_access_key]) == []
    assert places(path, [key.secret_access_key]) == []


def test_keys_removed_in_any_order_remain_on_no_page(path):
    with sqsqlite.connect(path) as sqs:
        write = sqs._store.write
        keys = [write(add_key, ACCOUNT, "u" * (number % 60)) for number in range(60)]
        kept = keys[::7]
        gone = [key for key in keys if key not in kept]
        for key in gone:
            write(remove_key, key.access_key_id)
        secrets = [key.secret_access_key for key in gone]
        assert places(path, secrets) == []
        with sqs._store.reading() as connection:
            assert len(list_keys(connection)) == len(kept)
    assert places(path, secrets) == []


def test_expired_rotated_key_remains_in_no_file_once_another_is_made(path, clock):
    with sqsqlite.connect(path, clock=clock) as sqs:
        old = sqs._store.write(add_key, ACCOUNT, "")
        sqs._store.write(rotate_key, old.access_key_id, 60)
        clock.advance(61)
        assert places(path, [old.secret_access_key])
        sqs._store.write(add_key, ACCOUNT, "")
        assert places(path, [old.secret_access_key]) == []


@pytest.mark.parametrize("before", [0, 1, 2])
def test_key_removed_in_the_callers_transaction_keeps_its_connection_settings(path, before):
    with sqsqlite.connect(path) as sqs:
        key = sqs._store.write(add_key, ACCOUNT, "")
        with sqs.transaction() as connection:
            connection.execute(f"PRAGMA secure_delete = {('OFF', 'ON', 'FAST')[before]}")
            sqs._store.write(remove_key, key.access_key_id)
            assert connection.execute("PRAGMA secure_delete").fetchone() == (before,)
        assert places(path, [key.secret_access_key]) == []


def test_key_is_removed_even_while_a_reader_keeps_its_secret_in_the_wal(path):
    with sqsqlite.connect(path) as sqs:
        key = sqs._store.write(add_key, ACCOUNT, "")
        with sqs._store.reading() as reader:
            reader.execute(LIST_ACCESS_KEYS).fetchall()
            sqs._store.write(remove_key, key.access_key_id)
        with sqs._store.reading() as connection:
            assert list_keys(connection) == []
    assert places(path, [key.secret_access_key]) == []
