"""Why does a passage rank there, or not at all? A query and a citation become facts and a reason.

Every strategy is asked again, far deeper than a search asks it, so that a passage which no strategy proposed
still has a rank to show. A passage goes through the stages of a search in turn: filter, excluded words,
strategies, threshold, floor, duplicates, diversity, fusion. The first that it does not pass is the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from concord.core.errors import Action, Hint
from concord.reading.locate import Located, locate
from concord.search.blend import Contribution
from concord.search.calibration import READ, Calibration, contributions
from concord.search.deadline import Deadline
from concord.search.fuse import FUSIONS, Candidates, agreement, fuse
from concord.search.judge import TABLE, Judged, best_label, head_for, row_of
from concord.search.legs import LEXICAL, Tools
from concord.search.passages import indexed, jaccard
from concord.search.pipeline import Examined, examine
from concord.search.request import options_of
from concord.search.retrieve import LEGS, Retrieved, ask
from concord.search.scores import merge
from concord.search.understand import prune_limit
from concord.text.citations import cite
from concord.text.globs import glob_matches
from concord.text.held import contains, token_set
from concord.text.json_safe import JsonObject
from concord.text.terms import written
from concord.types import (
    Answer,
    Candidate,
    Chunk,
    ChunkId,
    Degraded,
    Filter,
    Hit,
    Json,
    Leg,
    Mode,
    Query,
    QueryType,
    Request,
)

DEPTH = 1000  # how far down each strategy's list is read
Places = Mapping[ChunkId, tuple[int, float]]  # in one strategy's list: rank and score

Stage = Literal[
    "returned", "duplicate", "filter", "excluded", "votes", "threshold", "floor", "diversity", "fusion"
]


class Explanation(Struct, frozen=True):
    """Why a passage ranked where it did, or did not rank; on the wire it is the same."""

    query: str
    citation: str
    chunk_id: str
    document_id: str
    title: str
    mode: Mode
    query_type: QueryType | None
    rank: int | None  # among the results
    returned: int
    stage: Stage  # the one that decided
    why: str
    candidates: int  # how many each strategy may propose
    depth: int  # how far down the lists were read
    strategies: Sequence[JsonObject]  # where each puts the passage, or why it found nothing at all
    words: Sequence[JsonObject]  # each word and phrase of the query, and whether the passage holds it
    fused: JsonObject  # how the passage comes out of fusion, and what it has to beat
    filtered: Sequence[str]  # what the filter has against it
    excluded: Sequence[str]  # what it holds that the query excludes
    overlap: JsonObject | None  # the result that says most nearly the same
    arithmetic: Json
    degraded: Sequence[Degraded]


def explain(request: Request, reference: str, tools: Tools) -> Explanation:
    """Explain the passage that a reference stands for; of several chunks, the one that came nearest."""
    located = locate(reference, tools.store.catalog)
    examined = examine(replace(request, explain=True), tools)
    answer, query, candidates = examined.answer, examined.query, examined.candidates
    fusion = options_of(request, tools.settings).fusion
    filtered = tuple(_objections(located, query.filter))
    asked = [strategy for strategy in tools.strategies if strategy.leg in LEGS[answer.mode]]
    filter = Filter(include_superseded=True) if filtered else query.filter
    deep_query = replace(query, filter=filter, candidates=max(DEPTH, query.candidates))
    deep = ask(asked, deep_query, Deadline(tools.settings["search.deadline_ms"]))
    places = {
        ranked.strategy: {row.chunk_id: (rank, row.score) for rank, row in enumerate(ranked.found, 1)}
        for ranked in deep.lists
    }
    chunk = _nearest(located.chunks[located.first : located.last + 1], answer, places)
    citation, text = cite(located.document, chunk), indexed(chunk, located.document)
    shown = next((hit for hit in answer.hits if hit.chunk.id == chunk.id), None)
    is_candidate = any(row.chunk_id == chunk.id for row in candidates.rows)
    if not is_candidate:  # what would become of it, had it been proposed
        added = [row for row in merge(deep.lists, DEPTH) if row.chunk_id == chunk.id]
        rows = sorted([*candidates.rows, *added], key=lambda row: row.chunk_id)
        candidates = replace(candidates, rows=rows)
    order = fuse(fusion, candidates)
    scores = {row.chunk_id: row.score for row in order}
    returned = [scores[hit.chunk.id] for hit in answer.hits if hit.chunk.id in scores]
    fused: JsonObject = {
        "fusion": fusion,
        "rank": [*scores].index(chunk.id) + 1 if chunk.id in scores else None,
        "of": len(order),
        "score": scores.get(chunk.id),
        "last_score": min(returned, default=None),
        "rrf": candidates.rrf.get(chunk.id),
        "threshold": request.threshold,
        "floor": tools.settings["search.floor"],
    }
    explanation = Explanation(
        query=request.text,
        citation=citation,
        chunk_id=str(chunk.id),
        document_id=located.document.id,
        title=located.document.title,
        mode=answer.mode,
        query_type=answer.query_type,
        rank=shown.rank if shown else None,
        returned=len(answer.hits),
        stage="returned",
        why="",
        candidates=query.candidates,
        depth=DEPTH,
        strategies=[*_strategy_ranks(chunk.id, query, places, deep, tools)],
        words=[*_words(text, query, prune_limit(query.chunks, tools.settings["search.prune_share"]))],
        fused=fused,
        filtered=filtered,
        excluded=[term for term in query.excluded if contains(text, term)],
        overlap=_overlap(chunk, citation, answer.hits),
        arithmetic=shown.explanation if shown else _fused_arithmetic(chunk.id, candidates, fusion),
        degraded=answer.degraded,
    )
    stage, why = _reason(explanation, is_candidate)
    return replace(explanation, stage=stage, why=why)


def with_explanations(examined: Examined, fusion: str, calibration: Calibration) -> Examined:
    """Return an answer whose hits have the arithmetic behind them."""
    judged = {row.passage.chunk.id: row for row in examined.verdict.judged}
    hits = tuple(
        replace(hit, explanation=_arithmetic(judged[hit.chunk.id], examined, fusion, calibration))
        for hit in examined.answer.hits
    )
    return replace(examined, answer=replace(examined.answer, hits=hits))


def _arithmetic(judged: Judged, examined: Examined, fusion: str, calibration: Calibration) -> dict[str, Json]:
    passage, fits, verdict = judged.passage, row_of(judged.clues), examined.verdict
    kinds = [kind for kind in verdict.kinds if "reader" in judged.features or READ not in kind]
    head = head_for(kinds, calibration)
    heads = calibration.heads[head] if head else None
    added = contributions(heads.hit, judged.features) if heads and verdict.head else {}
    return {
        **_fused_arithmetic(passage.chunk.id, examined.candidates, fusion),
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


def _objections(located: Located, filter: Filter) -> Iterator[str]:
    document, modified_s = located.document, located.document.mtime_ns / 1e9
    objections = {
        Hint(
            Action.SYNC, "its file has been deleted, and {sync} has not been run since"
        ): located.files.is_deleted(document),
        f"it has been superseded by {document.superseded_by}": not filter.include_superseded
        and document.superseded_by is not None,
        f"its tags are {', '.join(document.tags) or 'none'}": not {*filter.tags} <= {*document.tags},
        f"its type is {document.type}": filter.type not in (None, document.type),
        f"its source is {located.source.name}": filter.source_id not in (None, document.source_id),
        f"its path does not fit {filter.path}": filter.path is not None
        and not glob_matches(filter.path, document.path),
        "its file is older than asked for": filter.since is not None and modified_s < filter.since,
        "its file is newer than asked for": filter.until is not None and modified_s > filter.until,
    }
    return (reason for reason, holds in objections.items() if holds)


def _nearest(chunks: Sequence[Chunk], answer: Answer, places: Mapping[str, Places]) -> Chunk:
    returned = {hit.chunk.id: hit.rank for hit in answer.hits}

    def nearness(chunk: Chunk) -> tuple[float, float, int]:
        best = min((found[chunk.id][0] for found in places.values() if chunk.id in found), default=math.inf)
        return returned.get(chunk.id, math.inf), best, chunk.index

    return min(chunks, key=nearness)


def _strategy_ranks(
    chunk_id: ChunkId, query: Query, places: Mapping[str, Places], deep: Retrieved, tools: Tools
) -> Iterator[JsonObject]:
    reasons = {failed.strategy: failed.reason for failed in (tools.absent, *deep.degraded) if failed}
    legs: dict[str, Leg] = {**dict.fromkeys(LEXICAL, "lexical"), "semantic": "semantic"}
    for name, leg in (legs | {strategy.name: strategy.leg for strategy in tools.strategies}).items():
        rank, score = places.get(name, {}).get(chunk_id, (None, None))
        yield {
            "strategy": name,
            "family": leg,
            "rank": rank,  # None if it is not in the part of the list that was read
            "score": score,
            "candidate": rank is not None and rank <= query.candidates,  # near enough to be proposed
            "reason": None if name in places else reasons.get(name, "not asked in this mode"),
        }


def _words(text: str, query: Query, most: float) -> Iterator[JsonObject]:
    counts = {word: query.frequencies.get(word, 0) for word in query.words}
    is_pruned = any(count <= most for count in counts.values())  # not if every word is too frequent
    for word, count in counts.items():
        pruned = is_pruned and count > most  # in too many chunks to take part in loose matching
        yield {"text": written(word), "held": contains(text, word), "chunks": count, "pruned": pruned}
    for phrase in query.phrases:
        yield {"text": f'"{phrase}"', "held": contains(text, phrase), "chunks": None, "pruned": False}


def _overlap(chunk: Chunk, citation: str, hits: Sequence[Hit]) -> JsonObject | None:
    """Return the result that stands for a chunk, or else the one that shares most words with it."""
    mine = token_set(chunk.text)
    others: list[JsonObject] = [
        {
            "rank": hit.rank,
            "citation": hit.citation,
            "similarity": jaccard(mine, token_set(hit.chunk.text)),
            "same": citation in hit.also_at,
        }
        for hit in hits
        if hit.chunk.id != chunk.id
    ]
    return max(others, key=lambda other: (other["same"], other["similarity"]), default=None)


def _reason(known: Explanation, is_candidate: bool) -> tuple[Stage, str]:
    """Return the first stage that a passage does not pass, and why in a sentence."""
    results, like = known.returned, known.overlap
    place, rrf, threshold, floor, last = (
        known.fused[name] for name in ("rank", "rrf", "threshold", "floor", "last_score")
    )
    lacking = [word["text"] for word in known.words if not word["held"]]
    lacks = f" It lacks: {', '.join(lacking)}." if lacking else ""
    if known.rank is not None:
        return "returned", f"It is result {known.rank} of {results}."
    if known.filtered:
        without = _ranks(known, "Without it")
        return "filter", f"The filter leaves it out: {'; '.join(known.filtered)}.{without}"
    if known.excluded:
        return "excluded", f"It holds what the query excludes: {', '.join(known.excluded)}."
    if not known.words:
        return "votes", "There is no word in the query to look for."
    if not is_candidate:
        where = _ranks(known, "Further down")
        return "votes", f"No strategy has it among its first {known.candidates}.{where}{lacks}"
    if rrf is not None and threshold is not None and rrf < threshold:
        return "threshold", f"Its score of {rrf:.4f} is under the threshold of {threshold:g}."
    if rrf is not None and rrf < floor:
        return "floor", f"Its score of {rrf:.4f} is under the floor of {floor:g} (search.floor)."
    if like and like["same"]:
        same = f"result {like['rank']} ({like['citation']})"
        return "duplicate", f"It says the same as {same}, which stands for both."
    if place is not None and place <= results:
        share = f"{like['similarity']:.0%} of its words with result {like['rank']}" if like else ""
        shared = f": it shares {share}" if share else ""
        why = f"Fusion put it at {place}, but its place went to passages that add more{shared}"
        return "diversity", f"{why} (search.diversity, search.per_document, names of the query, reranking)."
    beaten = f"; the last of {results} results has {last:.4f}" if last else ""
    came = f"Fusion put it at {place} of {known.fused['of']} with {known.fused['score']:.4f}"
    return "fusion", f"{came}{beaten}.{lacks}"


def _ranks(known: Explanation, before: str) -> str:
    asked = {row["strategy"]: row["rank"] for row in known.strategies if not row["reason"]}
    placed = [f"{name} ranks it {rank}" for name, rank in asked.items() if rank]
    absent = [name for name, rank in asked.items() if not rank]
    if absent:
        placed.append(f"it is not among the first {DEPTH:,} of {', '.join(absent)}")
    return f" {before}, {' and '.join(placed)}." if placed else ""
