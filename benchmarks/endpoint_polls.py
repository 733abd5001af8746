# SPDX-License-Identifier: Apache-2.0
"""Long polls on raw sockets: what waiting polls cost the server, and how soon a message reaches one. Linux only."""

import asyncio
import json
import os
import resource
import statistics
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


async def ask(connection, action, **parameters):
    """One request on a connection, and the body of its answer."""
    reader, writer = connection
    body = json.dumps(parameters).encode()
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"X-Amz-Target: AmazonSQS.{action}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answered = await reader.readuntil(b"\r\n\r\n")
    [length] = [line for line in answered.lower().splitlines() if line.startswith(b"content-length:")]
    return await reader.readexactly(int(length.split(b":")[1]))


def _cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _resident_bytes(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


async def idle(port, pid, url, *, polls, seconds):
    """Bytes resident before and with the polls, and the share of a core while nothing happens."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = _resident_bytes(pid)
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(polls)]
    waiting = [
        asyncio.create_task(ask(connection, "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20))
        for connection in connections
    ]
    await asyncio.sleep(3)
    began, used = time.perf_counter(), _cpu_seconds(pid)
    await asyncio.sleep(seconds)
    share = (_cpu_seconds(pid) - used) / (time.perf_counter() - began)
    with_polls = _resident_bytes(pid)
    if any(poll.done() for poll in waiting):
        raise SystemExit("a poll of an empty queue was answered while the others were measured")
    for poll in waiting:
        poll.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for _, writer in connections:
        writer.close()
    return before, with_polls, share


async def latency(port, url, *, rounds):
    """Milliseconds from a send's request to the answer of the receive that waited: median and 99th percentile."""
    poll, send = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    found = []
    for _ in range(rounds):
        waiting = asyncio.create_task(ask(poll, "ReceiveMessage", QueueUrl=url, WaitTimeSeconds=20))
        await asyncio.sleep(0.02)
        sent_at = time.perf_counter()
        sending = asyncio.create_task(ask(send, "SendMessage", QueueUrl=url, MessageBody="x" * 100))
        [message] = json.loads(await waiting)["Messages"]
        found.append((time.perf_counter() - sent_at) * 1000)
        await sending
        await ask(send, "DeleteMessage", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    for _, writer in (poll, send):
        writer.close()
    return statistics.median(found), statistics.quantiles(found, n=100)[98]
