"""Reorders the passages that were read: names, definitions and words that stand close lift them, then a
reranker has its say.

A reranker that fails, is late or returns other chunks than it was given is named in the answer, and the order
stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.asked_for import Asked, Defining, defining, describing
from concord.errors import reason_of
from concord.ranking import lift, proximity, rarity
from concord.ranking.entities import boost, mentioned
from concord.ranking.options import WRITTEN_BOOST, asked_option, writes
from concord.text.contains import contains
from concord.text.pattern import pattern
from concord.text.stopwords import significant
from concord.types import ChunkId, Degraded, Json, Query, Ranked, Survivor
from concord.worker_threads import run_within

if TYPE_CHECKING:
    from concord.answering.retrieve import Place
    from concord.protocols import Reranker

LEAST_QUESTION_WORDS = 3  # with fewer, one of which is a stop word, a text has them in their order by chance
_MAY_BE_MESSAGE = pattern(r"[\d'`<]|:\s")
POINTED_AT_BOOST = 3.0  # of the range of scores: what stands where the query points to, before all else


class Look(Struct, frozen=True):
    """The order after a second look, why the reranker has no part in it, and the scores it was given."""

    ranked: list[Ranked]
    degraded: tuple[Degraded, ...] = ()
    before: Mapping[ChunkId, float] = {}  # empty where nobody reranked
    reranker: str | None = None
    close: Mapping[ChunkId, float] = {}  # how close the query's words stand in each text
    asked: Mapping[ChunkId, Asked] = {}  # what was lifted because it is what was asked for, and by which sign
    lines: Mapping[ChunkId, int] = {}  # where in each text the line begins that it was lifted for

    def explain(self, chunk_id: ChunkId) -> Json:
        """Return what the reranker made of a chunk's score; None where nobody reranked."""
        after = next((one.score for one in self.ranked if one.chunk_id == chunk_id), None)
        before = self.before.get(chunk_id)
        return None if before is None else {"reranker": self.reranker, "before": before, "after": after}


def second_look(
    survivors: Sequence[Survivor],
    query: Query,
    reranker: Reranker | None,
    budget_ms: float,
    place: Place | None = None,
) -> Look:
    """Order the chunks whose texts have been read; the reranker may take as long as `budget_ms`.

    `place` is what stands where the query points to.
    """
    named = defining(survivors, query)
    message = _literal_parts(query.meaning)
    close = _closeness(survivors, named, query, message)
    texts = {one.ranked.chunk_id: one.chunk.text for one in survivors}
    look = _lifted(survivors, texts, close, named, query, is_message=bool(message))
    if place:
        look = _with_place_first(look, survivors, place)
    if reranker is None or not look.ranked:
        return look
    better = _reranked(look.ranked, texts, query.meaning, reranker, budget_ms)
    return replace(better, close=look.close, asked=look.asked, lines=look.lines)


def _with_place_first(look: Look, survivors: Sequence[Survivor], place: Place) -> Look:
    """Return a look in which what stands where the query points to comes before all else."""
    chunk = next((one.chunk for one in survivors if one.chunk.id == place.chunk_id), None)
    if chunk is None:
        return look
    above = 0 if place.line is None else max(0, place.line - chunk.start_line)
    line = len("".join(chunk.text.splitlines(keepends=True)[:above]))
    return replace(
        look,
        ranked=lift.lifted(look.ranked, {chunk.id: POINTED_AT_BOOST}),
        asked={**look.asked, chunk.id: "place"},
        lines={**look.lines, chunk.id: line} if above else look.lines,
    )


