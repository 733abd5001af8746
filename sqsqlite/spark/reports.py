"""The reports: each a function of DataFrames that gives a DataFrame, and touches nothing else.

The frames are those of `tables.py`, or any with the same columns. Every row begins with `file`, `account_id` and
`queue`; instants are timestamps, ages whole seconds, and "now" is the frames' own `now_ms`, never a clock's.

`since` is a column of milliseconds since 1970 UTC: `F.lit(instant)`, or `F.col("now_ms") - 3_600_000`.
"""

from typing import TYPE_CHECKING

from sqsqlite.spark.expressions import (
    MINUTE_MS,
    NAMED,
    STATES,
    counts,
    held,
    is_suspicious,
    minute_of,
    sum_of_bytes,
    uuid_text,
    whole_part,
    with_age,
    with_names,
    with_state,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SOON_SECONDS = 60
PERCENTS = (50, 95)
# Upper ends of the histogram of ages, in seconds; the last class is open.
AGE_CLASSES = (60, 300, 900, 3600, 21_600, 86_400, 345_600)

_ACTIVITY = ("sent", "received", "deleted", "empty_receives", "dead_lettered", "deduplicated", "sent_bytes")


def backlog(
    messages: "DataFrame", queues: "DataFrame", activity: "DataFrame", *, since: "Column"
) -> "DataFrame":
    """What waits in each queue, how old it is, and how long until it is gone.

    `age_p50_seconds` is the least age that half of the messages do not exceed, `age_p95_seconds` that of 95 in 100.
    Rates are a minute's, since `since` or since the queue was made. `drain_seconds`: at these rates; none where more
    is sent than deleted.
    """
    from pyspark.sql import functions as F  # noqa: N812 - its usual name

    # Counted by the minute of age first: that leaves some thousand rows a queue, however many messages there are. The
    # seconds are counted of those minutes alone that a percentile falls into.
    timed = with_state(messages).withColumn("age_minute", whole_part("age_seconds", 60))
    by_minute = timed.groupBy("queue_key", "age_minute").agg(
        *counts(), *sum_of_bytes(), F.max("age_seconds").alias("oldest")
    )
    waiting = by_minute.groupBy("queue_key").agg(
        *(F.sum(name).alias(name) for name in ("messages", *STATES, "bytes")),
        F.max("oldest").alias("oldest_age_seconds"),
    )
    percentiles = _percentiles(timed, by_minute)
    rates = (
        activity.where(F.col("minute_at") >= minute_of(since))
        .groupBy("queue_key")
        .agg(F.sum("sent").alias("sent"), F.sum("deleted").alias("deleted"))
    )
    minutes = F.greatest(
        (F.col("now_ms") - F.greatest(minute_of(since), minute_of(F.col("created_at")))) / MINUTE_MS,
        F.lit(1.0),
    )
    known = (
        queues.join(waiting, "queue_key", "left")
        .join(percentiles, "queue_key", "left")
        .join(rates, "queue_key", "left")
        .fillna(0, ["messages", *STATES, "bytes", "sent", "deleted"])
        .withColumn("sent_rate", F.col("sent") / minutes)
        .withColumn("deleted_rate", F.col("deleted") / minutes)
    )
    falling = F.col("deleted_rate") - F.col("sent_rate")
    return known.select(
        *NAMED,
        *STATES,
        "oldest_age_seconds",
        "age_p50_seconds",
        "age_p95_seconds",
        "bytes",
        F.round("sent_rate", 3).alias("sent_per_minute"),
        F.round("deleted_rate", 3).alias("deleted_per_minute"),
        F.when(F.col("messages") == 0, F.lit(0))
        .when(falling > 0, F.ceil(F.col("messages") / falling * 60))
        .alias("drain_seconds"),
    ).orderBy(*NAMED)


def _percentiles(timed: "DataFrame", by_minute: "DataFrame") -> "DataFrame":
    """For each queue, the least ages in seconds that 50 and 95 in 100 of its messages do not exceed."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    of_queue = Window.partitionBy("queue_key")
    wanted = F.explode(F.array(*(F.lit(percent) for percent in PERCENTS))).alias("percent")
    minutes = (
        by_minute.select("queue_key", "age_minute", "messages")
        .withColumn("up_to", F.sum("messages").over(of_queue.orderBy("age_minute")))
        .withColumn("total", F.sum("messages").over(of_queue))
        .select("*", wanted)
        # How many messages the youngest ones make up to the one that is looked for.
        .withColumn("rank", F.ceil(F.col("total") * F.col("percent") / 100))
        .where((F.col("up_to") >= F.col("rank")) & (F.col("up_to") - F.col("messages") < F.col("rank")))
        .select(
            "queue_key", "age_minute", "percent", (F.col("up_to") - F.col("messages")).alias("before"), "rank"
        )
    )
    by_second = (
        timed.join(F.broadcast(minutes), ["queue_key", "age_minute"])
        .groupBy("queue_key", "percent", "before", "rank", "age_seconds")
        .count()
    )
    in_minute = Window.partitionBy("queue_key", "percent").orderBy("age_seconds")
    found = by_second.withColumn("up_to", F.col("before") + F.sum("count").over(in_minute)).where(
        F.col("up_to") >= F.col("rank")
    )
    return found.groupBy("queue_key").agg(
        *(
            F.min(F.when(F.col("percent") == percent, F.col("age_seconds"))).alias(f"age_p{percent}_seconds")
            for percent in PERCENTS
        )
    )


def ages(messages: "DataFrame", queues: "DataFrame") -> "DataFrame":
    """The histogram of ages: how many messages of each queue are older than `from_seconds`, not `to_seconds`."""
    from pyspark.sql import functions as F  # noqa: N812

    # By the minute first, as the classes begin at whole minutes: few rows are left to be classed.
    by_minute = (
        with_state(messages)
        .withColumn("age_minute", whole_part("age_seconds", 60))
        .groupBy("queue_key", "age_minute")
        .agg(*counts())
    )
    age, low = F.col("age_minute") * 60, F.lit(0)
    for end in AGE_CLASSES:
        low = F.when(age >= end, F.lit(end)).otherwise(low)
    counted = (
        by_minute.withColumn("from_seconds", low)
        .groupBy("queue_key", "from_seconds")
        .agg(*(F.sum(name).alias(name) for name in ("messages", *STATES)))
    )
    return (
        with_names(counted, queues)
        .withColumn("to_seconds", _next_class(F.col("from_seconds")))
        .select(*NAMED, "from_seconds", "to_seconds", "messages", *STATES)
        .orderBy(*NAMED, "from_seconds")
    )


def _next_class(low: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    end = F.lit(None).cast("int")
    for start, following in zip((0, *AGE_CLASSES), AGE_CLASSES, strict=False):
        end = F.when(low == start, F.lit(following)).otherwise(end)
    return end


def receives(messages: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """How many messages sent since `since` were received how often, and how many of them may be poison.

    `poison_candidates` were received three times or more, or as often as their dead-letter policy allows, since they
    came into this queue.
    """
    from pyspark.sql import functions as F  # noqa: N812

    counted = (
        with_state(messages)
        .where(F.col("sent_at") >= since)
        .groupBy("queue_key", "receive_count", "queue_receive_count")
        .agg(F.count("*").alias("messages"), F.max("age_seconds").alias("oldest_age_seconds"))
    )
    suspects = F.when(is_suspicious(), F.col("messages")).otherwise(0)
    return (
        with_names(counted, queues, "max_receive_count")
        .groupBy(*NAMED, "receive_count", "max_receive_count")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum(suspects).alias("poison_candidates"),
            F.max("oldest_age_seconds").alias("oldest_age_seconds"),
        )
        .select(
            *NAMED,
            "receive_count",
            "messages",
            "poison_candidates",
            "oldest_age_seconds",
            "max_receive_count",
        )
        .orderBy(*NAMED, "receive_count")
    )


def poison(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The messages that may be poison, those received most often first."""
    from pyspark.sql import functions as F  # noqa: N812

    often = with_state(messages).where((F.col("sent_at") >= since) & (F.col("queue_receive_count") > 0))
    return (
        with_names(often, queues, "max_receive_count")
        .where(is_suspicious())
        .select(
            *NAMED,
            uuid_text("message_id"),
            "receive_count",
            "max_receive_count",
            "state",
            "age_seconds",
            "group_id",
        )
        .orderBy(F.desc("receive_count"), F.desc("age_seconds"), *NAMED, "message_id")
        .limit(top)
    )


def dead_letters(dead_letters: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """What died since `since`: in which queue, from which, after how many receives, and when."""
    from pyspark.sql import functions as F  # noqa: N812

    dead = with_age(dead_letters).where(F.col("moved_at") >= since)
    counted = dead.groupBy("queue_key", "source_arn", "receive_count").agg(
        F.count("*").alias("messages"),
        F.max("age_seconds").alias("oldest_age_seconds"),
        F.timestamp_millis(F.min("moved_at")).alias("first_moved_at"),
        F.timestamp_millis(F.max("moved_at")).alias("last_moved_at"),
        F.sum("size_bytes").alias("bytes"),
    )
    return (
        with_names(counted, queues)
        .withColumn("source", F.substring_index("source_arn", ":", -1))
        .select(
            *NAMED,
            "source",
            "receive_count",
            "messages",
            "oldest_age_seconds",
            "first_moved_at",
            "last_moved_at",
            "bytes",
            "source_arn",
        )
        .orderBy(*NAMED, "source", "receive_count")
    )


def throughput(activity: "DataFrame", queues: "DataFrame", *, since: "Column", every_ms: int) -> "DataFrame":
    """What was sent, received, deleted and so on in each minute, hour or day (UTC) since `since`.

    The counts are kept a minute at a time and outlive the messages. A period that `since` falls into is counted from
    that minute on.
    """
    from pyspark.sql import functions as F  # noqa: N812

    counted = (
        activity.where(F.col("minute_at") >= minute_of(since))
        .withColumn("start", F.col("minute_at") - F.col("minute_at") % every_ms)
        .groupBy("queue_key", "start")
        .agg(*(F.sum(name).alias(name) for name in _ACTIVITY))
    )
    return (
        with_names(counted, queues)
        .select(*NAMED, F.timestamp_millis("start").alias("at"), *_ACTIVITY)
        .orderBy(*NAMED, "at")
    )


def groups(
    messages: "DataFrame", queues: "DataFrame", groups: "DataFrame", tenants: "DataFrame", *, top: int
) -> "DataFrame":
    """The message groups with most messages: FIFO groups, and tenants of standard queues.

    `blocked` counts what nobody can receive because another message of its FIFO group is in flight, or the first of
    them is delayed; `blocked_seconds` says until when at the latest. `turns_ahead` is how many turns a tenant has drawn
    beyond the queue's: a noisy one waits that much longer.
    """
    from pyspark.sql import functions as F  # noqa: N812

    key = ["queue_key", "group_id"]
    counted = (
        with_state(messages)
        .where(F.col("group_id").isNotNull())
        .groupBy("queue_key", "group_id", "now_ms")
        .agg(*counts(), F.max("age_seconds").alias("oldest_age_seconds"), *sum_of_bytes())
    )
    heads = groups.select(*key, "head_visible_at")
    turns = tenants.select(*key, (F.col("last_turn") - F.col("queue_turn")).alias("turns_ahead"))
    locked = F.col("head_visible_at") > F.col("now_ms")
    ahead = F.greatest(F.col("turns_ahead"), F.lit(0))
    found = counted.join(heads, key, "left").join(turns, key, "left")
    return (
        with_names(found, queues, "fifo")
        .select(
            *NAMED,
            "group_id",
            F.when(F.col("fifo") == 1, "fifo").otherwise("tenant").alias("kind"),
            "messages",
            *STATES,
            F.when(locked, F.col("messages") - F.greatest(F.col("in_flight"), F.lit(1)))
            .otherwise(0)
            .alias("blocked"),
            F.when(locked, F.ceil((F.col("head_visible_at") - F.col("now_ms")) / 1000)).alias(
                "blocked_seconds"
            ),
            F.when(F.col("turns_ahead").isNotNull(), ahead).alias("turns_ahead"),
            "oldest_age_seconds",
            "bytes",
        )
        .orderBy(F.desc("blocked"), F.desc("messages"), *NAMED, "group_id")
        .limit(top)
    )


def leases(messages: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """What is held in each queue, received since `since`: for how long, and when the next of it comes back."""
    from pyspark.sql import functions as F  # noqa: N812

    soon = F.when(F.col("expires_in_seconds") <= SOON_SECONDS, 1).otherwise(0)
    counted = (
        held(messages, since)
        .groupBy("queue_key")
        .agg(
            F.count("*").alias("in_flight"),
            F.floor(F.avg("held_seconds")).alias("held_mean_seconds"),
            F.max("held_seconds").alias("held_longest_seconds"),
            F.min("expires_in_seconds").alias("next_expires_in_seconds"),
            F.sum(soon).alias("expiring_within_minute"),
            F.max("receive_count").alias("highest_receive_count"),
        )
    )
    return with_names(counted, queues).select(*NAMED, *counted.drop("queue_key").columns).orderBy(*NAMED)


def expiring(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The held messages that come back next unless they are deleted before."""
    from pyspark.sql import functions as F  # noqa: N812

    return (
        with_names(held(messages, since), queues)
        .select(
            *NAMED,
            uuid_text("message_id"),
            "expires_in_seconds",
            "held_seconds",
            "receive_count",
            "group_id",
            F.timestamp_millis("visible_at").alias("expires_at"),
        )
        .orderBy("expires_at", *NAMED, "message_id")
        .limit(top)
    )


def fleet(files: "DataFrame", queues: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """Every file with what waits in it, the largest backlog first; a file that could not be read with its problem."""
    from pyspark.sql import functions as F  # noqa: N812

    waiting = (
        with_state(messages)
        .groupBy("queue_key")
        .agg(*counts(), F.max("age_seconds").alias("oldest_age_seconds"), *sum_of_bytes())
    )
    counted = (
        queues.select("file_id", "queue_key")
        .join(waiting, "queue_key", "left")
        .groupBy("file_id")
        .agg(
            F.count("queue_key").alias("queues"),
            *(F.sum(name).alias(name) for name in ("messages", *STATES, "bytes")),
            F.max("oldest_age_seconds").alias("oldest_age_seconds"),
        )
    )
    numbers = ["queues", "messages", *STATES, "bytes"]
    return (
        files.select("file_id", "file", "problem")
        .join(counted, "file_id", "left")
        .fillna(0, numbers)
        .select("file", "queues", "messages", *STATES, "oldest_age_seconds", "bytes", "problem")
        .orderBy(F.desc("messages"), "file")
    )
