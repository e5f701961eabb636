"""Search, top to bottom:

understand → poll → fuse → floor → read text → deleted files → entity boost → rerank → habit → diversify
→ judge → present.

Candidates carry no text: it is read once, after fusion, for the few that survive.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from concord.cascade import rescue
from concord.errors import BackendDown, BadValue
from concord.freshness import Files
from concord.judge import Judgement, Survivor, Verdict, judge
from concord.passages import UNSEEN, cited, diverse, read_present, reordered, told
from concord.poll import Poll, Polling
from concord.ranking import diversify, rarity
from concord.ranking.agreement import agreement
from concord.ranking.calibrate import Calibration
from concord.ranking.fuse import FUSIONS, Ballots, Context, ballots, blend, fuse, rrf_scores, without
from concord.ranking.plan import polled
from concord.remarks import remarked
from concord.second_look import Look, second_look
from concord.text.characters import is_latin
from concord.text.snippet import snippet
from concord.text.terms import word_match
from concord.types import (
    Answer,
    Candidate,
    ChunkId,
    Degraded,
    Glance,
    Hit,
    Json,
    Mode,
    Query,
    Ranked,
    Request,
    Source,
)
from concord.understand import chosen_mode, counted, is_literal, read

if TYPE_CHECKING:
    from concord.cosines import Cosines
    from concord.protocols import Comparison, LexicalIndex, Reranker, Similarity, Store, Strategy

FEEDBACK_HITS = 2  # that the query is drawn towards: more of them bring in what is wrong
CODE = 0.5  # share of candidates from which a search is one of source code
FUSION_OF: Mapping[Mode, str] = {"auto": "blend", "hybrid": "rrf", "semantic": "rrf", "fts5": "rrf"}


class Tools(Struct, frozen=True):
    """What a search works with."""

    store: Store
    strategies: Sequence[Strategy]
    settings: Mapping[str, Any]
    org: str
    similarity: Similarity | None = None  # of chunks that the semantic strategy did not vote for
    calibration: Calibration | None = None
    reranker: Reranker | None = None
    known: Glance | None = None  # if somebody has had one already


class Retrieval(Struct, frozen=True):
    """What the strategies found, before any of it is put in order."""

    query: Query
    votes: Poll
    ballots: Ballots
    context: Context
    cosines: Cosines | None = None


class Examined(Struct, frozen=True):
    """An answer, and the evidence that its confidence rests on."""

    answer: Answer
    judgement: Judgement


def search(request: Request, tools: Tools) -> Answer:
    """Answer one request.

    Raises:
        UsageError: the request cannot be carried out as asked.
        StoreError: the store cannot be used.
        BackendDown: words cannot be searched, so there is nothing to answer from.
    """
    return examine(request, tools).answer


def examine(request: Request, tools: Tools) -> Examined:
    """Answer one request, and keep the evidence for whoever measures or fits confidence."""
    watch = _Watch()
    mode, fusion = chosen_mode(request, tools.settings), chosen_fusion(request, tools.settings)
    known = tools.known or _asked(tools.store)
    found = retrieve(request, mode, tools, known.sources, watch)
    tools = _fitted(tools, found.votes)
    with watch.lap("cascade"):
        rescued = rescue(request, mode, fusion, found, tools)
        found = rescued.found
    with watch.lap("fuse"):
        fused = fuse(fusion, found.ballots, found.context)
        scores = rrf_scores(found.ballots, found.context.k)
        wanted = _above(fused.ranked, scores, request.threshold)
        kept = diversify.floor(wanted, rescued.floor, scores)
    with watch.lap("read"):
        files = Files(known.sources)
        survivors, left_out, deleted = read_present(kept, found.query, tools.store, files)
    with watch.lap("rerank"):
        look = _second_look(survivors, found.query, tools, _left_ms(request, tools.settings, watch))
        survivors = reordered(survivors, look.ranked)
    with watch.lap("usage"):
        survivors, habits = _by_habit(survivors, tools)
    with watch.lap("diversify"):
        survivors = diverse(survivors, found.query, tools.settings["search.diversity"])
    with watch.lap("judge"):
        given = without(found.ballots, left_out) if left_out else found.ballots
        judgement = judge(
            survivors,
            given,
            found.context,
            fuse(fusion, given, found.context) if left_out else fused,
            found.query,
            tools.calibration,
            partial(_is_held, query=found.query, lexical=tools.store.lexical),
            rescued.rung,
        )
    with watch.lap("present"):
        hits = _hits(
            survivors, judgement, found.query, scores, known.sources, tools.settings["search.snippet_width"]
        )
        hits = hits if deleted is None else _with_freshness(hits, files)
        if request.explain:
            hits = tuple(
                _explained(hit, v, judgement, found, fusion, tools, look, habits.get(hit.chunk.id))
                for hit, v in zip(hits, judgement.verdicts, strict=True)
            )
    answer = Answer(
        request=request,
        mode=mode,
        hits=hits,
        total_hits=len(fused.ranked),
        fusion=fusion,
        org=tools.org,
        generation=known.generation,
        query_kind=found.query.kind,
        confidence=judgement.label,
        confidence_score=judgement.confidence_score,
        answerable=judgement.answerable,
        calibrated=judgement.is_fitted,
        strategies_matched=tuple(
            s.name for s in tools.strategies if any(s.name in hit.found_by for hit in hits)
        ),
        degraded=(
            *found.votes.degraded,
            *(found.cosines.degraded if found.cosines else ()),
            *look.degraded,
            *([UNSEEN] if deleted is None else []),
            *_waiting(judgement, found),
        ),
        omitted={"deleted": deleted or 0, "below_threshold": len(fused.ranked) - len(wanted)},
        timings_ms={**found.votes.timings_ms, **watch.laps},
    )
    answer = remarked(answer, rescued, judgement.unheld, tools)
    return Examined(replace(answer, search_time_ms=watch.total_ms()), judgement)


def _asked(store: Store) -> Glance:
    """Return the generation before anything else is read: what it counts is in the answer."""
    return Glance(store.catalog.generation(), store.catalog.sources())


def _cosines(request: Request, tools: Tools) -> Cosines | None:
    if tools.similarity is None:
        return None
    from concord.cosines import Cosines  # late: a search by words alone asks for none

    return Cosines(tools.similarity, deadline_ms(request, tools.settings))


def retrieve(
    request: Request, mode: Mode, tools: Tools, sources: Sequence[Source], watch: _Watch | None = None
) -> Retrieval:
    """Understand a request, ask the strategies, and learn both scores of every candidate."""
    watch = watch or _Watch()
    cosines = _cosines(request, tools)
    asked = [strategy for strategy in tools.strategies if strategy.name in polled(mode)]
    with watch.lap("understand"):
        query, parsed = read(request, tools.settings, sources)
        polling = Polling(deadline_ms(request, tools.settings))
        polling.ask([one for one in asked if one.family == "semantic"], query)  # while words are counted
        query = counted(query, parsed, tools.settings, tools.store.lexical)
    at_hand = polling.ask([one for one in asked if one.family != "semantic"], query)
    if cosines:  # what words have found is needed whatever meaning finds, so it is fetched meanwhile
        cosines.foresee([one.chunk_id for some in at_hand for one in some[: query.candidates]])
    votes = polling.result()
    _need_words(votes, mode)
    with watch.lap("complete"):
        voted = [one for some in votes.votes.values() for one in some[: query.candidates]]
        compared = _compared(voted, query, cosines)
        context = _context(query, tools, _code_share(voted, tools))  # while vectors are fetched
        given = _ballots(votes, voted, compared)
        given = _with_feedback(given, context, compared)
    return Retrieval(query, votes, given, context, cosines)


def chosen_fusion(request: Request, settings: Mapping[str, Any]) -> str:
    """Return the fusion to use: what was asked for, else the mode's own."""
    fusion = request.fusion or FUSION_OF[chosen_mode(request, settings)]
    if fusion not in FUSIONS:
        raise BadValue(f"there is no fusion {fusion!r}", hint="one of: " + ", ".join(sorted(FUSIONS)))
    return fusion


