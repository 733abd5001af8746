# SPDX-License-Identifier: Apache-2.0
"""Spark's reports at size: partitions, six reports compared with the best SQL, fleets, and their effect on producers.

    python benchmarks/analytics.py [--only read,reports,fleets,producers] [--messages N] [--file FILE]

Not part of `run.py`, because it needs ten minutes, 6 GB of disk and Java. Prints each figure with its goal.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import sqsqlite
from sqsqlite.spark import catalogue, tables
from sqsqlite.spark.facts import Facts, take_facts
from sqsqlite.spark.session import spark_session
from sqsqlite.store.connections import uri
from sqsqlite.store.driver import dbapi

REPORTS = ("backlog", "ages", "receives", "dead-letters", "throughput", "leases")
QUEUES = 8
HOUR_MS = 3_600_000

MESSAGES = """
INSERT INTO sqs_messages (message_id, body_md5, body)
WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < :count)
SELECT randomblob(16), x'00', 'body' FROM copies
"""
# Spread over queues and over three days, received 0 to 3 times; one in 50 in flight, each eighth queue of dead letters.
LEASES = """
INSERT INTO sqs_leases (
    id, epoch_id, sent_at, size_bytes, visible_at, receive_count, queue_receive_count, token, received_at,
    first_received_at
)
SELECT
    id, :first_epoch + id * 7919 % :queues, :now_ms - id * 48271 % 259200000, 100 + id % 400,
    CASE WHEN id % 50 = 0 THEN :now_ms + 36000000 + id % 60000 ELSE 0 END,
    CASE WHEN id % 50 = 0 THEN 1 + id % 3 WHEN id % 40 = 7 THEN 3 ELSE id / 7 % 3 END,
    CASE WHEN id % 50 = 0 THEN 1 + id % 3 WHEN id % 40 = 7 THEN 3 ELSE id / 7 % 3 END,
    CASE WHEN id % 50 = 0 THEN x'0102030405060708090a0b0c' END, CASE WHEN id % 50 = 0 THEN :now_ms - id % 600000 END,
    CASE WHEN id % 50 = 0 THEN :now_ms - id % 600000 END
FROM sqs_messages WHERE id > :after
"""
DEAD_LETTERS = """
INSERT INTO sqs_dead_letters (id, epoch_id, source_queue_id, source_arn, receive_count, moved_at)
SELECT id, epoch_id, 2, 'arn:aws:sqs:us-east-1:000000000000:queue-1', 3, sent_at + 1000
FROM sqs_leases WHERE epoch_id = :first_epoch AND id > :after
"""
ACTIVITY = """
INSERT OR IGNORE INTO sqs_queue_activity (queue_id, minute_at, sent, received, deleted)
WITH RECURSIVE minutes (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM minutes WHERE n < :minutes)
SELECT q.id, (:now_ms / 60000 - n) * 60000, n % 100, n % 90, n % 80 FROM minutes CROSS JOIN sqs_queues AS q
"""
COUNTS = """
UPDATE sqs_queue_counts SET
    messages = (SELECT count(*) FROM sqs_leases AS l WHERE l.epoch_id = sqs_queue_counts.epoch_id),
    in_flight = (SELECT count(*) FROM sqs_leases AS l WHERE l.epoch_id = sqs_queue_counts.epoch_id AND visible_at > 0)
