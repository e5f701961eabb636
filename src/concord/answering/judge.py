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

from concord.answering.retrieval import Retrieval
from concord.answering.second_look import SecondLook
from concord.answering.tools import SearchTools
from concord.ranking import calibrate, rarity
from concord.ranking.absent_names import absent_names
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
from concord.ranking.missing import discount, missing_things
from concord.ranking.named.kinds import FoundTexts, Sign
from concord.ranking.plan import DEFINITION, STRATEGIES, is_ours
from concord.text.contains import contains
from concord.types import Chunk, ChunkId, Document, Match, Query, Survivor

if TYPE_CHECKING:
    from concord.storage import Store

JUDGED = calibrate.TEN  # hits that what was asked for is compared with
# Of 200 generated queries that name a line or a file 196 had first what stands there.
POINTED_AT: float = 0.9  # relevance of the passage that a query points to
POINTED_AT_LABEL: Label = "high"
FIRST_SHARE = 0.25  # of the chance of an answer that is called answerable: what its first hit has at least
MOST_HOLDERS = 20  # further texts of the store in which a thing that the query names is looked for


class Verdict(Struct, frozen=True):
    """How relevant one hit is, and the evidence for that."""

    relevance: float
    passage: float  # relevance by its own evidence, without that of better hits of its document
    label: Label
    evidence: Evidence  # that the label rests on
    signals: HitSignals
    raised_from: float | None = None  # relevance by the evidence alone, where it was raised


class Judgement(Struct, frozen=True):
    """How sure the answer is, and the verdict on each of its hits."""

    verdicts: tuple[Verdict, ...]
    signals: SearchSignals
    label: Label
    confidence_score: float
    answerable: bool | None
    is_fitted: bool  # the scores are probabilities: somebody fitted them, and the first hit has a vector
    missing: tuple[str, ...] = ()  # what the query names and no text holds


def judge(
    survivors: Sequence[Survivor],
    read: Sequence[Survivor],
    found: Retrieval,
    fused: Fused,
    look: SecondLook,
    rung: Rung | None,
    tools: SearchTools,
) -> Judgement:
    """Judge the hits of an answer; `fused` is the whole order they come from.

    `read` are the passages in which the things that the query names are looked for. Hits that only a rung of
    the cascade has found get that rung's label.
    """
    texts = [_with_place(one.chunk, one.document) for one in read]
    missing = _missing(texts, found.query, tools.store)
    signals, hits = _evidence(survivors, found, fused, look.closeness)
    names = _absent_names(texts, found.query, missing, signals, tools)
    signals = replace(signals, discount=discount(found.query, missing, names, found.query.chunks))
    calibration, cuts = tools.calibration, calibrate.cuts(tools.calibration)
    is_unread = not calibrate.is_read(signals)
    verdicts = tuple(
        _verdict(survivor, hit, found.query, signals, calibration, rung, unread=is_unread)
        for survivor, hit in zip(survivors, hits, strict=True)
    )
    if look.asked_for:
        verdicts = _with_signs(verdicts, [look.asked_for.get(one.chunk.id) for one in survivors], cuts)
    relevances = [verdict.relevance for verdict in verdicts]
    score = calibrate.confidence_score(calibration, signals, relevances) if survivors else 0.0
    is_fitted = calibration is not None and all(hit.cosine is not None for hit in hits[:1])
    is_answerable = answerable(score, calibrate.cuts_for(cuts, signals)) if is_fitted else None
    verdicts = with_answer(verdicts, score, is_answerable, cuts)
    answer = answer_label((v.label for v in verdicts), score, cuts)
    return Judgement(verdicts, signals, answer, score, is_answerable, is_fitted, missing)


def _missing(texts: Sequence[str], query: Query, store: Store) -> tuple[str, ...]:
    """Return what the query names, and neither these texts nor any other holds."""
    return missing_things(FoundTexts(query, texts, partial(_holders, query=query, store=store)))


def _absent_names(
    texts: Sequence[str], query: Query, missing: Sequence[str], signals: SearchSignals, tools: SearchTools
) -> list[str]:
    """Return words that may be names and stand nowhere, where the model can tell them.

    In a language that it does not read, it knows few words, and nouns may have capitals.
    """
    fitted, model = tools.calibration, tools.similarity
    if all(query.frequencies.values()) or model is None or fitted is None:
        return []
    if fitted.is_multilingual or not calibrate.is_read(signals):
        return []
    known = " ".join(missing).casefold()
    found = absent_names(query, texts[:JUDGED], model.is_word)
    return [word for word in found if word.casefold() not in known]


