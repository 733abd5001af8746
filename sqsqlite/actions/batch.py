"""What the three batches share: an entry's error becomes that entry's failure."""

from sqsqlite.contract.responses import BatchResultErrorEntry
from sqsqlite.errors import SQSError


def failure(entry_id: str, error: SQSError) -> BatchResultErrorEntry:
    """The failed entry; `Code` is the Query code. Source: API_BatchResultErrorEntry."""
    return BatchResultErrorEntry(
        id=entry_id, sender_fault=error.fault == "Sender", code=error.query_code, message=error.message
    )
