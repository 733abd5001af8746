# SPDX-License-Identifier: Apache-2.0
"""The schema's version, and its statements: schema.sql says the schema once, with its comments."""

import re
from pathlib import Path

SCHEMA_VERSION = 2
# The Alembic revision under migrations/versions that builds this schema.
ALEMBIC_VERSION = "0002"


def statements() -> list[str]:
    """CREATE TABLE, CREATE INDEX and CREATE VIEW of a new file, in order, without the comments.

    SQLite keeps the text of a statement in the file, and a comment in it would stay there for ever.
    """
    script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    return [statement.strip() for statement in re.sub(r"\s*--.*", "", script).split(";") if statement.strip()]
