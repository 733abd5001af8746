# SPDX-License-Identifier: Apache-2.0
"""New files for tests that are not about creating one: a copy costs a tenth of the statements of a schema."""

import secrets
import tempfile
from functools import cache
from pathlib import Path

import sqsqlite
from sqsqlite.store.meta import read


@cache
def _template() -> tuple[bytes, bytes, bytes]:
    """A new file as SQSQLite makes it, and the values that must differ in each copy: the id and the secret."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        with sqsqlite.connect(path, clock=sqsqlite.ManualClock()) as sqs, sqs.transaction() as connection:
            facts = read(connection)
        image = path.read_bytes()
    assert (image.count(facts.file_id), image.count(facts.secret)) == (1, 1)
    return image, facts.file_id, facts.secret


def lay(path: Path) -> Path:
    """Put a new file there, with an id and a secret of its own. An existing file stays as it is."""
    if not path.exists():
        image, file_id, secret = _template()
        own = image.replace(file_id, secrets.token_bytes(len(file_id)))
        path.write_bytes(own.replace(secret, secrets.token_bytes(len(secret))))
    return path
