"""Words: FTS5 and its BM25, and the words of the index that are near a typed one.

Reading the whole vocabulary means reading the whole index, which takes a second at 100,000 chunks. A large
one is therefore asked for all words that begin alike, and for the other spellings one edit away, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any

from concord.store.rows import HAS_SUPERSEDED, LAST_CHARACTER, WEIGHTS, condition
from concord.store.sql import Session, WordTables, override
from concord.store.sqlite.dialect import DELETED_TRIGGER, DIALECT
from concord.store.words import WordIndex, levelled
from concord.text.similar import ALIKE, SPELLINGS, Typed
from concord.text.tokens import separated, tokenize
from concord.types import AllOf, ChunkId, Filter, Match, Phrase, Scored, Without, Word

# The rest of a query that starts at the documents and ends at their chunks, `c`.
_CHUNKS = "kb_documents AS d CROSS JOIN kb_chunks AS c ON c.document = d.key"
# `ORDER BY rank` would let FTS5 sort, which is slower than SQLite's own top-k and leaves ties open.
_SEARCH = f"""
SELECT f.rowid, -bm25(kb_chunks_fts, {", ".join(map(str, WEIGHTS))}) AS score
FROM kb_chunks_fts AS f {{rest}} ORDER BY score DESC, f.rowid LIMIT :limit"""
_MATCHED = "WHERE f.kb_chunks_fts MATCH :match"
_EVERYTHING = _SEARCH.format(rest=_MATCHED)
# Superseded documents are few: leaving out their chunks is cheap where a join would double the time.
_CURRENT = _SEARCH.format(
    rest=f"{_MATCHED} AND f.rowid NOT IN (SELECT c.id FROM {_CHUNKS} WHERE d.superseded_by IS NOT NULL)"
)
# The plus keeps SQLite from trying, for every match, every document that a list in the condition names.
_FILTERED = _SEARCH.format(
    rest=f"""CROSS JOIN kb_chunks AS c INDEXED BY kb_chunks_place ON c.id = f.rowid
    CROSS JOIN kb_documents AS d ON d.key = +c.document {_MATCHED} AND {{condition}}"""
)

_COUNT_CHUNKS = "SELECT value FROM kb_meta WHERE key = 'chunks'"
_COUNT_TOKENS = "SELECT term, doc FROM kb_chunks_vocab WHERE term IN (:tokens...)"
_COUNT_PHRASE = "SELECT count(*) FROM kb_chunks_fts WHERE kb_chunks_fts MATCH :match"

# An index of so few chunks is read through, which alone finds words by their middle or two slips early on:
# 5 ms of work, where 100,000 chunks would take a second.
SMALL = 200
MOST_TOKENS = 5000  # read of one beginning
_EVERY_TOKEN = "SELECT term, doc FROM kb_chunks_vocab"
_BEGINNING = f"{_EVERY_TOKEN} WHERE term >= :start AND term < :end LIMIT :most"
# Where each token stands; temporary, because nothing else needs it.
_MAKE_PLACES = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.kb_places USING fts5vocab(main, kb_chunks_fts, instance)"""
_PLACES = 'SELECT doc, col, "offset" FROM temp.kb_places WHERE term = :token LIMIT :most'

_MANY = 1000  # chunks; fewer are taken out of the full-text index in a fraction of a second