def deadline_ms(request: Request, settings: Mapping[str, Any]) -> float:
    """Return how long the strategies may take together.

    Raises:
        BadValue: no time at all.
    """
    deadline: float = settings["search.deadline_ms"] if request.deadline_ms is None else request.deadline_ms
    if not deadline > 0:
        raise BadValue(f"cannot answer within {deadline:g} ms", hint="give a deadline above 0")
    return deadline


def _fitted(tools: Tools, votes: Poll) -> Tools:
    """Return the tools without what was fitted to answers that have meaning in them, where this has none."""
    is_mute = any(one.strategy == "semantic" for one in votes.degraded)
    return replace(tools, calibration=None) if is_mute else tools


def _need_words(votes: Poll, mode: Mode) -> None:
    """Refuse to answer when words cannot be searched: what meaning finds alone would pass for everything.

    And when one search for words failed and nothing was found besides: that would pass for nothing there.
    """
    broken = [d for d in votes.degraded if d.strategy.startswith("fts_")]
    if mode != "semantic" and (len(broken) == 2 or (broken and not any(votes.votes.values()))):
        raise BackendDown(
            f"the knowledge base cannot be searched by words: {broken[0].reason}",
            hint="ask again with a longer --deadline-ms; `kb stats` tells whether the store is well",
        )


