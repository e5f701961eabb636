"""Reorders the passages that were read: first lifts (for words that stand close, names, definitions, options
…), then the reranker, if there is one.

A reranker that fails, is late or returns other chunks than it was given is named in the answer, and the order
stays as it was.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.whole_query import (
    LEAST_MESSAGE_WORDS,
    closeness_in,
    is_sentence,
    message_in,
    whole_query_at,
)
from concord.errors import reason_of
from concord.ranking import proximity, rarity
from concord.ranking.entities import mention_lifts
from concord.ranking.named.definitions import defining
from concord.ranking.named.entries import Entry
from concord.ranking.named.kinds import Lifted, ReadPassages, Sign, kinds_in
from concord.types import ChunkId, Degraded, Json, Query, Ranked, Survivor
from concord.worker_threads import run_within

if TYPE_CHECKING:
    from concord.answering.retrieval import Place
    from concord.protocols import Reranker

POINTED_AT_BOOST = 3.0  # of the range of scores: what stands where the query points to, before all else


class SecondLook(Struct, frozen=True):
    """The order after a second look, and what led to it."""

    ranked: list[Ranked]
    degraded: tuple[Degraded, ...] = ()  # why the reranker had no part in it
    before: Mapping[ChunkId, float] = {}  # scores before reranking; empty if nobody reranked
    reranker: str | None = None
    closeness: Mapping[ChunkId, float] = {}  # how close the query's words stand in each text, from 0 to 1
    asked_for: Mapping[ChunkId, Sign] = {}  # passages that are what was asked for, and by which sign
    line_starts: Mapping[ChunkId, int] = {}  # where in each text the place is that its snippet shows

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
) -> SecondLook:
    """Reorder the chunks whose texts have been read; the reranker may take as long as `budget_ms`.

    `place` is the passage that the query points to, which comes first.
    """
    read = ReadPassages(survivors, query, defining(survivors, query))
    messages = _with_message(read)
    closeness = _closeness(read, messages)
    lifted = _lifted(read, closeness, is_message=bool(messages) or _is_in_code(read, closeness))
    if place:
        lifted = _with_place_first(lifted, survivors, place)
    line_starts = {**_sentence_starts(read, closeness), **lifted.line_starts}
    look = SecondLook(lifted.ranked, closeness=closeness, asked_for=lifted.asked_for, line_starts=line_starts)
    if reranker is None or not look.ranked:
        return look
    return _reranked(look, survivors, query.meaning, reranker, budget_ms)


def _with_place_first(lifted: Lifted, survivors: Sequence[Survivor], place: Place) -> Lifted:
    """Put the passage that the query points to first."""
    chunk = next((one.chunk for one in survivors if one.chunk.id == place.chunk_id), None)
    if chunk is None:
        return lifted
    above = 0 if place.line is None else max(0, place.line - chunk.start_line)
    line = len("".join(chunk.text.splitlines(keepends=True)[:above])) if above else None
    return lifted.by_entries({chunk.id: Entry(POINTED_AT_BOOST, line)}).marked([chunk.id], "place")


def _lifted(read: ReadPassages, closeness: Mapping[ChunkId, float], *, is_message: bool) -> Lifted:
    """Lift passages that have the query's words close together, mention its names, or are asked for."""
    query = read.query
    # A whole question or pasted message is rare, however common its words are. Without a question mark it
    # may be the text of a link.
    is_rare = is_message or is_sentence(query) and query.text.rstrip().endswith("?")
    rareness = 1.0 if is_rare else rarity.rareness(query.chunks, query.frequencies)
    lifted = Lifted([one.ranked for one in read.survivors]).by(proximity.lifts(closeness, rareness))
    lifted = lifted.by(mention_lifts(query.entities, _texts(read.survivors)))
    for kind in kinds_in(query):
        lifted = kind.lift(lifted, read)
    return lifted


def _texts(survivors: Sequence[Survivor]) -> dict[ChunkId, str]:
    return {one.ranked.chunk_id: one.chunk.text for one in survivors}


def _closeness(read: ReadPassages, messages: Collection[ChunkId]) -> dict[ChunkId, float]:
    """Return how close the query's words stand in each text, from 0 to 1; empty if no words were found.

    It is 1 for a text that defines the name which was asked for, and for those with the pasted message.
    """
    if not any(vote.family == "lexical" for one in read.survivors for vote in one.ranked.votes):
        return {}
    close = closeness_in(read.query)
    found = {one.ranked.chunk_id: close(one) for one in read.survivors}
    return {**found, **dict.fromkeys((*read.defining, *messages), 1.0)}


def _with_message(read: ReadPassages) -> set[ChunkId]:
    """Return the passages that hold a pasted message, values aside; none if the query is no such message."""
    holds = message_in(read.query)
    return {i for i, text in _texts(read.survivors).items() if holds(text)} if holds else set()


def _sentence_starts(read: ReadPassages, closeness: Mapping[ChunkId, float]) -> dict[ChunkId, int]:
    """Return where passages hold the whole query, if it is a sentence: their snippets show that place."""
    if not is_sentence(read.query):
        return {}
    whole = [one for one in read.survivors if closeness.get(one.ranked.chunk_id) == 1]
    found = {one.ranked.chunk_id: whole_query_at(read.query, one.chunk.text) for one in whole}
    return {chunk_id: at for chunk_id, at in found.items() if at is not None}


def _is_in_code(read: ReadPassages, closeness: Mapping[ChunkId, float]) -> bool:
    """Whether source code holds the whole query, a sentence: then it is a message or a comment.

    Elsewhere it may be the text of a link to what was asked for.
    """
    if not is_sentence(read.query, LEAST_MESSAGE_WORDS):
        return False
    in_code = (one for one in read.survivors if one.document.type == "code")
    return any(closeness.get(one.ranked.chunk_id) == 1 for one in in_code)


def _reranked(
    look: SecondLook, survivors: Sequence[Survivor], query: str, reranker: Reranker, budget_ms: float
) -> SecondLook:
    ranked, texts = look.ranked, _texts(survivors)
    try:
        better = run_within(lambda: reranker.rerank(query, ranked, texts), budget_ms)
    except Exception as fault:  # whatever a model's runtime raises is reported in the answer
        return _left_alone(look, reason_of(fault))
    if better is None:
        return _left_alone(look, f"no answer within {budget_ms:.0f} ms")
    if not _is_order_of(better, ranked):
        return _left_alone(look, f"{reranker.name} returned other chunks than it was given")
    before = {one.chunk_id: one.score for one in ranked}
    return replace(look, ranked=better, before=before, reranker=reranker.name)


def _left_alone(look: SecondLook, reason: str) -> SecondLook:
    return replace(look, degraded=(Degraded("rerank", reason),))


def _is_order_of(better: Sequence[Ranked], ranked: Sequence[Ranked]) -> bool:
    """Whether a reranker, which may be anybody's, gave back every chunk once, with a number for a score."""
    same = sorted(one.chunk_id for one in better) == sorted(one.chunk_id for one in ranked)
    return same and all(math.isfinite(one.score) for one in better)
