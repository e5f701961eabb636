"""Words on PostgreSQL: what is written together is stored together, and what is gone is not found."""

from __future__ import annotations

import pytest

from concord.core.errors import BadValue
from concord.types import Filter, Piece, Word
from contract.stored import EVERYTHING, document, pieces, put, source
from support.stores import postgres_store

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore

store = pytest.fixture(postgres_store)


def test_a_document_given_twice_is_as_it_was_given_last(store: PostgresStore):
    store.catalog.put_source(source("docs"))
    store.catalog.put_documents([(document(), pieces("first")), (document(), pieces("second", "third"))])
    assert [chunk.text for chunk in store.catalog.chunks("docs/a.md")] == ["second", "third"]
    assert store.words.frequencies(["first", "second"]) == (2, {"first": 0, "second": 1})


def test_many_deleted_chunks_leave_the_others_to_be_found(store: PostgresStore):
    put(store, "docs/kept.md", *(f"often and {'at length ' * 9} w{n}" for n in range(3)))
    for n in range(4):
        put(store, f"docs/{n}.md", *("often" for _ in range(60)))
    store.catalog.delete_documents([f"docs/{n}.md" for n in range(4)])
    kept = [chunk.id for chunk in store.catalog.chunks("docs/kept.md")]
    assert [one.chunk_id for one in store.words.search(Word("often"), Filter(), 2)] == kept[:2]
    assert [one.chunk_id for one in store.words.search(Word("often"), Filter(), 9)] == kept


def test_more_words_than_a_chunk_can_have_are_refused_and_nothing_of_their_group_is_stored(
    store: PostgresStore,
):
    put(store, "docs/before.md", "before")
    endless = " ".join(f"{number:x}q" for number in range(200_000))
    before = store.catalog.count()
    with pytest.raises(BadValue, match="too large"):
        store.catalog.put_documents(
            [
                (document("docs/fine.md"), [Piece("fine", 0, 4, 1, 1)]),
                (document("docs/endless.md"), [Piece(endless, 0, len(endless), 1, 1)]),
            ]
        )
    assert store.catalog.count() == before
    put(store, "docs/after.md", "after")
    assert len(store.words.search(Word("after"), EVERYTHING, 10)) == 1
