"""How far to trust it? Evidence becomes features, these a probability, and a total table gives the label.

The label says what kind of evidence there is; the cap keeps it from promising more than such hits have been
measured to hold. Nearest-neighbour search always returns something, so being found is never enough by itself.
Nothing is discounted, raised or floored after the fit, and nothing is looked up: all that is needed was
counted when the query was understood.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from concord.search.blend import POOL, Context
from concord.search.calibration import (
    FEATURES,
    READ,
    UNFITTED,
    Calibration,
    Cuts,
    Evidence,
    Heads,
    probability,
)
from concord.search.classify import is_question, mentions
from concord.search.fuse import Candidates, dominant
from concord.search.legs import BUILT_IN, LEXICAL, NAMES
from concord.search.scores import is_read
from concord.text.held import contains
from concord.types import Candidate, Passage, Query, QueryType, Ranked

Label = Literal["very_high", "high", "medium_high", "medium", "low", "speculative", "no_results", "fts_only"]
Step = Literal["prefix", "partial"]  # of the fallback: beginnings and stems, then parts and similar words

LABELS: tuple[Label, ...] = ("very_high", "high", "medium_high", "medium", "low", "speculative", "no_results")
PRELIMINARY: Label = "fts_only"  # words have answered, meaning has not yet: outside the order, never capped
# No hit is capped below this; the labels under it are for fallback steps and for no hit at all.
LOWEST_CAPPED: Label = "low"
DEPTH = 10  # the hit that the first is compared with: as many results are shown by default

DOCUMENT_FEATURES = ("cosine", "z", "coverage")  # of which the best in the document counts as well

_PLACE = {label: place for place, label in enumerate(LABELS)}
_BY_MEANING: frozenset[QueryType] = frozenset({"conceptual", "exploratory"})


class Clues(Struct, frozen=True):
    """All that the table looks at, for one hit."""

    exact: bool = False
    relaxed: bool = False
    semantic: bool = False
    entity: bool = False  # a name of the query stands in the chunk
    verbatim: bool = False  # a quoted phrase of the query stands in the chunk as quoted
    cosine: float | None = None
    cuts: Cuts = UNFITTED.cuts
    type: QueryType = "exploratory"
    step: Step | None = None
    unread: bool = False  # the query is in a script that the model hardly reads


# What the evidence is → the label that it earns. Exactly one row fits any evidence.
TABLE: Mapping[str, Label] = {
    "all three strategies": "very_high",
    "meaning and words": "high",
    "meaning and a name": "high",
    "near in meaning, as asked": "high",
    "near in meaning": "medium_high",
    "fairly near in meaning": "medium",
    "far in meaning": "low",
    "the quotation itself": "high",
    "all words": "medium",
    "some words": "low",
    # That meaning did not find it says nothing here, so the cap decides how far words can be trusted.
    "words that the model cannot read": "high",
    "nothing": "no_results",
    "beginnings of words, or a lower floor": "low",
    "parts of words": "speculative",
}


class Judged(Struct, frozen=True):
    """A passage, and how far to trust it."""

    passage: Passage
    score: float  # P(relevant), counting better passages of its document
    passage_score: float  # by its own evidence alone
    label: Label
    clues: Clues
    features: Mapping[str, float]


class Verdict(Struct, frozen=True):
    """How sure the answer is, and the verdict on each of its passages."""

    judged: tuple[Judged, ...]
    confidence_score: float
    answerable: bool | None
    label: Label
    kinds: tuple[Evidence, ...]  # what there is to judge by, the best first
    head: Evidence | None  # which heads judged; None: no head fits, so that scores are no probabilities
    features: Mapping[str, float]  # of the answer
    falls: bool = False  # whether scores were made to fall down the list

    def only(self, judged: Iterable[Judged]) -> Verdict:
        """Return the verdict on some of its passages; on none, nothing is sure."""
        if rows := tuple(judged):
            return replace(self, judged=rows)
        answerable = None if self.answerable is None else False
        return replace(self, judged=(), confidence_score=0.0, answerable=answerable, label=LABELS[-1])


def judge(
    passages: Sequence[Passage],
    candidates: Candidates,
    query: Query,
    calibration: Calibration,
    step: Step | None = None,
    *,
    falls: bool = False,
) -> Verdict:
    """Judge the passages that were read; those that only a fallback step has found get that step's label.

    With `falls` no score is above that of a better place. The order of `auto` is the blend's: in the order of
    scores nDCG@10 is higher on four of nine sets and lower by up to .008 on four. A score that rises down the
    list would contradict it.
    """
    context, features = candidates.context, _features(passages, candidates, query, calibration)
    first = passages[0].ranked.candidate if passages else None
    kinds = evidence_of(first, candidates, has_reading=bool(passages and passages[0].reading))
    is_fitted = head_for(kinds, calibration) is not None
    judged = []
    for passage, row in zip(passages, features, strict=True):
        score = 0.0 if is_fitted else stand_in(passage.ranked.candidate, context)
        judged.append(Judged(passage, score, score, LABELS[-1], _clues(passage, context, query, step), row))
    answer = {**(features[0] if features else dict.fromkeys(FEATURES, 0.0)), **_of_search(candidates)}
    for name in ("reader", "asked_reader"):
        if read := [row[name] for row in features if name in row]:
            answer[f"best_{name}"] = max(read)
    return rejudged(Verdict((*judged,), 0.0, None, LABELS[-1], kinds, None, answer, falls), calibration)


def rejudged(verdict: Verdict, calibration: Calibration) -> Verdict:
    """Return the verdict that a calibration makes of the same evidence; scores stay where none fits."""
    cuts, head, rows = calibration.cuts, head_for(verdict.kinds, calibration), verdict.judged
    if head:
        features = [dict(row.features) for row in rows]
        scores = hit_scores(features, head, calibration.heads)
        of_documents = {f"document_{name}": name for name in DOCUMENT_FEATURES}
        bare = [row | {of: row[name] for of, name in of_documents.items()} for row in features]
        alone = hit_scores(bare, head, calibration.heads)  # as if its document had no other passage
        sure = probability(calibration.heads[head].answer, verdict.features) if rows else 0.0
    else:
        scores, alone = [row.score for row in rows], [row.passage_score for row in rows]
        sure = max(scores, default=0.0)
    if verdict.falls:
        scores = _falling(rows, scores)
    judged = []
    for row, score, own in zip(rows, scores, alone, strict=True):
        clues = replace(row.clues, cuts=cuts)
        label = cap(TABLE[row_of(clues)], score, cuts.hit)
        judged.append(replace(row, score=score, passage_score=own, clues=clues, label=label))
    return replace(
        verdict,
        judged=tuple(judged),
        confidence_score=sure,
        answerable=sure >= calibration.heads[head].answerable if head else None,
        label=cap(best_label(row.label for row in judged), sure, cuts.answer),
        head=head,
    )


def _falling(rows: Sequence[Judged], scores: Sequence[float]) -> list[float]:
    """Make scores fall in the order that hits had before some were moved."""
    places = [row.passage.ranked.moved_from or at for at, row in enumerate(rows, 1)]
    order = sorted(range(len(places)), key=places.__getitem__)
    least = dict(zip(order, accumulate((scores[at] for at in order), min), strict=True))
    return [least[at] for at in range(len(rows))]


def is_answerable(
    ranked: Sequence[Ranked], candidates: Candidates, query: Query, calibration: Calibration
) -> bool:
    """Whether meaning alone may have found the answer; no text is read, as none holds a word of the query.

    For a model without a calibration, a cosine above the weak cut stands in for the probability.
    """
    if not ranked:
        return False
    first = ranked[0].candidate
    if head_for(evidence_of(first, candidates), calibration) != "hybrid":
        return (first.cosine or 0.0) >= calibration.cuts.weak
    heads, own = calibration.heads["hybrid"], {**_of_candidate(ranked[0], candidates, query), "coverage": 0.0}
    own |= {f"document_{name}": own[name] for name in DOCUMENT_FEATURES}
    return probability(heads.answer, {**own, **_of_search(candidates)}) >= heads.answerable


def evidence_of(
    first: Candidate | None, candidates: Candidates, *, has_reading: bool = False
) -> tuple[Evidence, ...]:
    """Return what there is to judge by, the best first; meaning only if the model reads query and hit.

    `has_reading` is whether the reader has read the first hit. The heads of words serve any model.
    """
    kinds: list[Evidence] = []
    if first and first.cosine is not None and is_read(candidates.context):
        kinds += ["hybrid+reader", "hybrid"] if any(row.semantic_rank for row in candidates.rows) else []
    if not kinds or any(row.lexical_rank for row in candidates.rows):
        kinds += ["words+reader", "words"]
    return tuple(kind for kind in kinds if has_reading or READ not in kind)


def head_for(kinds: Iterable[Evidence], calibration: Calibration) -> Evidence | None:
    """Return the best kind of evidence that heads were fitted for."""
    return next((kind for kind in kinds if kind in calibration.heads), None)


def row_of(clues: Clues) -> str:
    """Return which row of the table fits; a fallback step has rows of its own."""
    if clues.step:
        return "parts of words" if clues.step == "partial" else "beginnings of words, or a lower floor"
    if clues.semantic:
        return _row_of_meaning(clues)
    if not (clues.exact or clues.relaxed):
        return "nothing"
    if clues.unread:
        return "words that the model cannot read"
    if not clues.exact:
        return "some words"
    return "the quotation itself" if clues.type == "exact_quote" and clues.verbatim else "all words"


def _row_of_meaning(clues: Clues) -> str:
    if clues.exact or clues.relaxed:
        return "all three strategies" if clues.exact and clues.relaxed else "meaning and words"
    if clues.entity:
        return "meaning and a name"
    cosine, strong = clues.cosine, clues.cuts.strong
    if cosine is None or not cosine >= clues.cuts.weak:  # an unknown cosine is weak
        return "far in meaning"
    if strong is None or not cosine >= strong:
        return "fairly near in meaning"
    return "near in meaning, as asked" if clues.type in _BY_MEANING else "near in meaning"


def cap(given: Label, score: float, least: Mapping[str, float]) -> Label:
    """Lower a label until a score is enough for it: `least` has what each needs."""
    if _PLACE.get(given, len(LABELS)) >= _PLACE[LOWEST_CAPPED]:
        return given
    below = LABELS[_PLACE[given] : _PLACE[LOWEST_CAPPED]]
    return next((label for label in below if score >= least.get(label, -math.inf)), LOWEST_CAPPED)


def best_label(labels: Iterable[Label]) -> Label:
    """Return the best of some labels."""
    return min(labels, key=lambda label: _PLACE.get(label, -1), default=LABELS[-1])


def _features(
    passages: Sequence[Passage], candidates: Candidates, query: Query, calibration: Calibration
) -> list[dict[str, float]]:
    """Return the features of each passage, with the best evidence for its document.

    That is its own, or that of a better passage. Worse ones are left out, so that asking for more results
    does not change the score of the first.
    """
    asks, most = is_question(query.text), calibration.reader.settled
    rows = []
    for passage in passages:
        row = {**_of_candidate(passage.ranked, candidates, query), "coverage": passage.coverage}
        if passage.reading:  # the reader is no surer than what settles the matter: then it reads no more
            logit = passage.reading.logit if most is None else min(passage.reading.logit, most)
            row |= {"reader": logit, "asked_reader": logit if asks else 0.0}
        rows.append(row)
    best_of: dict[str, list[float]] = {}
    for at in sorted(range(len(passages)), key=lambda at: -rows[at]["z"]):
        own, document = [rows[at][name] for name in DOCUMENT_FEATURES], passages[at].document.id
        best_of[document] = [*map(max, own, best_of.get(document, own))]
        for name, value in zip(DOCUMENT_FEATURES, best_of[document], strict=True):
            rows[at][f"document_{name}"] = value
    return rows


def _of_candidate(ranked: Ranked, candidates: Candidates, query: Query) -> dict[str, float]:
    """Return what is known of the query, and of a candidate without its text."""
    row, counts, most = ranked.candidate, query.frequencies.values(), candidates.best_bm25
    return {
        "cosine": row.cosine or 0.0,
        "z": ranked.z,
        "bm25_ratio": (row.bm25 or 0.0) / most if most > 0 else 0.0,
        "name": 1.0 if row.name_score else -1.0 if query.absent_names else 0.0,
        "unknown": sum(not count for count in counts) / len(counts) if counts else 0.0,
        "words": math.log1p(len(counts)),
        "rareness": candidates.context.rareness,
    }


def _of_search(candidates: Candidates) -> dict[str, float]:
    ranked = (row for row in candidates.rows if row.lexical_rank is not None and row.lexical_rank <= POOL)
    lexical = sorted((row.bm25 or 0.0 for row in ranked), reverse=True)
    tenth = lexical[DEPTH - 1] if len(lexical) >= DEPTH else 0.0
    return {
        "top_cosine": max((row.cosine or 0.0 for row in candidates.rows if row.semantic_rank), default=0.0),
        "fall": 1 - tenth / lexical[0] if lexical and lexical[0] > 0 else 0.0,
    }


def hit_scores(
    features: Sequence[Mapping[str, float]], head: Evidence, heads: Mapping[str, Heads]
) -> list[float]:
    """Return how probably each hit is relevant, by the heads that judge.

    One that nobody has read is judged without the reader, and gets no more than the least of those read: what
    was not read must not overtake what was refused.
    """
    plain = heads.get(head.removesuffix(READ), heads[head])
    was_read = [READ not in head or "reader" in row for row in features]
    scores = [
        probability((heads[head] if read else plain).hit, row)
        for row, read in zip(features, was_read, strict=True)
    ]
    least = min((score for score, read in zip(scores, was_read, strict=True) if read), default=1.0)
    return [score if read else min(score, least) for score, read in zip(scores, was_read, strict=True)]


def stand_in(row: Candidate, context: Context) -> float:
    """Return a score where nothing was fitted: it rises with cosine and with BM25's share of the most."""
    bound = context.max_bm25 or 0.0
    return dominant(row.cosine or 0.0, (row.bm25 or 0.0) / bound if bound > 0 else 0.0)


def _clues(passage: Passage, context: Context, query: Query, step: Step | None) -> Clues:
    row, text = passage.ranked.candidate, passage.chunk.text
    is_of_plugin = not row.ranks.keys() <= BUILT_IN
    by_words = is_of_plugin or bool({*LEXICAL, NAMES}.intersection(row.ranks))
    return Clues(
        exact="fts_exact" in row.ranks or passage.closeness == 1,
        relaxed=not {"fts_relaxed", NAMES}.isdisjoint(row.ranks)
        or is_of_plugin
        and row.lexical_rank is not None,
        semantic=row.semantic_rank is not None,
        entity=mentions(query.entities, text),
        verbatim=bool(query.phrases) and all(contains(text, phrase) for phrase in query.phrases),
        cosine=row.cosine,
        type=query.type,
        step=None if by_words or row.semantic_rank else step,
        unread=not is_read(context),
    )
