# SPDX-License-Identifier: Apache-2.0
"""The example's app with tasks that note when they ran, a line each, in the file NOTES."""

import os
import time

from celery_orders import CardRefused, app


def note(*words):
    with open(os.environ["NOTES"], "a", encoding="utf-8") as notes:
        print(*words, file=notes)


@app.task(bind=True, autoretry_for=(CardRefused,), retry_backoff=1, retry_jitter=False, max_retries=3)
def charge(self, order):
    note("charge", self.request.retries, time.time())
    if self.request.retries < 2:
        raise CardRefused(order)


@app.task
def add(body):
    note("add", body)


@app.task
def at(_eta):
    note("at", time.time())


@app.task
def kept():
    """The first worker never ends it."""
    note("kept", os.getpid())
    if os.environ["WORKER"] == "first":
        time.sleep(600)
