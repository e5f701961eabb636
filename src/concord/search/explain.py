"""Why does a passage rank there, or not at all? A query and a citation become facts and a reason.

Every strategy is asked again, far deeper than a search asks it, so that a passage which no strategy proposed
still has a rank to show. A passage goes through the stages of a search in turn: filter, excluded words,
strategies, threshold, floor, duplicates, diversity, fusion. The first that it does not pass is the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from concord.core.errors import Action, Hint
from concord.reading.locate import Located, locate
from concord.search.blend import Contribution
from concord.search.calibration import READ, Calibration, contributions
from concord.search.deadline import Deadline
from concord.search.fuse import FUSIONS, Candidates, agreement, fuse, rrf_scores
from concord.search.judge import TABLE, Judged, best_label, head_for, row_of
from concord.search.legs import STRATEGIES
from concord.search.passages import indexed, jaccard
from concord.search.pipeline import Examined, examine
from concord.search.request import options_of
from concord.search.retrieve import LEGS, Retrieved, ask
from concord.search.scores import merge
from concord.search.tools import Tools
from concord.search.understand import prune_limit
from concord.text.citations import cite
from concord.text.globs import glob_matches
from concord.text.held import contains, token_set
from concord.text.terms import written
from concord.types import (
    Answer,
    Candidate,
    Chunk,
    ChunkId,
    Document,
    Filter,
    Hit,
    Json,
    Leg,
    Mode,
    Query,
    Request,
)

DEPTH = 1000  # how far down each strategy's list is read
EVERYTHING = Filter(include_superseded=True)
SEMANTIC = STRATEGIES[-1]  # the one strategy whose scores are cosines

Stage = Literal[
    "returned", "duplicate", "filter", "excluded", "votes", "threshold", "floor", "diversity", "fusion"
]


class StrategyRank(NamedTuple):
    """Where one strategy puts the passage."""

    strategy: str
    family: Leg
    rank: int | None  # None if it is not in the part of the list that was read
    score: float | None
    is_candidate: bool  # near enough to the top to be proposed
    reason: str | None = None  # why the strategy found nothing at all


class WordFound(NamedTuple):
    """A word or phrase of the query, and whether the passage holds it."""

    text: str
    is_held: bool
    chunks: int | None  # how many chunks hold it; None for a phrase
    is_pruned: bool = False  # in too many chunks to take part in loose matching


class Placed(NamedTuple):
    """How the passage comes out of fusion, and what it has to beat."""

    rank: int | None  # None where no strategy found it
    of: int
    score: float | None
    last_score: float | None  # of the last result that was returned
    rrf: float | None  # what threshold and floor are measured on
    threshold: float | None
    floor: float


class Overlap(NamedTuple):
    """The result that says most nearly the same."""

    rank: int
    citation: str
    similarity: float  # of their words, from 0 to 1
    is_same: bool  # the result stands for both


class Explanation(Struct, frozen=True):
    """Why a passage ranked where it did, or did not rank."""

    answer: Answer  # of the search itself
    chunk: Chunk
    document: Document
    citation: str
    rank: int | None  # among the results
    is_candidate: bool
    strategies: Sequence[StrategyRank]
    words: Sequence[WordFound]
    fused: Placed
    filtered: Sequence[str]  # what the filter has against it
    excluded: Sequence[str]  # what it holds that the query excludes
    overlap: Overlap | None
    candidates: int  # how many each strategy may propose
    arithmetic: Json
    depth: int = DEPTH  # how far down the lists were read
    stage: Stage = "returned"  # the one that decided
    why: str = ""

    @property
    def results(self) -> int:
        """How many results the search returned."""
        return len(self.answer.hits)


def explain(request: Request, reference: str, tools: Tools) -> Explanation:
    """Explain the passage that a reference stands for; of several chunks, the one that came nearest.

    Raises:
        NotFound: nothing of that name is indexed.
        UsageError: the request cannot be carried out as asked.
    """
    located = locate(reference, tools.store.catalog)
    examined = examine(replace(request, explain=True), tools)
    answer, query = examined.answer, examined.query
    fusion = options_of(request, tools.settings).fusion
    meant = located.chunks[located.first : located.last + 1]
    filtered = tuple(_objections(located, query.filter))
    deep = _asked_deeply(query, EVERYTHING if filtered else query.filter, answer.mode, tools)
    chunk = _nearest(meant, answer, deep)
    ranks = tuple(_strategy_ranks(chunk, query, deep, tools))
    candidates = _as_if_found(chunk, examined.candidates, deep, ranks)
    citation = cite(located.document, chunk)
    shown = next((hit for hit in answer.hits if hit.chunk.id == chunk.id), None)
    explanation = Explanation(
        answer,
        chunk,
        located.document,
        citation,
        rank=shown.rank if shown else None,
        is_candidate=any(row.chunk_id == chunk.id for row in examined.candidates.rows),
        strategies=ranks,
        words=tuple(_words(chunk, located.document, query, tools.settings)),
        fused=_placed(chunk, candidates, fusion, answer, tools),
        filtered=filtered,
        excluded=tuple(t for t in query.excluded if contains(indexed(chunk, located.document), t)),
        overlap=_overlap(chunk, citation, answer.hits),
        candidates=query.candidates,
        arithmetic=shown.explanation if shown else _fused_arithmetic(chunk.id, candidates, fusion),
    )
    stage, why = _reason(explanation)
    return replace(explanation, stage=stage, why=why)


def with_explanations(examined: Examined, fusion: str, calibration: Calibration) -> Examined:
    """Return an answer whose hits have the arithmetic behind them."""
    judged = {row.passage.chunk.id: row for row in examined.verdict.judged}
    hits = tuple(
        replace(hit, explanation=_arithmetic(hit, judged[hit.chunk.id], examined, fusion, calibration))
        for hit in examined.answer.hits
    )
    return replace(examined, answer=replace(examined.answer, hits=hits))


def _arithmetic(
    hit: Hit, judged: Judged, examined: Examined, fusion: str, calibration: Calibration
) -> dict[str, Json]:
    passage, fits = judged.passage, row_of(judged.clues)
    verdict = examined.verdict
    has_reading = "reader" in judged.features
    kinds = [kind for kind in verdict.kinds if has_reading or READ not in kind]
    head = head_for(kinds, calibration)
    heads = calibration.heads[head] if head else None
    added = contributions(heads.hit, judged.features) if heads and verdict.head else {}
    return {
        **_fused_arithmetic(hit.chunk.id, examined.candidates, fusion),
        "closeness": passage.closeness,
        "name": passage.ranked.candidate.name_score,
        "ranked": passage.ranked.score,
        "relevance": {
            "relevance": judged.score,
            "calibrated": bool(added),
            "evidence": head,
            "intercept": heads.hit.intercept if heads and added else None,
            "features": [
                {"name": name, "value": value, "added": added.get(name)}
                for name, value in judged.features.items()
                if not added or name in added
            ],
        },
        "label": {
            "row": fits,
            "earned": TABLE[fits],
            "label": judged.label,
            "capped": best_label([judged.label, TABLE[fits]]) != judged.label,
        },
    }


def _fused_arithmetic(chunk_id: ChunkId, candidates: Candidates, fusion: str) -> dict[str, Json]:
    """Return the arithmetic of a chunk's fused score; a chunk that nobody found scores 0."""
    rows, context = candidates.rows, candidates.context
    found = next((row for row in rows if row.chunk_id == chunk_id), None)
    row = found or Candidate(chunk_id, {})
    given = FUSIONS[fusion].contributions(rows, context).get(chunk_id, Contribution(0.0, 0.0))
    weights = FUSIONS[fusion].weights(rows, context)
    return {
        "fusion": fusion,
        "kind": context.type,
        "found": found is not None,
        "strategies": [{"strategy": name, "rank": rank} for name, rank in row.ranks.items()],
        "families": {
            "lexical": {"rank": row.lexical_rank, "score": row.bm25, "added": given.lexical},
            "semantic": {"rank": row.semantic_rank, "score": row.cosine, "added": given.semantic},
        },
        "weights": asdict(weights) if weights else None,
        "factor": given.factor,
        "gain": given.gain,
        "fused": given.score,
        "agreement": agreement(row.ranks),
        "best_rank": min(row.ranks.values(), default=None),
    }