"""

# The best SQL found for each report on the facts file: `+queue_key` and CTEs keep SQLite to one walk of the table.
SQL = {
    "backlog": """
    WITH a AS MATERIALIZED (
        SELECT queue_key, (:now_ms - sent_at) / 1000 AS age, count(*) AS n, sum(visible_at <= :now_ms) AS visible,
            sum(visible_at > :now_ms AND received) AS in_flight, sum(visible_at > :now_ms AND NOT received) AS delayed,
            sum(size_bytes) AS bytes
        FROM sqs_facts GROUP BY 1, 2
    ), r AS (
        SELECT *, sum(n) OVER (PARTITION BY queue_key ORDER BY age) AS up_to,
            sum(n) OVER (PARTITION BY queue_key) AS total
        FROM a
    )
    SELECT q.queue, sum(visible), sum(in_flight), sum(delayed), max(age),
        min(CASE WHEN up_to * 100 >= total * 50 THEN age END), min(CASE WHEN up_to * 100 >= total * 95 THEN age END),
        sum(bytes)
    FROM r JOIN sqs_fact_queues AS q USING (queue_key) GROUP BY queue_key ORDER BY q.queue""",
    "ages": """
    SELECT q.queue, c.low, sum(n) FROM (
        SELECT queue_key, n, CASE
            WHEN age < 60 THEN 0 WHEN age < 300 THEN 60 WHEN age < 900 THEN 300 WHEN age < 3600 THEN 900
            WHEN age < 21600 THEN 3600 WHEN age < 86400 THEN 21600 WHEN age < 345600 THEN 86400 ELSE 345600
        END AS low
        FROM (SELECT queue_key, (:now_ms - sent_at) / 1000 AS age, 1 AS n FROM sqs_facts)
    ) AS c JOIN sqs_fact_queues AS q USING (queue_key) GROUP BY queue_key, low ORDER BY 1, 2""",
    "receives": """
    SELECT q.queue, f.receive_count, count(*),
        sum(f.queue_receive_count >= min(3, coalesce(q.max_receive_count, 3))), max((:now_ms - f.sent_at) / 1000)
    FROM sqs_facts AS f JOIN sqs_fact_queues AS q USING (queue_key)
    GROUP BY +f.queue_key, f.receive_count ORDER BY 1, 2""",
    "dead-letters": """
    SELECT q.queue, d.source_arn, d.receive_count, count(*), max((:now_ms - d.sent_at) / 1000), min(d.moved_at),
        max(d.moved_at), sum(d.size_bytes)
    FROM sqs_fact_dead_letters AS d JOIN sqs_fact_queues AS q USING (queue_key)
    GROUP BY d.queue_key, d.source_arn, d.receive_count ORDER BY 1, 2, 3""",
    "throughput": """
    SELECT q.queue, a.minute_at / 3600000 AS hour, sum(a.sent), sum(a.received), sum(a.deleted)
    FROM sqs_fact_activity AS a JOIN sqs_fact_queues AS q USING (queue_key)
    WHERE a.minute_at >= :now_ms - 86400000 GROUP BY 1, 2 ORDER BY 1, 2""",
    "leases": """
    SELECT q.queue, count(*), avg((:now_ms - received_at) / 1000), max((:now_ms - received_at) / 1000),
        min(visible_at - :now_ms), sum(visible_at - :now_ms <= 60000), max(receive_count)
    FROM sqs_facts AS f JOIN sqs_fact_queues AS q USING (queue_key)
    WHERE visible_at > :now_ms AND received GROUP BY queue_key ORDER BY 1""",
}


def make(path, messages, *, minutes=4320):
    """Create a file of messages written by SQL, with matching counts, and of some minutes' activity."""
    now_ms = time.time_ns() // 1_000_000
    with sqsqlite.connect(path, synchronous="OFF", clock=sqsqlite.ManualClock(now_ms)) as sqs:
        for number in range(QUEUES):
            sqs.create_queue(f"queue-{number}", visibility_timeout=30)
        values = {"now_ms": now_ms, "queues": QUEUES, "first_epoch": 1, "minutes": minutes}
        for after in range(0, messages, 500_000):
            values |= {"count": min(500_000, messages - after), "after": after}
            with sqs.transaction() as connection:
                for statement in (MESSAGES, LEASES, DEAD_LETTERS):
                    connection.execute(statement, values)
        with sqs.transaction() as connection:
            connection.execute(ACTIVITY, values)
            connection.execute(COUNTS)
    return path


def tell(what, value, goal=""):
    print(f"{what:<72} {value:>14}  {goal}", flush=True)


