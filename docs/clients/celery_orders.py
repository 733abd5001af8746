# SPDX-License-Identifier: Apache-2.0
"""Celery with an endpoint of SQSQLite's as its broker: back-off, ETA, and tasks that outlive their worker.

    pip install "celery[sqs]"
    sqsqlite serve --db queues.db                               in another terminal
    celery -A celery_orders worker                              in a third
    celery -A celery_orders call celery_orders.charge --args '["two chairs"]'

With a key of `sqsqlite keys add`: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
Over HTTPS with a certificate of one's own: ENDPOINT=https://... and AWS_CA_BUNDLE=FILE.
"""

import os
from urllib.parse import urlsplit

from celery import Celery, Task
from kombu.asynchronous.aws import connection
from kombu.utils.url import safequote

endpoint = urlsplit(os.environ.get("ENDPOINT", "http://localhost:9324"))
# anyone: as long as the server has no keys. A secret may have characters that mean something else in a URL.
user = safequote(os.environ.get("AWS_ACCESS_KEY_ID", "anyone"))
secret = safequote(os.environ.get("AWS_SECRET_ACCESS_KEY", "anything"))
app = Celery("celery_orders", broker=f"sqs://{user}:{secret}@{endpoint.hostname}:{endpoint.port}//")
app.conf.broker_transport_options = {
    "region": "us-east-1",
    "is_secure": endpoint.scheme == "https",
    # How long a task may run, waiting for its ETA and for a free process included, before another worker gets it.
    "visibility_timeout": int(os.environ.get("VISIBILITY_TIMEOUT", "3600")),
    # The server answers as soon as there is a message: no pause between two polls.
    "wait_time_seconds": 20,
    "polling_interval": 0,
}
# Delete a message after its task, not before: a worker that is killed loses none.
app.conf.task_acks_late = True
app.conf.task_reject_on_worker_lost = True
app.conf.worker_prefetch_multiplier = 1

authority = os.environ.get("AWS_CA_BUNDLE")
if authority:
    # boto3 reads the variable by itself. Celery's worker polls with curl, and kombu asks for no file but botocore's.
    connection.get_cert_path = lambda _: authority


class CardRefused(Exception):
    """The bank says no, perhaps not for ever."""


@app.task(bind=True, autoretry_for=(CardRefused,), retry_backoff=1, retry_jitter=False, max_retries=3)
def charge(self: Task, order: str) -> None:
    """Succeeds the third time: after 1 second, and 2 more."""
    if self.request.retries < 2:
        raise CardRefused(order)
    print(f"charged: {order}, after {self.request.retries} retries")
