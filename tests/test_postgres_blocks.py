"""Blocks of postings on PostgreSQL: what FTS5 finds is found, with FTS5's scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.store.rows import WEIGHTS, Columns
from concord.store.sqlite.words import to_match
from concord.types import AllOf, AnyOf, Filter, Match, Phrase, Scored, Without, Word
from support.postgres_server import fresh_org, server_url

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import match as matching
from concord.store.postgres import postings
from concord.store.postgres import words as vocabulary
from concord.store.postgres.connections import Connections, connect, locate
from concord.store.postgres.database import DIALECT, PostgresDatabase
from concord.store.postgres.postings import BlockTables
from concord.store.postgres.words import BlockWords, Scopes
from concord.store.schema import create

_SCORES = f"SELECT rowid, -bm25(f, {', '.join(map(str, WEIGHTS))}) FROM f WHERE f MATCH ?"
_CHANGED = "UPDATE kb_meta SET value = value + 1 WHERE key = 'generation'"
_SOURCE = (
    "INSERT INTO kb_sources VALUES (1, 'docs', 'docs', NULL, 'notes', 'docs', '[]', '[]', 'trusted', 0, 0)"
)
_DOCUMENT = "INSERT INTO kb_documents VALUES (1, 'a', 1, 'docs/a', 'note', 'A', '{}', '', '', 0, 0, NULL, 0)"
_CHUNK = """
INSERT INTO kb_chunks (id, document, position, start_offset, end_offset, start_line, end_line, heading,
    title, content, tags, terms)
VALUES (:id, 1, 0, 0, 0, 0, 0, '[]', :title, :content, :tags, :terms)"""
EVERYTHING = Filter(include_superseded=True)


class Pair:
    """The same chunks in blocks of postings and in FTS5."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database
        self.tables = BlockTables()
        self.words = BlockWords(database, Scopes())
        self.fts5 = apsw.Connection(":memory:")
        self.fts5.execute(
            "CREATE VIRTUAL TABLE f USING fts5(title, content, tags, terms, tokenize='porter unicode61')"
        )

    def add(self, chunks: dict[int, Columns]) -> None:
        rows = [{"id": chunk_id, **columns._asdict()} for chunk_id, columns in chunks.items()]
        with self.database.transaction() as session:
            session.run_many(_CHUNK, rows)
            self.tables.index(session, list(chunks))
            session.run(_CHANGED)
        for chunk_id, columns in chunks.items():
            self.fts5.execute(
                "INSERT INTO f (rowid, title, content, tags, terms) VALUES (?, ?, ?, ?, ?)",
                (chunk_id, *columns),
            )

    def remove(self, *chunk_ids: int) -> None:
        with self.database.transaction() as session:
            self.tables.delete_chunks(session, chunk_ids)
            session.run(_CHANGED)
        for chunk_id in chunk_ids:
            self.fts5.execute("DELETE FROM f WHERE rowid = ?", (chunk_id,))

    def empty(self) -> None:
        self.remove(*(chunk_id for (chunk_id,) in self.rows("SELECT id FROM kb_chunks")))

    def best(self, match: Match, limit: int = 1000) -> list[Scored]:
        return self.words.search(match, EVERYTHING, limit)

    def agrees(self, match: Match) -> bool:
        expression = to_match(match)
        expected: dict[int, float] = dict(self.fts5.execute(_SCORES, (expression,))) if expression else {}
        scores = {scored.chunk_id: scored.score for scored in self.best(match)}
        return scores == pytest.approx(expected, rel=1e-6)

    def rows(self, statement: str) -> list[Any]:
        with self.database.read() as session:
            return session.rows(statement)

    def count(self, table: str) -> int:
        return int(self.rows(f"SELECT count(*) FROM {table}")[0][0])


