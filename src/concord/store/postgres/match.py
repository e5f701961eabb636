"""Finding chunks by words: blocks of postings are read, and numpy, which this file imports, works out BM25.

The formula is FTS5's: a chunk with all its columns is the unit of length and of document frequency, and the
weight of a column multiplies how often a token occurs there. Phrases are found by the tsvectors, through
their GIN index. What was read is kept until something changes: to count words and then search reads once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from concord.store.postgres.database import PostgresSession
from concord.store.postgres.postings import BLOCK, LABELS, POSTING_BYTES, lexemes
from concord.store.rows import HAS_SUPERSEDED, LAST_CHARACTER, WEIGHTS
from concord.store.words import levelled
from concord.text.tokens import K1, B, idf
from concord.types import AllOf, Match, Phrase, Scored, Without, Word

_Integers = NDArray[np.int64]
_Floats = NDArray[np.float64]

_LONGEST_PHRASE = 256  # tokens; the rest of a longer one could hardly tell two chunks apart
_MOST_KEPT = 1 << 21  # postings in memory, 16 bytes each

_POSTING = [("place", "<u2"), ("counts", "u1", (len(WEIGHTS),)), ("length", "<u2")]

_META = f"""
SELECT key, value, ({HAS_SUPERSEDED}) FROM kb_meta
WHERE key IN ('generation', 'chunks', 'tokens') ORDER BY key"""
_BLOCKS = "SELECT term, block, postings FROM kb_postings WHERE term IN (:terms...)"
_COUNT = f"""
SELECT term, sum(octet_length(postings))::bigint / {POSTING_BYTES} FROM kb_postings
WHERE term IN (:terms...) GROUP BY term"""
_BEGINNING = "SELECT block, postings FROM kb_postings WHERE term >= :start AND term < :end"

# Where each token of a phrase is, moved back by its place in the phrase: a place that all of them share is an
# occurrence of the whole.
_PHRASE = f"""
SELECT o.chunk, sum((ARRAY{list(WEIGHTS)}::float8[])[strpos('{LABELS}', o.label)]), min(o.length) FROM (
    SELECT c.chunk, c.length, s.at - t.at AS start, min(s.label) AS label
    FROM kb_chunk_words AS c CROSS JOIN LATERAL unnest(c.words) AS l
    JOIN unnest(:tokens::text[], :is_begun::boolean[]) WITH ORDINALITY AS t (term, is_begun, at)
        ON CASE WHEN t.is_begun THEN starts_with(l.lexeme, t.term) ELSE l.lexeme = t.term END
    CROSS JOIN LATERAL unnest(l.positions, l.weights) AS s (at, label)
    WHERE c.words @@ :query::tsquery
    GROUP BY c.chunk, c.length, start HAVING count(*) = cardinality(:tokens::text[])
) AS o GROUP BY o.chunk"""
_COUNT_PHRASE = "SELECT count(*) FROM kb_chunk_words WHERE words @@ :query::tsquery"


class Postings(NamedTuple):
    """Chunks, each once, and what a part of a match adds to the score of each."""

    chunks: _Integers
    scores: _Floats

    def at(self, places: Any) -> Postings:
        """Return some of the chunks: by their places, or by whether each is wanted."""
        return Postings(self.chunks[places], self.scores[places])

    def best(self, limit: int) -> list[Scored]:
        """Return the best chunks, best first; ties by chunk id."""
        chunks, scores = self
        if limit < len(scores):
            chunks, scores = self.at(scores >= np.partition(scores, -limit)[-limit])
        order = np.lexsort((chunks, -scores))[:limit]
        return list(map(Scored, chunks[order].tolist(), scores[order].tolist()))


class Index:
    """What is known of the index as of one generation: statistics, and postings that were read lately."""

    def __init__(self, generation: int, chunks: int, tokens: int, *, has_superseded: bool = False) -> None:
        self.generation = generation
        self.chunks = chunks
        self.has_superseded = has_superseded
        self.slope = K1 * B * chunks / max(tokens, 1)
        self.counts: dict[str, int] = {}  # token → chunks that hold it
        self.postings: dict[str, Postings] = {}

    def keep(self, read: Mapping[str, Postings]) -> None:
        """Keep postings; where that would be too many, only these."""
        self.counts |= {token: len(postings.chunks) for token, postings in read.items()}
        both = {**self.postings, **read}
        is_room = sum(len(postings.chunks) for postings in both.values()) < _MOST_KEPT
        self.postings = both if is_room else dict(read)

    def scored(self, chunks: _Integers, times: _Floats, lengths: _Integers) -> Postings:
        """Return what a token, a phrase or a beginning adds to the scores of the chunks that hold it."""
        weight = idf(self.chunks, len(chunks)) * (K1 + 1)
        return Postings(chunks, weight * times / (times + K1 * (1 - B) + self.slope * lengths))


class WordReader:
    """Reads the word index of one store."""

    def __init__(self) -> None:
        self._known = Index(-1, 0, 0)

    def scored(self, session: PostgresSession, match: Match) -> tuple[Index, Postings]:
        """Return all chunks of a match, and what was known of the index then."""
        match, index = levelled(match), self._index(session)
        terms = set(_tokens(match))
        postings = {term: index.postings[term] for term in terms & index.postings.keys()}
        missing = terms - postings.keys()
        if missing:
            blocks: dict[str, list[tuple[int, bytes]]] = {term: [] for term in missing}
            for term, *block in session.execute(_BLOCKS, {"terms": [*missing]}, binary=True):
                blocks[term].append((block[0], block[1]))
            read = {term: index.scored(*_unpacked(held)) for term, held in blocks.items()}
            index.keep(read)
            postings |= read
        found = _Evaluation(session, index, postings).of(match)
        return index, found or Postings(np.empty(0, np.int64), np.empty(0))

    def frequencies(self, session: PostgresSession, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word; its tokens side by side."""
        index, tokens = self._index(session), {word: lexemes(word) for word in words}
        single = {found[0] for found in tokens.values() if len(found) == 1}
        if missing := single - index.counts.keys():
            counted = dict(session.rows(_COUNT, {"terms": [*missing]}))
            index.counts |= {term: counted.get(term, 0) for term in missing}
        return index.chunks, {
            word: index.counts[found[0]] if len(found) == 1 else _count_phrase(session, found)
            for word, found in tokens.items()
        }

    def _index(self, session: PostgresSession) -> Index:
        """Return what is known of the index, nothing after a change."""
        (_, chunks, has_superseded), (_, generation, _), (_, tokens, _) = session.rows(_META)
        if generation != self._known.generation:
            self._known = Index(generation, chunks, tokens, has_superseded=has_superseded)
        return self._known


