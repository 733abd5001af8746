"""What the reports have in common: columns made of columns, and tables with some added."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MINUTE_MS = 60_000
# A message received this often is set aside by Amazon's own metric of the oldest message.
SUSPICIOUS_RECEIVES = 3
STATES = ("visible", "in_flight", "delayed")
NAMED = ("file", "account_id", "queue")
# Of 32 hexadecimal digits.
_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


def uuid_text(name: str) -> "Column":
    """A message id as SQS writes it, of 32 hexadecimal digits."""
    from pyspark.sql import functions as F  # noqa: N812

    parts = (F.substring(name, begin, length) for begin, length in _UUID)
    return F.when(F.col(name).isNotNull(), F.concat_ws("-", *parts)).alias(name)


def held(messages: "DataFrame", since: "Column") -> "DataFrame":
    """The messages in flight that were received since `since`: for how long, and how soon they come back."""
    from pyspark.sql import functions as F  # noqa: N812

    return (
        # Plain comparisons, which SQLite makes before a row crosses JDBC.
        messages.where((F.col("visible_at") > F.col("now_ms")) & (F.col("received") == 1))
        .where(F.col("received_at") >= since)
        .withColumn("held_seconds", whole_seconds(F.col("now_ms") - F.col("received_at")))
        .withColumn("expires_in_seconds", F.ceil((F.col("visible_at") - F.col("now_ms")) / 1000))
    )


def with_age(table: "DataFrame") -> "DataFrame":
    """With `age_seconds`, whole ones."""
    from pyspark.sql import functions as F  # noqa: N812

    return table.withColumn("age_seconds", whole_seconds(F.col("now_ms") - F.col("sent_at")))


def with_state(messages: "DataFrame") -> "DataFrame":
    """With `age_seconds`, and `state` as a text."""
    from pyspark.sql import functions as F  # noqa: N812

    visible, in_flight, _ = _states()
    state = F.when(visible, "visible").when(in_flight, "in flight").otherwise("delayed")
    return with_age(messages).withColumn("state", state)


def _states() -> "tuple[Column, Column, Column]":
    """Whether a message is in each of the STATES."""
    from pyspark.sql import functions as F  # noqa: N812

    visible, received = F.col("visible_at") <= F.col("now_ms"), F.col("received") == 1
    return visible, ~visible & received, ~visible & ~received


def whole_seconds(milliseconds: "Column") -> "Column":
    """Rounded down; a clock that was behind makes no negative age."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.call_function("div", F.greatest(milliseconds, F.lit(0)), F.lit(1000))


def whole_part(name: str, divisor: int) -> "Column":
    """Without a detour through floating point."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.call_function("div", F.col(name), F.lit(divisor))


def counts() -> "list[Column]":
    """How many messages, and how many in each state; by numbers, so that no text is made and compared for each."""
    from pyspark.sql import functions as F  # noqa: N812

    in_states = (F.count_if(state).alias(name) for name, state in zip(STATES, _states(), strict=True))
    return [F.count("*").alias("messages"), *in_states]


def sum_of_bytes() -> "list[Column]":
    """The sizes together, as `bytes`."""
    from pyspark.sql import functions as F  # noqa: N812

    return [F.sum("size_bytes").alias("bytes")]


def minute_of(instant: "Column") -> "Column":
    """Its beginning, as activity is counted by the minute."""
    return instant - instant % MINUTE_MS


def with_names(table: "DataFrame", queues: "DataFrame", *also: str) -> "DataFrame":
    """With the queues' names, and what else of them is wanted; rows of queues that are not there are left out."""
    from pyspark.sql import functions as F  # noqa: N812

    return table.join(F.broadcast(queues.select("queue_key", *NAMED, *also)), "queue_key")


def is_suspicious() -> "Column":
    """Whether the message was received so often in its queue that it may be poison."""
    from pyspark.sql import functions as F  # noqa: N812

    allowed = F.least(F.lit(SUSPICIOUS_RECEIVES), F.col("max_receive_count"))  # least() passes over NULL
    return F.col("queue_receive_count") >= allowed
