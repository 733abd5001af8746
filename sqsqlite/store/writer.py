"""Which process has SQLite's locks on a file, so that `Busy` can name it."""

from pathlib import Path

from sqsqlite.store import foreign
from sqsqlite.store.interrupts import refuse_handlers
from sqsqlite.store.record_lock import holder_of

# In -shm, from SQLite's WAL-index format: the bytes from 120 on are its locks, the first of them the writer's, five
# for readers.
_WRITE_LOCK_BYTE = 120
_READ_LOCK_BYTES = (123, 5)


def writer_of(path: Path) -> str:
    """Who writes, as the end of a sentence; empty where that cannot be seen."""
    descriptors = _descriptors(path)
    pid = _writer(descriptors)
    if pid is None:
        return "; no other process has it now" if descriptors else ""
    return "; a process of another container has it" if pid == 0 else _named(pid)


def who_keeps_readers_out(path: Path) -> str:
    """The same of the readers' locks. SQLite itself never keeps all of them for long."""
    descriptors = _descriptors(path)
    pid = next((pid for each in descriptors if (pid := holder_of(each, *_READ_LOCK_BYTES)) is not None), None)
    return "" if pid is None else "; a process of another container has it" if pid == 0 else _named(pid)


def is_writer(pid: int, path: Path) -> bool:
    """Whether it is this process that has the write lock. One of another container (0) cannot be told from others."""
    return pid > 0 and _writer(_descriptors(path)) == pid


def is_stopped(pid: int) -> bool:
    """Whether the process is seen to be stopped: by SIGSTOP, Ctrl-Z or a debugger."""
    return _status(pid)[1] in ("T", "t")


def _descriptors(path: Path) -> set[int]:
    """Those that SQLite has open in this process. Opening another one would drop its locks when that is closed."""
    try:
        return foreign.descriptors(foreign.identity(Path(f"{path}-shm")))
    except OSError as error:
        refuse_handlers(error)
        return set()


def _writer(descriptors: set[int]) -> int | None:
    return next(
        (pid for each in descriptors if (pid := holder_of(each, _WRITE_LOCK_BYTE, 1)) is not None), None
    )


def _status(pid: int) -> tuple[str, str]:
    """A process's name and state; both empty where they cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # "123 (name) T ...": the name may hold anything, brackets too.
            name, _, rest = file.read().decode(errors="replace").partition("(")[2].rpartition(")")
    except OSError as error:
        refuse_handlers(error)
        return "", ""
    return name, rest.split()[0] if rest.split() else ""


def _named(pid: int) -> str:
    name, state = _status(pid)
    named = f"process {pid} ({name})" if name else f"process {pid}"
    stopped = ", which is stopped (SIGSTOP, Ctrl-Z or a debugger)" if state in ("T", "t") else ""
    return f"; {named} has it{stopped}"
