# SPDX-License-Identifier: Apache-2.0
"""The disk fails: the caller gets a typed error, no acknowledged message is lost, and work resumes with the disk."""

import shutil

import pytest

import sqsqlite
from tests.store.inspection import assert_whole, bodies
from tests.store.processes import Program

# Opens the file, sends 40 messages and then more until two in a row were sent, and prints the outcome of each. Every
# error must be one of the store's.
SEND = """
import resource, sqsqlite
sqs = None
while sqs is None:
    try:
        sqs = sqsqlite.connect(sys.argv[1])
        queue = sqs.queue("orders")
    except (sqsqlite.errors.InputOutputError, sqsqlite.errors.DiskFull) as error:
        sqs = None
        say("unopened", -1)

def send(first, enough=20):
    in_a_row = 0
    for number in range(first, first + 20):
        try:
            queue.send(f"{number} " + "x" * 20_000)
        except sqsqlite.errors.StoreError as error:
            say(type(error).__name__, number)
            in_a_row = 0
        else:
            say("sent", number)
            in_a_row += 1
        if in_a_row == enough:
            break

if sys.argv[2] == "size":
    queue.send("0")
    say("sent", 0)
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    send(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
else:
    send(0)
send(21)
send(41, enough=2)
say("end", 0)
"""


@pytest.fixture
def shop(path):
    with sqsqlite.connect(path) as sqs:
        sqs.create_queue("orders")
    return path


def outcomes(program):
    """The program's output by word: the numbers of the messages."""
    found = {}
    while True:
        word, number = program.hear().split()
        if word == "end":
            return found
        found.setdefault(word, []).append(int(number))


def assert_kept(path, said):
    """All acknowledged messages are present, and no refused one; a message in doubt may be present."""
    with sqsqlite.connect(path) as sqs:
        assert_whole(sqs)
        kept = {int(body.split()[0]) for body in bodies(sqs.queue("orders"))}
    in_doubt = set(said.get("CommitInDoubt", ()))
    assert kept - in_doubt == set(said["sent"])


def test_limit_on_the_size_of_files_is_a_typed_error(shop):
    """As `ulimit -f` sets it. Once the limit is raised, the same process can send again."""
    with Program(SEND, shop, "size") as program:
        said = outcomes(program)
    assert said.keys() == {"sent", "DiskFull"}
    assert [number for number in said["sent"] if number <= 20] != list(range(21))
    assert set(range(21, 41)) <= set(said["sent"])
    assert_kept(shop, said)


@pytest.mark.slow
@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
@pytest.mark.parametrize(
    "fault",
    [
        "fsync,fdatasync:error=EIO",
        "pwrite64:error=EIO",
        "pwrite64:error=ENOSPC",
        "ftruncate:error=EIO",
    ],
)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for a while"])
def test_failing_system_call_is_a_typed_error(shop, fault, nth, lasting):
    """Injected by strace: at the Nth call, or at all from the Nth to the Nth + 5."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is missing: apt-get install strace"
    when = f"{nth}..{nth + 5}" if lasting else nth
    calls = fault.partition(":")[0]
    before = (
        strace,
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        f"trace={calls}",
        "-e",
        f"inject={fault}:when={when}",
    )
    with Program(SEND, shop, "faults", before=before) as program:
        said = outcomes(program)
    assert said.keys() <= {"unopened", "sent", "InputOutputError", "DiskFull", "CommitInDoubt"}
    assert [number - said["sent"][-1] for number in said["sent"][-2:]] == [-1, 0]
    assert said["sent"][-1] > 41
    if calls == "fsync,fdatasync" and 2 < nth < 30:
        # Each send syncs once, and after a failed sync the outcome is unknown. The second sync is the folder's; SQLite
        # ignores its result.
        assert "CommitInDoubt" in said
    assert_kept(shop, said)


@pytest.mark.slow
@pytest.mark.parametrize("nth", [40, 60, 100])
def test_quota_is_a_full_disk(shop, nth):
    """EDQUOT at some writes to the WAL, and at the check for free space. Nothing is in doubt."""
    strace = shutil.which("strace")
    assert strace is not None, "strace is missing: apt-get install strace"
    before = (strace, "-f", "-qq", "-o", "/dev/null", "-P", f"{shop}-wal", "-P", f"{shop}-sqs/ballast")
    before += ("-e", f"inject=pwrite64:error=EDQUOT:when={nth}..{nth + 10}")
    before += ("-e", "inject=fallocate:error=EDQUOT:when=2+")
    with Program(SEND, shop, "faults", before=before) as program:
        said = outcomes(program)
    assert said.keys() == {"sent", "DiskFull"}
    assert_kept(shop, said)
