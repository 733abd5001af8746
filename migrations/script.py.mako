"""${message}

Frozen text, which imports nothing of ours. Touch sqs_ objects only: the file may be an application's own.
Then: the same change in sqsqlite/sql/schema.sql, both versions in schema.py, and `make migration-check`.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}

STATEMENTS = ()


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        connection.exec_driver_sql(statement)
