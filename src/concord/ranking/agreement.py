"""Who found a hit, and what label does that evidence earn? A total table, then a cap by measured relevance.

The label says what kind of evidence there is; the cap keeps it from promising more than such hits have been
measured to hold. Nearest-neighbour search always returns something, so being found is never enough by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from msgspec import Struct, field

from concord.ranking.plan import STRATEGIES
from concord.types import Candidate, QueryKind

Label = Literal["very_high", "high", "medium_high", "medium", "low", "speculative", "no_results", "fts_only"]
Rung = Literal["prefix", "partial"]  # of the cascade: prefix, stem, lower floor; then partial and fuzzy words
Strength = Literal["strong", "middling", "weak"]

LABELS: tuple[Label, ...] = ("very_high", "high", "medium_high", "medium", "low", "speculative", "no_results")
PRELIMINARY: Label = "fts_only"  # words have answered, meaning has not yet: outside the order, never capped
# No hit is capped below this; the labels under it are for the cascade's rungs and for no hit at all.
LOWEST_CAPPED: Label = "low"

_PLACE = {label: place for place, label in enumerate(LABELS)}
_BY_MEANING: frozenset[QueryKind] = frozenset({"conceptual", "exploratory"})


class Agreement(Struct, frozen=True):
    """Who found a chunk."""

    found_by: tuple[str, ...]  # in the order of plan.STRATEGIES, outsiders after them
    best_rank: int
    agreement: float


class Cuts(Struct, frozen=True):
    """Where cosine becomes strong, and how relevant a hit must be for its label. Fitted with a model."""

    strong: float = math.inf  # unfitted, no cosine is strong: what is differs from model to model
    weak: float = 0.5
    hit: Mapping[str, float] = field(default_factory=dict)  # label → least relevance
    answer: Mapping[str, float] = field(default_factory=dict)  # label → least confidence score
    answerable: float | None = None


class Evidence(Struct, frozen=True):
    """All that the table looks at, for one hit."""

    exact: bool = False
    relaxed: bool = False
    semantic: bool = False
    entity: bool = False  # a name of the query stands in the chunk
    verbatim: bool = False  # a quoted phrase of the query stands in the chunk as quoted
    cosine: float | None = None
    cuts: Cuts = field(default_factory=Cuts)
    kind: QueryKind = "exploratory"
    rung: Rung | None = None
    unread: bool = False  # the query is in a script that the model hardly reads

    @property
    def lexical(self) -> bool:
        """Whether words found it."""
        return self.exact or self.relaxed

    @property
    def bare(self) -> bool:
        """Whether meaning alone found it: no word or name of the query stands in it."""
        return self.semantic and not self.lexical and not self.entity

    @property
    def strength(self) -> Strength:
        """How near in meaning; an unknown cosine is weak."""
        if self.cosine is None or not self.cosine >= self.cuts.weak:
            return "weak"
        return "strong" if self.cosine >= self.cuts.strong else "middling"

    @property
    def alone(self) -> bool:
        """Whether words alone found it, though the model reads the script of the query."""
        return self.lexical and not self.semantic and not self.unread

    @property
    def quoted(self) -> bool:
        """Whether the query is a quotation and the chunk holds it."""
        return self.kind == "exact_quote" and self.verbatim


class Row(Struct, frozen=True):
    """One line of the table."""

    name: str
    applies: Callable[[Evidence], bool]
    label: Label


# Exactly one row applies to any evidence: rows exclude each other rather than rely on their order.
PRIMARY: tuple[Row, ...] = (
    Row("all three strategies", lambda e: e.exact and e.relaxed and e.semantic, "very_high"),
    Row("meaning and words", lambda e: e.semantic and e.exact != e.relaxed, "high"),
    Row("meaning and a name", lambda e: e.semantic and not e.lexical and e.entity, "high"),
    Row(
        "near in meaning, as asked",
        lambda e: e.bare and e.strength == "strong" and e.kind in _BY_MEANING,
        "high",
    ),
    Row(
        "near in meaning",
        lambda e: e.bare and e.strength == "strong" and e.kind not in _BY_MEANING,
        "medium_high",
    ),
    Row("fairly near in meaning", lambda e: e.bare and e.strength == "middling", "medium"),
    Row("far in meaning", lambda e: e.bare and e.strength == "weak", "low"),
    Row("the quotation itself", lambda e: e.alone and e.exact and e.quoted, "high"),
    Row("all words", lambda e: e.alone and e.exact and not e.quoted, "medium"),
    Row("some words", lambda e: e.alone and not e.exact, "low"),
    # That meaning did not find it says nothing here, so the cap decides how far words can be trusted.
    Row("words that the model cannot read", lambda e: e.unread and e.lexical and not e.semantic, "high"),
    Row("nothing", lambda e: not e.semantic and not e.lexical, "no_results"),
)
CASCADE: tuple[Row, ...] = (
    Row("beginnings of words, or a lower floor", lambda e: e.rung == "prefix", "low"),
    Row("parts of words", lambda e: e.rung == "partial", "speculative"),
)


TABLE: tuple[Row, ...] = (*PRIMARY, *CASCADE)


def agreed(votes: Iterable[Candidate]) -> float:
    """Return the share of our three strategies that found a chunk; with further strategies, 1 at most."""
    return min(1.0, len({one.strategy for one in votes}) / len(STRATEGIES))


def agreement(votes: Iterable[Candidate]) -> Agreement:
    """Return which strategies found a chunk and its best rank; the rank is 0 if none voted for it."""
    held = tuple(votes)
    found = {one.strategy for one in held}
    known = tuple(name for name in STRATEGIES if name in found)
    outside = tuple(sorted(found.difference(STRATEGIES)))
    return Agreement(known + outside, min((one.rank for one in held), default=0), agreed(held))


def row(evidence: Evidence) -> Row:
    """Return the row of the table that fits."""
    return next(row for row in rows_for(evidence) if row.applies(evidence))


def rows_for(evidence: Evidence) -> tuple[Row, ...]:
    """Return the part of the table that evidence is looked up in: a rung of the cascade has its own."""
    return PRIMARY if evidence.rung is None else CASCADE


def label(evidence: Evidence) -> Label:
    """Return the label that the evidence earns, before the cap."""
    return row(evidence).label


def cap(given: Label, relevance: float | None, cuts: Cuts) -> Label:
    """Lower a hit's label until its relevance is enough for it."""
    return _capped(given, relevance, cuts.hit)


def answer_label(labels: Iterable[Label], confidence_score: float | None, cuts: Cuts) -> Label:
    """Return the best hit's label, capped by the probability that the top results hold what was asked for."""
    return _capped(best_label(labels), confidence_score, cuts.answer)


def best_label(labels: Iterable[Label]) -> Label:
    """Return the best of some labels."""
    return min(labels, key=lambda one: _PLACE.get(one, -1), default=LABELS[-1])


def answerable(confidence_score: float | None, cuts: Cuts) -> bool | None:
    """Whether the answer is likely there; None where no cut was fitted."""
    if confidence_score is None or cuts.answerable is None:
        return None
    return confidence_score >= cuts.answerable


def _capped(given: Label, measured: float | None, least: Mapping[str, float]) -> Label:
    if measured is None or _PLACE.get(given, len(LABELS)) >= _PLACE[LOWEST_CAPPED]:
        return given
    below = LABELS[_PLACE[given] : _PLACE[LOWEST_CAPPED]]
    return next((one for one in below if measured >= least.get(one, -math.inf)), LOWEST_CAPPED)
