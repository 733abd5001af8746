"""Whether a server has, or had, access keys: one answer for all of its processes."""

import mmap


class Latch:
    """Set once, never back. Processes forked after it was made share it, those too that take a dead one's place.

    Args:
        is_set: whether it is from the beginning.
    """

    def __init__(self, *, is_set: bool = False) -> None:
        self._shared = mmap.mmap(-1, 1)
        if is_set:
            self.set()

    @property
    def is_set(self) -> bool:
        """Whether one of the processes has set it."""
        return self._shared[0] == 1

    def set(self) -> None:
        """From now on it is."""
        self._shared[0] = 1
