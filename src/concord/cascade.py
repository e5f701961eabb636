"""Never zero, and honest: what is tried when a search has found nothing to rely on.

Two rungs, each bounded in time and labelled: `relaxed` looks for words that begin like those typed, `partial`
for words near them and for their parts. A rung only adds votes; the search goes on from there as ever, and
`remarks` says how it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from concord.judge import evidence_of
from concord.poll import Poll, poll
from concord.ranking import calibrate
from concord.ranking.agreement import Rung, answerable
from concord.ranking.diversify import RELAXED_FLOOR
from concord.ranking.fuse import FUSIONS, Ballots, ballots
from concord.ranking.plan import polled
from concord.suggest import MAX_WORDS, NEAR, Near
from concord.text.characters import folded
from concord.text.nearness import MIN_LETTERS, MIN_PART, distance
from concord.text.parse import parse
from concord.text.stem import stem
from concord.text.terms import any_of, word_match
from concord.text.unspaced import characters, has_unspaced
from concord.types import Candidate, Family, Match, Mode, Query, Request, Without, Word

if TYPE_CHECKING:
    from concord.protocols import LexicalIndex
    from concord.search import Retrieval, Tools

RUNG_STRATEGIES = ("fts_prefix", "fts_partial")  # the names under which the rungs vote
MAX_BEGINNINGS = 8  # words looked for by their beginnings: each reads all that begin so
LOOKING = 0.6  # share of the partial rung's time for finding words; the rest is for searching with them
LONGEST_COMPOUND = 32  # letters of a word that is taken apart: the number of its parts grows with the square


class Rescue(NamedTuple):
    """What a search goes on with: what it had found, or that and what a rung has added."""

    found: Retrieval
    near: Near  # words like a given one, each looked up once
    floor: float
    rung: Rung | None = None


class Step(Struct):
    """A rung as a strategy: it votes under a name of its own, and may fail or be late like any other."""

    rung: Rung
    name: str
    index: LexicalIndex
    match: Callable[[Query], Match | None]
    budget_ms: float
    family: Family = "lexical"

    def candidates(self, query: Query) -> list[Candidate]:
        """Return what holds words that are like the query's."""
        match = self.match(query)
        found = self.index.search(match, query.filter, query.candidates) if match else []
        return [
            Candidate(hit.chunk_id, self.name, self.family, rank, hit.score)
            for rank, hit in enumerate(found, 1)
        ]


def rescue(request: Request, mode: Mode, fusion: str, found: Retrieval, tools: Tools) -> Rescue:
    """Try the rungs in turn when words have found nothing and meaning nothing that can be relied on."""
    index = tools.store.lexical
    near: Near = cache(lambda word: index.similar_words(word, NEAR))
    floor: float = tools.settings["search.floor"]
    if _needs_words(mode, fusion, found, tools):
        for step in _steps(request, near, tools):
            votes = poll([step], found.query, step.budget_ms)
            found = _joined(found, votes, tools)
            if votes.votes.get(step.name):
                return Rescue(found, near, min(floor, RELAXED_FLOOR), step.rung)
    return Rescue(found, near, floor)


def budget_ms(request: Request, setting: str, tools: Tools) -> float:
    """Return the time that a setting allows, though never more than the caller gave the whole search."""
    allowed: float = tools.settings[setting]
    return allowed if request.deadline_ms is None else min(allowed, request.deadline_ms)


def beginnings(query: Query) -> Match | None:
    """Return a match of words that begin like the query's or like their stems; short ones begin too many."""
    words = [word for word in query.words if len(word) >= MIN_LETTERS and not has_unspaced(word)]
    chosen = sorted(words, key=len, reverse=True)[:MAX_BEGINNINGS]
    return _allowed(query, [match for word in chosen for match in _begun(word)])


def parts(query: Query, near: Near, index: LexicalIndex, budget_ms: float) -> Match | None:
    """Return a match of the known words nearest to the query's; for a word that has none, of its parts."""
    ends = time.perf_counter() + budget_ms / 1000
    found: list[Match] = []
    for word in sorted(query.words, key=len, reverse=True)[:MAX_WORDS]:
        if time.perf_counter() >= ends:
            break
        if has_unspaced(word):
            found += [Word(character, prefix=True) for character in characters(word)]
        else:
            like = _nearest(word, near(word)) or _known_parts(word, index)
            found += [match for one in like if (match := word_match(one))]
    return _allowed(query, found)


