# SPDX-License-Identifier: Apache-2.0
"""The set of texts with a limited size."""

from sqsqlite.store.store import Hints


def test_text_is_kept_until_it_is_discarded():
    hints = Hints()
    hints.add("q")
    assert "q" in hints
    hints.discard("q")
    assert "q" not in hints


def test_no_more_than_4096_texts_are_kept():
    hints = Hints()
    texts = [str(number) for number in range(10_000)]
    for text in texts:
        hints.add(text)
    assert texts[-1] in hints
    assert sum(text in hints for text in texts) <= 4_096


def test_long_texts_are_not_kept():
    hints = Hints()
    hints.add("q" * 513)
    hints.add("q" * 512)
    assert "q" * 513 not in hints
    assert "q" * 512 in hints
