"""What lifts a read passage? Query words that stand close, a mention of its names, frequent use.

A boost is a share of the range of all scores, so that it means the same whichever fusion made them.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.core.errors import BackendDown, StoreBusy
from concord.search.blend import rareness, smoothed_idfs
from concord.search.classify import mentions
from concord.search.fuse import score_range
from concord.search.passages import READ_AT_LEAST
from concord.text.held import contains, held_words, neighbours, token_set
from concord.text.names import line_of
from concord.text.tokens import idfs, pattern
from concord.text.word_lists import significant
from concord.types import Access, Passage, Query

if TYPE_CHECKING:
    from concord.store.contract import Journal

# Shares of the range of scores. The first two were chosen on collections of questions, which they hardly
# change, and on pairs of rare words that had to be found where they stand together (`benchmarks lookup`).
NEIGHBOURS = 0.2  # for a text in which all neighbours of the query stand close
VERBATIM = 1.6  # on top of it, for one that has the whole query in its order, if all its words are rare
NAMED = 2.0  # for a chunk that defines what the query names: more than all others together
COVERAGE = 0.05  # for a text that holds all words of the query; less among code, where names say more
ENTITY = 0.1  # lifts a mention past near ties, not past a clear lead
USAGE = 0.05  # a starting point until somebody has judged a log of their own
HALF_LIFE_S = 7 * 86_400.0
HALF_TIMES = 3.0  # so many readings count half as much as infinitely many
# The share of a question all of whose significant words stand in their order: just below 1, which only
# queries without stop words reach.
SUBJECT = 0.99
MAX_PAIRS = 16  # that are looked for: more of a pasted page would take time and not improve the order
SENTENCE_WORDS = 3  # two words, one of them a stop word, stand in a text in their order by chance
MAX_WORDS = 64  # of a query that are looked for in a text: more could hardly tell two places apart
_WORD = pattern(r"[^\W_]+")


def boost(
    passages: Sequence[Passage], query: Query, journal: Journal | None = None, *, by_name: bool = False
) -> list[Passage]:
    """Return the passages, each with its closeness, in their boosted order.

    The journal knows how often documents were read, if the user wants that to count. `by_name` is for fusions
    that know ranks alone, and not what a chunk defines.
    """
    accesses = journal.accesses(list({p.document.id for p in passages})) if journal else {}
    close, worths = closeness_in(query), smoothed_idfs(query.chunks, query.frequencies)
    has_words = any(passage.ranked.candidate.lexical_rank for passage in passages)
    passages = [
        replace(p, closeness=close(p) if has_words else 0.0, coverage=_coverage(p, worths)) for p in passages
    ]
    rare = rareness(query.chunks, query.frequencies)
    # Of the first few, so that asking for more moves none; those that have an asked name are far ahead.
    few = passages[:READ_AT_LEAST]
    reach, now = score_range([p.ranked for p in few if not p.ranked.candidate.name_score]), time.time()
    prose = sum(passage.document.type != "code" for passage in few) if has_words else 0

    def boosted(passage: Passage) -> float:
        share = NEIGHBOURS * passage.closeness + (VERBATIM * rare if passage.closeness == 1 else 0.0)
        share += ENTITY if mentions(query.entities, passage.chunk.text) else 0.0
        access = accesses.get(passage.document.id)
        share += USAGE * habit(access, now) if access else 0.0
        share += COVERAGE * prose / max(1, len(few)) * passage.coverage
        share += NAMED * passage.ranked.candidate.name_score if by_name else 0.0
        return passage.ranked.score + reach * share

    scored = [replace(p, ranked=replace(p.ranked, score=boosted(p))) for p in passages]
    # Best first; ties as in `fuse.ordered`.
    return sorted(scored, key=lambda p: (-p.ranked.score, -len(p.ranked.candidate.ranks), p.chunk.id))


def _coverage(passage: Passage, worths: Mapping[str, float]) -> float:
    held = held_words(worths, passage.chunk.text)
    if len(held) < len(worths):
        held |= held_words(worths.keys() - held, passage.document.title)
    total = math.fsum(worths.values())
    return math.fsum(worths[word] for word in held) / total if total else 0.0


def closeness_in(query: Query) -> Callable[[Passage], float]:
    """Return what tells how close a query's words stand in a passage, from 0 to 1: all of it, in order."""
    weights = idfs(query.chunks, query.frequencies)
    words = [pair for pair in pairwise(query.words[: MAX_PAIRS + 1]) if pair[0] != pair[1]]
    pairs = {pair: min(weights.get(word, 0.0) for word in pair) for pair in words}
    in_order, total = tuple(pairs), sum(pairs.values()) or 1.0
    is_bare, is_question = _is_bare(query), is_sentence(query)
    asked = token_set(query.meaning)

    def close(passage: Passage) -> float:
        text, title = passage.chunk.text, passage.document.title
        # Its words need not stand close: "node is not the leader" has three others between them.
        if is_question and token_set(text).issuperset(asked) and contains(text, query.meaning):
            return 1.0
        near = neighbours(text, in_order)
        if len(near) < len(pairs):
            near += [pair for pair in neighbours(title, in_order) if pair not in near]
        if near and len(near) == len(pairs):
            return 1.0 if is_bare else SUBJECT
        return sum(pairs[pair] for pair in near) / total

    return close


def is_sentence(query: Query) -> bool:
    """Whether a query is a whole sentence of some words: no text has all of it in its order by chance."""
    return not _is_bare(query) and len(query.meaning.split()) >= SENTENCE_WORDS


def _is_bare(query: Query) -> bool:
    """Whether a query has no stop words, but for what is nothing else."""
    typed = query.meaning.split()
    return len(significant(typed)) == len(typed)


def habit(access: Access, now: float) -> float:
    """Return how habitually a document is read, from 0 to 1: how often, fading since it was last read."""
    recency = 0.5 ** (max(0.0, now - access.last_at) / HALF_LIFE_S)
    return float(recency * access.times / (access.times + HALF_TIMES))


def record_reading(document_id: str, journal: Journal) -> None:
    """Count that a document was read."""
    with suppress(StoreBusy, BackendDown):  # reading must not fail because counting does
        journal.record_access([document_id], time.time())


def line_to_show(passage: Passage, query: Query) -> int | None:
    """Return where the line begins that the snippet shows: that of the asked name, or of the whole query."""
    if passage.ranked.candidate.name_score:
        text, type = passage.chunk.text, passage.document.type
        lines = (line_of(name, type, text) for name in query.names)
        return next((line for line in lines if line is not None), None)
    if passage.closeness < 1 or not is_sentence(query):
        return None
    words = _WORD.findall(query.meaning)[:MAX_WORDS]
    form = r"[\W_]+".join(map(re.escape, words))
    match = re.search(rf"(?<![^\W_]){form}(?![^\W_])", passage.chunk.text, re.IGNORECASE)
    return match.start() if match else None
