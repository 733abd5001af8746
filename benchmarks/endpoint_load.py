"""Requests by wrk: how many are answered in a second over so many connections. The generator is the same for all."""

import json
import re
import subprocess

# moto reads the region from the signature, which none of the servers verifies.
SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=anyone/20260101/us-east-1/sqs/aws4_request, "
    "SignedHeaders=host, Signature=0"
}
QUEUE_URL = "http://127.0.0.1/{}/bench"

REQUESTS = """
wrk.method = "POST"
wrk.headers["Authorization"] = AUTHORIZATION
wrk.headers["Content-Type"] = "application/x-amz-json-1.0"
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() deleted, refused = 0, 0 end
local function ask(action, body)
  wrk.headers["X-Amz-Target"] = "AmazonSQS." .. action
  return wrk.format("POST", "/", wrk.headers, body)
end
"""

SEND = """
local body = '{"QueueUrl": "QUEUE_URL", "MessageBody": "' .. string.rep("x", BODY_BYTES) .. '"}'
function request() return ask("SendMessage", body) end
function response(status) if status ~= 200 then refused = refused + 1 end end
"""

# Whichever connection is next deletes what was received last, and receives if there is nothing to delete.
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


def run(workload, port, account, folder, *, seconds, connections, body_bytes):
    """What wrk counted, with one thread: it shares the machine with the server."""
    script = (REQUESTS + workload + TELL).replace("QUEUE_URL", QUEUE_URL.format(account))
    script = script.replace("AUTHORIZATION", json.dumps(SIGNED["Authorization"]))
    path = folder / "wrk.lua"
    path.write_text(script.replace("BODY_BYTES", str(body_bytes)))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", path]
    done = subprocess.run([*command, f"http://127.0.0.1:{port}/"], capture_output=True, text=True, check=True)
    return json.loads(re.search(r"RESULT (.*)", done.stdout)[1])
