# SPDX-License-Identifier: Apache-2.0
"""The side that answers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqsqlite.actions.queue_rows import LOCAL
from sqsqlite.api.client_errors import is_missing
from sqsqlite.api.connect import SQS
from sqsqlite.api.message import Message, to_attributes
from sqsqlite.contract.names import queue_name
from sqsqlite.replies.addresses import ADDRESS, WAITER, RequesterGone, client_of

if TYPE_CHECKING:
    from sqsqlite.api.message import CallersTransaction


class Responder:
    """Answers requests of a `Requester`.

    Args:
        sqs_or_client: an open file, or a client with boto3's methods.
    """

    def __init__(self, sqs_or_client: Any) -> None:
        self._sqs = sqs_or_client if isinstance(sqs_or_client, SQS) else None
        self._client = client_of(sqs_or_client)

    @staticmethod
    def address_of(request: Message | Mapping[str, Any]) -> str | None:
        """Where the request's reply goes. None: it wants none.

        Args:
            request: a `Message`, or a message as boto3 receives it with MessageAttributeNames=["All"].
        """
        if isinstance(request, Message):
            found = request.attributes.get(ADDRESS)
            return found if isinstance(found, str) else None
        typed = request.get("MessageAttributes", {}).get(ADDRESS, {})
        text: str | None = typed.get("StringValue")
        return text

    def reply(
        self,
        request: Message | Mapping[str, Any],
        body: str,
        *,
        attributes: Mapping[str, Any] | None = None,
        connection: "CallersTransaction | None" = None,
    ) -> None:
        """Answer a request. Delete the request afterwards: both may stand in one transaction.

        Args:
            request: see `address_of`.
            body: the answer.
            attributes: as `Queue.send` takes them, at most 9.
            connection: of an open file: a transaction of the application's, see `Queue.send`.

        Raises:
            ValueError: the request names no address; or `connection` without an open file, or for a queue of another
                account.
            RequesterGone: nobody waits any more. The request's work is done all the same.
            InvalidMessageContents, InvalidParameterValue: as for any message.
        """
        address = self.address_of(request)
        if address is None:
            raise ValueError(
                f"the request has no attribute {ADDRESS}: its sender waits for no reply, or it was received without "
                'MessageAttributeNames=["All"]'
            )
        url, _, waiter = address.partition("#")
        given = {**(attributes or {}), **({WAITER: waiter} if waiter else {})}
        try:
            self._send(url, body, given, connection)
        except Exception as error:
            if is_missing(error):
                raise RequesterGone(
                    f"{address}: nobody waits for this reply: the requester has ended, and its queue with it"
                ) from error
            raise

    def _send(
        self, url: str, body: str, attributes: dict[str, Any], connection: "CallersTransaction | None"
    ) -> None:
        if connection is None:  # joins `with sqs.transaction()`, too
            self._client.send_message(
                QueueUrl=url, MessageBody=body, MessageAttributes=to_attributes(attributes)
            )
            return
        if self._sqs is None:
            raise ValueError("connection= belongs to an open file: Responder(sqs)")
        account_id = queue_name(url)[0]
        if account_id not in (None, LOCAL.account_id):
            raise ValueError(
                f"{url} is a queue of account {account_id}; with connection=, replies go to queues of account "
                f"{LOCAL.account_id} alone: use `with sqs.transaction()`"
            )
        self._sqs.queue(url).send(body, attributes=attributes, connection=connection)
