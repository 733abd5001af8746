"""Which process has SQLite's write lock on a file, so that `Busy` can name it."""

from pathlib import Path

from sqsqlite.store import foreign
from sqsqlite.store.record_lock import holder_of

# In -shm, from SQLite's WAL-index format: the bytes from 120 on are its locks, the first of them the writer's.
_WRITE_LOCK_BYTE = 120


def writer_of(path: Path) -> str:
    """Who writes, as the end of a sentence; empty where that cannot be seen.

    Asked on descriptors that SQLite has open in this process: opening one would drop its locks when it is closed.
    """
    try:
        descriptors = foreign.descriptors(foreign.identity(Path(f"{path}-shm")))
    except OSError:
        return ""
    for descriptor in descriptors:
        pid = holder_of(descriptor, _WRITE_LOCK_BYTE, 1)
        if pid is not None:
            return "; a process of another container has it" if pid == 0 else _named(pid)
    return "; no other process has it now" if descriptors else ""


def _named(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # "123 (name) T ...": the name may hold anything, brackets too.
            name, _, rest = file.read().decode(errors="replace").partition("(")[2].rpartition(")")
    except OSError:
        return f"; process {pid} has it"
    state = rest.split()[0] if rest.split() else ""
    stopped = ", which is stopped (SIGSTOP, Ctrl-Z or a debugger)" if state in ("T", "t") else ""
    return f"; process {pid} ({name}) has it{stopped}"
