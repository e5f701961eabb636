"""Words on PostgreSQL: what is written together is stored together, and what is gone is not found."""

from __future__ import annotations

import pytest

from concord.core.errors import BadValue
from concord.types import Piece, Word
from contract.stored import EVERYTHING, document, put
from support.stores import postgres_store

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres.store import PostgresStore

store = pytest.fixture(postgres_store)


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


def test_a_character_that_no_text_of_a_file_has_is_refused(store: PostgresStore):
    with pytest.raises(BadValue, match="NUL"):
        put(store, "docs/a.md", "text", title="a\0b")
