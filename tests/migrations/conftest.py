# SPDX-License-Identifier: Apache-2.0
"""A folder of migrations with one more version, as the next release might have it."""

import shutil
from importlib.resources import files
from pathlib import Path

import pytest

import sqsqlite

NEXT = '''
import os
import signal

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade():
    """Note when a queue was last received from."""
    connection = op.get_bind()
    connection.exec_driver_sql("ALTER TABLE sqs_queues ADD COLUMN received_at INT")
    connection.exec_driver_sql("UPDATE sqs_queues SET received_at = 0")
    {after}
'''


@pytest.fixture
def path(tmp_path):
    """A file with a queue of three messages, one of them in flight."""
    path = tmp_path / "app.db"
    with sqsqlite.connect(path) as sqs:
        queue = sqs.create_queue("orders")
        queue.send_many(["one", "two", "three"])
        queue.receive()
    return path


@pytest.fixture
def next_release(tmp_path):
    """Makes the folder. `after` is Python that the added revision runs after its statements."""

    def make(after: str = "") -> Path:
        folder = tmp_path / "next"
        shutil.copytree(str(files("sqsqlite.migrations")), folder)
        (folder / "versions" / "0003_next.py").write_text(
            f'"""Note when a queue was last received from."""\n{NEXT.format(after=after)}'
        )
        return folder

    return make
