"""Why is a passage where it is in the order, or not in it? The facts, and the sentence that follows.

A passage goes through the stages of a search in turn: filter, excluded words, votes, threshold, floor,
duplicates, diversity, fusion. The first that it does not pass is the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from concord.types import Family

Stage = Literal[
    "returned", "duplicate", "filter", "excluded", "votes", "threshold", "floor", "diversity", "fusion"
]


class StrategyRank(NamedTuple):
    """Where one strategy puts the passage."""

    strategy: str
    family: Family
    rank: int | None  # None if it is not in the part of the list that was read
    score: float | None
    is_candidate: bool  # near enough to the top to count as a vote
    reason: str | None = None  # why the strategy did not vote at all


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


class Known(Struct, frozen=True):
    """All that a reason is drawn from."""

    rank: int | None  # among the results
    results: int
    candidates: int  # how many votes each strategy has
    depth: int  # how far down the lists were read
    is_candidate: bool
    strategy_ranks: Sequence[StrategyRank]
    words: Sequence[WordFound]
    fused: Placed
    filtered: Sequence[str]  # what the filter has against it
    excluded: Sequence[str]  # what it holds that the query excludes
    overlap: Overlap | None


def reason(known: Known) -> tuple[Stage, str]:
    """Return the stage that decided, and why in a sentence."""
    return next((stage, say(known)) for stage, applies, say in _STAGES if applies(known))


def _is_duplicate(known: Known) -> bool:
    return known.overlap is not None and known.overlap.is_same


def _is_under(known: Known, least: float | None) -> bool:
    return least is not None and known.fused.rrf is not None and known.fused.rrf < least


def _was_passed_over(known: Known) -> bool:
    """Whether fusion gave it a place among the results, which another passage then took."""
    return known.fused.rank is not None and known.fused.rank <= known.results


def _returned(known: Known) -> str:
    return f"It is result {known.rank} of {known.results}."


def _filtered(known: Known) -> str:
    return f"The filter leaves it out: {'; '.join(known.filtered)}.{_places(known, ' Without it')}"


def _excluded(known: Known) -> str:
    return f"It holds what the query excludes: {', '.join(known.excluded)}."


def _not_voted(known: Known) -> str:
    if not known.words:
        return "There is no word in the query to look for."
    where = _places(known, " Further down")
    return f"No strategy has it among its first {known.candidates}.{where}{_lacking(known)}"


def _under_threshold(known: Known) -> str:
    return f"Its score of {known.fused.rrf:.4f} is under the threshold of {known.fused.threshold:g}."


def _under_floor(known: Known) -> str:
    return f"Its score of {known.fused.rrf:.4f} is under the floor of {known.fused.floor:g} (search.floor)."


def _duplicate(known: Known) -> str:
    overlap = known.overlap
    assert overlap is not None
    return f"It says the same as result {overlap.rank} ({overlap.citation}), which stands for both."


def _passed_over(known: Known) -> str:
    like = known.overlap
    shared = f": it shares {like.similarity:.0%} of its words with result {like.rank}" if like else ""
    return (
        f"Fusion put it at {known.fused.rank}, but its place went to passages that add more{shared}"
        " (search.diversity, names of the query, reranking)."
    )


def _outranked(known: Known) -> str:
    fused = known.fused
    cut = (
        ""
        if fused.last_score is None
        else f"; the last of {known.results} results has {fused.last_score:.4f}"
    )
    return f"Fusion put it at {fused.rank} of {fused.of} with {fused.score:.4f}{cut}.{_lacking(known)}"


def _places(known: Known, before: str) -> str:
    """Return where each strategy puts it, as a sentence."""
    placed = [f"{one.strategy} ranks it {one.rank}" for one in known.strategy_ranks if one.rank]
    absent = [one.strategy for one in known.strategy_ranks if not one.rank and not one.reason]
    if absent:
        placed.append(
            f"{_listed(absent)} {'do' if len(absent) > 1 else 'does'} not find it in {known.depth:,}"
        )
    return f"{before}, {_listed(placed)}." if placed else ""


def _lacking(known: Known) -> str:
    lacking = [word.text for word in known.words if not word.is_held]
    return f" It lacks: {', '.join(lacking)}." if lacking else ""


def _listed(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


_STAGES: tuple[tuple[Stage, Callable[[Known], bool], Callable[[Known], str]], ...] = (
    ("returned", lambda known: known.rank is not None, _returned),
    ("filter", lambda known: bool(known.filtered), _filtered),
    ("excluded", lambda known: bool(known.excluded), _excluded),
    ("votes", lambda known: not known.is_candidate, _not_voted),
    ("threshold", lambda known: _is_under(known, known.fused.threshold), _under_threshold),
    ("floor", lambda known: _is_under(known, known.fused.floor), _under_floor),
    ("duplicate", _is_duplicate, _duplicate),
    ("diversity", _was_passed_over, _passed_over),
    ("fusion", lambda known: True, _outranked),
)