def _compared(voted: Sequence[Candidate], query: Query, cosines: Cosines | None) -> Comparison | None:
    """Compare all candidates; None where nobody looked for meaning, or it found nothing."""
    if cosines is None or all(one.family != "semantic" for one in voted):
        return None
    return cosines.compare(query.meaning, voted)


def _ballots(votes: Poll, voted: Sequence[Candidate], compared: Comparison | None) -> Ballots:
    """Merge the votes, and complete them with the scores that candidates have with the other family.

    Word search knows the score of many more chunks than it votes for; of the rest the vectors are compared.
    """
    wanted = {one.chunk_id for one in voted}
    bm25: dict[ChunkId, float] = {}
    for some in votes.votes.values():
        if some and some[0].family == "lexical":
            for one in [one for one in some if one.chunk_id in wanted]:  # of a thousand, these few
                bm25[one.chunk_id] = max(one.score, bm25.get(one.chunk_id, 0.0))
    return ballots(voted, bm25=bm25, cosine=compared.cosines() if compared else {})


def _code_share(voted: Sequence[Candidate], tools: Tools) -> float:
    """Return how many of the candidates are code, where two families voted; of one it makes no difference."""
    if len({one.family for one in voted}) < 2:
        return 0.0
    stored = tools.known.types if tools.known else None
    if stored is not None and ("code" not in stored or len(stored) == 1):  # none of them, or all
        return float("code" in stored)
    types = tools.store.catalog.types_of(list({one.chunk_id for one in voted}))
    return sum(kind == "code" for kind in types.values()) / max(1, len(types))


def _context(query: Query, tools: Tools, code_share: float) -> Context:
    """Return what the fusions may know besides the votes."""
    weights = rarity.idfs(query.chunks, query.frequencies)
    reads = 1.0 if tools.calibration is None or is_latin(query.text) else tools.calibration.other_scripts
    return Context(
        query.kind,
        tools.settings["search.rrf_k"],
        max_bm25=rarity.ceiling(weights.values()),
        code_share=code_share,
        model_reads=reads,
        is_literal=is_literal(query),
    )


def _with_feedback(given: Ballots, context: Context, compared: Comparison | None) -> Ballots:
    """Draw the query towards the first hits and measure again how near every candidate is.

    Among source code the first hits are too often wrong for that to help.
    """
    if compared is None or context.code_share > CODE:
        return given
    first = [one.chunk_id for one in blend(given, context)[:FEEDBACK_HITS]]
    return replace(given, feedback=compared.cosines(first))


def _waiting(judgement: Judgement, found: Retrieval) -> list[Degraded]:
    """Say that words alone speak for some hits, because their vectors are yet to be made."""
    is_known = found.ballots.semantic and not (found.cosines and found.cosines.degraded)
    waiting = sum(verdict.features.cosine is None for verdict in judgement.verdicts) if is_known else 0
    what = "1 passage found has" if waiting == 1 else f"{waiting} passages found have"
    return [Degraded("vectors", f"{what} no vector yet: `kb sync` makes them")] if waiting else []


