"""A quotation of a query: a text has it word for word, or as a message with other values in it."""

from __future__ import annotations

from collections.abc import Iterable

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.text.terms import tokenize

MESSAGE_WORDS = 5  # from which on what is quoted may be a message with values in it
MESSAGE_SHARE = 0.6  # of its words that a text has in their order, if it is one


def _named(found: FoundTexts) -> Iterable[str]:
    quoted = found.query.phrases
    return (phrase for phrase in quoted if not any(_is_message(phrase, text) for text in found.texts))


def _is_message(quoted: str, text: str) -> bool:
    """Whether a text has a quoted message, though perhaps with other values: most of its words, in order."""
    words = tokenize(quoted)
    if len(words) < MESSAGE_WORDS:
        return False
    held, found, at = tokenize(text), 0, 0
    for word in words:
        if word in held[at:]:
            found, at = found + 1, held.index(word, at) + 1
    return found >= MESSAGE_SHARE * len(words)


KIND = Kind(named=_named)
