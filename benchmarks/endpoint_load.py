# SPDX-License-Identifier: Apache-2.0
"""Requests by wrk: the number answered in a second over a number of connections. The generator is the same for all."""

import json
import re
import subprocess

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

# moto reads the region from the signature. A server without keys does not verify it.
UNVERIFIED = (
    "AWS4-HMAC-SHA256 Credential=anyone/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0"
)
CONTENT_TYPE = "application/x-amz-json-1.0"
QUEUE_URL = "http://127.0.0.1/{}/bench"

REQUESTS = """
wrk.method = "POST"
HEADERS
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() deleted, refused = 0, 0 end
local function ask(action, body)
  wrk.headers["X-Amz-Target"] = "AmazonSQS." .. action
  return wrk.format("POST", "/", wrk.headers, body)
end
"""

SEND = """
local body = BODY
function request() return ask("SendMessage", body) end
function response(status) if status ~= 200 then refused = refused + 1 end end
"""

# The next connection deletes the message that was received last, or receives if there is none.
RECEIVE_AND_DELETE = """
local handles = {}
function request()
  local handle = table.remove(handles)
  if handle then
    deleted = deleted + 1
    return ask("DeleteMessage", '{"QueueUrl": "QUEUE_URL", "ReceiptHandle": "' .. handle .. '"}')
  end
  return ask("ReceiveMessage", '{"QueueUrl": "QUEUE_URL"}')
end
function response(status, headers, body)
  if status ~= 200 then refused = refused + 1 end
  local handle = string.match(body, '"ReceiptHandle": ?"([^"]+)"')
  if handle then table.insert(handles, handle) end
end
"""

TELL = """
function done(summary, latency)
  local bad, gone = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout, 0
  for _, thread in ipairs(threads) do
    bad, gone = bad + thread:get("refused"), gone + thread:get("deleted")
  end
  io.write(string.format(
    'RESULT {"requests": %d, "deleted": %d, "seconds": %f, "bad": %d, "p50_ms": %f, "p99_ms": %f}\\n',
    summary.requests, gone, summary.duration / 1e6, bad, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
"""


def headers(port, action, body, key):
    """The headers of a request. A key's id and secret sign it, for the five minutes by which clocks may differ."""
    found = {"Content-Type": CONTENT_TYPE, "X-Amz-Target": f"AmazonSQS.{action}"}
    if key is None:
        return {**found, "Authorization": UNVERIFIED}
    request = AWSRequest("POST", f"http://127.0.0.1:{port}/", found, body)
    SigV4Auth(Credentials(*key), "sqs", "us-east-1").add_auth(request)
    return dict(request.headers)


def run(workload, contestant, url, folder, *, seconds, connections, body_bytes):
    """The counts of wrk with one thread, because it shares the machine with the server."""
    queue_url = QUEUE_URL.format(url.split("/")[-2])  # moto has another account
    body = json.dumps({"QueueUrl": queue_url, "MessageBody": "x" * body_bytes})
    sent = headers(contestant.port, "SendMessage", body, contestant.key)
    lines = "\n".join(
        f"wrk.headers[{json.dumps(name)}] = {json.dumps(value)}" for name, value in sent.items()
    )
    script = (REQUESTS + workload + TELL).replace("HEADERS", lines).replace("QUEUE_URL", queue_url)
    path = folder / "wrk.lua"
    path.write_text(script.replace("BODY", json.dumps(body)))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", path]
    target = f"http://127.0.0.1:{contestant.port}/"
    done = subprocess.run([*command, target], capture_output=True, text=True, check=True)
    return json.loads(re.search(r"RESULT (.*)", done.stdout)[1])
