import subprocess
import sys

import pytest

resource = pytest.importorskip("resource")

PROGRAM = """
import resource, sys
from sqsqlite.wire.descriptors import room_for
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(room_for(connections), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "room", "soft_after"),
    [
        (300, 1_000, 100, 100, 356),
        (300, 1_000, 5_000, 744, 1_000),
        (900, 1_000, 100, 100, 900),
        (100, 200, 5_000, 1, 200),
    ],
)
def test_limit_is_raised_as_far_as_needed_and_allowed(soft, hard, connections, room, soft_after):
    """In a process of its own: a lower limit can't be raised again."""
    command = [sys.executable, "-c", PROGRAM, *map(str, (soft, hard, connections))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == [str(room), str(soft_after), str(hard)]
