# SPDX-License-Identifier: Apache-2.0
"""A queue of replies, and the one thread that receives from it for all waiters."""

import contextlib
import threading
from typing import Any

from sqsqlite.api.client_errors import is_missing, passes, words_of
from sqsqlite.errors import StoreClosed
from sqsqlite.replies import hosts
from sqsqlite.replies.addresses import RequesterClosed
from sqsqlite.replies.waiters import Tally, Waiters
from sqsqlite.store.clock import Clock

_LONGEST_POLL_SECONDS = 20
_SWEEP_EVERY_MS = 600_000
_PAUSE_SECONDS = 1.0


class Receiver:
    """Makes a queue of replies, and receives from it until `stop`, or until the queue is gone.

    Args:
        idle_seconds: how long after its last sign of life other requesters may remove the queue.

    Attributes:
        url: the queue's.
        waiters: who waits for replies by this queue.
        error: what ended the thread; None: nothing did, or the queue is gone and another may be made.
    """

    def __init__(self, client: Any, clock: Clock, tally: Tally, idle_seconds: int) -> None:
        self._client = client
        self._clock = clock
        self._tally = tally
        self._idle_seconds = idle_seconds
        self._poll_seconds = min(_LONGEST_POLL_SECONDS, idle_seconds // 3)
        self._stopping = threading.Event()
        self._trouble: Exception | None = None
        self._sign_at = clock.now_ms() + self._idle_seconds * 200
        self._sweep_at = 0
        self.error: BaseException | None = None
        self.waiters = Waiters(clock, tally, self._told_trouble)
        self.url = hosts.make(client, clock.now_ms(), idle_seconds)
        # Not one of OWN_THREADS: while it hands out a reply, a ManualClock must not move itself past a timeout.
        self.thread = threading.Thread(target=self._run, name="receiver of replies", daemon=True)
        self.thread.start()

    def _told_trouble(self) -> str:
        """Why the last receive failed, if it did."""
        trouble = self._trouble
        return "" if trouble is None else f". Replies could not be received: {words_of(trouble)}"

    def stop(self) -> None:
        """Fail the outstanding requests, end the thread, and remove the queue. May be repeated.

        Raises:
            StoreError, or an error of the client: the queue could not be removed; another requester will do so.
        """
        self._stopping.set()
        self.waiters.end(lambda: RequesterClosed("the requester was closed"))
        with contextlib.suppress(
            StoreClosed
        ):  # the file was closed first: another requester removes the queue
            if self.thread.is_alive():
                # A message ends the long poll at once. Without the right to send, the poll ends by itself.
                with contextlib.suppress(Exception):
                    self._client.send_message(QueueUrl=self.url, MessageBody="close")
                if self.thread is not threading.current_thread():  # it is in the callback of a future
                    self.thread.join()
            hosts.remove(self._client, self.url)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._show_life()
                self._receive()
                self._trouble = None
            except BaseException as error:  # noqa: BLE001 - the waiters and all later calls raise it
                if self._stopping.is_set():
                    return
                if not self._goes_on_after(error):
                    return

    def _goes_on_after(self, error: BaseException) -> bool:
        """Whether the thread goes on. If it does not, the waiters learn why."""
        if isinstance(error, TimeoutError):  # of a ManualClock that nothing moved
            return True
        if isinstance(error, Exception) and is_missing(error):
            text = (
                f"the queue of replies {self.url} was removed, as others do after {self._idle_seconds} s without a "
                "sign of life from this process; the request may still be worked on. The next call makes another queue"
            )
            self.waiters.end(lambda: RequesterClosed(text))
            return False
        if isinstance(error, Exception) and passes(error):
            self._trouble = error
            self._tally.add("retries")
            self._stopping.wait(_PAUSE_SECONDS)
            return True
        self.error = error
        self.waiters.end(lambda: broken(error))
        return False

    def _receive(self) -> None:
        got = self._client.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            WaitTimeSeconds=self._poll_seconds,
            MessageAttributeNames=["All"],
        ).get("Messages", [])
        if self._stopping.is_set():
            return
        for message in got:
            self.waiters.hand_out(message)
        if got:
            # An entry that fails comes again, and is counted as repeated.
            self._client.delete_message_batch(
                QueueUrl=self.url,
                Entries=[
                    {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
                    for place, message in enumerate(got)
                ],
            )

    def _show_life(self) -> None:
        """Renew the queue's tag, and look for queues of dead requesters, from time to time."""
        now_ms = self._clock.now_ms()
        if now_ms >= self._sign_at:
            hosts.sign(self._client, self.url, now_ms)
            self._sign_at = now_ms + self._idle_seconds * 200  # five times until it counts as dead
        if now_ms >= self._sweep_at:
            self._sweep_at = now_ms + _SWEEP_EVERY_MS
            hosts.sweep(self._client, now_ms)


def broken(error: BaseException) -> RequesterClosed:
    """The error of a call whose reply can't be received, because the receiving thread ended with `error`."""
    raised = RequesterClosed(
        f"replies can't be received any more: {words_of(error) if isinstance(error, Exception) else repr(error)}. "
        "The request may still be worked on"
    )
    raised.__cause__ = error
    return raised