def _lifted(
    survivors: Sequence[Survivor],
    texts: Mapping[ChunkId, str],
    close: Mapping[ChunkId, float],
    named: Mapping[ChunkId, Defining],
    query: Query,
    *,
    is_message: bool,
) -> Look:
    """Lift what has the words of the query close together, what names and what defines what it asks for."""
    asked_for: dict[ChunkId, Asked] = dict.fromkeys(named, "definition")
    # A whole question or message is rare, however common its words are. Without a mark it may be a link's.
    is_rare = is_message or _is_question(query) and query.text.rstrip().endswith("?")
    rareness = 1.0 if is_rare else rarity.rareness(query.chunks, query.frequencies)
    lifted = lift.lifted([one.ranked for one in survivors], proximity.lifts(close, rareness))
    if query.entities:
        lifted = boost(lifted, {i for i, text in texts.items() if mentioned(query.entities, text)})
    if "." in query.meaning:
        from concord.ranking.asked_release import with_release_first  # late: few queries have a version

        lifted, under = with_release_first(lifted, survivors, query.meaning)
        asked_for |= dict.fromkeys(under, "release")
    if asked := asked_option(query):
        lifted = boost(lifted, {i for i, text in texts.items() if writes(asked.option, text)}, WRITTEN_BOOST)
        named = describing(survivors, asked)
        asked_for |= {chunk_id: "option" for chunk_id, one in named.items() if one.is_asked}
    lifted = lift.lifted(lifted, {chunk_id: one.lift for chunk_id, one in named.items()})
    lines = {chunk_id: one.line for chunk_id, one in named.items() if one.line is not None}
    return Look(lifted, close=close, asked=asked_for, lines=lines)


def _closeness(
    survivors: Sequence[Survivor], defining: Collection[ChunkId], query: Query, message: Sequence[str]
) -> dict[ChunkId, float]:
    """Return how close the words stand in each text; where only meaning was asked for, words say nothing.

    What defines the name that was asked for has all that was asked for, and so has what says all of a pasted
    message but for its values.
    """
    if not any(vote.family == "lexical" for one in survivors for vote in one.ranked.votes):
        return {}
    weights = rarity.idfs(query.chunks, query.frequencies)
    bare, is_question = _is_bare(query), _is_question(query)

    def close(text: str) -> float:
        if message and all(contains(text, part) for part in message):
            return 1.0
        share, is_whole = proximity.closeness(query.words, weights, text, bare=bare)
        is_likely = is_question and (is_whole or len(query.words) == 1)
        return 1.0 if is_likely and contains(text, query.meaning) else share

    found = {one.ranked.chunk_id: close(f"{one.document.title}\n{one.chunk.text}") for one in survivors}
    return {**found, **dict.fromkeys(defining, 1.0)}


def _literal_parts(text: str) -> tuple[str, ...]:
    """Return what a pasted message says around its values; nothing of any other query."""
    if not _MAY_BE_MESSAGE.search(text):
        return ()
    from concord.ranking.messages import literal_parts  # late: few queries are messages

    return literal_parts(text)


def _is_bare(query: Query) -> bool:
    """Whether a query has no stop words, but for what is nothing else."""
    typed = query.meaning.split()
    return len(significant(typed)) == len(typed)


def _is_question(query: Query) -> bool:
    """Whether a text with all of a query in its order has it on purpose, though words in it are common."""
    return not _is_bare(query) and len(query.meaning.split()) >= LEAST_QUESTION_WORDS


def _reranked(
    ranked: list[Ranked], texts: Mapping[ChunkId, str], query: str, reranker: Reranker, budget_ms: float
) -> Look:
    try:
        better = run_within(lambda: reranker.rerank(query, ranked, texts), budget_ms)
    except Exception as fault:  # whatever a model's runtime raises is reported in the answer
        return _left_alone(ranked, reason_of(fault))
    if better is None:
        return _left_alone(ranked, f"no answer within {budget_ms:.0f} ms")
    if not _is_order_of(better, ranked):
        return _left_alone(ranked, f"{reranker.name} returned other chunks than it was given")
    return Look(better, (), {one.chunk_id: one.score for one in ranked}, reranker.name)


def _left_alone(ranked: list[Ranked], reason: str) -> Look:
    return Look(ranked, (Degraded("rerank", reason),))


def _is_order_of(better: Sequence[Ranked], ranked: Sequence[Ranked]) -> bool:
    """Whether a reranker, which may be anybody's, gave back every chunk once, with a number for a score."""
    same = sorted(one.chunk_id for one in better) == sorted(one.chunk_id for one in ranked)
    return same and all(math.isfinite(one.score) for one in better)
