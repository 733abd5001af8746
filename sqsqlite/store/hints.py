"""What is worth knowing and not needed: a set of texts that forgets rather than grows."""

_COUNT = 4_096
_CHARACTERS = 512


class Hints:
    """Texts that were added lately, up to 4,096 of up to 512 characters. For any number of threads."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def add(self, text: str) -> None:
        """Remember a text, unless it is long; where there are too many, all others are forgotten."""
        if len(text) > _CHARACTERS or text in self._texts:
            return
        if len(self._texts) >= _COUNT:
            self._texts.clear()
        self._texts.add(text)

    def discard(self, text: str) -> None:
        """Forget a text."""
        self._texts.discard(text)
