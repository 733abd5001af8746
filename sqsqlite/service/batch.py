"""What the three batches share: an entry's error becomes that entry's failure."""

from sqsqlite.errors import SQSError
from sqsqlite.responses import BatchResultErrorEntry


def failure(entry_id: str, error: SQSError) -> BatchResultErrorEntry:
    """The failed entry; `Code` is the Query code. Source: API_BatchResultErrorEntry."""
    return BatchResultErrorEntry(
        id=entry_id, sender_fault=error.fault == "Sender", code=error.query_code, message=error.message
    )
