# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a reply: `Requester` asks, `Responder` answers, over any client of SQS."""

from sqsqlite.replies.addresses import Reply, ReplyTimeout, RequesterClosed, RequesterGone
from sqsqlite.replies.requester import Requester
from sqsqlite.replies.responder import Responder
from sqsqlite.replies.waiters import Counts

__all__ = ["Counts", "Reply", "ReplyTimeout", "Requester", "RequesterClosed", "RequesterGone", "Responder"]
