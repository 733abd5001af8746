# SPDX-License-Identifier: Apache-2.0
"""HTTP requests as the application sees them, made from botocore's."""

from urllib.parse import urlsplit

from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sqsqlite.access.exchange import Exchange

KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
HOST = "127.0.0.1:9324"


def exchange(method="POST", path="/", query="", headers=(), body=b"", scheme="http", client="127.0.0.1"):
    """A request from its parts, with a default Host header."""
    named = {name.lower().encode(): value.encode("latin-1") for name, value in dict(headers).items()}
    named.setdefault(b"host", HOST.encode())
    return Exchange(
        method, scheme, path.encode(), query.encode(), named, body, "some-id", client_address=client
    )


def posted(action, **extensions):
    """The ASGI scope of a JSON request, with these extensions of the server."""
    return {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"x-amz-target", f"AmazonSQS.{action}".encode())],
        "extensions": extensions,
    }


def from_botocore(request):
    """A signed AWSRequest as a server receives it."""
    url = urlsplit(request.url)
    headers = {name: str(value) for name, value in request.headers.items()}
    body = request.body.encode() if isinstance(request.body, str) else request.body or b""
    return exchange(request.method, url.path or "/", url.query, {"Host": url.netloc, **headers}, body)


def signed(
    body=b"{}",
    target="AmazonSQS.ListQueues",
    key=KEY,
    secret=SECRET,
    token=None,
    path="/",
    headers=(),
    region="us-east-1",
):
    """A JSON request with a signature in its Authorization header."""
    sent = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.0", **dict(headers)}
    request = AWSRequest("POST", f"http://{HOST}{path}", headers=sent, data=body)
    SigV4Auth(Credentials(key, secret, token), "sqs", region).add_auth(request)
    return from_botocore(request)


def presigned(parameters, key=KEY, secret=SECRET, token=None, path="/", expires=3600):
    """A Query request as a presigned URL."""
    request = AWSRequest("GET", f"http://{HOST}{path}", params=dict(parameters))
    SigV4QueryAuth(Credentials(key, secret, token), "sqs", "us-east-1", expires).add_auth(request)
    return from_botocore(request)
