"""The same question about something else: its rarest word that the answer holds becomes another."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from random import Random

from concord.quality.evaluate import ask_one
from concord.search.tools import Tools
from concord.text.held import contains
from concord.types import Query

FURTHER = 7  # from a number to the other one


def unheld(words: Iterable[str], tools: Tools) -> list[str]:
    """Return the words that no document holds."""
    wanted = list(words)
    held = tools.store.words.frequencies([word.casefold() for word in wanted])[1]
    return [word for word in wanted if not held[word.casefold()]]


def swapped(
    text: str, relevant: Collection[str], tools: Tools, words: Sequence[str], chance: Random
) -> str | None:
    """Return a question with another word; None if the answer is not found, or holds no word of it."""
    found = ask_one(text, tools)
    right = [hit.chunk.text for hit in found.answer.hits if hit.document.id in relevant]
    word = _rarest(found.query, right)
    if word is None or not words:
        return None
    new = str(int(word) + FURTHER) if word.isdecimal() else chance.choice(words)
    new = new.lower() if text.islower() else new
    return re.sub(rf"\b{re.escape(word)}\b", lambda _: new, text)


def _rarest(query: Query, texts: Sequence[str]) -> str | None:
    """Return the rarest word or number of a query that a text holds, as it was typed."""
    typed = [word for word in query.words if re.search(rf"\b{re.escape(word)}\b", query.text)]
    there = [word for word in typed if word.isalnum() and any(contains(text, word) for text in texts)]
    return min(there, key=lambda word: query.frequencies.get(word, 0), default=None)