class SQLiteWords(WordIndex):
    """The index of words of one file."""

    @override
    def search(self, match: Match, filter: Filter, limit: int) -> list[Scored]:
        expression = to_match(match)
        if expression is None or limit < 1:
            return []
        values: dict[str, Any] = {"match": expression, "limit": limit}
        with self._database.read() as session:
            statement = _statement(session, filter, values)
            return list(starmap(Scored, session.iterate(statement, values)))

    @override
    def frequencies(self, words: Sequence[str]) -> tuple[int, dict[str, int]]:
        with self._database.read() as session:
            tokens = {word: tokenize(word) for word in words}  # what FTS5 makes of it, without asking it
            single = [parts[0] for parts in tokens.values() if len(parts) == 1]
            known = dict(session.rows(_COUNT_TOKENS, {"tokens": single}))
            counts = {
                word: known.get(parts[0], 0) if len(parts) == 1 else _count_phrase(session, word)
                for word, parts in tokens.items()
            }
            return session.value(_COUNT_CHUNKS), counts

    @override
    def _near(self, session: Session, asked: Typed) -> Iterable[tuple[str, int]]:
        """Return all tokens of a small index; of a large one those that begin alike or are one edit away.

        Each of the others takes as long as reading five that begin alike. What stands in one chunk alone may
        be mistyped there as well.
        """
        if session.value(_COUNT_CHUNKS) <= SMALL:
            return session.rows(_EVERY_TOKEN)
        start = asked.word[:ALIKE] if asked.allowed else asked.word
        rows = session.rows(_BEGINNING, {"start": start, "end": start + LAST_CHARACTER, "most": MOST_TOKENS})
        if any(chunks > 1 and token in asked.one_off for token, chunks in rows):
            return rows
        tokens = [token for token in asked.one_off if not token.startswith(start)]
        return dict([*rows, *session.rows(_COUNT_TOKENS, {"tokens": tokens})]).items()

    @override
    def _spellings(self, session: Session, token: str) -> Iterator[str]:
        session.run(_MAKE_PLACES)
        for chunk, column, at in session.rows(_PLACES, {"token": token, "most": SPELLINGS}):
            text = session.value(f"SELECT {column} FROM kb_chunks WHERE id = :chunk", {"chunk": chunk})
            yield from separated(text)[at : at + 1]


class SQLiteWordTables(WordTables):
    """Triggers keep the full-text index in step."""

    @override
    def index(self, session: Session, chunk_ids: Sequence[ChunkId]) -> None:
        pass

    @override
    def delete_chunks(self, session: Session, chunk_ids: Sequence[ChunkId]) -> None:
        doomed = "DELETE FROM kb_chunks WHERE id IN (:chunks...)"
        if len(chunk_ids) <= max(_MANY, session.value(_COUNT_CHUNKS) / 2):
            session.run(doomed, {"chunks": list(chunk_ids)})
            return
        # Deleting most chunks and indexing the rest anew is faster than taking them out one by one.
        session.run("DROP TRIGGER kb_chunks_deleted")
        session.run(doomed, {"chunks": list(chunk_ids)})
        session.run("UPDATE kb_meta SET value = (SELECT count(*) FROM kb_chunks) WHERE key = 'chunks'")
        session.run("INSERT INTO kb_chunks_fts (kb_chunks_fts) VALUES ('rebuild')")
        session.run(DELETED_TRIGGER)


def _statement(session: Session, filter: Filter, values: dict[str, Any]) -> str:
    if filter.is_open:
        is_everything = filter.include_superseded or not session.value(HAS_SUPERSEDED)
        return _EVERYTHING if is_everything else _CURRENT
    sql, filter_values = condition(filter, DIALECT)
    values.update(filter_values)
    return _FILTERED.format(condition=sql)


def _count_phrase(session: Session, word: str) -> int:
    """Count a word that the tokenizer splits: its tokens, side by side."""
    expression = to_match(Phrase(word))
    return int(session.value(_COUNT_PHRASE, {"match": expression})) if expression else 0


def to_match(match: Match) -> str | None:
    """Return a MATCH string that FTS5 can parse, whatever the words; None when there is nothing to find."""
    return _render(levelled(match))


def _render(match: Match) -> str | None:
    if isinstance(match, Word | Phrase):
        return _quoted(match)
    if isinstance(match, Without):
        kept, dropped = _render(match.keep), _render(match.drop)
        return f"({kept} NOT {dropped})" if kept and dropped else kept
    rendered = [text for part in match.parts if (text := _render(part)) is not None]
    operator = " AND " if isinstance(match, AllOf) else " OR "
    return f"({operator.join(rendered)})" if len(rendered) > 1 else rendered[0] if rendered else None


def _quoted(leaf: Word | Phrase) -> str | None:
    # Inside quotes FTS5 reads every operator as text. A text without a token would match no row at all.
    if not separated(leaf.text):
        return None
    text = leaf.text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").replace('"', '""')
    return f'"{text}"*' if isinstance(leaf, Word) and leaf.prefix else f'"{text}"'