def timed(function):
    started = time.perf_counter()
    result = function()
    return time.perf_counter() - started, result


def spark_rows(session, facts, name, partitions=None):
    read = tables.read_facts(session, facts, catalogue.reads_of(name), partitions=partitions)
    return catalogue.rows_of(catalogue.make_report(name, read))


def read_by_partitions(session, facts, rounds):
    """The same report of the same file, with one partition and with more, alternately."""
    seconds = {1: [], 2: [], 4: []}
    spark_rows(session, facts, "receives", 2)
    for _ in range(rounds):
        for partitions, taken in seconds.items():
            taken.append(
                timed(lambda partitions=partitions: spark_rows(session, facts, "receives", partitions))[0]
            )
    medians = {partitions: statistics.median(taken) for partitions, taken in seconds.items()}
    for partitions, median in medians.items():
        tell(f"one report, {partitions} partition(s), s", f"{median:.2f}")
    tell(
        "partitioned read against one partition", f"{medians[1] / min(medians[2], medians[4]):.2f}", ">= 1.7"
    )


def six_reports(session, path, folder):
    """Snapshot and six reports, compared with SQL through this process's SQLite on the same facts."""
    snapshot_seconds, facts = timed(lambda: take_facts([path], folder / "six.facts"))
    tell("snapshot, s", f"{snapshot_seconds:.2f}")
    tell("snapshot, MB", f"{facts.path.stat().st_size / 1e6:.0f}")
    total = snapshot_seconds
    reads = catalogue.reads_of(*REPORTS)
    # As in `report all`, the first report that reads the messages pays for it.
    with tables.kept(tables.read_facts(session, facts, reads), reads) as kept:
        for name in REPORTS:
            seconds, rows = timed(lambda name=name: catalogue.rows_of(catalogue.make_report(name, kept)))
            total += seconds
            tell(f"Spark, {name} ({len(rows)} rows), s", f"{seconds:.2f}")
    connection = dbapi.connect(uri(facts.path, "ro"), uri=True)
    connection.execute("PRAGMA cache_size = -200000")
    connection.execute("PRAGMA mmap_size = 2000000000")
    connection.execute("PRAGMA temp_store = MEMORY")
    by_sql = 0.0
    for name in REPORTS:
        seconds, rows = timed(
            lambda name=name: connection.execute(SQL[name], {"now_ms": facts.taken_at}).fetchall()
        )
        by_sql += seconds
        tell(f"SQLite {dbapi.sqlite_version}, {name} ({len(rows)} rows), s", f"{seconds:.2f}")
    connection.close()
    tell("six reports by Spark, snapshot included, s", f"{total:.1f}")
    tell("the same by SQL on the same facts, s", f"{by_sql:.1f}", f"> {total:.1f}")
    return facts


def fleets(session, folder, sizes):
    for size in sizes.split(","):
        files, messages = map(int, size.split("x"))
        place = folder / f"fleet-{files}-{messages}"
        place.mkdir()
        template = make(place / "0.db", messages, minutes=60)
        paths = [template, *(place / f"{number}.db" for number in range(1, files))]
        for path in paths[1:]:
            shutil.copyfile(template, path)
        gather, facts = timed(lambda paths=paths, place=place: take_facts(paths, place / "fleet.facts"))
        seconds, rows = timed(lambda facts=facts: spark_rows(session, facts, "fleet"))
        assert len(rows) == files, len(rows)
        assert sum(row["messages"] for row in rows) == files * messages
        tell(f"fleet of {files:,} x {messages:,}: gather, s", f"{gather:.2f}")
        tell(f"fleet of {files:,} x {messages:,}: report, s", f"{seconds:.2f}")
        tell(
            f"fleet of {files:,} x {messages:,}: ms a file in all", f"{1000 * (gather + seconds) / files:.2f}"
        )
        shutil.rmtree(place)


