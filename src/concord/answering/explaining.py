"""Why did a passage rank where it did, or not at all? A query and a citation become facts and a reason.

Every strategy is asked again, far deeper than a search asks it, so that a passage which no strategy voted for
still has a rank to show. `reasons` draws the conclusion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.deadline import Deadline
from concord.answering.passages import indexed
from concord.answering.poll import Poll, poll
from concord.answering.reasons import Known, Overlap, Placed, Stage, StrategyRank, WordFound, reason
from concord.answering.request_checks import search_options
from concord.answering.retrieval import Retrieval
from concord.answering.tools import SearchTools
from concord.answering.understand import prune_limit
from concord.ranking import duplicates, explain
from concord.ranking.ballots import Ballots, with_votes
from concord.ranking.fuse import FUSIONS, rrf
from concord.ranking.plan import STRATEGIES, polled
from concord.reading import Located, locate
from concord.search import examine
from concord.text.citation import cite
from concord.text.contains import contains
from concord.text.parse import parse
from concord.text.terms import phrase_match, written
from concord.types import (
    Answer,
    Chunk,
    ChunkId,
    Document,
    Family,
    Filter,
    Hit,
    Json,
    Mode,
    Query,
    Request,
)

DEEP = 1000  # how far down each strategy's list is read
PROBE_WORDS = 12  # of a passage, to ask the engine whether a filter lets just this passage through
EVERYTHING = Filter(include_superseded=True)
SEMANTIC = STRATEGIES[-1]  # the one strategy whose scores are cosines


class Explanation(Struct, frozen=True):
    """Why a passage ranked where it did, or did not rank."""

    answer: Answer  # of the search itself
    chunk: Chunk
    document: Document
    citation: str
    stage: Stage  # the one that decided
    why: str
    known: Known
    arithmetic: Json


def explain_passage(request: Request, reference: str, tools: SearchTools) -> Explanation:
    """Explain the passage that a reference stands for; of several chunks, the one that came nearest.

    Raises:
        NotFound: nothing of that name is indexed.
        UsageError: the request cannot be carried out as asked.
    """
    located = locate(reference, tools.store.catalog)
    examined = examine(replace(request, explain=True), tools)
    answer, found = examined.answer, examined.retrieved
    fusion = search_options(request, tools.settings).fusion
    meant = located.chunks[located.first : located.last + 1]
    filtered = tuple(_objections(meant[0], located, found.query.filter, tools))
    deep = _asked_deeply(found.query, EVERYTHING if filtered else found.query.filter, answer.mode, tools)
    chunk = _nearest(meant, answer, deep)
    strategy_ranks = tuple(_strategy_ranks(chunk, found.query, deep, tools))
    ballots = _as_if_voted(chunk, found.ballots, deep, strategy_ranks)
    placed = _placed(chunk, ballots, found, fusion, answer, tools)
    known = _known(chunk, located.document, found, answer, strategy_ranks, placed, filtered, tools)
    stage, why = reason(known)
    shown = next((hit.explanation for hit in answer.hits if hit.chunk.id == chunk.id), None)
    return Explanation(
        answer=answer,
        chunk=chunk,
        document=located.document,
        citation=cite(located.document, chunk),
        stage=stage,
        why=why,
        known=known,
        arithmetic=shown or explain.explain(chunk.id, ballots, found.context, fusion),
    )


def _known(
    chunk: Chunk,
    document: Document,
    found: Retrieval,
    answer: Answer,
    strategy_ranks: Sequence[StrategyRank],
    placed: Placed,
    filtered: Sequence[str],
    tools: SearchTools,
) -> Known:
    return Known(
        rank=next((hit.rank for hit in answer.hits if hit.chunk.id == chunk.id), None),
        results=len(answer.hits),
        candidates=found.query.candidates,
        depth=DEEP,
        is_candidate=chunk.id in found.ballots.votes,
        strategy_ranks=strategy_ranks,
        words=tuple(_words(chunk, document, found.query, tools.settings)),
        fused=placed,
        filtered=filtered,
        excluded=tuple(term for term in found.query.excluded if contains(indexed(chunk, document), term)),
        overlap=_overlap(chunk, cite(document, chunk), answer.hits),
    )


def _asked_deeply(query: Query, filter: Filter, mode: Mode, tools: SearchTools) -> Poll:
    """Ask the strategies of a mode for far more than they may vote for."""
    asked = [strategy for strategy in tools.strategies if strategy.family in polled(mode)]
    deep = replace(query, filter=filter, candidates=max(DEEP, query.candidates))
    return poll(asked, deep, Deadline(tools.settings["search.deadline_ms"]))


def _objections(chunk: Chunk, located: Located, filter: Filter, tools: SearchTools) -> Iterator[str]:
    """Yield why a filter leaves a document out: each of its conditions is tried alone."""
    words = " ".join(chunk.text.split()[:PROBE_WORDS])
    probe = phrase_match(words)

    def passes(condition: Filter) -> bool:
        found = tools.store.lexical.search(probe, condition, DEEP) if probe else ()
        return any(scored.chunk_id == chunk.id for scored in found)

    if not passes(EVERYTHING):  # a text without words, or one that thousands share: nothing can be said
        return
    document = located.document
    if located.files.is_deleted(document):
        yield "its file has been deleted, and `kb sync` has not been run since"
    if not filter.include_superseded and not passes(Filter()):
        yield f"it has been superseded by {document.superseded_by}"
    against = {
        "tags": f"its tags are {', '.join(document.tags) or 'none'}",
        "type": f"its type is {document.type}",
        "source_id": f"its source is {located.source.name}",
        "path": f"its path does not fit {filter.path}",
        "since": "its file is older than asked for",
        "until": "its file is newer than asked for",
    }
    for field, sentence in against.items():
        value = getattr(filter, field)
        if value and not passes(replace(EVERYTHING, **{field: value})):
            yield sentence


def _nearest(chunks: Sequence[Chunk], answer: Answer, deep: Poll) -> Chunk:
    """Return the chunk that was returned first, else the one that some strategy ranks best."""
    returned = {hit.chunk.id: hit.rank for hit in answer.hits}
    ranks = _ranks(deep)
    last = DEEP + len(returned)
    return min(
        chunks, key=lambda chunk: (returned.get(chunk.id, last), ranks.get(chunk.id, last), chunk.index)
    )


def _ranks(deep: Poll) -> dict[ChunkId, int]:
    best: dict[ChunkId, int] = {}
    for vote in (vote for votes in deep.votes.values() for vote in votes):
        best[vote.chunk_id] = min(vote.rank, best.get(vote.chunk_id, vote.rank))
    return best


def _strategy_ranks(chunk: Chunk, query: Query, deep: Poll, tools: SearchTools) -> Iterator[StrategyRank]:
    """Yield where each strategy puts a chunk; one that was not asked says why."""
    reasons = {one.strategy: one.reason for one in (tools.absent, *deep.degraded) if one}
    for name, family in _families(tools).items():
        if name not in deep.votes:
            yield StrategyRank(name, family, None, None, False, reasons.get(name, "not asked in this mode"))
            continue
        vote = next((one for one in deep.votes[name] if one.chunk_id == chunk.id), None)
        rank, score = (vote.rank, vote.score) if vote else (None, _cosine(chunk, query, name, tools))
        yield StrategyRank(name, family, rank, score, rank is not None and rank <= query.candidates)


def _families(tools: SearchTools) -> dict[str, Family]:
    """Return each strategy's family: first ours, whether they can vote or not, then installed packages'."""
    ours: dict[str, Family] = {name: "semantic" if name == SEMANTIC else "lexical" for name in STRATEGIES}
    return ours | {strategy.name: strategy.family for strategy in tools.strategies}


def _cosine(chunk: Chunk, query: Query, strategy: str, tools: SearchTools) -> float | None:
    """Return how near a chunk is that our semantic list does not reach; None for others, or no vector."""
    if strategy != SEMANTIC or tools.similarity is None:
        return None
    stored = tools.similarity.fetch([chunk.id])
    return tools.similarity.compare(query.meaning, stored).cosines().get(chunk.id)


def _as_if_voted(
    chunk: Chunk, ballots: Ballots, deep: Poll, strategy_ranks: Sequence[StrategyRank]
) -> Ballots:
    """Return the ballots as if the strategies had voted for the chunk, each with the rank it gives it."""
    voted = [vote for votes in deep.votes.values() for vote in votes if vote.chunk_id == chunk.id]
    if chunk.id in ballots.votes or not voted:
        return ballots
    near = next((one.score for one in strategy_ranks if one.strategy == SEMANTIC), None)
    cosine = {} if near is None else {chunk.id: near}
    return with_votes(ballots, voted, cosine=cosine)


def _placed(
    chunk: Chunk, ballots: Ballots, found: Retrieval, fusion: str, answer: Answer, tools: SearchTools
) -> Placed:
    order = FUSIONS[fusion](ballots, found.context)
    scores = {one.chunk_id: one.score for one in order}
    returned = [scores[hit.chunk.id] for hit in answer.hits if hit.chunk.id in scores]
    ranks = {one.chunk_id: rank for rank, one in enumerate(order, 1)}
    return Placed(
        rank=ranks.get(chunk.id),
        of=len(order),
        score=scores.get(chunk.id),
        last_score=min(returned, default=None),
        rrf=next((one.score for one in rrf(ballots, found.context.k) if one.chunk_id == chunk.id), None),
        threshold=answer.request.threshold,
        floor=tools.settings["search.floor"],
    )


def _words(
    chunk: Chunk, document: Document, query: Query, settings: Mapping[str, Any]
) -> Iterator[WordFound]:
    """Yield each word and phrase of the query, and whether the chunk holds it anywhere that is indexed."""
    text = indexed(chunk, document)
    is_pruned = query.loose != parse(query.text, query.options).loose  # not if every word is too frequent
    most = prune_limit(query.chunks, settings)
    for word in query.words:
        chunks = query.frequencies.get(word, 0)
        yield WordFound(written(word), contains(text, word), chunks, is_pruned and chunks > most)
    for phrase in query.phrases:
        yield WordFound(f'"{phrase}"', contains(text, phrase), None)


def _overlap(chunk: Chunk, citation: str, hits: Sequence[Hit]) -> Overlap | None:
    """Return the result that stands for a chunk, or else the one that shares most words with it."""
    texts = {chunk.id: chunk.text, **{hit.chunk.id: hit.chunk.text for hit in hits}}
    words = {i: duplicates.word_set(text) for i, text in texts.items()}
    mine = words[chunk.id]
    others = [
        Overlap(
            hit.rank, hit.citation, duplicates.similarity(mine, words[hit.chunk.id]), citation in hit.also_at
        )
        for hit in hits
        if hit.chunk.id != chunk.id
    ]
    return max(others, key=lambda one: (one.is_same, one.similarity), default=None)
