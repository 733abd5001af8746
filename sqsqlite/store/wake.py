# SPDX-License-Identifier: Apache-2.0
"""Waking consumers that wait for messages, in this process and in others.

SQLite has no push. A process with waiters binds one Unix datagram socket next to the database, and every writer sends
it a datagram after a commit that makes something receivable. A slow look at `PRAGMA data_version` is the safety net
for writers that send none, and does the work where there are no Unix sockets. A waiter sleeps until its queue's next
due instant or its own deadline, never by interval.
"""

import contextlib
import os
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqsqlite.errors import StoreError
from sqsqlite.store.beside import share_socket
from sqsqlite.store.clock import Waitable
from sqsqlite.store.file import File
from sqsqlite.store.interrupts import Signal, refuse_handlers
from sqsqlite.store.used_up import NO_LINK

if TYPE_CHECKING:
    from socket import socket

# Seconds between two looks at data_version: as the safety net, and where it is all there is.
SAFETY_NET = 0.05
WITHOUT_SOCKETS = 0.002
_NEWS = struct.Struct("<qq")  # queue id, visible_at
_AT_MOST = 64  # pieces of news in a datagram
# Of a folder that a socket's name still fits behind: `wake-`, the process, and eight more.
LONGEST_FOLDER_BYTES = 107 - len("/wake-4194304-01234567")
# Waiters come and go with every long poll; the socket outlives a pause this long, in seconds.
KEEP_BOUND = 5.0


class News(Waitable, Protocol):
    """What news sets; who waits clears it."""

    def clear(self) -> None: ...


class Waiter:
    """One long poll. `event`: there is news: of something `receivable` now, or of a later instant, `due_at`.

    Args:
        event: what news sets, on whatever thread; None: one for a thread to wait on.

    Attributes:
        is_deaf: no thread was to be had that listens to other processes: look again every SAFETY_NET seconds.
    """

    __slots__ = ("due_at", "event", "is_deaf", "queue_id", "receivable")

    def __init__(self, queue_id: int, event: News | None = None) -> None:
        self.queue_id = queue_id
        self.event: News = event or Signal()
        self.receivable = self.is_deaf = False
        self.due_at: int | None = None


