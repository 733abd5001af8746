# SPDX-License-Identifier: Apache-2.0
"""The first schema: queues, messages, leases, counts, and what FIFO, fair queues and move tasks need."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in Path(__file__).with_suffix(".sql").read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
