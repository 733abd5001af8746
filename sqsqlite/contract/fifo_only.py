# SPDX-License-Identifier: Apache-2.0
"""A CreateQueue that only a FIFO queue can satisfy."""

from collections.abc import Mapping

from sqsqlite.contract.queue_attributes import FIFO_ONLY


def asks_for_fifo(name: str, attributes: Mapping[str, str]) -> str | None:
    """Why a refused CreateQueue needs a FIFO queue, in a sentence; None: it does not. SQS's own error does not say so.

    Args:
        attributes: by SQS's names.
    """
    if attributes.get("FifoQueue", "").lower() == "true":
        return None
    if name.endswith(".fifo"):
        return "only a FIFO queue has a name that ends in .fifo"
    given = [attribute for attribute in attributes if attribute in FIFO_ONLY]
    return f"only a FIFO queue, whose name ends in .fifo, has {', '.join(given)}" if given else None