def _above(
    ranked: Sequence[Ranked], scores: Mapping[ChunkId, float], threshold: float | None
) -> Sequence[Ranked]:
    """Drop what is under the caller's threshold, one of reciprocal rank fusion whatever the order."""
    return ranked if threshold is None else [one for one in ranked if scores[one.chunk_id] >= threshold]


def _with_freshness(hits: tuple[Hit, ...], files: Files) -> tuple[Hit, ...]:
    documents = [hit.document for hit in hits]
    states = told(lambda: [files.freshness(one) for one in documents], files, documents)
    if states is None:
        return hits
    return tuple(replace(hit, freshness=state) for hit, state in zip(hits, states, strict=True))


def _second_look(survivors: Sequence[Survivor], query: Query, tools: Tools, budget_ms: float) -> Look:
    texts = {s.ranked.chunk_id: s.chunk.text for s in survivors}
    headings = {s.ranked.chunk_id: s.chunk.heading for s in survivors}
    return second_look([s.ranked for s in survivors], texts, headings, query, tools.reranker, budget_ms)


def _by_habit(survivors: list[Survivor], tools: Tools) -> tuple[list[Survivor], Mapping[ChunkId, Json]]:
    """Lift what is read often, where the user wants that, and tell by how much."""
    if not tools.settings["usage.enabled"]:
        return survivors, {}
    from concord.habits import by_habit

    habits = by_habit(survivors, tools.store)
    return reordered(survivors, habits.ranked), habits.reasons


def _left_ms(request: Request, settings: Mapping[str, Any], watch: _Watch) -> float:
    """Return what is left of the time that a search may take."""
    return max(0.0, deadline_ms(request, settings) - watch.total_ms())


def _is_held(code: str, query: Query, lexical: LexicalIndex) -> bool:
    """Whether anything that may be found holds a code as it stands."""
    match = word_match(code)
    return match is not None and bool(lexical.search(match, query.filter, 1))


def _hits(
    survivors: Sequence[Survivor],
    judgement: Judgement,
    query: Query,
    scores: Mapping[ChunkId, float],
    sources: Sequence[Source],
    width: int,
) -> tuple[Hit, ...]:
    by_id = {source.id: source for source in sources}
    words = [*query.terms, *(word for phrase in query.phrases for word in phrase.split())]
    return tuple(
        _hit(
            rank,
            survivor,
            verdict,
            by_id[survivor.document.source_id],
            scores,
            snippet(survivor.chunk.text, words, width),
        )
        for rank, (survivor, verdict) in enumerate(zip(survivors, judgement.verdicts, strict=True), 1)
    )


def _hit(
    rank: int,
    survivor: Survivor,
    verdict: Verdict,
    source: Source,
    scores: Mapping[ChunkId, float],
    shown: str,
) -> Hit:
    ranked = survivor.ranked
    found = agreement(ranked.votes)
    return Hit(
        chunk=survivor.chunk,
        document=survivor.document,
        source=source,
        rank=rank,
        score=verdict.relevance,
        scores={
            "rrf": scores.get(ranked.chunk_id),
            "bm25": verdict.features.bm25,
            "cosine": verdict.features.cosine,
            "fused": ranked.score,
        },
        found_by=found.found_by,
        best_rank=found.best_rank,
        agreement=found.agreement,
        confidence=verdict.label,
        snippet=shown,
        citation=cited(survivor),
        moved_from=ranked.moved_from,
        also_at=survivor.also_at,
    )


def _explained(
    hit: Hit,
    verdict: Verdict,
    judgement: Judgement,
    found: Retrieval,
    fusion: str,
    tools: Tools,
    look: Look,
    habit: Json,
) -> Hit:
    from concord.ranking import explain  # late: few searches are explained

    arithmetic: Json = explain.explain(hit.chunk.id, found.ballots, found.context, fusion)
    arithmetic["rerank"] = look.explain(hit.chunk.id)
    arithmetic["usage"] = habit
    arithmetic["relevance"] = explain.explain_relevance(tools.calibration, verdict.features, judgement.search)
    arithmetic["label"] = explain.explain_label(verdict.evidence, verdict.label)
    return replace(hit, explanation=arithmetic)


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
