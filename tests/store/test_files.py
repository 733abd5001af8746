# SPDX-License-Identifier: Apache-2.0
"""Which files a path may lead to when it is opened, and the error for any other."""

import os
import secrets
import stat
import subprocess
from hashlib import sha256

import pytest

import sqsqlite
from sqsqlite import errors
from sqsqlite.sql import schema
from sqsqlite.store import create
from sqsqlite.store.create import APPLICATION_ID
from sqsqlite.store.driver import dbapi
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program

BECOME_NOBODY = "os.setgroups([]); os.setgid(65534); os.setuid(65534)"
OPEN_AS_NOBODY = f"""
import os, sqsqlite, tempfile
with tempfile.TemporaryDirectory() as folder:  # a user without rights may not read Python's own modules: load them now
    sqsqlite.connect(folder + "/queues.db").close()
{BECOME_NOBODY}
try:
    sqsqlite.connect(sys.argv[1]).close()
except sqsqlite.errors.StoreError as error:
    say(type(error).__name__, error)
else:
    say("opened")
"""


def fingerprint(path):
    return sha256(path.read_bytes()).hexdigest()


def beside(path):
    return sorted(name for name in os.listdir(path.parent) if name != path.name)


def run_sql(path, *statements):
    """Run SQL by the only copy of SQLite in this process, while none of our queues has the file open."""
    connection = dbapi.connect(str(path), isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


def test_new_file_is_made_with_the_application_id(path):
    sqsqlite.connect(path).close()
    assert run_sql(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert run_sql(path, "PRAGMA user_version") == [(schema.SCHEMA_VERSION,)]
    assert run_sql(path, "PRAGMA journal_mode") == [("wal",)]


def test_empty_file_counts_as_a_new_one(path):
    """`mktemp` leaves an empty file; so does a process killed before it wrote the first page."""
    path.touch()
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
        assert_whole(sqs)


@pytest.mark.parametrize(
    "content",
    [b"x", b"\0", b"hello\n", bytes(511), b"{}" * 400, bytes(4096), secrets.token_bytes(10_000)],
    ids=len,
)
def test_file_that_is_not_a_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    before = fingerprint(path)
    with pytest.raises(errors.NotADatabase, match="not a SQLite database"):
        sqsqlite.connect(path)
    with pytest.raises(errors.NotADatabase):
        sqsqlite.connect(path, adopt=True)
    assert (fingerprint(path), beside(path)) == (before, [])


@pytest.fixture
def shop(path):
    """An application's own database, in rollback-journal mode, with its own marks in the header."""
    run_sql(
        path,
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT)",
        "CREATE INDEX ix_orders_item ON orders (item)",
        "CREATE TABLE alembic_version (version_num TEXT)",
        "INSERT INTO alembic_version VALUES ('cafe')",
        "INSERT INTO orders (item) VALUES ('lamp')",
        "PRAGMA user_version = 77",
        "PRAGMA application_id = 123456",
    )
    return path


OWN_OBJECTS = (
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE '%sqs\\_%' ESCAPE '\\' ORDER BY name"
)


def test_database_of_another_application_is_refused_and_left_alone(shop):
    before = fingerprint(shop)
    with pytest.raises(errors.NotAdopted, match="adopt=True"):
        sqsqlite.connect(shop)
    assert (fingerprint(shop), beside(shop)) == (before, [])


@pytest.mark.parametrize(
    ("named", "kind"),
    [
        ("CREATE TABLE sqs_queues (x)", "table sqs_queues"),
        ("CREATE TABLE SQS_Meta (x)", "table SQS_Meta"),
        ("CREATE TABLE sqs_meta (x)", "table sqs_meta"),
        ("CREATE VIEW sqs_orders AS SELECT id FROM orders", "view sqs_orders"),
        ("CREATE INDEX sqs_ix_leases_age ON orders (id)", "index sqs_ix_leases_age"),
    ],
)
@pytest.mark.parametrize("adopt", [True, False])
def test_database_with_a_table_of_our_name_is_refused_and_left_alone(shop, named, kind, adopt):
    run_sql(shop, named)
    before = fingerprint(shop)
    with pytest.raises(errors.NotAdopted, match=f"whose {kind} has a name"):
        sqsqlite.connect(shop, adopt=adopt)
    assert (fingerprint(shop), beside(shop)) == (before, [])


@pytest.mark.slow  # another process
def test_new_file_that_another_process_is_creating_is_not_refused(path, monkeypatch):
    """Two processes open one new file at the same instant. The WAL lets one write while the other reads."""
    empty = dbapi.connect(path)
    empty.execute("PRAGMA journal_mode = WAL")
    empty.close()
    is_ours = create.is_ours

    def look_and_be_overtaken(connection):
        monkeypatch.undo()
        found = is_ours(connection)
        with Program("import sqsqlite; sqsqlite.connect(sys.argv[1]).close(); say('made')", path) as other:
            assert other.hear() == "made"
        return found

    monkeypatch.setattr(create, "is_ours", look_and_be_overtaken)
    with sqsqlite.connect(path) as sqs:
        assert sqs.queues() == []


def test_adoption_that_fails_half_way_leaves_the_file_as_it_was(shop, monkeypatch):
    statements = schema.statements()
    before = fingerprint(shop)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "statements", lambda: [*statements, "CREATE TABLE orders (x)"])
        with pytest.raises(dbapi.OperationalError, match="orders already exists"):
            sqsqlite.connect(shop, adopt=True)
    assert run_sql(shop, "PRAGMA journal_mode") == [("delete",)]
    assert fingerprint(shop) == before
    sqsqlite.connect(shop, adopt=True).close()
    assert run_sql(shop, "PRAGMA journal_mode") == [("wal",)]


