"""Words, as far as engines do not differ: what chunks are called, words near a typed one, deep matches."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any

from concord.store.rows import LEAST_IDF, condition, owner_and_name
from concord.store.sql import Database, Session
from concord.text.similar import Typed, similar, typed
from concord.types import AllOf, AnyOf, ChunkId, Filter, Match, Phrase, Scored, Without, Word

_MAX_DEPTH = 16  # FTS5's parser gives up at about 30 nested brackets; nothing that a person types comes near

_STORED = "SELECT chunk, token FROM kb_names WHERE chunk IN (:chunks...)"
_FORGET = "DELETE FROM kb_names WHERE chunk IN (:chunks...)"
_PUT = "INSERT INTO kb_names (token, chunk) VALUES (:token, :chunk)"

# Chunks with a name; where it is asked for with an owner, those that have the owner as well.
_HELD = """
WITH asked (owner, token) AS (VALUES {asked}),
held AS (
    SELECT a.owner, a.token, n.chunk FROM asked AS a JOIN kb_names AS n ON n.token = a.token
    WHERE a.owner = '' OR EXISTS (
        SELECT 1 FROM kb_names AS o WHERE o.token = '@' || a.owner AND o.chunk = n.chunk))"""
_COUNT = f"{_HELD} SELECT owner, token, count(*) FROM held GROUP BY owner, token"
_IDF = "ln((CASE WHEN t.n > c.n THEN t.n - c.n ELSE 0 END + 0.5) / (c.n + 0.5))"
_SEARCH = f"""{_HELD},
counted AS (SELECT owner, token, count(*) AS n FROM held GROUP BY owner, token),
total AS (SELECT value AS n FROM kb_meta WHERE key = 'chunks'),
weighed AS (
    SELECT c.owner, c.token, CASE WHEN {_IDF} > {LEAST_IDF} THEN {_IDF} ELSE {LEAST_IDF} END AS idf
    FROM counted AS c, total AS t)
SELECT h.chunk, sum(w.idf) AS score
FROM held AS h JOIN weighed AS w ON w.owner = h.owner AND w.token = h.token
WHERE EXISTS (
    SELECT 1 FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
    WHERE c.id = h.chunk AND {{condition}})
GROUP BY h.chunk ORDER BY score DESC, h.chunk LIMIT :limit"""


class WordIndex:
    """Finds chunks by words, and by what they are called. The best come first, ties by id."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @abstractmethod
    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        """Return the best chunks by BM25."""

    @abstractmethod
    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        """Return how many chunks there are, and how many hold each word (by its stem)."""

    @abstractmethod
    def _near(self, session: Any, asked: Typed) -> Iterable[tuple[str, int]]:
        """Return tokens that may be near a typed word, with how many chunks hold each."""

    @abstractmethod
    def _spellings(self, session: Any, token: str) -> Iterator[str]:
        """Yield words that a token stands for: an index keeps only their stem."""

    def similar_words(self, word: str, limit: int) -> list[tuple[str, int]]:
        """Return indexed words near a typed one, nearest first, with how many chunks hold each."""
        asked = typed(word)
        if asked is None or limit < 1:
            return []
        with self._database.read() as session:
            near = self._near(session, asked)
            return similar(asked, near, lambda token: self._spellings(session, token), limit)

    def search_names(self, tokens: Sequence[str], filter: Filter, limit: int) -> list[Scored]:
        """Return the chunks with the highest sum of idf over some name tokens."""
        if not tokens or limit < 1:
            return []
        sql, values = condition(filter, self._database.dialect)
        asked, pairs = _asked(tokens)
        statement = _SEARCH.format(asked=asked, condition=sql)
        return list(starmap(Scored, self._database.rows(statement, {**values, **pairs, "limit": limit})))

    def name_frequencies(self, tokens: Sequence[str]) -> dict[str, int]:
        """Return how many chunks have each name."""
        if not tokens:
            return {}
        asked, pairs = _asked(tokens)
        rows = self._database.rows(_COUNT.format(asked=asked), pairs)
        counts = {f"{owner} {token}".lstrip(): count for owner, token, count in rows}
        return {token: counts.get(token, 0) for token in tokens}


def put_names(session: Session, names: Mapping[ChunkId, Sequence[str]]) -> set[ChunkId]:
    """Write what chunks are called; return those that were called something else before."""
    stored: dict[ChunkId, set[str]] = defaultdict(set)
    for chunk_id, token in session.rows(_STORED, {"chunks": [*names]}):
        stored[chunk_id].add(token)
    changed = {chunk_id for chunk_id, tokens in names.items() if stored.get(chunk_id, set()) != set(tokens)}
    if changed & stored.keys():
        session.run(_FORGET, {"chunks": [*changed & stored.keys()]})
    rows = {(token, chunk_id) for chunk_id in changed for token in names[chunk_id]}
    # In the order of the table.
    session.run_many(_PUT, ({"token": token, "chunk": chunk_id} for token, chunk_id in sorted(rows)))
    return changed


def _asked(tokens: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return owners and names as the rows of VALUES, and the values in them."""
    pairs = [owner_and_name(token) for token in dict.fromkeys(tokens)]
    values = {f"owner{at}": owner for at, (owner, _) in enumerate(pairs)}
    values |= {f"token{at}": token for at, (_, token) in enumerate(pairs)}
    return ", ".join(f"(:owner{at}, :token{at})" for at in range(len(pairs))), values


def wanted(match: Match) -> tuple[Match, ...]:
    """Return all words that a match looks for, without those that it excludes."""
    found: list[Match] = []
    waiting = [match]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Without):
            waiting.append(part.keep)
        elif isinstance(part, AllOf | AnyOf):
            waiting.extend(reversed(part.parts))
        else:
            found.append(part)
    return tuple(found)


def levelled(match: Match, depth: int = _MAX_DEPTH) -> Match:
    """Return a match that nests no deeper than engines can go.

    `a NOT b NOT c …` is one exclusion, and what lies too deep asks for any of its words.
    """
    if isinstance(match, Word | Phrase):
        return match
    if depth == 0:
        return AnyOf(wanted(match))
    if isinstance(match, Without):
        dropped: list[Match] = []
        while isinstance(match, Without):
            dropped.append(match.drop)
            match = match.keep
        return Without(levelled(match, depth - 1), levelled(AnyOf(tuple(dropped)), depth))
    return type(match)(tuple(levelled(part, depth - 1) for part in match.parts))
