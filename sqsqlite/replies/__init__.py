# SPDX-License-Identifier: Apache-2.0
"""Requests that wait for a reply: `Requester` asks, `Responder` answers, over any client of SQS."""

from sqsqlite.replies.addresses import Reply, ReplyTimeout, RequesterClosed, RequesterGone
from sqsqlite.replies.requester import Counts, Requester
from sqsqlite.replies.responder import Responder

__all__ = ["Counts", "Reply", "ReplyTimeout", "Requester", "RequesterClosed", "RequesterGone", "Responder"]
