"""Which of the ranked chunks say the same, and in what order do the rest say most?

Near-duplicates become one result that names the others; maximal marginal relevance (Carbonell and Goldstein
1998) then spreads what is left; the floor drops what no strategy ranked worth reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from concord.ranking.lexicon import UNSPACED_SCRIPTS
from concord.text.characters import is_near
from concord.types import ChunkId, Ranked

LAMBDA = 0.7  # seed 000 §5.1: relevance against diversity
REPETITION = (
    0.5  # less word overlap than this is sharing a subject: nDCG@10 0.4307 where it counts, 0.4353 not
)
STRETCH = 20  # how deep relevance is stretched, so that asking for more results moves none
DUPLICATE = 0.95  # word-set similarity from which two chunks are one text: a name more makes it another
FLOOR = 0.001  # seed 000 §5.2: at 0.01 a chunk that one strategy alone found (0.008) was dropped
RELAXED_FLOOR = 0.0001  # of the cascade's first rung

# All of ASCII is there: to find that a table lacks a character takes as long as to look up twenty.
_SPACED = {code: code for code in range(0x80)} | dict.fromkeys(b"!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~", ord(" "))

Words = AbstractSet[str]


class Collapsed(Struct, frozen=True):
    """A chunk that stands for others of the same text."""

    ranked: Ranked
    duplicates: tuple[ChunkId, ...]  # best first


def shingles(text: str) -> frozenset[str]:
    """Return the words of a text, case and signs aside; of scripts without spaces, pairs of characters.

    A text of signs alone is one word.
    """
    folded = text.casefold()
    return _shingles(folded) or frozenset([" ".join(folded.split())])


def says_the_same(one: Words, other: Words, asked: AbstractSet[str]) -> bool:
    """Whether what tells near-duplicates apart is no answer: neither a number nor a word asked for."""
    return not any(word in asked or any(map(str.isdigit, word)) for word in one ^ other)


def similarity(one: Words, other: Words) -> float:
    """Return the Jaccard similarity of two word sets; 0 where both are empty."""
    return _jaccard(len(one & other), one, other)


def collapse(
    ranked: Iterable[Ranked],
    words: Mapping[ChunkId, Words],
    is_same: Callable[[ChunkId, ChunkId], bool] = lambda one, other: True,
) -> list[Collapsed]:
    """Make one of chunks whose words are nearly the same; the best stays. `is_same` has the last word."""
    kept: dict[ChunkId, tuple[Ranked, list[ChunkId]]] = {}
    for one in ranked:
        new = words[one.chunk_id]
        alike = (other for other in kept if _are_near_duplicates(new, words[other]))
        same = next((other for other in alike if is_same(one.chunk_id, other)), None)
        if same is None:
            kept[one.chunk_id] = (one, [])
        else:
            kept[same][1].append(one.chunk_id)
    return [Collapsed(one, tuple(others)) for one, others in kept.values()]


def mmr(
    ranked: Sequence[Ranked],
    words: Mapping[ChunkId, Words],
    limit: int | None = None,
    trade: float = LAMBDA,
) -> list[Ranked]:
    """Pick greedily by λ·relevance − (1 − λ)·similarity to what is picked; a moved chunk says from where.

    Relevance is the score stretched to [0, 1] within the list: a fused score near 0.016 would leave λ without
    meaning, and similarity would decide alone.
    """
    relevance = _stretched([one.score for one in ranked])
    sets = [words[one.chunk_id] for one in ranked]
    nearest = [0.0] * len(ranked)
    compared = [0] * len(ranked)  # with so many of those that are picked
    remaining = sorted(range(len(ranked)), key=lambda at: -relevance[at])
    picked: list[int] = []
    while remaining and (limit is None or len(picked) < limit):
        best, most = remaining[0], -math.inf
        for at in remaining:
            if trade * relevance[at] <= most:
                break  # it could not be better even if it were like nothing, nor could those after it
            for other in picked[compared[at] :]:
                nearest[at] = max(nearest[at], _repetition(sets[other], sets[at]))
            compared[at] = len(picked)
            score = trade * relevance[at] - (1 - trade) * nearest[at]
            if score > most:  # of equals the first, which was ranked higher
                best, most = at, score
        remaining.remove(best)
        picked.append(best)
    return [_moved(ranked[was], was + 1, now) for now, was in enumerate(picked, start=1)]


def floor(
    ranked: Sequence[Ranked],
    minimum: float = FLOOR,
    scores: Mapping[ChunkId, float] | None = None,
) -> list[Ranked]:
    """Drop what scores below the floor, unless that were everything.

    The floor is on the RRF scale: where another fusion made the order, `scores` gives each chunk's RRF score.
    """
    kept = [one for one in ranked if (scores or {}).get(one.chunk_id, one.score) >= minimum]
    return kept or list(ranked)


def _shingles(folded: str) -> frozenset[str]:
    if folded.isascii():  # twice as fast as a regular expression, and most text
        return frozenset(folded.translate(_SPACED).split())
    if is_near(folded):
        return frozenset(_without_signs(folded).split())
    return frozenset(part for found in _runs().finditer(folded) for part in _parts(found))


def _without_signs(text: str) -> str:
    """Return a text with spaces for signs: a third of what a regular expression takes to find the words."""
    for character in set(text):
        if not character.isalnum() and character != "_":
            text = text.replace(character, " ")
    return text


@cache
def _runs() -> re.Pattern[str]:  # costs milliseconds to compile: ASCII text does not pay
    return re.compile(f"([{UNSPACED_SCRIPTS}]+)|[^\\W{UNSPACED_SCRIPTS}]+")


def _parts(found: re.Match[str]) -> Iterable[str]:
    run = found[0]
    if found[1] is None or len(run) < 3:
        return (run,)
    return (run[at : at + 2] for at in range(len(run) - 1))


def _repetition(one: Words, other: Words) -> float:
    """Return how similar two word sets are, where that is more than sharing a subject."""
    shared = similarity(one, other)
    return shared if shared >= REPETITION else 0.0


def _are_near_duplicates(new: Words, old: Words) -> bool:
    """Whether two word sets are nearly the same; of those that are not, a few words tell."""
    size = len(new)
    if not DUPLICATE * size <= len(old) <= size / DUPLICATE:
        return False
    needed = (size + len(old)) * DUPLICATE / (1 + DUPLICATE)  # words that both have
    bearable = size - math.floor(needed)
    missing = 0
    for word in new:
        if word not in old:
            missing += 1
            if missing > bearable:
                return False
    return _jaccard(size - missing, new, old) >= DUPLICATE


def _jaccard(shared: int, one: Words, other: Words) -> float:
    union = len(one) + len(other) - shared
    return shared / union if union else 0.0


def _stretched(scores: Sequence[float]) -> list[float]:
    low, high = min(scores[:STRETCH], default=0.0), max(scores, default=0.0)
    return [(score - low) / (high - low) if high > low else 1.0 for score in scores]


def _moved(one: Ranked, was: int, now: int) -> Ranked:
    return one if was == now else replace(one, moved_from=was)
