# SPDX-License-Identifier: Apache-2.0
"""Every exception that SQSQLite raises on purpose: SQS's own errors, refused parameters, and the store's.

Codes and HTTP statuses: the SQS service model, and the error lists of the SQS API reference.
"""

from typing import Any, ClassVar

_SQS = "com.amazonaws.sqs"
_CORAL = "com.amazon.coral.service"  # errors that AWS's service framework raises, unknown to the SQS model


class SQSQLiteError(Exception):
    """The root: catches whatever SQSQLite raises on purpose."""


class SQSError(SQSQLiteError):
    """An error that SQS answers to a request; catch it to catch them all.

    Attributes:
        code: name of the error's shape in JSON; the class's own name unless stated.
        query_code: the Query protocol's code, which boto3 shows as `Error.Code`.
        http_status: status of the HTTP response.
        fault: "Sender": the request is at fault, not the service.
        json_namespace: what stands before `#code` in JSON's `__type`.
        message: what is wrong, in SQS's words where they are known.
        operation_name: the action that failed; "Unknown" until a door sets it.
        request_id: id of the failed request; empty until a door sets it.
    """

    code: ClassVar[str] = "SQSError"
    query_code: ClassVar[str] = "SQSError"
    http_status: ClassVar[int] = 400
    fault: ClassVar[str] = "Sender"
    json_namespace: ClassVar[str] = _SQS

    operation_name: str = "Unknown"
    request_id: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in cls.__dict__:
            cls.code = cls.__name__

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        """boto3's sentence once the operation is known; before that the message alone (a traceback adds the class)."""
        if self.operation_name == "Unknown":
            return self.message
        return (
            f"An error occurred ({self.query_code}) when calling the {self.operation_name} operation: "
            f"{self.message}"
        )

    @property
    def response(self) -> dict[str, Any]:
        """The error as boto3 gives it in `ClientError.response`."""
        response: dict[str, Any] = {
            "Error": {
                "Message": self.message,
                "Code": self.query_code,
                "QueryErrorCode": self.code,
                "Type": self.fault,
            },
            "ResponseMetadata": {
                "RequestId": self.request_id,
                "HTTPStatusCode": self.http_status,
                "HTTPHeaders": {},
                "RetryAttempts": 0,
            },
        }
        if self.code == self.query_code and self.json_namespace == _SQS:
            # botocore finds a modelled error by Error.Code and then adds its members; with a Query code such as
            # AWS.SimpleQueueService.NonExistentQueue it finds none.
            response["message"] = self.message
        return response


# Batches


class BatchEntryIdsNotDistinct(SQSError):
    """Two entries of a batch have the same id: the whole request fails."""

    query_code = "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"


class BatchRequestTooLong(SQSError):
    """The entries of a SendMessageBatch together exceed the size of a batch: the whole request fails."""

    query_code = "AWS.SimpleQueueService.BatchRequestTooLong"


class EmptyBatchRequest(SQSError):
    """A batch has no entries."""

    query_code = "AWS.SimpleQueueService.EmptyBatchRequest"


class InvalidBatchEntryId(SQSError):
    """A batch entry's id is empty, too long, or has other characters than letters, digits, `-` and `_`."""

    query_code = "AWS.SimpleQueueService.InvalidBatchEntryId"


class TooManyEntriesInBatchRequest(SQSError):
    """A batch has more entries than allowed."""

    query_code = "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"


# Queues


class PurgeQueueInProgress(SQSError):
    """The queue was purged less than 60 s ago."""

    query_code = "AWS.SimpleQueueService.PurgeQueueInProgress"
    http_status = 403


class QueueDeletedRecently(SQSError):
    """CreateQueue names a queue that was deleted less than 60 s ago."""

    query_code = "AWS.SimpleQueueService.QueueDeletedRecently"


class QueueDoesNotExist(SQSError):
    """The URL, ARN or name given names no queue."""

    query_code = "AWS.SimpleQueueService.NonExistentQueue"


class QueueNameExists(SQSError):
    """CreateQueue names an existing queue, and an attribute supplied differs from the queue's."""

    query_code = "QueueAlreadyExists"


class InvalidAttributeName(SQSError):
    """An attribute is unknown, read-only, or not one of this type of queue."""

    query_code = "InvalidAttributeName"


class InvalidAttributeValue(SQSError):
    """A queue attribute's value is out of its range or of the wrong form."""

    query_code = "InvalidAttributeValue"


class OverLimit(SQSError):
    """A limit is reached: messages in flight in a standard queue, or what a permission may add to a policy."""

    query_code = "OverLimit"
    http_status = 403


class UnsupportedOperation(SQSError):
    """SQS knows the operation or parameter, but does not carry it out."""

    query_code = "AWS.SimpleQueueService.UnsupportedOperation"