def with_answer(
    verdicts: tuple[Verdict, ...], score: float, is_answerable: bool | None, cuts: Cuts
) -> tuple[Verdict, ...]:
    """Raise the first hit of an answer that is called answerable to its share of the answer's chance.

    Hits and answers are fitted apart. Of 4,025 answers to judged questions 138 were called answerable though
    all their hits were labelled low. They promised 0.80 and 0.78 came true; of their first hits 0.48 were
    right, which promised 0.16. So it is the hits that said too little.
    """
    if not is_answerable or not verdicts or max(one.relevance for one in verdicts) >= FIRST_SHARE * score:
        return verdicts
    first = verdicts[0]
    raised = max(first.relevance, FIRST_SHARE * score)
    first = replace(
        first,
        relevance=raised,
        passage=max(first.passage, raised),
        label=best_label([first.label, cap(label(first.evidence), raised, cuts)]),
        raised_from=first.relevance if first.raised_from is None else first.raised_from,
    )
    return (first, *verdicts[1:])


def _with_signs(
    verdicts: tuple[Verdict, ...], signs: Sequence[Sign | None], cuts: Cuts
) -> tuple[Verdict, ...]:
    """Raise the verdicts on hits that are what was asked for, each as its sign allows."""
    raised = with_lifted(verdicts, [sign is not None for sign in signs], cuts)
    return tuple(
        _pointed_at(verdict) if sign == "place" else verdict
        for sign, verdict in zip(signs, raised, strict=True)
    )


def with_lifted(verdicts: tuple[Verdict, ...], are_asked: Sequence[bool], cuts: Cuts) -> tuple[Verdict, ...]:
    """Make a hit that is what was asked for no less relevant than the hits below it.

    The scores were not fitted to such signs (a passage under the release, or with the definition). Of 152
    first hits that this raises (generated questions about the releases, names and options of 61 changelogs
    and 69 pages of manuals) 147 are right; their relevance was 0.52 on average, and is 0.65. Always ten hits
    are compared, however many are asked for.
    """
    kept = list(verdicts)
    for at in reversed(range(min(JUDGED, len(kept)))):
        if are_asked[at]:
            kept[at] = _raised(kept[at], kept[at + 1 : JUDGED], cuts)
    return tuple(kept)


def _raised(own: Verdict, below: Sequence[Verdict], cuts: Cuts) -> Verdict:
    """Return a verdict no worse than those below; its label is one of theirs, or that of its own evidence."""
    best = max(one.relevance for one in (own, *below))
    return replace(
        own,
        relevance=best,
        passage=max(one.passage for one in (own, *below)) if best > own.relevance else own.passage,
        label=best_label([cap(label(own.evidence), best, cuts), *(one.label for one in below)]),
        raised_from=own.relevance if best > own.relevance else None,
    )


def _pointed_at(own: Verdict) -> Verdict:
    """Return the verdict on the passage that the query points to: no word of the query speaks for it."""
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
    """Return a judgement with the verdicts on the first hits alone; that on the answer stays."""
    return replace(judgement, verdicts=judgement.verdicts[:count])


def _with_place(chunk: Chunk, document: Document) -> str:
    """Return a chunk's text below its path, title and headings."""
    return "\n".join((document.path, document.title, *chunk.heading, chunk.text))


def _holders(match: Match | None, query: Query, store: Store) -> list[str]:
    """Return some texts that match and that the query's filter lets through."""
    found = store.lexical.search(match, query.filter, MOST_HOLDERS) if match else []
    read = store.catalog.read([one.chunk_id for one in found]).values()
    return [_with_place(chunk, document) for chunk, document in read]


def signals_of(found: Retrieval, fused: Fused, *, coverage: float) -> SearchSignals:
    """Sum up a search; `coverage` is the share of the query's words, by rarity, that the first hit holds."""
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
    survivors: Sequence[Survivor], found: Retrieval, fused: Fused, close: Mapping[ChunkId, float]
) -> tuple[SearchSignals, list[HitSignals]]:
    """Return the signals of a search and of each of its hits."""
    worths = rarity.worths(found.query.chunks, found.query.frequencies)
    texts = (f"{survivor.document.title}\n{survivor.chunk.text}" for survivor in survivors)
    covered = [_coverage(text, found.query, worths) for text in texts]
    near = [close.get(survivor.ranked.chunk_id, 0.0) for survivor in survivors]
    signals = replace(
        signals_of(found, fused, coverage=covered[0] if covered else 0.0),
        first_closeness=near[0] if near else 0.0,
        verbatim=[*close.values()][:STRETCH].count(1),  # the same number, however many results are asked for
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
        relaxed=not found.isdisjoint(("fts_relaxed", DEFINITION)) or "lexical" in outside,
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
