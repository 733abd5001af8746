"""An answer in one write.

ASGI sends head and body one after the other, and uvicorn writes each of them: two calls of the system, two packets, and
a client that wakes up for the first of them.
"""

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from sqsqlite.serve.protocol import Answer

_COPIED_BYTES = 64 * 1024


def write_whole(cycle: RequestResponseCycle, answer: Answer) -> bool:
    """Answer a request of a connection that stays open, as uvicorn's `send` would in two steps.

    Names and values of the headers are the server's own, none a client's: they are not looked through for line ends.

    Returns:
        False: nothing was written, as it takes more than that: the client does not read or has gone, or wants the head
        alone, or no more answers on this connection; or the answer is long.
    """
    # A long one would be copied.
    is_plain = cycle.keep_alive and cycle.scope["method"] != "HEAD" and len(answer.body) <= _COPIED_BYTES
    if not is_plain or cycle.disconnected or cycle.flow.write_paused:
        return False
    parts = [STATUS_LINE[answer.status]]
    for name, value in (*cycle.default_headers, *answer.headers):
        parts += (name, b": ", value, b"\r\n")
    parts += (b"\r\n", answer.body)
    cycle.waiting_for_100_continue = False
    cycle.response_started = True
    cycle.transport.write(b"".join(parts))
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True
