"""The reports: each a function of DataFrames that gives a DataFrame, and touches nothing else.

The frames are those of `tables.py`, or any with the same columns. Every row begins with `file`, `account_id` and
`queue`; instants are timestamps, ages whole seconds, and "now" is the frames' own `now_ms`, never a clock's.

`since` is a column of milliseconds since 1970 UTC: `F.lit(instant)`, or `F.col("now_ms") - 3_600_000`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MINUTE_MS = 60_000
# A message received this often is set aside by Amazon's own metric of the oldest message.
SUSPICIOUS_RECEIVES = 3
SOON_SECONDS = 60
PERCENTS = (50, 95)
# Upper ends of the histogram of ages, in seconds; the last class is open.
AGE_CLASSES = (60, 300, 900, 3600, 21_600, 86_400, 345_600)

_STATES = ("visible", "in_flight", "delayed")
_ACTIVITY = ("sent", "received", "deleted", "empty_receives", "dead_lettered", "deduplicated", "sent_bytes")
# Of 32 hexadecimal digits.
_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
_NAMED = ("file", "account_id", "queue")


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
    timed = _with_state(messages).withColumn("age_minute", _div("age_seconds", 60))
    by_minute = timed.groupBy("queue_key", "age_minute").agg(
        *_counts(), *_bytes(), F.max("age_seconds").alias("oldest")
    )
    waiting = by_minute.groupBy("queue_key").agg(
        *(F.sum(name).alias(name) for name in ("messages", *_STATES, "bytes")),
        F.max("oldest").alias("oldest_age_seconds"),
    )
    percentiles = _percentiles(timed, by_minute)
    rates = (
        activity.where(F.col("minute_at") >= _minute(since))
        .groupBy("queue_key")
        .agg(F.sum("sent").alias("sent"), F.sum("deleted").alias("deleted"))
    )
    minutes = F.greatest(
        (F.col("now_ms") - F.greatest(_minute(since), _minute(F.col("created_at")))) / MINUTE_MS, F.lit(1.0)
    )
    known = (
        queues.join(waiting, "queue_key", "left")
        .join(percentiles, "queue_key", "left")
        .join(rates, "queue_key", "left")
        .fillna(0, ["messages", *_STATES, "bytes", "sent", "deleted"])
        .withColumn("sent_rate", F.col("sent") / minutes)
        .withColumn("deleted_rate", F.col("deleted") / minutes)
    )
    falling = F.col("deleted_rate") - F.col("sent_rate")
    return known.select(
        *_NAMED,
        *_STATES,
        "oldest_age_seconds",
        "age_p50_seconds",
        "age_p95_seconds",
        "bytes",
        F.round("sent_rate", 3).alias("sent_per_minute"),
        F.round("deleted_rate", 3).alias("deleted_per_minute"),
        F.when(F.col("messages") == 0, F.lit(0))
        .when(falling > 0, F.ceil(F.col("messages") / falling * 60))
        .alias("drain_seconds"),
    ).orderBy(*_NAMED)


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
        _with_state(messages)
        .withColumn("age_minute", _div("age_seconds", 60))
        .groupBy("queue_key", "age_minute")
        .agg(*_counts())
    )
    age, low = F.col("age_minute") * 60, F.lit(0)
    for end in AGE_CLASSES:
        low = F.when(age >= end, F.lit(end)).otherwise(low)
    counted = (
        by_minute.withColumn("from_seconds", low)
        .groupBy("queue_key", "from_seconds")
        .agg(*(F.sum(name).alias(name) for name in ("messages", *_STATES)))
    )
    return (
        _named(counted, queues)
        .withColumn("to_seconds", _next_class(F.col("from_seconds")))
        .select(*_NAMED, "from_seconds", "to_seconds", "messages", *_STATES)
        .orderBy(*_NAMED, "from_seconds")
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
        _with_state(messages)
        .where(F.col("sent_at") >= since)
        .groupBy("queue_key", "receive_count", "queue_receive_count")
        .agg(F.count("*").alias("messages"), F.max("age_seconds").alias("oldest_age_seconds"))
    )
    suspects = F.when(_is_suspicious(), F.col("messages")).otherwise(0)
    return (
        _named(counted, queues, "max_receive_count")
        .groupBy(*_NAMED, "receive_count", "max_receive_count")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum(suspects).alias("poison_candidates"),
            F.max("oldest_age_seconds").alias("oldest_age_seconds"),
        )
        .select(
            *_NAMED,
            "receive_count",
            "messages",
            "poison_candidates",
            "oldest_age_seconds",
            "max_receive_count",
        )
        .orderBy(*_NAMED, "receive_count")
    )


def poison(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The messages that may be poison, those received most often first."""
    from pyspark.sql import functions as F  # noqa: N812

    often = _with_state(messages).where((F.col("sent_at") >= since) & (F.col("queue_receive_count") > 0))
    return (
        _named(often, queues, "max_receive_count")
        .where(_is_suspicious())
        .select(
            *_NAMED,
            uuid_text("message_id"),
            "receive_count",
            "max_receive_count",
            "state",
            "age_seconds",
            "group_id",
        )
        .orderBy(F.desc("receive_count"), F.desc("age_seconds"), *_NAMED, "message_id")
        .limit(top)
    )


