"""The demo's own tables, in the queue's file: rows that commit together with the messages they belong to."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from sqsqlite import SQS

# parsed_files takes a message twice without a word: that none is there twice is the queue's doing, and is checked.
_TABLES = (
    "CREATE TABLE source_files (message_id TEXT PRIMARY KEY, path TEXT NOT NULL) STRICT",
    """
    CREATE TABLE parsed_files (
        message_id TEXT NOT NULL, path TEXT NOT NULL, functions INT NOT NULL, classes INT NOT NULL, lines INT NOT NULL,
        worker TEXT NOT NULL, receive_count INT NOT NULL, received_at INT NOT NULL, parsed_at INT NOT NULL
    ) STRICT
    """,
)
_INSERT_SOURCE_FILE = "INSERT INTO source_files (message_id, path) VALUES (:message_id, :path)"
_INSERT_PARSED_FILE = """
    INSERT INTO parsed_files
        (message_id, path, functions, classes, lines, worker, receive_count, received_at, parsed_at)
    VALUES (:message_id, :path, :functions, :classes, :lines, :worker, :receive_count, :received_at, :parsed_at)
"""
_SELECT_SOURCE_FILES = "SELECT message_id, path FROM source_files"
SELECT_PARSED_FILES = """
    SELECT message_id, path, functions, classes, lines, worker, receive_count, received_at, parsed_at FROM parsed_files
"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A row of `parsed_files`: one message's result. Instants are milliseconds since 1970 UTC."""

    message_id: str
    path: str
    functions: int
    classes: int
    lines: int
    worker: str
    receive_count: int
    received_at: int
    parsed_at: int


def create(connection: Any) -> None:
    """Make the tables, inside the caller's transaction."""
    for table in _TABLES:
        connection.execute(table)


def enter_sent(connection: Any, sent: Iterable[tuple[str, str]]) -> None:
    """Write (message id, path) of what is being sent in the same transaction."""
    connection.executemany(
        _INSERT_SOURCE_FILE, [{"message_id": message_id, "path": path} for message_id, path in sent]
    )


def enter_parsed(connection: Any, parsed: Parsed) -> None:
    """Write one file's result, in the transaction that deletes its message."""
    connection.execute(_INSERT_PARSED_FILE, asdict(parsed))


def read_sent(sqs: SQS) -> dict[str, str]:
    """Message id -> path of all that was sent."""
    with sqs.transaction() as connection:
        return dict(connection.execute(_SELECT_SOURCE_FILES).fetchall())


def read_parsed(sqs: SQS) -> list[Parsed]:
    """All results."""
    with sqs.transaction() as connection:
        return [Parsed(*row) for row in connection.execute(SELECT_PARSED_FILES).fetchall()]
