"""What a query asks for as it is written, and nothing holds: a code, a date, a version, a quotation.

What is like it (INC-4713 for INC-4712, release 3.2 for 3.3) is found and near, and is not it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from concord.ranking import rarity
from concord.ranking.identifiers import shape
from concord.text.holding import contains
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word
from concord.text.terms import loose_words
from concord.types import Query

MOSTLY = 0.4  # the share of a query, by rarity, from which what nothing holds is what was asked for

# Factors on the chances of an answer.
NOTHING_ASKED = 0.1  # where a query is stop words alone: no text is its answer
MISQUOTED = 0.3  # where nothing holds what was quoted; not measured
SLIP = 0.05  # at least, where nothing holds a code: it may be a slip for one that is like it; not measured

# What names one thing of many by its number; not a product (e2fsprogs), a compound or a list (MP3/Ogg).
_ENDS_IN_NUMBER = pattern(r"[^/<>]*[0-9][A-Za-z]{0,2}")
_NUMBERED = pattern(r"[A-Z][A-Za-z]*-[0-9]{2,}|[0-9]{4}-[0-9]{2}-[0-9]{2}")  # BUG-89, 2024-03-05
_VERSION = pattern(r"v?[0-9]+(?:\.[0-9]+)+", re.IGNORECASE)
_DIGITS = pattern("[0-9]+")
_AROUND = ".,;:!?()[]\"'"


def unheld(texts: Sequence[str], query: Query, is_held: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the codes and quotations of a query that nothing holds; `texts` are those that were found.

    A code is such as INC-4712. What may be one (BUG-89), a date or a version counts where a text has another.
    """
    sure = [name for name in query.entities if shape(name) == "sure" and _ENDS_IN_NUMBER.fullmatch(name)]
    likely = [word for word in _with_others(query.meaning, texts) if word not in sure]
    return tuple(
        asked
        for asked in (*query.phrases, *sure, *likely)
        if not any(contains(text, asked) for text in texts) and not is_held(asked)
    )


def discount(query: Query, missing: Sequence[str], chunks: int) -> float:
    """Return what chances are worth: all, but of a query that asks for nothing, or for what nothing holds."""
    if query.words and not (query.phrases or query.entities) and all(map(is_stop_word, query.words)):
        return NOTHING_ASKED
    if not {*query.phrases}.isdisjoint(missing):
        return MISQUOTED
    share = _share(missing, rarity.worths(chunks, query.frequencies), rarity.worth(chunks, 0))
    return max(SLIP, 1 - share) if share >= MOSTLY else 1.0


def _share(missing: Sequence[str], worths: Mapping[str, float], whole: float) -> float:
    """Return how much of a query, by rarity, is what nothing holds; its parts may be common, it is not."""
    parts = {part for code in missing for part in loose_words(code)}
    others = math.fsum(worth for word, worth in worths.items() if word not in parts)
    own = max(whole * len(missing), math.fsum(worth for word, worth in worths.items() if word in parts))
    return own / (own + others) if own else 0.0


def _with_others(asked: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the words of a query that name one of many, if a text has the same with another number."""
    words = [word.strip(_AROUND) for word in asked.split()]
    for before, word in dict.fromkeys(pairwise(["", *words])):
        if _NUMBERED.fullmatch(word):
            others = rf"\b{_with_any_number(word)}\b"
        elif before and _VERSION.fullmatch(word):  # after the same word, or it would be any number at all
            others = rf"\b{re.escape(before)}\W{{1,3}}{_with_any_number(word.lstrip('vV'), 'v?')}"
        else:
            continue
        if any(re.search(others, text, re.IGNORECASE) for text in texts):
            yield word


def _with_any_number(word: str, before: str = "") -> str:
    return before + _DIGITS.sub("[0-9]+", re.escape(word))