class Waker:
    """All waiters of one store, and the one thread that listens for them."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._folder: Path = file.folder
        # Looked at after each commit: a Path would be turned into this each time.
        self._folder_name = str(file.folder)
        self._lock = threading.Lock()
        self._waiters: dict[int, list[Waiter]] = {}
        self._present = Signal()
        self._thread: threading.Thread | None = None
        self._socket: socket | None = None
        self._address: Path | None = None
        self._peers: list[str] = []
        self._folder_seen = -1
        self._sender: socket | None = None
        self._closed = False

    # --- waiting

    def register(self, waiter: Waiter) -> None:
        """Begin to wait. From here on no news is missed: look at the queue once more, then sleep.

        `forget` ends it, also when this was interrupted.
        """
        with self._lock:
            self._waiters.setdefault(waiter.queue_id, []).append(waiter)
            if self._socket is None:
                self._bind()
            waiter.is_deaf = not self._has_listener()
        self._present.set()

    def _has_listener(self) -> bool:
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._listen, name="sqsqlite-wake", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def forget(self, waiter: Waiter) -> None:
        """The wait is over; once more does no harm."""
        with self._lock:
            waiters = self._waiters.get(waiter.queue_id, [])
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(waiter.queue_id, None)
            if not self._waiters:
                self._present.clear()

    def _hear(self, queue_id: int, visible_at: int) -> None:
        for waiter in list(self._waiters.get(queue_id, ())):
            if visible_at <= 0:
                waiter.receivable = True
                waiter.event.set()
            elif waiter.due_at is None or visible_at < waiter.due_at:
                waiter.due_at = visible_at
                waiter.event.set()

    def _hear_all(self) -> None:
        with self._lock:
            waiters = [waiter for some in self._waiters.values() for waiter in some]
        for waiter in waiters:
            waiter.receivable = True
            waiter.event.set()

    # --- telling

    def announce(self, wakes: dict[int, int]) -> None:
        """After a commit: news for the waiters of this process and of all others."""
        if self._waiters:
            for queue_id, visible_at in wakes.items():
                self._hear(queue_id, visible_at)
        try:
            seen = os.stat(self._folder_name).st_mtime_ns
        except OSError as error:
            refuse_handlers(error)
            return
        if seen != self._folder_seen:
            self._find_peers(seen)
        if self._peers:
            self._send(wakes)

    def _find_peers(self, seen: int) -> None:
        own = None if self._address is None else self._address.name
        try:
            names = os.listdir(self._folder)
        except OSError as error:
            refuse_handlers(error)
            return
        self._peers = [name for name in names if name.startswith("wake-") and name != own]
        # A folder changed this very moment may change again within the same tick of its clock.
        settled = time.time_ns() - seen > 50_000_000
        self._folder_seen = seen if settled else -1

    def _send(self, wakes: dict[int, int]) -> None:
        if self._sender is None:
            self._sender = _new_socket()
            if self._sender is None:
                return  # the safety net finds the commit, which stands
            self._sender.setblocking(False)
        news = list(wakes.items())[:_AT_MOST]
        datagram = b"" if len(wakes) > _AT_MOST else b"".join(_NEWS.pack(*piece) for piece in news)
        with contextlib.ExitStack() as until_sent:
            try:
                folder = until_sent.enter_context(_reachable(self._folder_name))
            except OSError:
                return  # the net below brings it
            self._send_to_peers(self._sender, datagram, folder)

    def _send_to_peers(self, sender: "socket", datagram: bytes, folder: str) -> None:
        for name in self._peers:
            try:
                sender.sendto(datagram, f"{folder}/{name}")
            except BlockingIOError:
                continue  # its buffer is full: it is about to look anyway
            except (ConnectionRefusedError, FileNotFoundError):
                # Its process is gone. The name is ours to clear away: a live one has the socket bound.
                with contextlib.suppress(OSError):
                    os.unlink(self._folder / name)
                self._folder_seen = -1
            except OSError as error:
                refuse_handlers(error)
                continue  # no permission, say: the safety net finds the commit

    # --- listening

    def _bind(self) -> None:
        name = f"wake-{os.getpid()}-{os.urandom(4).hex()}"
        listener = _new_socket()
        if listener is None:
            return  # by looks alone
        try:
            with _reachable(self._folder_name) as folder:
                listener.bind(f"{folder}/{name}")
        except OSError as error:
            listener.close()
            refuse_handlers(error)
            return
        self._socket, self._address = listener, self._folder / name
        self._folder_seen = -1
        try:
            share_socket(self._folder / name)
        except OSError as error:  # the safety net finds what other users commit
            refuse_handlers(error)

    def _unbind(self) -> None:
        with self._lock:
            if self._socket is None or (self._waiters and not self._closed):
                return
            if self._address is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self._address)
            self._socket.close()
            self._socket = self._address = None

    def _listen(self) -> None:
        versions = _Versions(self._file)
        look_at = 0.0
        while not self._closed:
            if not self._present.wait(KEEP_BOUND):
                self._unbind()
                self._present.wait()
                continue
            listener = self._socket
            if listener is None:
                time.sleep(WITHOUT_SOCKETS)
            else:
                self._receive(listener)
            # Also right after a datagram: a writer killed between its commit and its datagram must not be missed.
            if time.monotonic() >= look_at:
                if versions.have_changed():
                    self._hear_all()
                look_at = time.monotonic() + (SAFETY_NET if listener is not None else 0.0)
        self._unbind()

    def _receive(self, listener: "socket") -> None:
        listener.settimeout(SAFETY_NET)
        try:
            datagram = listener.recv(_NEWS.size * _AT_MOST)
        except (TimeoutError, OSError):
            return
        if not datagram:
            self._hear_all()
        for offset in range(0, len(datagram) - _NEWS.size + 1, _NEWS.size):
            self._hear(*_NEWS.unpack_from(datagram, offset))

    def close(self) -> None:
        """End every wait and the listening thread."""
        self._closed = True
        self._present.set()
        self._hear_all()
        if self._sender is not None:
            self._sender.close()
            self._sender = None
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2 * SAFETY_NET + 1)

    def after_fork_in_child(self) -> None:
        """The thread stayed in the parent, and so must its socket's name."""
        if self._socket is not None:
            self._socket.close()
        self.__init__(self._file)  # type: ignore[misc]


def _new_socket() -> "socket | None":
    """A Unix datagram socket; None where no descriptor is free, or the system has no such sockets."""
    try:
        import socket  # not before: most commands wake no process

        return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except (ImportError, AttributeError):
        return None
    except OSError as error:
        refuse_handlers(error)
        return None


class _Versions:
    """`PRAGMA data_version`: changes when another connection has committed."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._connection: object = None
        self._last = -1

    def have_changed(self) -> bool:
        """Whether there was a commit since the last look. It borrows a connection: a fork can close it."""
        watchers = self._file.watchers
        try:
            connection = watchers.take()
        except StoreError:
            return True  # closed, or being forked: let the waiters see for themselves
        try:
            version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        finally:
            watchers.give_back(connection)
        # Versions of two connections don't compare: to be safe, a new connection is news.
        changed = connection is not self._connection or version != self._last
        self._connection, self._last = connection, version
        return changed


@contextlib.contextmanager
def _reachable(folder: str) -> Iterator[str]:
    """The folder as it begins a socket's address, which is at most 107 bytes long: a long path by a descriptor.

    Not kept open: the folder may be removed and made anew, and the file may be closed.

    Raises:
        OSError: the folder is gone, or no descriptor is free.
    """
    if len(os.fsencode(folder)) <= LONGEST_FOLDER_BYTES:
        yield folder
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | NO_LINK)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
