# SPDX-License-Identifier: Apache-2.0
"""Remember where a dead letter died before the queue that it died in last.

Frozen text, which imports nothing of ours. A dead letter that is there already has NULL: its earlier moves are
forgotten.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = ("ALTER TABLE sqs_dead_letters ADD COLUMN earlier TEXT",)


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
