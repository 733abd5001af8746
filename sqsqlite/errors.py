# SPDX-License-Identifier: Apache-2.0
"""Every exception that SQSQLite raises on purpose: SQS's own errors, refused parameters, and the store's.

Codes and HTTP statuses: the SQS service model, and the error lists of the SQS API reference.
"""

from typing import Any, ClassVar

_SQS = "com.amazonaws.sqs"
_CORAL = "com.amazon.coral.service"  # errors that AWS's service framework raises, unknown to the SQS model


class SQSQLiteError(Exception):
    """The root of all errors that SQSQLite raises on purpose."""


class SQSError(SQSQLiteError):
    """An error that SQS answers to a request. Catch it to catch every such error.

    Attributes:
        code: the name of the error's shape in JSON; by default the class's own name.
        query_code: the Query protocol's code, which boto3 shows as `Error.Code`.
        http_status: status of the HTTP response.
        fault: "Sender": the request is at fault, not the service.
        json_namespace: the part before `#code` in JSON's `__type`.
        message: the reason, in SQS's words if they are known.
        operation_name: the action that failed; "Unknown" until the client sets it.
        request_id: the id of the failed request; empty until the client or the endpoint sets it.
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
            # botocore finds a modelled error by Error.Code and adds its members. It does not find an error by a Query
            # code such as AWS.SimpleQueueService.NonExistentQueue.
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
    """A batch entry's id is empty, too long, or has characters other than letters, digits, `-` and `_`."""

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
    """No queue has this URL, ARN or name."""

    query_code = "AWS.SimpleQueueService.NonExistentQueue"


class QueueNameExists(SQSError):
    """CreateQueue names an existing queue, and a given attribute differs from the queue's."""

    query_code = "QueueAlreadyExists"


class InvalidAttributeName(SQSError):
    """An attribute is unknown, read-only, or does not exist on this type of queue."""

    query_code = "InvalidAttributeName"


class InvalidAttributeValue(SQSError):
    """The value of a queue attribute is out of range or has the wrong form."""

    query_code = "InvalidAttributeValue"


class OverLimit(SQSError):
    """A limit is reached: messages in flight on a standard queue, or the size of a policy."""

    query_code = "OverLimit"
    http_status = 403


class UnsupportedOperation(SQSError):
    """SQS knows the operation or parameter, but does not support it here."""

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
    """The visibility timeout ended, or a newer receive replaced the handle: there is no timeout to change."""

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
    """A parameter has a value that is not allowed. The message names it, its value and the allowed ones."""

    code = "InvalidParameterValueException"
    query_code = "InvalidParameterValue"
    json_namespace = _CORAL


class MissingParameter(SQSError):
    """A required parameter is absent or empty."""

    code = "MissingRequiredParameterException"
    query_code = "MissingParameter"
    json_namespace = _CORAL


class AccessDenied(SQSError):
    """The caller has no permission for the action."""

    code = "AccessDeniedException"
    query_code = "AccessDenied"
    http_status = 403
    json_namespace = _CORAL


class InvalidAction(SQSError):
    """The action is unknown to this endpoint."""

    code = "UnknownOperationException"
    query_code = "InvalidAction"
    json_namespace = _CORAL


class SerializationException(SQSError):
    """The request's body is not a JSON object, or a value in it has the wrong JSON type."""

    query_code = "SerializationException"
    json_namespace = _CORAL


class InvalidAddress(SQSError):
    """The address is not one of SQS's."""

    query_code = "InvalidAddress"
    http_status = 404


class InvalidSecurity(SQSError):
    """The request did not come over HTTPS, or its signature is incomplete."""

    query_code = "InvalidSecurity"
    http_status = 403


class RequestThrottled(SQSError):
    """Requests come faster than the server allows. Wait, then repeat."""

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
    """The queue's key is not for encryption, or has another algorithm."""

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
    """The key service limits the rate of requests."""

    query_code = "KMS.ThrottlingException"


by_query_code: dict[str, type[SQSError]] = {kind.query_code: kind for kind in SQSError.__subclasses__()}
"""The error class of each Query code, which is the `Code` in a batch's `Failed` and in boto3's `Error`."""