def test_adopted_database_keeps_its_own_content(shop):
    objects = run_sql(shop, OWN_OBJECTS)
    with sqsqlite.connect(shop, adopt=True) as sqs:
        sqs.create_queue("orders").send("hi")
        assert_whole(sqs)
    assert run_sql(shop, OWN_OBJECTS) == [
        *objects,
        ("table", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
    ]
    assert run_sql(shop, "SELECT * FROM orders") == [(1, "lamp")]
    assert run_sql(shop, "SELECT version_num FROM alembic_version") == [("cafe",)]
    assert run_sql(shop, "PRAGMA user_version") == [(77,)]
    assert run_sql(shop, "PRAGMA application_id") == [(123456,)]


def test_adopted_database_then_opens_without_adopt(shop):
    sqsqlite.connect(shop, adopt=True).close()
    with sqsqlite.connect(shop) as sqs:
        assert sqs.queues() == []


@pytest.mark.parametrize(
    ("change", "kind", "advice"),
    [
        ("number + 1", errors.SchemaTooNew, "install a newer one"),
        ("number - 1", errors.SchemaTooOld, "db upgrade"),
    ],
)
def test_file_of_another_schema_version_is_refused(path, change, kind, advice):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
    run_sql(path, f"UPDATE sqs_meta SET number = {change} WHERE name = 'schema_version'")
    with pytest.raises(kind, match=advice):
        sqsqlite.connect(path)
    run_sql(path, f"UPDATE sqs_meta SET number = {schema.SCHEMA_VERSION} WHERE name = 'schema_version'")
    with sqsqlite.connect(path) as sqs:
        assert bodies(sqs.queue("orders")) == ["hi"]


def test_schema_that_changes_under_an_open_file_is_a_typed_error(path):
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        with sqs.transaction() as connection:
            connection.execute("ALTER TABLE sqs_leases RENAME TO sqs_old_leases")
        with pytest.raises(errors.SchemaTooOld, match="open the file again"):
            queue.send("hi")


def test_damaged_file_is_a_typed_error(path):
    """A page of zeroes replaces the queues' rows."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send_many(["x" * 3000] * 50)
    [(root,)] = run_sql(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'sqs_leases'")
    [(page_size,)] = run_sql(path, "PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(b"\xff" * page_size)
    with sqsqlite.connect(path) as sqs, pytest.raises(errors.Corrupt, match="restore a backup"):
        sqs.queue("orders").receive()


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(errors.MissingFolder, match=r"no folder .*nowhere"):
        sqsqlite.connect(tmp_path / "nowhere" / "queues.db")
    assert os.listdir(tmp_path) == []


def test_path_of_a_folder_is_refused(tmp_path):
    with pytest.raises(errors.CannotOpen, match="is a folder"):
        sqsqlite.connect(tmp_path)


def test_path_of_a_pipe_is_refused(path):
    os.mkfifo(path)
    with pytest.raises(errors.CannotOpen, match="not a regular file"):
        sqsqlite.connect(path)


@pytest.mark.parametrize("path", [":memory:", "", "a\0b"])
def test_path_without_a_file_name_is_a_value_error(path):
    with pytest.raises(ValueError, match="path="):
        sqsqlite.connect(path)


@pytest.mark.parametrize(
    "option",
    [
        {"synchronous": "full"},
        *({"busy_timeout": seconds} for seconds in (-1, 86_400.1, 1e12, float("inf"), float("nan"))),
        *({"region": region} for region in (None, "", "US", "x y", "us_east", "us-east-1\n", 7)),
    ],
    ids=repr,
)
def test_option_out_of_range_makes_no_file(path, option):
    with pytest.raises(ValueError, match=next(iter(option))):
        sqsqlite.connect(path, **option)
    assert not path.exists()


def _readable_by_all(path):
    """Open pytest's folders to other users."""
    for folder in path.parents:
        if folder.stat().st_uid == os.getuid() and not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or mount")


@needs_root
@pytest.mark.parametrize("what", ["file", "folder"])
def test_file_or_folder_that_this_user_may_not_write_is_refused(path, what):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders").send("hi")
    _readable_by_all(path)
    path.chmod(0o666 if what == "folder" else 0o644)
    path.parent.chmod(0o777 if what == "file" else 0o755)
    with Program(OPEN_AS_NOBODY, path) as program:
        said = program.hear()
    assert said.startswith("ReadOnlyFile")
    assert f"may not write the {what}" in said


@needs_root
def test_file_of_another_user_opens_when_it_may_be_written(path):
    """The lock files and wake-up sockets that the first user created must not exclude the second one."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
        _readable_by_all(path)
        for each in (path, *path.parent.glob("queues.db-*"), *path.parent.glob("queues.db-sqs/*")):
            each.chmod(0o777)
        path.parent.chmod(0o777)
        with Program(OPEN_AS_NOBODY, path) as program:
            assert program.hear() == "opened"


@needs_root
def test_read_only_file_system_is_refused(path, tmp_path):
    """The file system is mounted in a namespace of its own, which ends with the program."""
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    program = OPEN_AS_NOBODY.replace(BECOME_NOBODY, "")
    script = 'mount --bind -o ro "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", script, str(tmp_path))
    with Program(program, path, before=before) as opened:
        said = opened.hear()
    assert said.startswith("ReadOnlyFile")


@needs_root
def test_immutable_file_is_refused(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("this file system knows no immutable files")
    try:
        with pytest.raises(errors.ReadOnlyFile):
            sqsqlite.connect(path)
    finally:
        subprocess.run(["chattr", "-i", path], check=True)
