"""Sets of words, written in the code as rows of them."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """Return the words of a text that has spaces or line breaks between them."""
    return frozenset(words.split())