class ResourceNotFoundException(SQSError):
    """A message move task, or the queue it names, does not exist."""

    query_code = "ResourceNotFoundException"
    http_status = 404


# Messages and receipt handles


class InvalidMessageContents(SQSError):
    """A body has a character that SQS does not allow."""

    query_code = "InvalidMessageContents"


class MessageNotInflight(SQSError):
    """The handle's timeout ended or a newer receive replaced it, so it has no timeout to change."""

    query_code = "AWS.SimpleQueueService.MessageNotInflight"


class ReceiptHandleIsInvalid(SQSError):
    """No receive of this queue issued the receipt handle."""

    query_code = "ReceiptHandleIsInvalid"
    http_status = 404


class InvalidIdFormat(SQSError):
    """A receipt handle has a wrong form. SQS has retired it: never raised, kept for code that catches it."""

    query_code = "InvalidIdFormat"


# Any request


class InvalidParameterValue(SQSError):
    """A parameter is outside what it may be; the message says which, what was given, and what is allowed."""

    code = "InvalidParameterValueException"
    query_code = "InvalidParameterValue"
    json_namespace = _CORAL


class MissingParameter(SQSError):
    """A required parameter is absent or empty."""

    code = "MissingRequiredParameterException"
    query_code = "MissingParameter"
    json_namespace = _CORAL


class AccessDenied(SQSError):
    """The caller may not do this."""

    code = "AccessDeniedException"
    query_code = "AccessDenied"
    http_status = 403
    json_namespace = _CORAL


class InvalidAction(SQSError):
    """The action is unknown, or not one that this endpoint takes."""

    code = "UnknownOperationException"
    query_code = "InvalidAction"
    json_namespace = _CORAL


class SerializationException(SQSError):
    """The request's body is no JSON object, or a value in it has the wrong JSON type."""

    query_code = "SerializationException"
    json_namespace = _CORAL


class InvalidAddress(SQSError):
    """The address is not one of SQS's."""

    query_code = "InvalidAddress"
    http_status = 404


class InvalidSecurity(SQSError):
    """The request is not over HTTPS or not signed as it must be."""

    query_code = "InvalidSecurity"
    http_status = 403


class RequestThrottled(SQSError):
    """More requests than are served: wait, then repeat."""

    query_code = "RequestThrottled"
    http_status = 403


# Key Management Service. A file has no key service, so these come from Amazon SQS only.


class KmsAccessDenied(SQSError):
    """The caller may not use the queue's key."""

    query_code = "KMS.AccessDeniedException"


class KmsDisabled(SQSError):
    """The queue's key is disabled."""

    query_code = "KMS.DisabledException"


class KmsInvalidKeyUsage(SQSError):
    """The queue's key is not for encryption, or not of the algorithm asked for."""

    query_code = "KMS.InvalidKeyUsageException"


class KmsInvalidState(SQSError):
    """The state of the queue's key does not allow its use."""

    query_code = "KMS.InvalidStateException"


class KmsNotFound(SQSError):
    """The queue's key does not exist."""

    query_code = "KMS.NotFoundException"


class KmsOptInRequired(SQSError):
    """The account is not subscribed to the key service."""

    query_code = "KMS.OptInRequired"
    http_status = 403


class KmsThrottled(SQSError):
    """The key service is asked more often than it answers."""

    query_code = "KMS.ThrottlingException"


by_query_code: dict[str, type[SQSError]] = {kind.query_code: kind for kind in SQSError.__subclasses__()}
"""Error class of each Query code: what `Code` means in a batch's `Failed` and in boto3's `Error`."""


class LeaseLost(SQSQLiteError):
    """A mixin: the receipt handle is not, or no longer, the one that holds the message.

    Inside a transaction of the caller's every delete and change_visibility raises it unless the handle is that of the
    running lease, so that rows which depend on the message are rolled back with the block. Outside a transaction it
    marks those errors of SQS's that have the same cause. What is raised is also an `SQSError` with SQS's code.

    Attributes:
        reason: "gone": deleted, purged or beyond its retention (after `CommitInDoubt`, perhaps by the very commit that
            was in doubt); "replaced": a newer receive holds it; "ended": the visibility timeout ended; "moved": it is
            in its dead-letter queue by now. "invalid", of `UnsettledBatch` alone: a batch entry failed otherwise.

    What to do: let the block roll back. The worker that holds the message now does the work.
    """

    def __init__(self, message: str, reason: str = "gone") -> None:
        super().__init__(message)
        self.reason = reason


class LostMessage(LeaseLost, InvalidParameterValue):
    """An `InvalidParameterValue` whose cause is a lost lease: of a delete, or a change of a message that is gone."""

    code = InvalidParameterValue.code


