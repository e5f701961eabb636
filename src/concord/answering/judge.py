"""How far can a hit and an answer be trusted? Evidence → relevance, label, confidence.

The label says what kind of evidence there is, the calibrated probability caps it: see `ranking.agreement`
for the table and `ranking.calibrate` for what was fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from concord.answering.retrieve import Retrieval
from concord.answering.second_look import Look
from concord.answering.tools import SearchTools
from concord.ranking import calibrate, rarity
from concord.ranking.agreement import (
    Cuts,
    Evidence,
    Label,
    Rung,
    answer_label,
    answerable,
    best_label,
    cap,
    label,
)
from concord.ranking.ballots import without_copies
from concord.ranking.calibrate import Calibration
from concord.ranking.diversify import STRETCH
from concord.ranking.entities import mentioned
from concord.ranking.features import (
    HitSignals,
    SearchSignals,
    hit_signals,
    search_signals,
    with_documents,
)
from concord.ranking.fuse import Fused
from concord.ranking.plan import STRATEGIES, is_ours
from concord.ranking.unheld import discount, unheld
from concord.text.contains import contains
from concord.types import Chunk, ChunkId, Document, Match, Query, Survivor

if TYPE_CHECKING:
    from concord.storage import Store

JUDGED = calibrate.TEN  # hits that what was asked for is compared with
# Of 200 generated queries that name a line or a file 196 had first what stands there.
POINTED_AT: float = 0.9
POINTED_AT_LABEL: Label = "high"
MOST_HOLDERS = 20  # texts that are looked at for something that none of the found ones holds


class Verdict(Struct, frozen=True):
    """What is thought of one hit, and why."""

    relevance: float
    passage: float  # relevance by its own evidence, without that of better hits of its document
    label: Label
    evidence: Evidence  # that the label rests on
    signals: HitSignals
    raised_from: float | None = None  # relevance by the evidence, where a hit below it has more


class Judgement(Struct, frozen=True):
    """What is thought of an answer and of each of its hits."""

    verdicts: tuple[Verdict, ...]
    signals: SearchSignals
    label: Label
    confidence_score: float
    answerable: bool | None
    is_fitted: bool  # the scores are probabilities: somebody fitted them, and the first hit has a vector
    unheld: tuple[str, ...] = ()  # codes of the query that nothing holds


def judge(
    survivors: Sequence[Survivor],
    read: Sequence[Survivor],
    found: Retrieval,
    fused: Fused,
    look: Look,
    rung: Rung | None,
    tools: SearchTools,
) -> Judgement:
    """Judge the hits of an answer; `fused` is the whole order they come from.

    `read` are passages to look at for what nothing holds. Hits that only a rung of the cascade has found get
    that rung's label.
    """
    texts = [f"{survivor.document.title}\n{survivor.chunk.text}" for survivor in survivors]
    placed = [_with_place(one.chunk, one.document) for one in read]
    missing = unheld(placed, found.query, partial(_holders, query=found.query, store=tools.store))
    signals, hits = _evidence(survivors, texts, found, fused, look.close)
    signals = replace(signals, discount=discount(found.query, missing, found.query.chunks))
    calibration, cuts = tools.calibration, calibrate.cuts(tools.calibration)
    is_unread = found.context.model_reads < calibrate.HALF_READ
    verdicts = tuple(
        _verdict(survivor, hit, found.query, signals, calibration, rung, unread=is_unread)
        for survivor, hit in zip(survivors, hits, strict=True)
    )
    if look.asked:
        verdicts = with_lifted(verdicts, [one.ranked.chunk_id in look.asked for one in survivors], cuts)
    verdicts = tuple(
        _pointed_at(verdict) if found.place and survivor.chunk.id == found.place.chunk_id else verdict
        for survivor, verdict in zip(survivors, verdicts, strict=True)
    )
    relevances = [verdict.relevance for verdict in verdicts]
    score = calibrate.confidence_score(calibration, signals, relevances) if survivors else 0.0
    is_fitted = calibration is not None and all(hit.cosine is not None for hit in hits[:1])
    return Judgement(
        verdicts,
        signals,
        answer_label((v.label for v in verdicts), score, cuts),
        score,
        answerable(score, calibrate.cuts_for(cuts, signals)) if is_fitted else None,
        is_fitted,
        missing,
    )


def with_lifted(verdicts: tuple[Verdict, ...], are_asked: Sequence[bool], cuts: Cuts) -> tuple[Verdict, ...]:
    """Return verdicts in which what was asked for is worth no less than the best of what it was put before.

    What tells that a passage stands under a release, or defines a name, is nothing that scores were fitted
    to. Of 152 first hits that this raises (generated questions about the releases, names and options of 61
    changelogs and 69 pages of manuals) 147 are right; they had 0.52 on average, and have 0.65. As many are
    compared, however many are asked for.
    """
    kept = list(verdicts)
    for at in reversed(range(min(JUDGED, len(kept)))):
        if are_asked[at]:
            kept[at] = _raised(kept[at], kept[at + 1 : JUDGED], cuts)
    return tuple(kept)


def _raised(own: Verdict, below: Sequence[Verdict], cuts: Cuts) -> Verdict:
    """Return a verdict that is no worse than others; its label is one of theirs, or of its own evidence."""
    best = max(one.relevance for one in (own, *below))
    return replace(
        own,
        relevance=best,
        passage=max(one.passage for one in (own, *below)) if best > own.relevance else own.passage,
        label=best_label([cap(label(own.evidence), best, cuts), *(one.label for one in below)]),
        raised_from=own.relevance if best > own.relevance else None,
    )


def _pointed_at(own: Verdict) -> Verdict:
    """Return a verdict on what stands where the query points to, which no evidence tells."""
    if own.relevance >= POINTED_AT:
        return own
    return replace(
        own,
        relevance=POINTED_AT,
        passage=POINTED_AT,
        label=best_label([own.label, POINTED_AT_LABEL]),
        raised_from=own.relevance,
    )


def first_judged(judgement: Judgement, count: int) -> Judgement:
    """Return a judgement of some first hits, with what all of them say of the answer."""
    return replace(judgement, verdicts=judgement.verdicts[:count])


def _with_place(chunk: Chunk, document: Document) -> str:
    """Return a text after what tells where it stands."""
    return "\n".join((document.path, document.title, *chunk.heading, chunk.text))


def _holders(match: Match | None, query: Query, store: Store) -> list[str]:
    """Return some texts that may be found and match."""
    found = store.lexical.search(match, query.filter, MOST_HOLDERS) if match else []
    read = store.catalog.read([one.chunk_id for one in found]).values()
    return [_with_place(chunk, document) for chunk, document in read]


def signals_of(found: Retrieval, fused: Fused, *, coverage: float) -> SearchSignals:
    """Sum up a search; `coverage` is the share of the query's words, by rarity, that its first hit holds."""
    query, ballots = found.query, without_copies(found.ballots)
    return search_signals(
        ballots,
        fused.ranked,
        kind=query.kind,
        terms=len(query.words),
        unknown=rarity.unknown(query.chunks, query.frequencies),
        max_bm25=found.context.max_bm25 or 0.0,
        coverage=coverage,
        standings=[height for one, height in fused.standing.items() if one in ballots.votes],
        reads=found.context.model_reads,
        known_words=found.context.known_words,
    )


