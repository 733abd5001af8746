"""Damaged messages: finding them, and setting them aside in a file of their own."""

import base64
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqsqlite.actions import damaged as engine
from sqsqlite.actions.damaged import check_message
from sqsqlite.actions.queue_rows import StoredMessage
from sqsqlite.errors import CannotOpen, Corrupt, TargetExists
from sqsqlite.sql import operators as find
from sqsqlite.store.damage import undecoded
from sqsqlite.store.soundness import findings

if TYPE_CHECKING:
    from sqsqlite.store.driver import Connection
    from sqsqlite.store.store import Store

_A_VALUE = re.compile(r"(NULL|TEXT|NUMERIC|non-\w+) value in sqs_")
# Places in the rows of LIST_STORED_MESSAGES.
_QUEUE = 9
_COLUMNS = ("message_id", "body_md5", "body", "sender_id", "group_id", "trace_header", "attributes")


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """A message that receives pass by.

    Attributes:
        queue: its name.
        why: what is wrong with it.
        columns: what its row in `sqs_messages` holds, by name; nothing where the row is missing. A TEXT that is not
            UTF-8 is bytes.
        lease: its row in `sqs_leases`, by name.
    """

    row_id: int
    queue: str
    why: str
    columns: dict[str, Any]
    lease: dict[str, Any]

    def __str__(self) -> str:
        return f"message {self.row_id} of queue {self.queue} is damaged: {self.why}"


def damaged_messages(store: "Store") -> list[DamagedMessage]:
    """All damaged messages that a queue has, by row id; reads every message.

    Raises:
        Corrupt: SQLite finds more than odd values: nothing may be deleted from such a file.
    """
    with store.reading() as snapshot:
        if odd := [
            line for line in findings(snapshot.connection, "quick_check", 20) if not is_about_a_value(line)
        ]:
            raise Corrupt(
                f"{store.path}: pages of the file are damaged, so nothing is deleted from it ({odd[0]}): `dump` what "
                "can be read and `load` it into a new file"
            )
        return find_damaged(snapshot.connection)


def is_about_a_value(line: str) -> bool:
    """Whether a line of SQLite's check is "ok", or of a value that its table does not allow: the pages are whole."""
    return line == "ok" or _A_VALUE.match(line) is not None


def find_damaged(connection: "Connection") -> list[DamagedMessage]:
    """All damaged messages that a queue has; reads every message."""
    with undecoded(connection):
        return list(_damaged(connection))


def _damaged(connection: "Connection") -> Iterator[DamagedMessage]:
    cursor = connection.execute(find.LIST_STORED_MESSAGES)
    lease_names = [column[0] for column in cursor.description[_QUEUE + 1 :]]
    for row_id, stored_id, *values in cursor:
        lease = dict(zip(lease_names, values[len(_COLUMNS) + 1 :], strict=True))
        queue = values[len(_COLUMNS)]
        columns = dict(zip(_COLUMNS, values, strict=False)) if stored_id is not None else {}
        try:
            if not columns:
                raise Corrupt("its row in sqs_messages is missing")
            check_message(StoredMessage(stored_id, **columns))
        except Corrupt as error:
            yield DamagedMessage(row_id, queue, str(error), columns, lease)


def set_aside(store: "Store", damaged: Sequence[DamagedMessage], target: str | os.PathLike[str]) -> int:
    """Write damaged messages to a new file, one JSON object a line, then delete them. Gives how many were deleted.

    The file is synced before anything is deleted, and all of them are deleted in one transaction. Bytes, and texts that
    are not UTF-8, are Base64 under a name that ends in `_base64`. Messages of a FIFO group that waited behind one can
    be received.

    Args:
        target: must not exist; only the owner can read it.

    Raises:
        TargetExists: it does.
        CannotOpen: it can't be written.
        StoreError: nothing was deleted; the file stays.
    """
    path = Path(target)
    lines = [json.dumps(_row(message), ensure_ascii=False) + "\n" for message in damaged]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise TargetExists(f"{path}: exists already: give another name") from error
    except OSError as error:
        raise CannotOpen(f"{path}: {error.strerror}: nothing was set aside") from error
    return store.write(engine.remove, [message.row_id for message in damaged])


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _row(message: DamagedMessage) -> dict[str, Any]:
    row: dict[str, Any] = {"row": message.row_id, "queue": message.queue, "damage": message.why}
    for name, value in {**message.columns, **message.lease}.items():
        if isinstance(value, bytes):
            row[f"{name}_base64"] = base64.b64encode(value).decode()
        elif value is not None:
            row[name] = value
    return row
