# SPDX-License-Identifier: Apache-2.0
"""Send, receive and settle on the application's own SQLAlchemy connection or session."""

import time

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import sqsqlite
from sqsqlite.errors import SQSQLiteError, TransactionInProgress
from tests.store.inspection import assert_whole, bodies, rows
from tests.store.waiting import Task

ITEMS = "SELECT item FROM orders ORDER BY id"


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]


class Changed(Exception):
    """The application raises this to give up."""


def place_by_connection(connection, item):
    connection.execute(text("INSERT INTO orders (item) VALUES (:item)"), {"item": item})


def place_by_session(session, item):
    session.add(Order(item=item))
    session.flush()


@pytest.fixture(params=["Connection", "Session"])
def begin(request, sqs):
    """Begin a transaction in either way. Returns the caller and a function that stores an order."""
    if request.param == "Connection":
        return sqs.engine.begin, place_by_connection
    return Session(sqs.engine).begin, place_by_session


@pytest.fixture(params=[True, False], ids=["commit", "rollback"])
def transact(request, begin):
    """Run a function in a transaction that commits or rolls back. Returns which."""
    start, place = begin

    def run(work):
        try:
            with start() as context:
                caller = getattr(context, "session", context)
                work(caller)
                place(caller, "lamp")
                if not request.param:
                    raise Changed
        except Changed:
            return False
        return True

    return run


def expected_items(kept):
    return [("lamp",)] if kept else []


def test_send(sqs, queue, transact):
    kept = transact(lambda caller: queue.send("hi", attributes={"n": 1}, connection=caller))
    assert rows(sqs, ITEMS) == expected_items(kept)
    assert_whole(sqs)
    assert bodies(queue) == (["hi"] if kept else [])


def test_send_many(sqs, queue, transact):
    kept = transact(lambda caller: queue.send_many(["a", {"body": "b", "delay": 9}, "c"], connection=caller))
    assert rows(sqs, ITEMS) == expected_items(kept)
    assert_whole(sqs)
    assert bodies(queue) == (["a", "c"] if kept else [])


def test_receive(sqs, queue, transact):
    queue.send("work")
    received = []
    kept = transact(lambda caller: received.extend(queue.receive(connection=caller)))
    assert [message.body for message in received] == ["work"]
    assert_whole(sqs)
    assert queue.attributes["ApproximateNumberOfMessagesNotVisible"] == ("1" if kept else "0")
    if kept:
        received[0].delete()
        assert len(queue) == 0
    else:
        [again] = queue.receive()
        assert again.receive_count == 1


def test_delete(sqs, queue, transact):
    queue.send("work")
    [message] = queue.receive()
    kept = transact(lambda caller: message.delete(connection=caller))
    assert rows(sqs, ITEMS) == expected_items(kept)
    assert len(queue) == (0 if kept else 1)
    assert_whole(sqs)
    if not kept:
        message.delete()
        assert len(queue) == 0


def test_change_visibility(sqs, queue, transact, clock):
    queue.send("work")
    [message] = queue.receive(visibility_timeout=30)
    kept = transact(lambda caller: message.change_visibility(100, connection=caller))
    clock.advance(seconds=31)
    assert len(queue.receive()) == (0 if kept else 1)
    assert_whole(sqs)


def test_nested_transaction_rolls_back_its_own_messages_alone(sqs, queue):
    """begin_nested: a savepoint of SQLAlchemy's."""
    with sqs.engine.begin() as connection:
        queue.send("outer", connection=connection)
        with pytest.raises(Changed), connection.begin_nested():  # noqa: PT012 - the block is the subject
            place_by_connection(connection, "lamp")
            queue.send("inner", connection=connection)
            raise Changed
        with connection.begin_nested():
            queue.send("kept", connection=connection)
    assert rows(sqs, ITEMS) == []
    assert_whole(sqs)
    assert bodies(queue) == ["outer", "kept"]


def test_session_that_has_not_begun_begins_with_the_send(sqs, queue):
    with Session(sqs.engine) as session:
        queue.send("kept", connection=session)
        place_by_session(session, "lamp")
        session.commit()
        queue.send("not kept", connection=session)
    assert bodies(queue) == ["kept"]
    assert rows(sqs, ITEMS) == [("lamp",)]


