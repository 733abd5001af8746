"""Writes `sqsqlite/sql/ddl.py` from `sqsqlite/sql/schema.py` and `sqsqlite/sql/views.py`: `make ddl`.

A new file is made from that text, because importing SQLAlchemy costs more than opening a file does.
"""

import re
from pathlib import Path

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from sqsqlite.sql import schema
from sqsqlite.sql.views import VIEWS

HEAD = '''"""The DDL of a new file, written by `make ddl` from the schema; a test keeps the two equal."""

SCHEMA_VERSION = {version}
ALEMBIC_VERSION = "{alembic_version}"

STATEMENTS: tuple[str, ...] = (
'''


def statements() -> list[str]:
    """CREATE TABLE, CREATE INDEX and CREATE VIEW of the whole schema, in order, without trailing blanks."""
    dialect = sqlite.dialect()
    found = []
    for table in schema.metadata.tables.values():
        found.append(str(CreateTable(table).compile(dialect=dialect)))
        found += [
            str(CreateIndex(index).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    return [_tidy(statement) for statement in found] + list(VIEWS)


def _tidy(statement: str) -> str:
    lines = [line.replace("\t", "    ").rstrip() for line in statement.strip().splitlines()]
    text = re.sub(r"\n\)\n+ ", "\n) ", "\n".join(lines))
    return text.replace(" WITHOUT ROWID,\n STRICT", " WITHOUT ROWID, STRICT").replace(" WHERE ", "\nWHERE ")


def source() -> str:
    """The text of `sqsqlite/sql/ddl.py`."""
    body = "".join(f'    """\n{statement}\n""",\n' for statement in statements())
    return HEAD.format(version=schema.SCHEMA_VERSION, alembic_version=schema.ALEMBIC_VERSION) + body + ")\n"


if __name__ == "__main__":
    target = Path(schema.__file__).with_name("ddl.py")
    target.write_text(source(), encoding="utf-8")
    print(f"{target.name}: {len(statements())} statements")