def _asked_deeply(query: Query, filter: Filter, mode: Mode, tools: Tools) -> Retrieved:
    """Ask the strategies of a mode for far more than they may propose."""
    asked = [strategy for strategy in tools.strategies if strategy.leg in LEGS[mode]]
    deep = replace(query, filter=filter, candidates=max(DEPTH, query.candidates))
    return ask(asked, deep, Deadline(tools.settings["search.deadline_ms"]))


def _objections(located: Located, filter: Filter) -> Iterator[str]:
    """Yield why a filter leaves a document out."""
    document, modified_ns = located.document, located.document.mtime_ns
    since, until = (None if moment is None else moment * 1e9 for moment in (filter.since, filter.until))
    if located.files.is_deleted(document):
        yield Hint(Action.SYNC, "its file has been deleted, and {sync} has not been run since")
    if not filter.include_superseded and document.superseded_by is not None:
        yield f"it has been superseded by {document.superseded_by}"
    if not {*filter.tags} <= {*document.tags}:
        yield f"its tags are {', '.join(document.tags) or 'none'}"
    if filter.type not in (None, document.type):
        yield f"its type is {document.type}"
    if filter.source_id not in (None, document.source_id):
        yield f"its source is {located.source.name}"
    if filter.path is not None and not glob_matches(filter.path, document.path):
        yield f"its path does not fit {filter.path}"
    if since is not None and modified_ns < since:
        yield "its file is older than asked for"
    if until is not None and modified_ns > until:
        yield "its file is newer than asked for"


