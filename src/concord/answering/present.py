"""The last stage of a search: judged passages become the hits of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from concord.answering.cascade import Rescue
from concord.answering.judge import Judgement, Verdict
from concord.answering.passages import UNSEEN, cited, unless_disk_hangs
from concord.answering.retrieval import Retrieval
from concord.answering.second_look import SecondLook
from concord.answering.tools import SearchTools
from concord.files.freshness import Files
from concord.ranking import rarity
from concord.ranking.agreement import agreement
from concord.text.headings import MARKDOWN_TYPES, heading_at
from concord.text.snippet import Excerpt, excerpt
from concord.text.symbols import symbol_at
from concord.types import Answer, Chunk, ChunkId, Degraded, Hit, Json, Source, Survivor

if TYPE_CHECKING:
    from concord.storage import Store


def hits_of(
    survivors: Sequence[Survivor],
    judgement: Judgement,
    rescued: Rescue,
    scores: Mapping[ChunkId, float],
    sources: Sequence[Source],
    tools: SearchTools,
    lines: Mapping[ChunkId, int],
) -> tuple[Hit, ...]:
    """Return the hits, best first, each with a snippet, also of what a rung looked for besides the words.

    `scores` are those of reciprocal rank fusion, whatever made the order. `lines` are the offsets of the
    lines that hits were lifted for: their snippets show these.
    """
    query, width = rescued.found.query, tools.settings["search.snippet_width"]
    by_id = {source.id: source for source in sources}
    words = [*query.terms, *(word for phrase in query.phrases for word in phrase.split()), *rescued.sought]
    worths = rarity.worths(query.chunks, query.frequencies)
    return tuple(
        _hit(
            rank,
            survivor,
            verdict,
            by_id[survivor.document.source_id],
            scores,
            excerpt(
                survivor.chunk.text,
                words,
                width,
                worths,
                is_table=_begins_table(survivor),
                has_headings=survivor.document.type in MARKDOWN_TYPES,
                line=lines.get(survivor.chunk.id),
            ),
        )
        for rank, (survivor, verdict) in enumerate(zip(survivors, judgement.verdicts, strict=True), 1)
    )


def _begins_table(survivor: Survivor) -> bool:
    """Whether a passage is the beginning of a table: there the names of its columns are."""
    is_table = survivor.document.path.lower().endswith((".csv", ".tsv"))
    return is_table and survivor.document.type == "data" and survivor.chunk.index == 0


def with_freshness(hits: tuple[Hit, ...], files: Files) -> tuple[Hit, ...]:
    """Return hits that say whether their files have changed, if the disk answers in time."""
    documents = [hit.document for hit in hits]
    states = unless_disk_hangs(lambda: [files.freshness(one) for one in documents], files, documents)
    if states is None:
        return hits
    return tuple(replace(hit, freshness=state) for hit, state in zip(hits, states, strict=True))


def with_explanations(
    hits: Sequence[Hit],
    judgement: Judgement,
    found: Retrieval,
    fusion: str,
    tools: SearchTools,
    look: SecondLook,
    usage: Mapping[ChunkId, Json],
) -> tuple[Hit, ...]:
    """Return hits that carry the arithmetic behind them."""
    from concord.ranking import explain  # late: few searches are explained

    def arithmetic(hit: Hit, verdict: Verdict) -> Json:
        return {
            **explain.explain(hit.chunk.id, found.ballots, found.context, fusion),
            "closeness": look.closeness.get(hit.chunk.id, 0.0),
            "rerank": look.explain(hit.chunk.id),
            "usage": usage.get(hit.chunk.id),
            "relevance": explain.explain_relevance(tools.calibration, verdict.signals, judgement.signals),
            "lifted": _lifted(hit, verdict, look),
            "label": explain.explain_label(verdict.evidence, verdict.label),
        }

    pairs = zip(hits, judgement.verdicts, strict=True)
    return tuple(replace(hit, explanation=arithmetic(hit, verdict)) for hit, verdict in pairs)


def _lifted(hit: Hit, verdict: Verdict, look: SecondLook) -> Json:
    """Return what a hit was lifted for and its relevance before and after; None if it was not lifted."""
    sign = look.asked_for.get(hit.chunk.id)
    return None if sign is None else {"for": sign, "from": verdict.raised_from, "to": verdict.relevance}


def with_evidence(
    answer: Answer,
    judgement: Judgement,
    rescued: Rescue,
    look: SecondLook,
    tools: SearchTools,
    *,
    is_disk_mute: bool,
) -> Answer:
    """Return an answer that tells how sure it is, who found it, and what failed or was late."""
    found = rescued.found
    return replace(
        answer,
        query_kind=found.query.kind,
        confidence=judgement.label,
        confidence_score=judgement.confidence_score,
        answerable=judgement.answerable,
        calibrated=judgement.is_fitted,
        strategies_matched=_matched(answer.hits, tools),
        degraded=(
            *found.degraded,
            *look.degraded,
            *([UNSEEN] if is_disk_mute else []),
            *_waiting_for_vectors(found, tools.store),
            *([tools.absent] if tools.absent else []),
        ),
        sought=rescued.sought,
    )


def _matched(hits: Sequence[Hit], tools: SearchTools) -> tuple[str, ...]:
    """Return who has found the hits: strategies in their own order, then rungs of the cascade."""
    found_by = {name for hit in hits for name in hit.found_by}
    known = [strategy.name for strategy in tools.strategies if strategy.name in found_by]
    return (*known, *sorted(found_by.difference(known)))


def _waiting_for_vectors(found: Retrieval, store: Store) -> list[Degraded]:
    """Say that words alone speak for what was found, because vectors are yet to be made, or were lost."""
    # A missing cosine means a missing vector only where meaning was searched and vectors could be fetched.
    has_looked = "semantic" in found.poll.votes and any(map(str.isalnum, found.query.meaning))
    is_known = has_looked and not (found.cosines and found.cosines.degraded)
    waiting = len(found.ballots.votes.keys() - found.ballots.cosine.keys()) if is_known else 0
    if not waiting:
        return []
    what = "1 passage found has" if waiting == 1 else f"{waiting} passages found have"
    counts = store.catalog.counts()
    if (pending := counts.chunks - counts.vectors) > 0:
        in_all = f" ({pending:,} of {counts.chunks:,} in all)" if pending > waiting else ""
        return [Degraded("vectors", f"{what} no vector yet{in_all}: `kb sync` makes them")]
    return [Degraded("vectors", f"{what} no vector any more: `kb doctor` says what helps")]


def _hit(
    rank: int,
    survivor: Survivor,
    verdict: Verdict,
    source: Source,
    scores: Mapping[ChunkId, float],
    shown: Excerpt,
) -> Hit:
    ranked = survivor.ranked
    found = agreement(ranked.votes)
    return Hit(
        chunk=_under_its_heading(survivor, shown.at),
        document=survivor.document,
        source=source,
        rank=rank,
        score=verdict.relevance,
        passage_score=verdict.passage,
        scores={
            "rrf": scores.get(ranked.chunk_id),
            "bm25": verdict.signals.bm25,
            "cosine": verdict.signals.cosine,
            "fused": ranked.score,
        },
        found_by=found.found_by,
        best_rank=found.best_rank,
        agreement=found.agreement,
        confidence=verdict.label,
        snippet=shown.text,
        citation=cited(survivor),
        moved_from=ranked.moved_from,
        also_at=survivor.also_at,
    )


def _under_its_heading(survivor: Survivor, at: int | None) -> Chunk:
    """Return a chunk under the heading or name that the words stand under: it may hold several."""
    chunk, type = survivor.chunk, survivor.document.type
    if at is None or type != "code" and type not in MARKDOWN_TYPES:
        return chunk
    if type == "code":
        heading = symbol_at(chunk.text, at, chunk.heading)
    else:
        heading = heading_at(chunk.text, at, chunk.heading, begins_document=not chunk.index)
    return chunk if heading == chunk.heading else replace(chunk, heading=heading)