def _evidence(
    survivors: Sequence[Survivor],
    texts: Sequence[str],
    found: Retrieval,
    fused: Fused,
    close: Mapping[ChunkId, float],
) -> tuple[SearchSignals, list[HitSignals]]:
    """Sum up a search whose best were read, and each of these."""
    worths = rarity.worths(found.query.chunks, found.query.frequencies)
    covered = [_coverage(text, found.query, worths) for text in texts]
    near = [close.get(survivor.ranked.chunk_id, 0.0) for survivor in survivors]
    signals = replace(
        signals_of(found, fused, coverage=covered[0] if covered else 0.0),
        first_closeness=near[0] if near else 0.0,
        verbatim=[*close.values()][:STRETCH].count(1),  # as many, however few are asked for
    )
    hits = [
        _hit_signals(at, survivor, found, fused, coverage, closeness)
        for at, (survivor, coverage, closeness) in enumerate(zip(survivors, covered, near, strict=True), 1)
    ]
    return signals, with_documents(hits, [survivor.document.id for survivor in survivors])


def _coverage(text: str, query: Query, worths: Mapping[str, float]) -> float:
    return rarity.coverage({word for word in query.words if contains(text, word)}, worths)


def _hit_signals(
    rank: int, survivor: Survivor, found: Retrieval, fused: Fused, coverage: float, closeness: float
) -> HitSignals:
    text, query = survivor.chunk.text, found.query
    return hit_signals(
        found.ballots,
        survivor.ranked,
        rank,
        standing=fused.standing.get(survivor.ranked.chunk_id, 0.0),
        coverage=coverage,
        closeness=closeness,
        entity=bool(mentioned(query.entities, text)),
        verbatim=bool(query.phrases) and all(contains(text, phrase) for phrase in query.phrases),
    )


def _verdict(
    survivor: Survivor,
    hit: HitSignals,
    query: Query,
    search: SearchSignals,
    calibration: Calibration | None,
    rung: Rung | None,
    *,
    unread: bool,
) -> Verdict:
    found = {vote.strategy for vote in survivor.ranked.votes}
    outside = {vote.family for vote in survivor.ranked.votes if not is_ours(vote.strategy)}
    cuts = calibrate.cuts(calibration)
    evidence = Evidence(
        exact="fts_exact" in found or hit.closeness == 1,  # all of a message, or of what defines a name
        relaxed="fts_relaxed" in found or "lexical" in outside,
        semantic="semantic" in found or "semantic" in outside,
        entity=hit.entity,
        verbatim=hit.verbatim,
        cosine=hit.cosine,
        cuts=cuts,
        kind=query.kind,
        rung=None if outside or found.intersection(STRATEGIES) else rung,
        unread=unread,
    )
    relevance = calibrate.relevance(calibration, hit, search)
    passage = calibrate.relevance_alone(calibration, hit, search, relevance)
    return Verdict(relevance, passage, cap(label(evidence), relevance, cuts), evidence, hit)
