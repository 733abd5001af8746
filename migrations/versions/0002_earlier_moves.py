# SPDX-License-Identifier: Apache-2.0
"""Remember the queues in which a dead letter died before the last one.

Frozen text, which imports nothing of ours. Existing dead letters have NULL: their earlier moves are not known.
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
