# SPDX-License-Identifier: Apache-2.0
"""The demo's own tables, in the file of the queues: their rows commit together with sends and deletes."""

from typing import Any, NamedTuple

from sqsqlite import SQS

# parsed_files would accept two rows for one message: the queue must prevent that, and the audit looks for it.
TABLES = (
    "CREATE TABLE source_files (message_id TEXT PRIMARY KEY, path TEXT NOT NULL) STRICT",
    "CREATE TABLE receives (message_id TEXT, worker TEXT, receive_count INT, received_at INT) STRICT",
    """
    CREATE TABLE parsed_files (
        message_id TEXT NOT NULL, path TEXT NOT NULL, worker TEXT NOT NULL, receive_count INT NOT NULL,
        parsed_at INT NOT NULL, functions INT NOT NULL, classes INT NOT NULL, lines INT NOT NULL
    ) STRICT
    """,
)
INSERT_SOURCE_FILE = "INSERT INTO source_files (message_id, path) VALUES (?, ?)"
INSERT_RECEIVE = "INSERT INTO receives (message_id, worker, receive_count, received_at) VALUES (?, ?, ?, ?)"
INSERT_PARSED_FILE = """
    INSERT INTO parsed_files (message_id, path, worker, receive_count, parsed_at, functions, classes, lines)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
SELECT_SOURCE_FILES = "SELECT message_id, path FROM source_files"
SELECT_RECEIVES = "SELECT message_id, worker, receive_count, received_at FROM receives ORDER BY rowid"
SELECT_PARSED_FILES = """
    SELECT message_id, path, worker, receive_count, parsed_at, functions, classes, lines FROM parsed_files
"""
COUNT_PARSED_FILES = "SELECT count(*) FROM parsed_files"


class Receive(NamedTuple):
    """A row of `receives`. `received_at`: milliseconds since 1970 UTC."""

    message_id: str
    worker: str
    receive_count: int
    received_at: int


class Parsed(NamedTuple):
    """A row of `parsed_files`, the result of one message. `parsed_at`: milliseconds since 1970 UTC."""

    message_id: str
    path: str
    worker: str
    receive_count: int
    parsed_at: int
    functions: int
    classes: int
    lines: int


def read(sqs: SQS, statement: str) -> list[Any]:
    """The rows of a statement."""
    with sqs.transaction() as connection:
        rows: list[Any] = connection.execute(statement).fetchall()
        return rows