class LeaseLost(SQSQLiteError):
    """A mixin: the receipt handle is not, or no longer, the one that holds the message.

    In the caller's own transaction, every delete and change_visibility raises it unless the handle holds the message,
    so that the rows which depend on the message are rolled back with the block. Outside a transaction it marks the
    errors of SQS with the same cause. Each raised error is also an `SQSError` with SQS's code.

    Attributes:
        reason: "gone": the message was deleted or purged, or its retention ended (after `CommitInDoubt`, perhaps by the
            commit in doubt); "replaced": a newer receive holds it; "ended": the visibility timeout ended; "moved": it
            is in its dead-letter queue. "invalid", only of `UnsettledBatch`: a batch entry failed for another reason.

    What to do: let the block roll back. The worker that holds the message does the work.
    """

    def __init__(self, message: str, reason: str = "gone") -> None:
        super().__init__(message)
        self.reason = reason


class LostMessage(LeaseLost, InvalidParameterValue):
    """A lost lease as SQS reports it for a delete, or for a change of a deleted message: InvalidParameterValue."""

    code = InvalidParameterValue.code


class LostLease(LeaseLost, MessageNotInflight):
    """A lost lease as SQS reports it for a change of the visibility timeout: MessageNotInflight."""

    code = MessageNotInflight.code


class LostReceipt(LeaseLost, ReceiptHandleIsInvalid):
    """A lost lease as SQS reports it for an entry of ChangeMessageVisibilityBatch: ReceiptHandleIsInvalid."""

    code = ReceiptHandleIsInvalid.code


class UnsettledBatch(LeaseLost, InvalidParameterValue):
    """A block was about to commit although a batch in it left entries unsettled.

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
    """Parameters are missing, unknown or of the wrong Python type. boto3 has an error of the same name.

    The message has boto3's words: "Parameter validation failed:" and one line for each problem.
    """

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return f"Parameter validation failed:\n{self.report}"


class BadDump(SQSQLiteError):
    """A line does not belong to a dump, or the end of the dump is missing. The message has the line's number.

    What to do: load the whole file that `dump` wrote. The messages before the line stay, and are not loaded again.
    """


class StoreError(SQSQLiteError):
    """The fault is in the file or SQLite, not in the request. The driver's error is the `__cause__`."""


class UnsafeSQLite(StoreError):
    """This SQLite can corrupt a WAL file that two connections write and checkpoint at the same time.

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
    """This user can't write the file, its folder or its file system. What to do: give the user that right."""


class MissingFolder(StoreError):
    """The file's folder does not exist. What to do: make the folder; SQSQLite makes only the file."""


class CannotOpen(StoreError):
    """SQLite can't open the file: a folder of that name, missing rights, a file system without WAL.

    Or no file descriptor is free: then the same call works as soon as one is.
    """


class DiskFull(StoreError):
    """The disk is full; nothing of the operation was kept.

    What to do: receive and delete messages, which still works, or free space on the disk.
    """


class Busy(StoreError):
    """Other writers held the turn for all of `busy_timeout`; nothing was done.

    What to do: repeat, and look for a transaction that stays open.
    """


class CommitInDoubt(StoreError):
    """The commit failed, and whether it took place is unknown.

    What to do: look before repeating; on a FIFO queue repeat with the same deduplication id.
    """


class Corrupt(StoreError):
    """The file is damaged. If only a row or a queue is, the message names it.

    What to do: run `sqsqlite check`, which names the damage and its remedy. Otherwise restore a backup, or `dump` the
    readable part and `load` it into a new file.
    """


class InputOutputError(StoreError):
    """The operating system could not read or write the file. What to do: check the disk."""


class FileInUse(StoreError):
    """Another process has the file open, and this operation must be alone. What to do: stop that process first."""


class TargetExists(StoreError):
    """A backup, restore or dump would overwrite a file. What to do: give another name, or permit replacing."""


class TransactionInProgress(StoreError):
    """This thread, or another task of it, already holds a write transaction. A second write would wait forever.

    What to do: end the first one, or do this write inside it; from another task, write in another thread.
    """


class StoreClosed(StoreError):
    """`close` was called, or the `with` block has ended. What to do: open the file again."""