def _nearest(chunks: Sequence[Chunk], answer: Answer, deep: Retrieved) -> Chunk:
    """Return the chunk that was returned first, else the one that some strategy ranks best."""
    returned = {hit.chunk.id: hit.rank for hit in answer.hits}
    best: dict[ChunkId, int] = {}
    for ranked in deep.lists:
        for rank, row in enumerate(ranked.found, 1):
            best[row.chunk_id] = min(rank, best.get(row.chunk_id, rank))
    last = DEPTH + len(returned)
    return min(
        chunks, key=lambda chunk: (returned.get(chunk.id, last), best.get(chunk.id, last), chunk.index)
    )


def _strategy_ranks(chunk: Chunk, query: Query, deep: Retrieved, tools: Tools) -> Iterator[StrategyRank]:
    """Yield where each strategy puts a chunk; one that was not asked says why."""
    reasons = {failed.strategy: failed.reason for failed in (tools.absent, *deep.degraded) if failed}
    lists = {ranked.strategy: ranked for ranked in deep.lists}
    legs: dict[str, Leg] = {name: "semantic" if name == SEMANTIC else "lexical" for name in STRATEGIES}
    for name, leg in (legs | {strategy.name: strategy.leg for strategy in tools.strategies}).items():
        if name not in lists:
            yield StrategyRank(name, leg, None, None, False, reasons.get(name, "not asked in this mode"))
            continue
        places = enumerate(lists[name].found, 1)
        rank, score = next(((at, row.score) for at, row in places if row.chunk_id == chunk.id), (None, None))
        score = _cosine(chunk, query, name, tools) if rank is None else score
        yield StrategyRank(name, leg, rank, score, rank is not None and rank <= query.candidates)


def _cosine(chunk: Chunk, query: Query, strategy: str, tools: Tools) -> float | None:
    """Return how near a chunk is that our semantic list does not reach; None for others, or no vector."""
    if strategy != SEMANTIC or tools.similarity is None:
        return None
    stored = tools.similarity.fetch([chunk.id])
    return tools.similarity.compare(query.meaning, stored).cosines().get(chunk.id)


def _as_if_found(
    chunk: Chunk, candidates: Candidates, deep: Retrieved, ranks: Sequence[StrategyRank]
) -> Candidates:
    """Return the candidates with the chunk among them, at the ranks that the strategies give it."""
    if any(row.chunk_id == chunk.id for row in candidates.rows):
        return candidates
    own = [row for row in merge(deep.lists, DEPTH) if row.chunk_id == chunk.id]
    near = next((rank.score for rank in ranks if rank.strategy == SEMANTIC), None)
    added = [replace(row, cosine=near) for row in own]
    return replace(candidates, rows=sorted([*candidates.rows, *added], key=lambda row: row.chunk_id))


def _placed(chunk: Chunk, candidates: Candidates, fusion: str, answer: Answer, tools: Tools) -> Placed:
    order = fuse(fusion, candidates)
    scores = {row.chunk_id: row.score for row in order}
    returned = [scores[hit.chunk.id] for hit in answer.hits if hit.chunk.id in scores]
    return Placed(
        rank=next((rank for rank, row in enumerate(order, 1) if row.chunk_id == chunk.id), None),
        of=len(order),
        score=scores.get(chunk.id),
        last_score=min(returned, default=None),
        rrf=rrf_scores(candidates.rows, candidates.context.k).get(chunk.id),
        threshold=answer.request.threshold,
        floor=tools.settings["search.floor"],
    )