PRODUCER = """
import sys, time
import sqsqlite
with sqsqlite.connect(sys.argv[1]) as sqs:
    queue, stop, latencies = sqs.queue("queue-1"), time.monotonic() + float(sys.argv[2]), []
    while time.monotonic() < stop:
        began = time.perf_counter()
        queue.send("a message of some length" * 8)
        latencies.append((time.perf_counter() - began) * 1000)
        time.sleep(0.002)
print(*latencies)
"""


def produce(path, seconds):
    """A producer, and the file for its latencies: a pipe without a reader would fill up."""
    written = tempfile.TemporaryFile("w+")  # noqa: SIM115 # `p99` closes it
    command = [sys.executable, "-c", PRODUCER, str(path), str(seconds)]
    return subprocess.Popen(command, stdout=written), written


def p99(producer):
    process, written = producer
    if process.wait():
        raise SystemExit("the producer failed")
    with written:
        written.seek(0)
        latencies = sorted(map(float, written.read().split()))
    return latencies[int(len(latencies) * 0.99)], len(latencies)


def producers(session, path, folder):
    """One producer that commits durably, alone and during a report from snapshot to rows; and the WAL afterwards."""
    wal = Path(f"{path}-wal")

    def wal_mb():
        return wal.stat().st_size / 1e6 if wal.exists() else 0.0

    quiet, _ = p99(produce(path, 30))
    busy = produce(path, 30)
    time.sleep(1)
    number = 0
    while busy[0].poll() is None:
        number += 1
        facts = take_facts([path], folder / f"producer-{number}.facts")
        largest = wal_mb()
        spark_rows(session, facts, "backlog")
        facts.path.unlink()
        if number == 1:
            tell("WAL at the end of the snapshot, MB", f"{largest:.1f}")
    loud, sent = p99(busy)
    tell("producer's p99 alone, ms", f"{quiet:.2f}")
    tell(f"producer's p99 beside {number} snapshots and reports ({sent:,} sends), ms", f"{loud:.2f}")
    tell("producer's p99, with a report against without", f"{loud / quiet:.2f}", "<= 2")
    p99(produce(path, 10))
    tell("WAL 10 s later, MB", f"{wal_mb():.1f}", "<= 32 (its limit)")


def jvm_peak_mb(session):
    pid = session._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main():
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--messages", type=int, default=10_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", default="read,reports,fleets,producers")
    arguments.add_argument(
        "--fleets", default="100x1000,1000x1000,500x20000", help="Files x messages, by commas."
    )
    arguments.add_argument("--file", help="Lay the messages here and keep it, or use it if it is there.")
    arguments.add_argument("--folder", help="Where the files are laid; the system's own unless said.")
    given = arguments.parse_args()
    parts = given.only.split(",")
    with tempfile.TemporaryDirectory(dir=given.folder) as own:
        folder = Path(own)
        path = Path(given.file) if given.file else folder / "queues.db"
        if not path.exists():
            seconds, _ = timed(lambda: make(path, given.messages))
            tell(
                f"{given.messages:,} messages laid in {path.stat().st_size / 1e6:,.0f} MB, s",
                f"{seconds:.0f}",
            )
        started = time.perf_counter()
        with spark_session() as session:
            tell("Spark's start, s (not counted below)", f"{time.perf_counter() - started:.1f}")
            warm = make(folder / "warm.db", 1000)
            facts = take_facts([warm], folder / "warm.facts")
            for name in (*REPORTS, "fleet"):
                spark_rows(session, facts, name)
            if {"read", "reports"} & set(parts):
                facts: Facts = six_reports(session, path, folder)
            if "read" in parts:
                read_by_partitions(session, facts, given.rounds)
            if "producers" in parts:
                producers(session, path, folder)
            tell("JVM's peak, MB", f"{jvm_peak_mb(session):,.0f}", "< 1,500")
            if "fleets" in parts:
                fleets(session, folder, given.fleets)
                tell("JVM's peak with fleets, MB", f"{jvm_peak_mb(session):,.0f}", "< 1,500")


if __name__ == "__main__":
    main()