def _is_suspicious() -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    allowed = F.least(F.lit(SUSPICIOUS_RECEIVES), F.col("max_receive_count"))  # least() passes over NULL
    return F.col("queue_receive_count") >= allowed


def dead_letters(dead_letters: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """What died since `since`: in which queue, from which, after how many receives, and when."""
    from pyspark.sql import functions as F  # noqa: N812

    dead = _with_age(dead_letters).where(F.col("moved_at") >= since)
    counted = dead.groupBy("queue_key", "source_arn", "receive_count").agg(
        F.count("*").alias("messages"),
        F.max("age_seconds").alias("oldest_age_seconds"),
        F.timestamp_millis(F.min("moved_at")).alias("first_moved_at"),
        F.timestamp_millis(F.max("moved_at")).alias("last_moved_at"),
        F.sum("size_bytes").alias("bytes"),
    )
    return (
        _named(counted, queues)
        .withColumn("source", F.substring_index("source_arn", ":", -1))
        .select(
            *_NAMED,
            "source",
            "receive_count",
            "messages",
            "oldest_age_seconds",
            "first_moved_at",
            "last_moved_at",
            "bytes",
            "source_arn",
        )
        .orderBy(*_NAMED, "source", "receive_count")
    )


def throughput(activity: "DataFrame", queues: "DataFrame", *, since: "Column", every_ms: int) -> "DataFrame":
    """What was sent, received, deleted and so on in each minute, hour or day (UTC) since `since`.

    The counts are kept a minute at a time and outlive the messages. A period that `since` falls into is counted from
    that minute on.
    """
    from pyspark.sql import functions as F  # noqa: N812

    counted = (
        activity.where(F.col("minute_at") >= _minute(since))
        .withColumn("start", F.col("minute_at") - F.col("minute_at") % every_ms)
        .groupBy("queue_key", "start")
        .agg(*(F.sum(name).alias(name) for name in _ACTIVITY))
    )
    return (
        _named(counted, queues)
        .select(*_NAMED, F.timestamp_millis("start").alias("at"), *_ACTIVITY)
        .orderBy(*_NAMED, "at")
    )


def groups(
    messages: "DataFrame", queues: "DataFrame", groups: "DataFrame", tenants: "DataFrame", *, top: int
) -> "DataFrame":
    """The message groups with most messages: FIFO groups, and tenants of standard queues.

    `blocked` counts what nobody can receive because an earlier message of its FIFO group is in flight or delayed,
    `blocked_seconds` says until when at the latest. `turns_ahead` is how many turns a tenant has drawn beyond the
    queue's: a noisy one waits that much longer.
    """
    from pyspark.sql import functions as F  # noqa: N812

    key = ["queue_key", "group_id"]
    counted = (
        _with_state(messages)
        .where(F.col("group_id").isNotNull())
        .groupBy("queue_key", "group_id", "now_ms")
        .agg(*_counts(), F.max("age_seconds").alias("oldest_age_seconds"), *_bytes())
    )
    heads = groups.select(*key, "head_visible_at")
    turns = tenants.select(*key, (F.col("last_turn") - F.col("queue_turn")).alias("turns_ahead"))
    locked = F.col("head_visible_at") > F.col("now_ms")
    ahead = F.greatest(F.col("turns_ahead"), F.lit(0))
    found = counted.join(heads, key, "left").join(turns, key, "left")
    return (
        _named(found, queues, "fifo")
        .select(
            *_NAMED,
            "group_id",
            F.when(F.col("fifo") == 1, "fifo").otherwise("tenant").alias("kind"),
            "messages",
            *_STATES,
            F.when(locked, F.col("messages") - F.col("in_flight")).otherwise(0).alias("blocked"),
            F.when(locked, F.ceil((F.col("head_visible_at") - F.col("now_ms")) / 1000)).alias(
                "blocked_seconds"
            ),
            F.when(F.col("turns_ahead").isNotNull(), ahead).alias("turns_ahead"),
            "oldest_age_seconds",
            "bytes",
        )
        .orderBy(F.desc("blocked"), F.desc("messages"), *_NAMED, "group_id")
        .limit(top)
    )


def leases(messages: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """What is held in each queue, received since `since`: for how long, and when the next of it comes back."""
    from pyspark.sql import functions as F  # noqa: N812

    soon = F.when(F.col("expires_in_seconds") <= SOON_SECONDS, 1).otherwise(0)
    counted = (
        _held(messages, since)
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
    return _named(counted, queues).select(*_NAMED, *counted.drop("queue_key").columns).orderBy(*_NAMED)


def expiring(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The held messages that come back next unless they are deleted before."""
    from pyspark.sql import functions as F  # noqa: N812

    return (
        _named(_held(messages, since), queues)
        .select(
            *_NAMED,
            uuid_text("message_id"),
            "expires_in_seconds",
            "held_seconds",
            "receive_count",
            "group_id",
            F.timestamp_millis("visible_at").alias("expires_at"),
        )
        .orderBy("expires_at", *_NAMED, "message_id")
        .limit(top)
    )


def fleet(files: "DataFrame", queues: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """Every file with what waits in it, the largest backlog first; a file that could not be read with its problem."""
    from pyspark.sql import functions as F  # noqa: N812

    waiting = (
        _with_state(messages)
        .groupBy("queue_key")
        .agg(*_counts(), F.max("age_seconds").alias("oldest_age_seconds"), *_bytes())
    )
    counted = (
        queues.select("file_id", "queue_key")
        .join(waiting, "queue_key", "left")
        .groupBy("file_id")
        .agg(
            F.count("queue_key").alias("queues"),
            *(F.sum(name).alias(name) for name in ("messages", *_STATES, "bytes")),
            F.max("oldest_age_seconds").alias("oldest_age_seconds"),
        )
    )
    numbers = ["queues", "messages", *_STATES, "bytes"]
    return (
        files.select("file_id", "file", "problem")
        .join(counted, "file_id", "left")
        .fillna(0, numbers)
        .select("file", "queues", "messages", *_STATES, "oldest_age_seconds", "bytes", "problem")
        .orderBy(F.desc("messages"), "file")
    )


def uuid_text(name: str) -> "Column":
    """A message id as SQS writes it, of 32 hexadecimal digits."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = (F.substring(name, begin, length) for begin, length in _UUID)
    return F.when(F.col(name).isNotNull(), F.concat_ws("-", *parts)).alias(name)


def _held(messages: "DataFrame", since: "Column") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return (
        # Plain comparisons, which SQLite makes before a row crosses JDBC.
        messages.where((F.col("visible_at") > F.col("now_ms")) & (F.col("received") == 1))
        .where(F.col("received_at") >= since)
        .withColumn("held_seconds", _whole_seconds(F.col("now_ms") - F.col("received_at")))
        .withColumn("expires_in_seconds", F.ceil((F.col("visible_at") - F.col("now_ms")) / 1000))
    )


def _with_age(table: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    return table.withColumn("age_seconds", _whole_seconds(F.col("now_ms") - F.col("sent_at")))


def _with_state(messages: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    hidden = F.when(F.col("received") == 1, "in flight").otherwise("delayed")
    state = F.when(F.col("visible_at") <= F.col("now_ms"), "visible").otherwise(hidden)
    return _with_age(messages).withColumn("state", state)


def _whole_seconds(milliseconds: "Column") -> "Column":
    """Rounded down; a clock that was behind makes no negative age."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.call_function("div", F.greatest(milliseconds, F.lit(0)), F.lit(1000))


def _div(name: str, divisor: int) -> "Column":
    """Without a detour through floating point."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.call_function("div", F.col(name), F.lit(divisor))


def _counts() -> "list[Column]":
    from pyspark.sql import functions as F  # noqa: N812

    by_state = (F.sum(F.when(F.col("state") == name.replace("_", " "), 1).otherwise(0)) for name in _STATES)
    return [
        F.count("*").alias("messages"),
        *(count.alias(name) for count, name in zip(by_state, _STATES, strict=True)),
    ]


def _bytes() -> "list[Column]":
    from pyspark.sql import functions as F  # noqa: N812

    return [F.sum("size_bytes").alias("bytes")]


def _minute(instant: "Column") -> "Column":
    return instant - instant % MINUTE_MS


def _named(table: "DataFrame", queues: "DataFrame", *also: str) -> "DataFrame":
    """With the queues' names, and what else of them is wanted; rows of queues that are not there are left out."""
    from pyspark.sql import functions as F  # noqa: N812

    return table.join(F.broadcast(queues.select("queue_key", *_NAMED, *also)), "queue_key")