def _unpacked(blocks: list[tuple[int, bytes]]) -> tuple[_Integers, _Floats, _Integers]:
    """Return the chunks in blocks, how often each holds the token by weight, and how long each is."""
    rows = np.frombuffer(b"".join([postings for _, postings in blocks]), _POSTING)
    sizes = [len(postings) // POSTING_BYTES for _, postings in blocks]
    starts = np.repeat(np.array([block * BLOCK for block, _ in blocks], np.int64), sizes)
    times = rows["counts"] @ np.array(WEIGHTS)
    return starts + rows["place"], times, rows["length"].astype(np.int64)


class _Evaluation:
    """A match becomes chunks with their scores, part by part."""

    def __init__(self, session: PostgresSession, index: Index, postings: Mapping[str, Postings]) -> None:
        self._session = session
        self._index = index
        self._postings = postings

    def of(self, match: Match) -> Postings | None:
        """Return the chunks of a part; None if it has no token, so that it asks for nothing."""
        if isinstance(match, Word | Phrase):
            return self._leaf(match)
        if isinstance(match, Without):
            kept, dropped = self.of(match.keep), self.of(match.drop)
            if kept is None or dropped is None:
                return kept
            return kept.at(~np.isin(kept.chunks, dropped.chunks))
        parts = [known for part in match.parts if (known := self.of(part)) is not None]
        return self._joined(parts, isinstance(match, AllOf))

    def _joined(self, joined: Sequence[Postings], are_together: bool) -> Postings | None:
        if len(joined) < 2:
            return joined[0] if joined else None
        chunks, at = _numbered(np.concatenate([part.chunks for part in joined]))
        scores = np.concatenate([part.scores for part in joined])
        found = Postings(chunks, _summed(at, scores, len(chunks)))
        return found.at(np.bincount(at) == len(joined)) if are_together else found

    def _leaf(self, leaf: Word | Phrase) -> Postings | None:
        tokens = lexemes(leaf.text)[:_LONGEST_PHRASE]
        is_begun = isinstance(leaf, Word) and leaf.prefix
        if not tokens:
            return None
        if len(tokens) == 1:
            return self._beginning(tokens[0]) if is_begun else self._postings[tokens[0]]
        return self._phrase(tokens, is_begun)

    def _beginning(self, start: str) -> Postings:
        values = {"start": start, "end": start + LAST_CHARACTER}
        rows = self._session.execute(_BEGINNING, values, binary=True).fetchall()
        held, times, lengths = _unpacked([(block, postings) for block, postings in rows])
        chunks, at = _numbered(held)
        longest = np.zeros(len(chunks), np.int64)
        longest[at] = lengths
        return self._index.scored(chunks, _summed(at, times, len(chunks)), longest)

    def _phrase(self, tokens: list[str], is_begun: bool) -> Postings:
        begun = [False] * (len(tokens) - 1) + [is_begun]
        values = {"tokens": tokens, "is_begun": begun, "query": to_tsquery(tokens, is_begun)}
        rows = self._session.execute(_PHRASE, values, binary=True).fetchall()
        chunks, times, lengths = zip(*rows, strict=True) if rows else ((), (), ())
        return self._index.scored(
            np.array(chunks, np.int64), np.array(times, float), np.array(lengths, np.int64)
        )


def _numbered(chunks: _Integers) -> tuple[_Integers, _Integers]:
    """Return different chunks in order, and of each given one which of them it is."""
    # With the first places too, numpy sorts in a way that makes use of what is in order already.
    different, _, at = np.unique(chunks, return_index=True, return_inverse=True)
    return different, at


def _summed(at: _Integers, values: _Floats, size: int) -> _Floats:
    return np.bincount(at, weights=values, minlength=size).astype(float, copy=False)


def _tokens(match: Match) -> Iterator[str]:
    """Yield the tokens of a match that are looked for by themselves."""
    if isinstance(match, Word | Phrase):
        tokens = lexemes(match.text)
        if len(tokens) == 1 and not (isinstance(match, Word) and match.prefix):
            yield tokens[0]
        return
    for part in (match.keep, match.drop) if isinstance(match, Without) else match.parts:
        yield from _tokens(part)


def to_tsquery(tokens: Sequence[str], is_begun: bool = False) -> str:
    """Return tokens next to each other in tsquery's own form; with `is_begun`, the last is a beginning."""
    quoted = [f"'{token}'" for token in tokens]  # a token holds neither quote nor backslash
    return " <-> ".join(quoted) + (":*" if is_begun else "")


def _count_phrase(session: PostgresSession, tokens: list[str]) -> int:
    if not tokens:
        return 0
    return int(session.value(_COUNT_PHRASE, {"query": to_tsquery(tokens[:_LONGEST_PHRASE])}))