class LostLease(LeaseLost, MessageNotInflight):
    """A `MessageNotInflight` whose cause is a lost lease: of a change of the visibility timeout."""

    code = MessageNotInflight.code


class LostReceipt(LeaseLost, ReceiptHandleIsInvalid):
    """A `ReceiptHandleIsInvalid` whose cause is a lost lease: of a ChangeMessageVisibilityBatch entry."""

    code = ReceiptHandleIsInvalid.code


class UnsettledBatch(LeaseLost, InvalidParameterValue):
    """A block would commit although a batch in it left entries unsettled.

    Attributes:
        failures: the error of each such entry, in order.

    What to do: look at the batch's `Failed`, then either raise, or call `sqs.accept_unsettled()` and go on.
    """

    code = InvalidParameterValue.code

    def __init__(self, failures: list[SQSError]) -> None:
        lost = [failure.reason for failure in failures if isinstance(failure, LeaseLost)]
        super().__init__(
            f"{len(failures)} entries of this block's batches were not settled: rolled back. The first: "
            f"{failures[0].message} Look at `Failed`, and call accept_unsettled() to commit all the same",
            lost[0] if lost else "invalid",
        )
        self.failures = failures

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.failures,)


class ParamValidationError(SQSQLiteError, ValueError):
    """Parameters are missing, unknown or of the wrong Python type; boto3 raises its own error of this name then.

    The message has boto3's words: "Parameter validation failed:" and one line for each problem.
    """

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return f"Parameter validation failed:\n{self.report}"


class BadDump(SQSQLiteError):
    """The lines are not those of a dump, or end before it does; the line's number stands in the message.

    What to do: load the whole file that `dump` wrote. What was loaded before the line stays, and is not loaded again.
    """


class StoreError(SQSQLiteError):
    """Something about the file or SQLite, not about the request. The driver's error is the `__cause__`."""


class UnsafeSQLite(StoreError):
    """The SQLite at hand can corrupt a WAL file that two connections write and checkpoint at once.

    What to do: install pysqlite3, or a Python with SQLite 3.51.3 or later.
    """


class SecondSQLiteCopy(StoreError):
    """Another copy of SQLite has the file open in this process, which would break the locks of both.

    What to do: take connections to this file from `sqs.engine`, or open it in another process.
    """


class NotADatabase(StoreError):
    """The file is not a SQLite database, or it is encrypted. What to do: check the path."""


class NotAdopted(StoreError):
    """The file is another application's SQLite database.

    What to do: check the path; `adopt=True` adds the queue's tables and leaves the others alone.
    """


class SchemaTooOld(StoreError):
    """An earlier SQSQLite made the file. What to do: `sqsqlite db upgrade`, which makes a backup first."""


class SchemaTooNew(StoreError):
    """A later SQSQLite made the file. What to do: install that version here."""


class ReadOnlyFile(StoreError):
    """The file, its folder or its file system can't be written. What to do: give this user the right to."""


class MissingFolder(StoreError):
    """The folder that the file would be in does not exist. What to do: make it; SQSQLite makes the file alone."""


class CannotOpen(StoreError):
    """SQLite can't open the file: a folder of that name, missing rights, a file system without WAL.

    Or no file descriptor is free: then the same call works again once some are.
    """


class DiskFull(StoreError):
    """The disk is full; nothing of the operation was kept.

    What to do: receive and delete messages, which still works, or free space on the disk.
    """


class Busy(StoreError):
    """Others were writing for the whole of `busy_timeout`; nothing was done.

    What to do: repeat, and look for a transaction that stays open.
    """


class CommitInDoubt(StoreError):
    """The commit failed in a way that does not tell whether it took place.

    What to do: look before repeating; on a FIFO queue repeat with the same deduplication id.
    """


class Corrupt(StoreError):
    """The file is damaged; where one row or queue is, the message names it.

    What to do: `sqsqlite check`, which names what is damaged and what to do about it; else restore a backup, or `dump`
    what can be read and `load` it into a new file.
    """


class InputOutputError(StoreError):
    """The operating system failed to read or write the file. What to do: check the disk."""


class FileInUse(StoreError):
    """Another process has the file open, and this operation needs it alone. What to do: stop that process first."""


class TargetExists(StoreError):
    """A backup, restore or dump would overwrite a file. What to do: another name, or say that it may be replaced."""


class TransactionInProgress(StoreError):
    """This thread, or another task of it, already holds a write transaction: a second write would wait for ever.

    What to do: end the first one, or do this write inside it; from another task, write in another thread.
    """


class StoreClosed(StoreError):
    """`close` was called, or the `with` block has ended. What to do: open the file again."""
