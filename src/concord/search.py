"""Search, top to bottom: understand → poll → fuse → floor → read text → snippets and citations → Answer.

Candidates carry no text: it is read once, after fusion, for the few that survive.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from concord.errors import BackendDown, BadValue
from concord.poll import Poll, poll
from concord.protocols import Store, Strategy
from concord.ranking.fuse import FUSIONS, Context, ballots
from concord.text.citation import cite
from concord.text.parse import contains
from concord.text.snippet import snippet
from concord.types import (
    Answer,
    Candidate,
    Chunk,
    Document,
    Family,
    Hit,
    Mode,
    Query,
    Ranked,
    Request,
    Source,
)
from concord.understand import chosen_mode, understand

FAMILIES: Mapping[Mode, tuple[Family, ...]] = {
    "auto": ("lexical", "semantic"),
    "hybrid": ("lexical", "semantic"),
    "semantic": ("semantic",),
    "fts5": ("lexical",),
}


class Tools(NamedTuple):
    """What a search works with."""

    store: Store
    strategies: Sequence[Strategy]
    settings: Mapping[str, Any]
    org: str


class Survivor(NamedTuple):
    """A ranked chunk whose text has been read."""

    ranked: Ranked
    chunk: Chunk
    document: Document


def search(request: Request, tools: Tools) -> Answer:
    """Answer one request.

    Raises:
        UsageError: the request cannot be carried out as asked.
        StoreError: the store cannot be used.
        BackendDown: words cannot be searched, so there is nothing to answer from.
    """
    watch = _Watch()
    mode = chosen_mode(request, tools.settings)
    fusion = _fusion(request)
    with watch.lap("understand"):
        sources = tools.store.catalog.sources()
        query = understand(request, tools.settings, sources, tools.store.lexical)
    votes = poll(_allowed(tools.strategies, mode), query, _deadline_ms(request, tools.settings))
    _need_words(votes, mode)
    with watch.lap("fuse"):
        ranked = FUSIONS[fusion](ballots(_all(votes)), Context(k=tools.settings["search.rrf_k"]))
        kept = _above(ranked, request.threshold, tools.settings["search.floor"])
    with watch.lap("read"):
        survivors = _without_excluded(_read(kept, query, tools.store), query)
    with watch.lap("present"):
        hits = _hits(survivors[: query.limit], query, sources, tools.settings)
    return Answer(
        request=request,
        mode=mode,
        hits=hits,
        total_hits=len(ranked),
        fusion=fusion,
        org=tools.org,
        generation=tools.store.catalog.generation(),
        strategies_matched=tuple(
            s.name for s in tools.strategies if any(s.name in hit.found_by for hit in hits)
        ),
        degraded=tuple(votes.degraded),
        omitted={"deleted": 0, "below_threshold": len(ranked) - len(kept)},
        timings_ms={**votes.timings_ms, **watch.laps},
        search_time_ms=watch.total_ms(),
    )


def _fusion(request: Request) -> str:
    fusion = request.fusion or "rrf"
    if fusion not in FUSIONS:
        raise BadValue(f"there is no fusion {fusion!r}", hint="one of: " + ", ".join(sorted(FUSIONS)))
    return fusion


def _deadline_ms(request: Request, settings: Mapping[str, Any]) -> float:
    deadline: float = settings["search.deadline_ms"] if request.deadline_ms is None else request.deadline_ms
    if not deadline > 0:
        raise BadValue(f"cannot answer within {deadline:g} ms", hint="give a deadline above 0")
    return deadline


def _allowed(strategies: Sequence[Strategy], mode: Mode) -> list[Strategy]:
    return [strategy for strategy in strategies if strategy.family in FAMILIES[mode]]


def _need_words(votes: Poll, mode: Mode) -> None:
    """Refuse to answer when a store that cannot be searched by words is why nobody voted for one."""
    broken = [d for d in votes.degraded if d.strategy.startswith("fts_")]
    if len(broken) == 2 and mode != "semantic":
        raise BackendDown(
            f"the knowledge base cannot be searched: {broken[0].reason}", hint="`kb stats` may tell why"
        )


def _all(votes: Poll) -> list[Candidate]:
    return [candidate for candidates in votes.votes.values() for candidate in candidates]


def _above(ranked: Sequence[Ranked], threshold: float | None, floor: float) -> list[Ranked]:
    """Drop what is under the caller's threshold, and under our floor unless that would drop everything."""
    wanted = [r for r in ranked if threshold is None or r.score >= threshold]
    return [r for r in wanted if r.score >= floor] or wanted


def _read(ranked: Sequence[Ranked], query: Query, store: Store) -> list[Survivor]:
    # Twice the limit, because excluded words are seen only in the text.
    few = ranked[: query.limit * 2 if query.excluded else query.limit]
    passages = store.catalog.read([r.chunk_id for r in few])
    return [Survivor(r, *passages[r.chunk_id]) for r in few if r.chunk_id in passages]


def _without_excluded(survivors: Sequence[Survivor], query: Query) -> list[Survivor]:
    """Drop passages that hold an excluded word: the vectors know nothing of NOT."""
    return [s for s in survivors if not any(contains(s.chunk.text, term) for term in query.excluded)]


def _hits(
    survivors: Sequence[Survivor], query: Query, sources: Sequence[Source], settings: Mapping[str, Any]
) -> tuple[Hit, ...]:
    by_id = {source.id: source for source in sources}
    words = [*query.terms, *(word for phrase in query.phrases for word in phrase.split())]
    return tuple(
        _hit(rank, survivor, by_id[survivor.document.source_id], words, settings["search.snippet_width"])
        for rank, survivor in enumerate(survivors, 1)
    )


def _hit(rank: int, survivor: Survivor, source: Source, words: Sequence[str], width: int) -> Hit:
    ranked, chunk, document = survivor
    found_by = tuple(dict.fromkeys(vote.strategy for vote in ranked.votes))
    bm25 = max((v.score for v in ranked.votes if v.family == "lexical"), default=None)
    cosine = max((v.score for v in ranked.votes if v.family == "semantic"), default=None)
    return Hit(
        chunk=chunk,
        document=document,
        source=source,
        rank=rank,
        score=ranked.score,
        scores={"rrf": ranked.score, "bm25": bm25, "cosine": cosine},
        found_by=found_by,
        best_rank=min(vote.rank for vote in ranked.votes),
        agreement=None,
        confidence=None,
        snippet=snippet(chunk.text, words, width),
        citation=cite(document, chunk),
        moved_from=ranked.moved_from,
    )


class _Watch:
    """Laps of one search, in milliseconds."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.laps: dict[str, float] = {}

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.laps[name] = (time.perf_counter() - started) * 1000

    def total_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000