def _words(
    chunk: Chunk, document: Document, query: Query, settings: Mapping[str, Any]
) -> Iterator[WordFound]:
    """Yield each word and phrase of the query, and whether the chunk holds it anywhere that is indexed."""
    text = indexed(chunk, document)
    most = prune_limit(query.chunks, settings["search.prune_share"])
    counts = [query.frequencies.get(word, 0) for word in query.words]
    is_pruned = any(count <= most for count in counts)  # not if every word is too frequent
    for word, count in zip(query.words, counts, strict=True):
        yield WordFound(written(word), contains(text, word), count, is_pruned and count > most)
    for phrase in query.phrases:
        yield WordFound(f'"{phrase}"', contains(text, phrase), None)


def _overlap(chunk: Chunk, citation: str, hits: Sequence[Hit]) -> Overlap | None:
    """Return the result that stands for a chunk, or else the one that shares most words with it."""
    mine = token_set(chunk.text)
    others = [
        Overlap(hit.rank, hit.citation, jaccard(mine, token_set(hit.chunk.text)), citation in hit.also_at)
        for hit in hits
        if hit.chunk.id != chunk.id
    ]
    return max(others, key=lambda other: (other.is_same, other.similarity), default=None)


def _reason(known: Explanation) -> tuple[Stage, str]:
    """Return the first stage that a passage does not pass, and why in a sentence."""
    fused, like = known.fused, known.overlap
    if known.rank is not None:
        return "returned", f"It is result {known.rank} of {known.results}."
    if known.filtered:
        without = _places(known, " Without it")
        return "filter", f"The filter leaves it out: {'; '.join(known.filtered)}.{without}"
    if known.excluded:
        return "excluded", f"It holds what the query excludes: {', '.join(known.excluded)}."
    if not known.is_candidate:
        return "votes", _not_found(known)
    if _is_under(fused.rrf, fused.threshold):
        return "threshold", f"Its score of {fused.rrf:.4f} is under the threshold of {fused.threshold:g}."
    if _is_under(fused.rrf, fused.floor):
        return "floor", f"Its score of {fused.rrf:.4f} is under the floor of {fused.floor:g} (search.floor)."
    if like and like.is_same:
        same = f"result {like.rank} ({like.citation})"
        return "duplicate", f"It says the same as {same}, which stands for both."
    if fused.rank is not None and fused.rank <= known.results:
        return "diversity", _passed_over(known)
    last = f"; the last of {known.results} results has {fused.last_score:.4f}" if fused.last_score else ""
    place = f"Fusion put it at {fused.rank} of {fused.of} with {fused.score:.4f}"
    return "fusion", f"{place}{last}.{_lacking(known)}"


def _is_under(score: float | None, least: float | None) -> bool:
    return score is not None and least is not None and score < least


def _not_found(known: Explanation) -> str:
    if not known.words:
        return "There is no word in the query to look for."
    where = _places(known, " Further down")
    return f"No strategy has it among its first {known.candidates}.{where}{_lacking(known)}"


def _passed_over(known: Explanation) -> str:
    like = known.overlap
    shared = f": it shares {like.similarity:.0%} of its words with result {like.rank}" if like else ""
    return (
        f"Fusion put it at {known.fused.rank}, but its place went to passages that add more{shared}"
        " (search.diversity, search.per_document, names of the query, reranking)."
    )


def _places(known: Explanation, before: str) -> str:
    """Return where each strategy puts it, as a sentence."""
    placed = [f"{rank.strategy} ranks it {rank.rank}" for rank in known.strategies if rank.rank]
    absent = [rank.strategy for rank in known.strategies if not rank.rank and not rank.reason]
    if absent:
        verb = "do" if len(absent) > 1 else "does"
        placed.append(f"{_listed(absent)} {verb} not find it in {known.depth:,}")
    return f"{before}, {_listed(placed)}." if placed else ""


def _lacking(known: Explanation) -> str:
    lacking = [word.text for word in known.words if not word.is_held]
    return f" It lacks: {', '.join(lacking)}." if lacking else ""


def _listed(parts: Sequence[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
