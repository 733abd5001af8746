# SPDX-License-Identifier: Apache-2.0
"""An order and the message that announces it: both are in the file, or neither is.

    python orders.py orders.db lamp "2 chairs"    place an order for each item
    python orders.py orders.db --ship             receive the announcements, mark the orders shipped

Without a queue in the same file, a crash between the two writes leaves an order that nobody ships, or announces one
that does not exist. Here one commit covers both, whatever happens to the process, and `--ship` marks an order and
deletes its message in one commit, too: an order is shipped once, however often the program is killed and restarted. A
process that is too late for an order, because its visibility timeout ended, gets an error from that delete, and its row
rolls back.
"""

import sys

from sqlalchemy import Column, Integer, MetaData, String, Table, insert, update

import sqsqlite
from sqsqlite.errors import LeaseLost

LATE = {
    "gone": "another process has shipped it",
    "replaced": "another process is shipping it",
    "ended": "it will be received again",
    "moved": "it was received too often, and is a dead letter",
}

metadata = MetaData()
orders = Table(
    "orders",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("item", String, nullable=False),
    Column("state", String, nullable=False),
)


def place(sqs: sqsqlite.SQS, item: str) -> int:
    """Store an order and announce it; the order's id."""
    with sqs.engine.begin() as connection:
        result = connection.execute(insert(orders).values(item=item, state="placed"))
        order_id: int = result.inserted_primary_key[0]
        sqs.queue("placed-orders").send(str(order_id), connection=connection)
    return order_id


def ship(sqs: sqsqlite.SQS) -> list[int]:
    """Ship the orders that are announced; their ids."""
    shipped = []
    while messages := sqs.queue("placed-orders").receive(10):
        for message in messages:
            order_id = int(message.body)
            try:
                with sqs.engine.begin() as connection:
                    connection.execute(update(orders).where(orders.c.id == order_id).values(state="shipped"))
                    message.delete(connection=connection)
            except LeaseLost as error:
                # This process was slower than the visibility timeout.
                print(f"order {order_id} was left alone: {LATE[error.reason]}", file=sys.stderr)
            else:
                shipped.append(order_id)
    return shipped


def main(path: str, *items: str) -> None:
    """Place an order for each item, or ship those placed."""
    # adopt=True: the file may be the shop's own from before, with its tables.
    with sqsqlite.connect(path, adopt=True) as sqs:
        with sqs.engine.begin() as connection:
            metadata.create_all(connection)
        sqs.create_queue("placed-orders")
        if items == ("--ship",):
            print("shipped", *ship(sqs))
        else:
            print("placed", *[place(sqs, item) for item in items])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python orders.py FILE ITEM...\n       python orders.py FILE --ship")
    main(*sys.argv[1:])
