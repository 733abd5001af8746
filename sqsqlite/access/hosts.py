"""The names by which a server without keys may be asked.

Any site can let its own name lead to 127.0.0.1 (DNS rebinding). A page of that site reaches the server then as a page
of its own, and the Host header alone tells: a browser puts there the name that stands in the page's address.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

_is_loopback = re.compile(r"(?:.+\.)?localhost|127(?:\.[0-9]{1,3}){3}|::1").fullmatch
_host_of_header = re.compile(r"(\[[^]]*\]|[^:]*)(?::[0-9]*)?").fullmatch
_host_of_origin = re.compile(r"https?://(\[[^]]*\]|[^:/]*)(?::[0-9]*)?", re.IGNORECASE).fullmatch


class Hosts:
    """The names of loopback, which lead nowhere else, and those that whoever runs the server vouches for.

    Args:
        names: names and addresses, without ports.
        base_url: its host is one more; None: there is none.
    """

    def __init__(self, names: Iterable[str] = (), base_url: str | None = None) -> None:
        self._names = {_bare(name) for name in names}
        if base_url is not None:
            self._names.add(urlsplit(base_url).hostname or "")
        self._names.discard("")

    def knows(self, host: str) -> bool:
        """Whether a Host header has one of them; a request of HTTP/1.0 without one is no browser's."""
        found = _host_of_header(host)
        return not host or (found is not None and self._has(found[1]))

    def knows_origin(self, origin: str) -> bool:
        """Whether an Origin header does: `null` has none."""
        found = _host_of_origin(origin)
        return found is not None and self._has(found[1])

    def _has(self, name: str) -> bool:
        name = _bare(name)
        return _is_loopback(name) is not None or name in self._names


def leads_off_loopback(host: str) -> bool:
    """Whether a Host header has a name beside loopback's. Over plain HTTP browsers don't tell it whose page asks."""
    found = _host_of_header(host)
    return bool(host) and (found is None or _is_loopback(_bare(found[1])) is None)


def _bare(name: str) -> str:
    """As names are compared: without brackets, the root's dot and capitals."""
    return name.strip("[]").removesuffix(".").lower()