@pytest.fixture
def pair() -> Iterator[Pair]:
    location = locate(server_url(), fresh_org())
    with connect(location) as connection:
        connection.execute(f'CREATE SCHEMA "{location.schema}"')
        connection.execute(create(DIALECT))
        connection.execute(postings.TABLES)
        connection.execute(_SOURCE)
        connection.execute(_DOCUMENT)
    with closing(Connections(location)) as connections:
        yield Pair(PostgresDatabase(connections))


WORDS = ("alpha", "alphabet", "beta", "running", "Ünder", "δέλτα", "日本", "x" * 300, "a_b", "the")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
COLUMNS = st.builds(Columns, TEXTS, TEXTS | st.text(max_size=20), TEXTS, TEXTS)
LEAVES = st.builds(Word, st.sampled_from(WORDS), prefix=st.booleans()) | TEXTS.map(Phrase)
# FTS5 counts, in a part that a chunk does not satisfy, what it has come by: only flat parts are compared.
PARTS = st.lists(LEAVES, min_size=1, max_size=4).map(tuple)
MATCHES: st.SearchStrategy[Match] = (
    LEAVES | PARTS.map(AnyOf) | PARTS.map(AllOf) | st.builds(Without, PARTS.map(AnyOf), LEAVES)
)


@given(
    st.lists(COLUMNS, min_size=1, max_size=12),
    st.lists(COLUMNS, max_size=4),
    st.sets(st.integers(0, 11)),
    st.lists(MATCHES, min_size=1, max_size=6),
)
@settings(max_examples=60)
def test_scores_are_those_of_fts5_also_after_chunks_were_removed(
    pair: Pair, first: list[Columns], later: list[Columns], gone: set[int], matches: list[Match]
):
    start = postings.BLOCK - 5  # so that they lie in two blocks
    pair.empty()
    pair.add(dict(enumerate(first, start)))
    assert all(map(pair.agrees, matches))
    pair.remove(*(start + number for number in gone))
    pair.add(dict(enumerate(later, start + 100)))
    assert all(map(pair.agrees, matches))


def text(content: str, title: str = "") -> Columns:
    return Columns(title, content, "", "")


def test_what_another_process_writes_is_found_at_once(pair: Pair):
    other = BlockWords(pair.database, Scopes())
    pair.add({1: text("alpha")})
    for number in (2, 3):
        assert other.frequencies(["alpha", "beta"]) == (
            number - 1,
            {"alpha": number - 1, "beta": 0},
        )
        pair.add({number: text("alpha")})
        assert len(other.search(Word("alpha"), EVERYTHING, 9)) == number
    pair.remove(1, 2, 3)
    assert other.search(Word("alpha"), EVERYTHING, 9) == []


def test_postings_that_are_no_longer_kept_are_read_again(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(matching, "_MOST_KEPT", 3)
    pair.add({n: text(f"alpha beta w{n}") for n in range(1, 9)})
    match = AnyOf((Word("alpha"), Word("beta"), Word("w3"), Word("w4")))
    assert [pair.agrees(match) for _ in range(3)] == [True] * 3


def test_a_frequent_token_is_counted_without_its_postings_and_found_with_them(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(matching, "RARE", 3)
    pair.add({n: text("alpha" if n % 2 else "alpha rare") for n in range(1, 6)})
    assert pair.words.frequencies(["alpha", "rare"]) == (5, {"alpha": 5, "rare": 2})
    assert pair.agrees(AllOf((Word("alpha"), Word("rare"))))


@pytest.mark.parametrize("small", [vocabulary.SMALL, 0])
def test_words_near_a_mistyped_one_are_shown_as_they_are_written(
    pair: Pair, small: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vocabulary, "SMALL", small)
    pair.add({1: text("Kubernetes installations"), 9000: text("installations")})
    assert pair.words.similar_words("kubernets", 3) == [("kubernetes", 1)]
    assert pair.words.similar_words("instalations", 3) == [("installations", 2)]
    assert pair.words.similar_words("xyzzy", 3) == []
