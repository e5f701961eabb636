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

from concord.answering.said_whole import LEAST_MESSAGE_WORDS, closeness_in, is_sentence, message_in, said_at
from concord.errors import reason_of
from concord.ranking import proximity, rarity
from concord.ranking.entities import mention_lifts
from concord.ranking.named.definitions import defining
from concord.ranking.named.entries import Entry
from concord.ranking.named.kinds import Lifted, Read, Sign, kinds_in
from concord.types import ChunkId, Degraded, Json, Query, Ranked, Survivor
from concord.worker_threads import run_within

if TYPE_CHECKING:
    from concord.answering.retrieval import Place
    from concord.protocols import Reranker

POINTED_AT_BOOST = 3.0  # of the range of scores: what stands where the query points to, before all else


class Look(Struct, frozen=True):
    """The order after a second look, why the reranker has no part in it, and the scores it was given."""

    ranked: list[Ranked]
    degraded: tuple[Degraded, ...] = ()
    before: Mapping[ChunkId, float] = {}  # empty where nobody reranked
    reranker: str | None = None
    close: Mapping[ChunkId, float] = {}  # how close the query's words stand in each text
    asked: Mapping[ChunkId, Sign] = {}  # passages that are what was asked for, and by which sign
    lines: Mapping[ChunkId, int] = {}  # where in each text stands what it was lifted for

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
    read = Read(survivors, query, defining(survivors, query))
    said = _saying_message(read)
    close = _closeness(read, said)
    lifted = _lifted(read, close, is_said=bool(said) or _is_said_in_code(read, close))
    if place:
        lifted = _with_place_first(lifted, survivors, place)
    lines = {**_said_lines(read, close), **lifted.lines}
    look = Look(lifted.ranked, close=close, asked=lifted.asked, lines=lines)
    if reranker is None or not look.ranked:
        return look
    return _reranked(look, survivors, query.meaning, reranker, budget_ms)


def _with_place_first(lifted: Lifted, survivors: Sequence[Survivor], place: Place) -> Lifted:
    """Return an order that begins with the passage that the query points to."""
    chunk = next((one.chunk for one in survivors if one.chunk.id == place.chunk_id), None)
    if chunk is None:
        return lifted
    above = 0 if place.line is None else max(0, place.line - chunk.start_line)
    line = len("".join(chunk.text.splitlines(keepends=True)[:above])) if above else None
    return lifted.by_entries({chunk.id: Entry(POINTED_AT_BOOST, line)}).marked([chunk.id], "place")


def _lifted(read: Read, close: Mapping[ChunkId, float], *, is_said: bool) -> Lifted:
    """Lift what has the words of the query close together, what mentions a name, and what was asked for."""
    query = read.query
    # A whole question or message is rare, however common its words are. Without a mark it may be a link's.
    is_rare = is_said or is_sentence(query) and query.text.rstrip().endswith("?")
    rareness = 1.0 if is_rare else rarity.rareness(query.chunks, query.frequencies)
    lifted = Lifted([one.ranked for one in read.survivors]).by(proximity.lifts(close, rareness))
    lifted = lifted.by(mention_lifts(query.entities, _texts(read.survivors)))
    for kind in kinds_in(query):
        lifted = kind.lift(lifted, read)
    return lifted


def _texts(survivors: Sequence[Survivor]) -> dict[ChunkId, str]:
    return {one.ranked.chunk_id: one.chunk.text for one in survivors}


def _closeness(read: Read, said: Collection[ChunkId]) -> dict[ChunkId, float]:
    """Return how close the query's words stand in each text, from 0 to 1; nothing where only meaning voted.

    A text that defines the name which was asked for counts as 1, and so does one that says all of a pasted
    message but for its values.
    """
    if not any(vote.family == "lexical" for one in read.survivors for vote in one.ranked.votes):
        return {}
    close = closeness_in(read.query)
    found = {one.ranked.chunk_id: close(one) for one in read.survivors}
    return {**found, **dict.fromkeys((*read.defining, *said), 1.0)}


def _saying_message(read: Read) -> set[ChunkId]:
    """Return the passages that say all of a pasted message but for its values; none for any other query."""
    is_said = message_in(read.query)
    return {i for i, text in _texts(read.survivors).items() if is_said(text)} if is_said else set()


def _said_lines(read: Read, close: Mapping[ChunkId, float]) -> dict[ChunkId, int]:
    """Return where passages say a whole sentence, which is what to show of them."""
    if not is_sentence(read.query):
        return {}
    whole = [one for one in read.survivors if close.get(one.ranked.chunk_id) == 1]
    found = {one.ranked.chunk_id: said_at(read.query, one.chunk.text) for one in whole}
    return {chunk_id: at for chunk_id, at in found.items() if at is not None}


def _is_said_in_code(read: Read, close: Mapping[ChunkId, float]) -> bool:
    """Whether source code says a whole sentence: then it is a message, or what a comment says of the code.

    Elsewhere it may be the text of a link to what was asked for.
    """
    if not is_sentence(read.query, LEAST_MESSAGE_WORDS):
        return False
    return any(one.document.type == "code" and close.get(one.ranked.chunk_id) == 1 for one in read.survivors)


def _reranked(
    look: Look, survivors: Sequence[Survivor], query: str, reranker: Reranker, budget_ms: float
) -> Look:
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


def _left_alone(look: Look, reason: str) -> Look:
    return replace(look, degraded=(Degraded("rerank", reason),))


def _is_order_of(better: Sequence[Ranked], ranked: Sequence[Ranked]) -> bool:
    """Whether a reranker, which may be anybody's, gave back every chunk once, with a number for a score."""
    same = sorted(one.chunk_id for one in better) == sorted(one.chunk_id for one in ranked)
    return same and all(math.isfinite(one.score) for one in better)
