"""An inverted index in dictionaries that matches and scores as FTS5 should: what it is compared with.

FTS5's bm25() takes the chunk, all columns together, as the unit of length and of
document frequency; a column's weight multiplies how often the term occurs there. Every word or phrase that
took part in the match adds to the score; what `Without` drops does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from concord.text.tokens import K1, B, idf, tokenize
from concord.types import AllOf, ChunkId, Match, Phrase, Without, Word


class _Place(NamedTuple):
    """Where a token stands: in which column, as which token of it."""

    column: int
    position: int


_Postings = dict[ChunkId, set[_Place]]
_Scores = dict[ChunkId, float]


class InvertedIndex:
    """Tokens, and where they stand."""

    def __init__(self) -> None:
        self._postings: dict[str, _Postings] = {}
        self._lengths: dict[ChunkId, int] = {}
        self._total_length = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, chunk_id: ChunkId, columns: Sequence[str]) -> None:
        """Index a chunk."""
        length = 0
        for column, text in enumerate(columns):
            for position, token in enumerate(tokenize(text)):
                self._postings.setdefault(token, {}).setdefault(chunk_id, set()).add(_Place(column, position))
                length += 1
        self._lengths[chunk_id] = length
        self._total_length += length

    def frequency(self, word: str) -> int:
        """Return how many chunks hold a word."""
        return len(self._places(tokenize(word), prefix=False))

    def scores(self, match: Match, weights: Sequence[float]) -> _Scores:
        """Return the BM25 score of every chunk that matches."""
        return self._evaluate(match, weights) or {}

    def _evaluate(self, match: Match, weights: Sequence[float]) -> _Scores | None:
        """Return the chunks that match; None when there is nothing in it to look for."""
        if isinstance(match, Word | Phrase):
            tokens = tokenize(match.text)
            prefix = isinstance(match, Word) and match.prefix
            return self._scored(self._places(tokens, prefix), weights) if tokens else None
        if isinstance(match, Without):
            kept, dropped = self._evaluate(match.keep, weights), self._evaluate(match.drop, weights)
            return kept and {chunk: score for chunk, score in kept.items() if chunk not in (dropped or {})}
        parts = [found for part in match.parts if (found := self._evaluate(part, weights)) is not None]
        return _combined(parts, set.intersection if isinstance(match, AllOf) else set.union)

    def _places(self, tokens: Sequence[str], prefix: bool) -> _Postings:
        """Return where the tokens stand next to each other: the place of the first."""
        if not tokens:
            return {}
        last = self._beginning_with(tokens[-1]) if prefix else self._postings.get(tokens[-1], {})
        found = {
            chunk: {_shifted(place, 1 - len(tokens)) for place in places} for chunk, places in last.items()
        }
        for offset, token in enumerate(tokens[:-1]):
            postings = self._postings.get(token, {})
            found = {
                chunk: places & {_shifted(place, -offset) for place in postings.get(chunk, ())}
                for chunk, places in found.items()
            }
        return {chunk: places for chunk, places in found.items() if places}

    def _beginning_with(self, start: str) -> _Postings:
        found: _Postings = {}
        for token, postings in self._postings.items():
            if token.startswith(start):
                for chunk, places in postings.items():
                    found.setdefault(chunk, set()).update(places)
        return found

    def _scored(self, found: _Postings, weights: Sequence[float]) -> _Scores:
        weight = idf(len(self), len(found))
        return {chunk: weight * self._saturated(chunk, places, weights) for chunk, places in found.items()}

    def _saturated(self, chunk: ChunkId, places: Iterable[_Place], weights: Sequence[float]) -> float:
        counted = Counter(place.column for place in places)
        frequency = sum(weights[column] * count for column, count in counted.items())
        mean_length = self._total_length / len(self)
        norm = K1 * (1 - B + B * self._lengths[chunk] / mean_length)
        return frequency * (K1 + 1) / (frequency + norm)


def _shifted(place: _Place, by: int) -> _Place:
    return _Place(place.column, place.position + by)


def _combined(
    parts: Sequence[Mapping[ChunkId, float]], combine: Callable[..., set[ChunkId]]
) -> _Scores | None:
    if not parts:
        return None
    chunks = combine(*map(set, parts))
    return {chunk: sum(part.get(chunk, 0.0) for part in parts) for chunk in chunks}
