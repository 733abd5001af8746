"""Why did an operation fail as it never does? Because the file is damaged, or because of a bug of ours."""

from sqsqlite.errors import Corrupt, SQSQLiteError
from sqsqlite.sql import operators as find
from sqsqlite.store.driver import Connection, dbapi
from sqsqlite.store.file import File
from sqsqlite.store.soundness import findings
from sqsqlite.store.translate import CORRUPT, ERROR, NOTADB, primary_code

ODD = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError, dbapi.Error)
"""What working with rows raises that break their schema; and what bugs raise."""

# SQLite's result codes of the same kind: an error in a statement, too big, a constraint, a wrong type. 0: the driver's.
_ODD_CODES = (0, 1, 18, 19, 20)

# Nothing in a sound file. Without those that a wrong clock makes find something.
_INVARIANTS = (
    find.FIND_LEASES_WITHOUT_MESSAGE,
    find.FIND_MESSAGES_WITHOUT_LEASE,
    find.FIND_REUSABLE_IDS,
    find.FIND_LEASES_WITHOUT_EPOCH,
    find.FIND_QUEUES_WITHOUT_EPOCH,
    find.FIND_WRONG_COUNTS,
    find.FIND_ODD_LEASES,
    find.FIND_LEASES_WITHOUT_GROUP,
    find.FIND_GROUPS_WITHOUT_LEASE,
    find.FIND_DEAD_LETTERS_WITHOUT_LEASE,
    find.FIND_ODD_MESSAGES,
    find.FIND_ODD_COUNTS,
    find.FIND_ODD_QUEUES,
)


def damage_behind(file: File, error: Exception, snapshot: Connection | None = None) -> Corrupt | None:
    """The error to raise in place of one of `ODD`, if the file is damaged. None: the error stays what it is.

    Requests are checked before their operations run, so a sound file gives none of these. Looks through the whole file,
    outside the transaction that has failed.

    Args:
        snapshot: a connection in the read transaction that has failed, to look at what it saw.
    """
    if isinstance(error, SQSQLiteError | UnicodeEncodeError):
        return None  # the second: a text of the caller's, on its way into the file
    if isinstance(error, dbapi.Error) and primary_code(error) not in _ODD_CODES:
        return None
    # What a request holds was decoded before: this is what a row holds.
    why = "a text in it can't be decoded" if isinstance(error, ValueError) else _find_damage(file, snapshot)
    if why is None:
        return None
    return Corrupt(
        f"{file.path}: the file is damaged: {why}: run `sqsqlite check` ({type(error).__name__}: {error})"
    )


def _find_damage(file: File, snapshot: Connection | None) -> str | None:
    if snapshot is not None:
        return _damage(snapshot)
    with file.readers.lent() as connection:
        connection.execute("BEGIN")
        try:
            return _damage(connection)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def _damage(connection: Connection) -> str | None:
    try:
        if damage := findings(connection, "quick_check", 1):
            return damage[0].replace("\n", " ")
        if any(connection.execute(statement).fetchone() for statement in _INVARIANTS):
            return "its rows do not fit together"
    except UnicodeError:
        return "its schema can't be decoded"
    except dbapi.Error as error:
        # An error in a statement, which tests run: what it names is missing from the schema.
        if primary_code(error) in (CORRUPT, NOTADB, ERROR):
            return str(error)
    return None