def _steps(request: Request, near: Near, tools: Tools) -> Iterator[Step]:
    index, (prefix, partial) = tools.store.lexical, RUNG_STRATEGIES
    yield Step("relaxed", prefix, index, beginnings, budget_ms(request, "search.relaxed_ms", tools))
    whole_ms = budget_ms(request, "search.partial_ms", tools)
    yield Step("partial", partial, index, lambda q: parts(q, near, index, whole_ms * LOOKING), whole_ms)


def _needs_words(mode: Mode, fusion: str, found: Retrieval, tools: Tools) -> bool:
    """Whether there are words to look for, none was found, and meaning found nothing to rely on."""
    is_allowed = any(name.startswith("fts_") for name in polled(mode))
    if not is_allowed or found.ballots.lexical or not found.query.words or not found.query.chunks:
        return False
    return not found.ballots.votes or not _is_answerable(fusion, found, tools)


def _is_answerable(fusion: str, found: Retrieval, tools: Tools) -> bool:
    """Whether what meaning found may be the answer. It need not be read for that: no word of it is asked for.

    With a model that nobody fitted, a cosine above the weak cut stands in for the probability.
    """
    ranked = FUSIONS[fusion](found.ballots, found.context)
    evidence = evidence_of(found.ballots, ranked, found.query, coverage=0.0)
    cuts = calibrate.cuts(tools.calibration)
    judged = answerable(calibrate.confidence_score(tools.calibration, evidence), cuts)
    return evidence.semantic.top >= cuts.weak if judged is None else judged


def _joined(found: Retrieval, votes: Poll, tools: Tools) -> Retrieval:
    """Return what was found with a rung's votes added to it."""
    joined = Poll(
        {**found.votes.votes, **votes.votes},
        [*found.votes.degraded, *votes.degraded],
        {**found.votes.timings_ms, **votes.timings_ms},
    )
    added = [candidate for some in votes.votes.values() for candidate in some]
    given = _with_votes(found.ballots, added, found.query, tools) if added else found.ballots
    return found._replace(votes=joined, ballots=given)


def _with_votes(given: Ballots, added: Sequence[Candidate], query: Query, tools: Tools) -> Ballots:
    missing = sorted({one.chunk_id for one in added} - given.cosine.keys())
    cosine = dict(given.cosine)
    if tools.similarity and given.semantic and missing:
        cosine |= tools.similarity(query.text, missing).cosines()
    voted = [one for some in given.votes.values() for one in some]
    return ballots([*voted, *added], bm25=given.bm25, cosine=cosine)


def _allowed(query: Query, found: Sequence[Match]) -> Match | None:
    """Return a match of any of these, without what the query excludes."""
    match, dropped = any_of(found), parse(query.text).dropped
    return Without(match, dropped) if match and dropped else match


def _begun(word: str) -> Iterator[Match]:
    match = word_match(word, prefix=True)
    if match is not None:
        yield match
    root = stem("".join(folded(word)))
    if len(root) >= MIN_LETTERS and stem(root) == root:  # an engine would stem it further: databs to datab
        yield Word(root, prefix=True)


def _nearest(word: str, like: Sequence[tuple[str, int]]) -> list[str]:
    """Return, of the words that are like one, the nearest: farther ones would mix into the order."""
    plain = "".join(folded(word))
    apart = {known: distance(plain, "".join(folded(known)), 2) for known, _ in like}
    least = min((edits for edits in apart.values() if edits is not None), default=None)
    return [known for known, edits in apart.items() if edits == least]


def _known_parts(word: str, index: LexicalIndex) -> list[str]:
    """Return the longest known words that a word is made of, when they make up half of it."""
    plain = "".join(folded(word))
    size = len(plain)
    if not 2 * MIN_PART <= size <= LONGEST_COMPOUND:
        return []
    spans = [(a, b) for a in range(size) for b in range(a + MIN_PART, size + 1)]
    _, holding = index.frequencies([plain[a:b] for a, b in spans])
    chosen: list[tuple[int, int]] = []
    for a, b in sorted(spans, key=lambda span: span[0] - span[1]):
        if holding[plain[a:b]] and all(b <= start or a >= end for start, end in chosen):
            chosen.append((a, b))
    return [plain[a:b] for a, b in chosen] if 2 * sum(b - a for a, b in chosen) >= size else []
