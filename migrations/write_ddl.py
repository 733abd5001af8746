"""Writes `sqsqlite/store/ddl.py` from the tables of `sqsqlite/schema.py`: `make ddl`.

A new file is made from that text, because importing SQLAlchemy costs more than opening a file does.
"""

import re
from pathlib import Path

from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from sqsqlite import schema

HEAD = '''"""The DDL of a new file, written from `sqsqlite/schema.py` by `make ddl`; a test keeps the two equal."""

SCHEMA_VERSION = {version}
ALEMBIC_VERSION = "{alembic_version}"

STATEMENTS: tuple[str, ...] = (
'''


def statements() -> list[str]:
    """CREATE TABLE and CREATE INDEX of the whole schema, in order, without trailing blanks."""
    dialect = sqlite.dialect()
    found = []
    for table in schema.metadata.tables.values():
        found.append(str(CreateTable(table).compile(dialect=dialect)))
        found += [
            str(CreateIndex(index).compile(dialect=dialect))
            for index in sorted(table.indexes, key=lambda index: str(index.name))
        ]
    return [_tidy(statement) for statement in found]


def _tidy(statement: str) -> str:
    lines = [line.replace("\t", "    ").rstrip() for line in statement.strip().splitlines()]
    text = re.sub(r"\n\)\n+ ", "\n) ", "\n".join(lines))
    return text.replace(" WITHOUT ROWID,\n STRICT", " WITHOUT ROWID, STRICT").replace(" WHERE ", "\nWHERE ")


def source() -> str:
    """The text of `sqsqlite/store/ddl.py`."""
    body = "".join(f'    """\n{statement}\n""",\n' for statement in statements())
    return HEAD.format(version=schema.SCHEMA_VERSION, alembic_version=schema.ALEMBIC_VERSION) + body + ")\n"


if __name__ == "__main__":
    target = Path(schema.__file__).parent / "store" / "ddl.py"
    target.write_text(source(), encoding="utf-8")
    print(f"{target.name}: {len(statements())} statements")
