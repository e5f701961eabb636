"""Blocks of postings on PostgreSQL: what FTS5 finds is found, with FTS5's scores, wherever a block ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from concord.store.contract import Store
from concord.store.json_file import MemoryStore
from concord.store.store import SqlStore
from concord.types import AllOf, AnyOf, Match, Phrase, Without, Word
from contract.stored import EVERYTHING, put
from support.postgres_server import fresh_org, server_url

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import match as matching
from concord.store.postgres import words as vocabulary
from concord.store.postgres.postings import BLOCK
from concord.store.postgres.store import PostgresStore

ALPHA, BETA, GAMMA, RARE = map(Word, ("alpha", "beta", "gamma", "rare"))
MATCHES: tuple[Match, ...] = (
    ALPHA,
    Word("gam", prefix=True),
    Phrase("beta gamma"),
    AllOf((ALPHA, Word("w3"))),
    AnyOf((ALPHA, BETA, Word("w3"), Word("w4"))),
    Without(ALPHA, GAMMA),
)


@pytest.fixture
def pair() -> Iterator[tuple[SqlStore, PostgresStore]]:
    """A store in FTS5 and one in blocks, whose next chunks lie in two of these."""
    pair = MemoryStore(), PostgresStore.open(server_url(), fresh_org())
    for store in pair:
        with store._database.transaction() as session:
            statement = store._database.dialect.number_after.format(table="kb_chunks")
            session.run(statement, {"last": BLOCK - 5})
    with closing(pair[1]):
        yield pair


def assert_alike(pair: tuple[Store, Store], *matches: Match) -> None:
    for match in matches:
        expected, found = (store.words.search(match, EVERYTHING, 1000) for store in pair)
        assert expected or isinstance(match, Without)
        assert {each.chunk_id: each.score for each in found} == pytest.approx(
            {each.chunk_id: each.score for each in expected}, rel=1e-6
        )


def test_scores_are_those_of_fts5_on_both_sides_of_the_end_of_a_block(pair: tuple[Store, Store]):
    texts = [f"alpha beta {'gamma ' * (n % 4)} w{n}" for n in range(12)]
    for kept in (texts, texts[1::2], texts):
        for store in pair:
            put(store, "docs/a.md", *kept, title="Alpha", tags=("beta",))
        assert_alike(pair, *MATCHES)


def test_what_another_process_writes_is_found_at_once(pair: tuple[Store, PostgresStore]):
    writer = pair[1]
    with closing(PostgresStore.open(server_url(), writer._connections.location.org)) as other:
        for number in range(1, 4):
            put(writer, f"docs/{number}.md", "alpha")
            assert other.words.frequencies(["alpha", "beta"]) == (number, {"alpha": number, "beta": 0})
            assert len(other.words.search(ALPHA, EVERYTHING, 9)) == number
        writer.catalog.remove_source("docs")
        assert other.words.search(ALPHA, EVERYTHING, 9) == []


def test_postings_that_are_no_longer_kept_are_read_again(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(matching, "_MOST_KEPT", 3)
    for store in pair:
        put(store, "docs/a.md", *(f"alpha beta w{n}" for n in range(1, 9)))
    assert_alike(pair, *[MATCHES[4]] * 3)


@pytest.mark.parametrize("small", [vocabulary.SMALL, 0])
def test_words_near_a_mistyped_one_are_shown_as_they_are_written(
    pair: tuple[Store, Store], small: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vocabulary, "SMALL", small)
    _, store = pair
    put(store, "docs/a.md", "Kubernetes installations", *("filler",) * 9, "installations")
    assert store.words.similar_words("kubernets", 3) == [("kubernetes", 1)]
    assert store.words.similar_words("instalations", 3) == [("installations", 2)]
    assert store.words.similar_words("xyzzy", 3) == []
