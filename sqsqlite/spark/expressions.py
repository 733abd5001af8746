# SPDX-License-Identifier: Apache-2.0
"""Columns that several reports share, and `F`: PySpark's functions, loaded at the first use of one of them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, functions

    F = functions
else:

    class _Functions:
        """Stands for `pyspark.sql.functions`: importing a report must not load PySpark, which takes a second."""

        def __getattr__(self, name: str) -> Any:
            from pyspark.sql import functions

            return getattr(functions, name)

    F = _Functions()

MINUTE_MS = 60_000
# Amazon's metric of the oldest message leaves out messages that were received this often.
SUSPICIOUS_RECEIVES = 3
STATES = ("visible", "in_flight", "delayed")
NAMED = ("file", "account_id", "queue")
# Begin and length of each part, in 32 hexadecimal digits.
_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def uuid_text(name: str) -> "Column":
    """A message id as SQS writes it, from a column of 32 hexadecimal digits."""
    parts = (F.substring(name, begin, length) for begin, length in _UUID)
    return F.when(F.col(name).isNotNull(), F.concat_ws("-", *parts)).alias(name)


def whole_seconds(milliseconds: "Column") -> "Column":
    """Rounded down, and 0 for a negative number: a clock that was behind makes no negative age."""
    return F.call_function("div", F.greatest(milliseconds, F.lit(0)), F.lit(1000))


def whole_part(name: str, divisor: int) -> "Column":
    """Integer division, without a step through floating point."""
    return F.call_function("div", F.col(name), F.lit(divisor))


def minute_of(instant: "Column") -> "Column":
    """The beginning of the minute: activity is counted by the minute."""
    return instant - instant % MINUTE_MS


def is_suspicious() -> "Column":
    """Whether the queue has received the message so often that it may be poison."""
    allowed = F.least(F.lit(SUSPICIOUS_RECEIVES), F.col("max_receive_count"))  # least() passes over NULL
    return F.col("queue_receive_count") >= allowed


def _states() -> "tuple[Column, Column, Column]":
    """Whether a message is in each of the STATES."""
    visible, received = F.col("visible_at") <= F.col("now_ms"), F.col("received") == 1
    return visible, ~visible & received, ~visible & ~received


def counts() -> "list[Column]":
    """The number of messages, in all and in each state. Numbers are compared here, so no text is made per message."""
    in_states = (F.count_if(state).alias(name) for name, state in zip(STATES, _states(), strict=True))
    return [F.count("*").alias("messages"), *in_states]


def sum_of_bytes() -> "list[Column]":
    """The sum of the sizes, as `bytes`."""
    return [F.sum("size_bytes").alias("bytes")]


def with_age(table: "DataFrame") -> "DataFrame":
    """Add `age_seconds`, in whole seconds."""
    return table.withColumn("age_seconds", whole_seconds(F.col("now_ms") - F.col("sent_at")))


def with_state(messages: "DataFrame") -> "DataFrame":
    """Add `age_seconds`, and `state` as a text."""
    visible, in_flight, _ = _states()
    state = F.when(visible, "visible").when(in_flight, "in flight").otherwise("delayed")
    return with_age(messages).withColumn("state", state)


def with_names(table: "DataFrame", queues: "DataFrame", *more: str) -> "DataFrame":
    """Add the names of the queues, and more of their columns. Rows of unknown queues are left out."""
    return table.join(F.broadcast(queues.select("queue_key", *NAMED, *more)), "queue_key")


def held(messages: "DataFrame", since: "Column") -> "DataFrame":
    """The messages in flight that were received at `since` or later, with their times held and left."""
    return (
        # Plain comparisons: SQLite makes them before a row crosses JDBC.
        messages.where((F.col("visible_at") > F.col("now_ms")) & (F.col("received") == 1))
        .where(F.col("received_at") >= since)
        .withColumn("held_seconds", whole_seconds(F.col("now_ms") - F.col("received_at")))
        .withColumn("expires_in_seconds", F.ceil((F.col("visible_at") - F.col("now_ms")) / 1000))
    )


def age_percentiles(timed: "DataFrame", by_minute: "DataFrame", percents: tuple[int, ...]) -> "DataFrame":
    """For each queue, the lowest ages in seconds that `percents` in 100 of its messages do not exceed.

    Only the minutes that hold a percentile are counted by the second.

    Args:
        timed: messages with `age_seconds` and `age_minute`.
        by_minute: `messages` for each `age_minute` of a queue.
        percents: each becomes a column `age_pNN_seconds`.
    """
    from pyspark.sql import Window

    of_queue = Window.partitionBy("queue_key")
    minutes = (
        by_minute.select("queue_key", "age_minute", "messages")
        .withColumn("up_to", F.sum("messages").over(of_queue.orderBy("age_minute")))
        .withColumn("total", F.sum("messages").over(of_queue))
        .select("*", F.explode(F.array(*(F.lit(percent) for percent in percents))).alias("percent"))
        # The position of the percentile's message, counted from the youngest one.
        .withColumn("rank", F.ceil(F.col("total") * F.col("percent") / 100))
        .withColumn("before", F.col("up_to") - F.col("messages"))
        .where((F.col("before") < F.col("rank")) & (F.col("rank") <= F.col("up_to")))
        .select("queue_key", "age_minute", "percent", "before", "rank")
    )
    by_second = (
        timed.join(F.broadcast(minutes), ["queue_key", "age_minute"])
        .groupBy("queue_key", "percent", "before", "rank", "age_seconds")
        .count()
    )
    in_minute = Window.partitionBy("queue_key", "percent").orderBy("age_seconds")
    up_to = F.col("before") + F.sum("count").over(in_minute)
    found = by_second.withColumn("up_to", up_to).where(F.col("up_to") >= F.col("rank"))
    lowest = (
        F.min(F.when(F.col("percent") == percent, F.col("age_seconds"))).alias(f"age_p{percent}_seconds")
        for percent in percents
    )
    return found.groupBy("queue_key").agg(*lowest)
