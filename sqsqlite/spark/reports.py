# SPDX-License-Identifier: Apache-2.0
"""The reports: each is a function from DataFrames to a DataFrame, and has no side effects.

The frames are those of tables.py, or any with the same columns. Every row begins with `file`, `account_id` and `queue`.
Instants are timestamps, ages are whole seconds, and "now" is the column `now_ms` of the frames.

`since` is a column in milliseconds since 1970 UTC: `F.lit(instant)`, or `F.col("now_ms") - 3_600_000`.
"""

from typing import TYPE_CHECKING

from sqsqlite.spark.catalogue import EVERY_MS, FOR_EVER, report
from sqsqlite.spark.expressions import (
    MINUTE_MS,
    NAMED,
    STATES,
    F,
    age_percentiles,
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
# Upper ends of the classes of age, in seconds; the last class has none.
AGE_CLASSES = (60, 300, 900, 3600, 21_600, 86_400, 345_600)

_MESSAGE = ("sent_at", "visible_at", "received")
_FLOWS = ("sent", "received", "deleted", "empty_receives", "dead_lettered", "deduplicated", "sent_bytes")


@report(
    {"messages": (*_MESSAGE, "size_bytes"), "queues": (), "activity": ("minute_at", "sent", "deleted")},
    window_ms=15 * MINUTE_MS,
    details=("ages",),
    passes=2,
)
def backlog(
    messages: "DataFrame", queues: "DataFrame", activity: "DataFrame", *, since: "Column"
) -> "DataFrame":
    """The messages that wait in each queue, their ages, and when the queue will be empty.

    `age_p50_seconds` is the lowest age that half of the messages do not exceed, `age_p95_seconds` the lowest that 95 in
    100 do not exceed. The rates are per minute, since `since` or since the queue was created. `drain_seconds` assumes
    these rates; it is NULL where more messages are sent than deleted.
    """
    # The messages are counted by the minute of age first: some thousand rows a queue remain, however many messages.
    timed = with_state(messages).withColumn("age_minute", whole_part("age_seconds", 60))
    by_minute = timed.groupBy("queue_key", "age_minute").agg(
        *counts(), *sum_of_bytes(), F.max("age_seconds").alias("oldest")
    )
    waiting = by_minute.groupBy("queue_key").agg(
        *(F.sum(name).alias(name) for name in ("messages", *STATES, "bytes")),
        F.max("oldest").alias("oldest_age_seconds"),
    )
    rates = (
        activity.where(F.col("minute_at") >= minute_of(since))
        .groupBy("queue_key")
        .agg(F.sum("sent").alias("sent"), F.sum("deleted").alias("deleted"))
    )
    begin = F.greatest(minute_of(since), minute_of(F.col("created_at")))
    minutes = F.greatest((F.col("now_ms") - begin) / MINUTE_MS, F.lit(1.0))
    known = (
        queues.join(waiting, "queue_key", "left")
        .join(age_percentiles(timed, by_minute, PERCENTS), "queue_key", "left")
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
        *(f"age_p{percent}_seconds" for percent in PERCENTS),
        "bytes",
        F.round("sent_rate", 3).alias("sent_per_minute"),
        F.round("deleted_rate", 3).alias("deleted_per_minute"),
        F.when(F.col("messages") == 0, F.lit(0))
        .when(falling > 0, F.ceil(F.col("messages") / falling * 60))
        .alias("drain_seconds"),
    ).orderBy(*NAMED)


@report({"messages": _MESSAGE, "queues": ()})
def ages(messages: "DataFrame", queues: "DataFrame") -> "DataFrame":
    """A histogram of ages: how many messages of each queue are at least `from_seconds` and below `to_seconds` old."""
    # The classes begin at whole minutes, so the messages are counted by the minute first: few rows remain.
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
    end = F.lit(None).cast("int")
    for start, following in zip((0, *AGE_CLASSES), AGE_CLASSES, strict=False):
        end = F.when(low == start, F.lit(following)).otherwise(end)
    return end


@report(
    {"messages": (*_MESSAGE, "receive_count", "queue_receive_count"), "queues": ("max_receive_count",)},
    window_ms=FOR_EVER,
    details=("poison",),
)
def receives(messages: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """How often messages were received, and how many of them may be poison.

    Counts the messages sent at `since` or later. `poison_candidates` were received three times or more since they came
    into this queue, or as often as their dead-letter policy allows.
    """
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


@report(
    {
        "messages": (*_MESSAGE, "receive_count", "queue_receive_count", "group_id", "message_id"),
        "queues": ("max_receive_count",),
    },
    window_ms=FOR_EVER,
)
def poison(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The messages that may be poison, most receives first."""
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


@report(
    {"dead_letters": ("source_arn", "receive_count", "moved_at", "sent_at", "size_bytes"), "queues": ()},
    window_ms=FOR_EVER,
)
def dead_letters(dead_letters: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """The dead letters: their source queues, their receives, and when they were moved."""
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


@report({"activity": ("minute_at", *_FLOWS), "queues": ()}, window_ms=EVERY_MS["day"])
def throughput(activity: "DataFrame", queues: "DataFrame", *, since: "Column", every_ms: int) -> "DataFrame":
    """The messages sent, received and deleted in each minute, hour or day (UTC).

    The queue keeps these counts by the minute, and keeps them after the messages are deleted. The first period counts
    only the minutes from `since` on.
    """
    counted = (
        activity.where(F.col("minute_at") >= minute_of(since))
        .withColumn("start", F.col("minute_at") - F.col("minute_at") % every_ms)
        .groupBy("queue_key", "start")
        .agg(*(F.sum(name).alias(name) for name in _FLOWS))
    )
    return (
        with_names(counted, queues)
        .select(*NAMED, F.timestamp_millis("start").alias("at"), *_FLOWS)
        .orderBy(*NAMED, "at")
    )


@report(
    {
        "messages": (*_MESSAGE, "size_bytes", "group_id"),
        "queues": ("fifo",),
        "groups": ("group_id", "head_visible_at"),
        "tenants": ("group_id", "last_turn", "queue_turn"),
    }
)
def groups(
    messages: "DataFrame", queues: "DataFrame", groups: "DataFrame", tenants: "DataFrame", *, top: int
) -> "DataFrame":
    """The FIFO groups and the tenants of standard queues with the most blocked and the most waiting messages.

    `blocked` counts the messages that cannot be received because another message of their FIFO group is in flight, or
    because the first one is delayed. `blocked_seconds` is the longest time until the group is free. `turns_ahead` is
    the number of turns that a tenant has drawn beyond the queue's own: a noisy tenant waits that much longer.
    """
    key = ["queue_key", "group_id"]
    counted = (
        with_state(messages)
        .where(F.col("group_id").isNotNull())
        .groupBy("queue_key", "group_id", "now_ms")
        .agg(*counts(), F.max("age_seconds").alias("oldest_age_seconds"), *sum_of_bytes())
    )
    heads = groups.select(*key, "head_visible_at")
    turns = tenants.select(*key, (F.col("last_turn") - F.col("queue_turn")).alias("turns_ahead"))
    found = counted.join(heads, key, "left").join(turns, key, "left")
    left_ms = F.col("head_visible_at") - F.col("now_ms")
    blocked = F.col("messages") - F.greatest(F.col("in_flight"), F.lit(1))
    ahead = F.greatest(F.col("turns_ahead"), F.lit(0))
    return (
        with_names(found, queues, "fifo")
        .select(
            *NAMED,
            "group_id",
            F.when(F.col("fifo") == 1, "fifo").otherwise("tenant").alias("kind"),
            "messages",
            *STATES,
            F.when(left_ms > 0, blocked).otherwise(0).alias("blocked"),
            F.when(left_ms > 0, F.ceil(left_ms / 1000)).alias("blocked_seconds"),
            F.when(F.col("turns_ahead").isNotNull(), ahead).alias("turns_ahead"),
            "oldest_age_seconds",
            "bytes",
        )
        .orderBy(F.desc("blocked"), F.desc("messages"), *NAMED, "group_id")
        .limit(top)
    )


@report(
    {"messages": (*_MESSAGE, "received_at", "receive_count"), "queues": ()},
    window_ms=FOR_EVER,
    details=("expiring",),
)
def leases(messages: "DataFrame", queues: "DataFrame", *, since: "Column") -> "DataFrame":
    """The messages in flight: their number in each queue, how long they are held, and when the next one returns."""
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


@report(
    {
        "messages": (*_MESSAGE, "received_at", "receive_count", "group_id", "message_id"),
        "queues": (),
    },
    window_ms=FOR_EVER,
)
def expiring(messages: "DataFrame", queues: "DataFrame", *, since: "Column", top: int) -> "DataFrame":
    """The messages in flight that return next unless they are deleted before."""
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


@report({"files": (), "queues": (), "messages": (*_MESSAGE, "size_bytes")})
def fleet(files: "DataFrame", queues: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """Every file with its messages, largest backlog first, or with the reason why it could not be read."""
    waiting = (
        with_state(messages)
        .groupBy("queue_key")
        .agg(*counts(), F.max("age_seconds").alias("oldest_age_seconds"), *sum_of_bytes())
    )
    sums = ("messages", *STATES, "bytes")
    counted = (
        queues.select("file_id", "queue_key")
        .join(waiting, "queue_key", "left")
        .groupBy("file_id")
        .agg(
            F.count("queue_key").alias("queues"),
            *(F.sum(name).alias(name) for name in sums),
            F.max("oldest_age_seconds").alias("oldest_age_seconds"),
        )
    )
    return (
        files.select("file_id", "file", "problem")
        .join(counted, "file_id", "left")
        .fillna(0, ["queues", *sums])
        .select("file", "queues", "messages", *STATES, "oldest_age_seconds", "bytes", "problem")
        .orderBy(F.desc("messages"), "file")
    )
