"""Open files: each connection is one, and the queues' file needs some, or SQLite can't open what it needs."""

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

# For the file, its WAL and locks by every thread's connection, the log, and what the program has open besides.
_OTHERS = 256


def room_for(connections: int) -> int:
    """How many of so many connections the system leaves room for, once this process's limit is as high as it may be."""
    if resource is None:
        return connections
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHERS
    if soft == resource.RLIM_INFINITY:
        return connections
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(connections, max(1, soft - _OTHERS))