def test_connection_that_has_not_begun_begins_with_the_send(sqs, queue):
    with sqs.engine.connect() as connection:
        queue.send("kept", connection=connection)
        connection.commit()
        queue.send("not kept", connection=connection)
        connection.rollback()
    assert bodies(queue) == ["kept"]


def test_one_connection_carries_many_transactions(sqs, queue):
    with sqs.engine.connect() as connection:
        for number in range(5):
            with connection.begin():
                queue.send(f"message {number}", connection=connection)
    assert len(queue) == 5
    assert_whole(sqs)


def test_commit_wakes_waiting_receives(sqs, queue, clock):
    waiting = Task(queue.receive, 1, 20)
    clock.until_waiting()
    with sqs.engine.begin() as connection:
        queue.send("wake up", connection=connection)
        assert waiting.is_alive()
    [message] = waiting.outcome()
    assert message.body == "wake up"


def test_send_outside_the_open_transaction_is_refused_at_once(sqs, queue):
    """A forgotten `connection=`: the send would wait for its own thread."""
    started = time.monotonic()
    with sqs.engine.begin() as connection:
        queue.send("inside", connection=connection)
        with pytest.raises(TransactionInProgress, match="connection="):
            queue.send("outside")
    assert time.monotonic() - started < 10
    assert bodies(queue) == ["inside"]


def test_the_application_decides_after_a_failed_statement(sqs, queue):
    with sqs.engine.begin() as connection:
        queue.send("kept", connection=connection)
        with pytest.raises(DBAPIError, match="NOT NULL"):
            connection.execute(text("INSERT INTO orders (item) VALUES (NULL)"))
    assert bodies(queue) == ["kept"]


@pytest.mark.parametrize("kind", ["another file's SQLAlchemy", "another queue file", "raw", "read_engine"])
def test_connection_from_elsewhere_is_refused(sqs, queue, tmp_path, kind):
    """A message sent on it would be in another file, or in no transaction."""
    with sqsqlite.connect(tmp_path / "other.db") as other:
        stranger = create_engine(f"sqlite:///{tmp_path}/stranger.db")
        engine = {"another queue file": other.engine, "read_engine": sqs.read_engine}.get(kind, stranger)
        with engine.connect() as connection:
            given = connection.connection.driver_connection if kind == "raw" else connection
            with pytest.raises(SQSQLiteError, match=r"sqs\.engine"):
                queue.send("lost", connection=given)
        stranger.dispose()
    assert len(queue) == 0
    queue.send("next")


def test_read_engine_cannot_write(sqs, queue):
    with sqs.read_engine.connect() as connection:
        with pytest.raises(DBAPIError, match="readonly"):
            place_by_connection(connection, "lamp")
        assert connection.execute(text("SELECT count(*) FROM orders")).scalar() == 0
    assert rows(sqs, ITEMS) == []


def test_read_engine_does_not_wait_for_a_writer_and_keeps_its_snapshot(sqs, queue):
    with sqs.read_engine.connect() as reader:
        assert reader.execute(text("SELECT count(*) FROM orders")).scalar() == 0
        with sqs.engine.begin() as writer:
            place_by_connection(writer, "lamp")
            assert reader.execute(text("SELECT count(*) FROM orders")).scalar() == 0
        assert reader.execute(text("SELECT count(*) FROM orders")).scalar() == 0
        reader.rollback()
        assert reader.execute(text("SELECT count(*) FROM orders")).scalar() == 1


def test_connection_lent_for_reading_can_write_again_by_the_engine(sqs, queue):
    """Both engines draw from one pool of raw connections."""
    for _ in range(3):
        with sqs.read_engine.connect() as connection:
            connection.execute(text("SELECT 1"))
        with sqs.engine.begin() as connection:
            place_by_connection(connection, "lamp")
            queue.send("hi", connection=connection)
        with sqs.transaction() as raw:
            raw.execute("INSERT INTO orders (item) VALUES ('chair')")
    assert len(rows(sqs, ITEMS)) == 6


def test_session_dropped_without_an_end_releases_the_turn(sqs, queue):
    session = Session(sqs.engine)
    queue.send("never", connection=session)
    session.close()
    queue.send("next")
    assert bodies(queue) == ["next"]
