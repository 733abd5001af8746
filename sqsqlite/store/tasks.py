"""Whose turn a thread's transaction is where several tasks share the thread."""

import sys
from typing import Any

from sqsqlite.errors import TransactionInProgress


def current_task() -> Any:
    """The task that this thread is running now: asyncio's or trio's. None outside of tasks.

    Neither library is imported for it: a program with a running task has done so.
    """
    asyncio = sys.modules.get("asyncio")
    # Not there yet while another thread is importing it.
    running_loop = getattr(asyncio, "_get_running_loop", None)
    if asyncio is not None and running_loop is not None and running_loop() is not None:
        return asyncio.current_task()
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        return trio.lowlevel.current_task()
    return None


def held_by(owner: Any) -> TransactionInProgress:
    """The error for a call from anywhere else on the thread than the task that is in a block."""
    name = owner.get_name() if hasattr(owner, "get_name") else owner.name
    return TransactionInProgress(
        f"task {name!r} is inside `with sqs.transaction()` on this thread, and this call is not that task's. Do not "
        "await inside the block, or call from another thread, which waits for its end: by asyncio.to_thread, say"
    )
