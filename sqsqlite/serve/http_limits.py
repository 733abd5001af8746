"""What a client may ask of the endpoint before it has asked for anything: sizes, numbers and times of HTTP itself."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from sqsqlite.serve.budget import Budget


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Beyond these a request is refused, and its connection closed.

    Attributes:
        head_bytes: the request line and all headers together (431, or 414 for the line).
        header_count: headers (431).
        body_bytes: the body (413). The longest request, ten messages of 1 MiB in all, takes 6 MiB if each of their
            characters is escaped.
        head_seconds: from a request's first byte, or the connection's beginning, to the end of the headers (408); and
            of a TLS handshake (closed).
        body_seconds: from there to the end of the body (408).
        idle_seconds: a connection without a request is closed after these.
        unread_seconds: a client that takes nothing of its answer is left after these.
        pipelined: requests that wait for the answer to one before, on one connection (400 to the next).
        connections: at once, from the moment that they are accepted (503 to the next, some at once; the others are
            closed).
        short_bytes: of bodies that each connection may hold besides the next limit.
        bodies_bytes: of all bodies at once beyond these. Then the body that has been coming for longest is refused
            (503), so that nobody keeps others out by sending slowly.
        texts_bytes: of what is read from bodies, until the requests are answered. Beyond that they wait in line.
        answers_bytes: of messages that were received, and of the answers with them, until their clients have taken
            them. Beyond that receives wait in line, and are refused (503) when their time is over.
        unread_bytes: of answers that were written and that their clients do not take. Beyond that the client that has
            taken nothing for longest is left.
        scarce_seconds: as `unread_seconds`, while receives wait in line.
    """

    head_bytes: int = 32 * 1024
    header_count: int = 100
    body_bytes: int = 8 * 1024 * 1024
    head_seconds: float = 10
    body_seconds: float = 60
    idle_seconds: float = 75
    unread_seconds: float = 60
    pipelined: int = 16
    connections: int = 5_000
    short_bytes: int = 64 * 1024
    bodies_bytes: int = 192 * 1024 * 1024
    texts_bytes: int = 64 * 1024 * 1024
    answers_bytes: int = 128 * 1024 * 1024
    unread_bytes: int = 128 * 1024 * 1024
    scarce_seconds: float = 10


@dataclass(slots=True)
class Shared:
    """What all connections of one server have in common.

    Attributes:
        refused: called with status, reason and the client's address of each request that was refused as HTTP.
        budget: the memory that answers take.
        open: connections that were accepted and are not closed, TLS handshakes under way among them.
        bodies_bytes: of the bodies that were read, or are being read, and not answered; without the short ones.
        unread: connections whose clients do not take their answers, the longest first.
        receiving: refuses the long body that a connection is receiving, the first to begin first.
    """

    limits: HttpLimits
    refused: Callable[[int, str, str | None], None]
    budget: Budget
    open: set[asyncio.BaseProtocol] = field(default_factory=set)
    bodies_bytes: int = 0
    unread: dict[asyncio.Protocol, asyncio.Transport] = field(default_factory=dict)
    receiving: dict[object, Callable[[], None]] = field(default_factory=dict)
