"""Every text that a store takes comes back as it was given; what no store can hold is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.core.errors import BadValue
from concord.store.contract import Select, Store, document_by_id, documents_at
from concord.types import Chunk, Document, Feedback, FileState, Pending, Piece, Source
from contract.stored import document, pieces, put, source, vectors_of

HALF = "half \ud800 a character"
ODD = st.text(alphabet="\x1b0ea/*é💥", max_size=6)
NAMES = ODD.map(lambda text: "n" + text)
SOURCES = st.builds(
    Source,
    id=NAMES,
    name=NAMES,
    path=st.none() | ODD,
    kind=st.just("directory"),
    prefix=NAMES,
    patterns=st.lists(ODD, max_size=2).map(tuple),
    tags=st.lists(ODD, max_size=2).map(tuple),
)
DOCUMENTS = st.builds(
    Document,
    id=NAMES,
    source_id=NAMES,
    path=NAMES,
    type=st.just("note"),  # whose tags are told to an embedder
    title=ODD,
    tags=st.lists(NAMES, unique=True, max_size=2).map(tuple),
    details=st.dictionaries(ODD, ODD, max_size=2),
    file_hash=ODD,
    content_hash=ODD,
    fields=st.dictionaries(ODD, ODD, max_size=2),
)
PIECES = st.builds(
    Piece,
    text=ODD,
    start=st.just(0),
    end=st.just(9),
    start_line=st.just(1),
    end_line=st.just(2),
    heading=st.lists(ODD, max_size=2).map(tuple),
)
often = settings(max_examples=40)


def emptied(store: Store) -> Store:
    for known in store.catalog.snapshot().sources:
        store.catalog.remove_source(known.id)
    return store


@given(SOURCES, ODD)
@often
def test_a_source_and_its_memo_are_read_back_whatever_they_are_called(store: Store, given: Source, memo: str):
    catalog = emptied(store).catalog
    catalog.put_source(given)
    assert catalog.snapshot().sources == [given]
    catalog.put_source(replace(given, trust="untrusted"))
    catalog.put_sync_state(given.id, memo)
    assert catalog.sync_state(given.id) == memo
    assert catalog.count(given.id).sources == 1
    catalog.remove_source(given.id)
    assert catalog.snapshot().sources == []


@given(DOCUMENTS, PIECES)
@often
def test_a_document_and_its_chunks_are_read_back_whatever_is_written_in_them(
    store: Store, given: Document, piece: Piece
):
    catalog = emptied(store).catalog
    catalog.put_source(source(given.source_id))
    (chunk_id,) = catalog.put_documents([(given, [piece])])[0]
    chunk = Chunk(chunk_id, given.id, 0, piece.text, 0, 9, 1, 2, heading=piece.heading)
    assert catalog.put_documents([(given, [piece])])[0] == [chunk_id]  # it is known again
    assert document_by_id(catalog, given.id) == given
    assert documents_at(catalog, given.path) == [given]
    assert list(catalog.documents()) == list(catalog.documents(Select(source_id=given.source_id))) == [given]
    assert catalog.read([chunk_id]) == {chunk_id: (chunk, given)}
    assert catalog.chunks(given.id) == [chunk]
    state = FileState(given.id, given.path, 0, 0, given.file_hash, given.content_hash, given.indexed_at)
    assert catalog.file_states(given.source_id) == {given.path: state}
    assert catalog.count(given.source_id).chunks == 1
    waiting = Pending(chunk_id, given.title, piece.heading, piece.text, given.tags)
    assert vectors_of(store).pending(0, 9, given.source_id) == [waiting]
    assert vectors_of(store).count_pending(given.source_id) == 1
    assert catalog.reindex_words([given.id]) == 0
    assert catalog.delete_documents([given.id]) == 1
    assert list(catalog.documents()) == []


def _source(field: str, value: Any) -> Callable[[Store], object]:
    return lambda store: store.catalog.put_source(source(**{field: value}))


def _document(field: str, value: Any) -> Callable[[Store], object]:
    made = replace(document("docs/new.md"), **{field: value})
    return lambda store: store.catalog.put_documents([(made, pieces("text"))])


def _piece(field: str, value: Any) -> Callable[[Store], object]:
    piece = replace(pieces("text")[0], **{field: value})
    return lambda store: store.catalog.put_documents([(document(), [piece])])


def _opinion(field: str) -> Callable[[Store], object]:
    given = replace(Feedback("docs/b.md", "docs/b.md:1", "good", "query", 1.0), **{field: HALF})
    return lambda store: store.journal.record_feedback(given)


REFUSED: dict[str, Callable[[Store], object]] = {
    **{f"source.{field}": _source(field, HALF) for field in ("id", "name", "path", "prefix")},
    **{f"source.{field}": _source(field, (HALF,)) for field in ("patterns", "tags")},
    **{f"document.{field}": _document(field, HALF) for field in ("id", "path", "title")},
    **{f"document.{field}": _document(field, HALF) for field in ("file_hash", "content_hash")},
    "document.superseded_by": _document("superseded_by", HALF),
    "document.tags": _document("tags", (HALF,)),
    "piece.text": _piece("text", HALF),
    "piece.heading": _piece("heading", (HALF,)),
    "memo": lambda store: store.catalog.put_sync_state("docs", HALF),
    **{f"feedback.{field}": _opinion(field) for field in ("document_id", "citation", "query")},
}


def _all(store: Store) -> tuple[Any, ...]:
    found = (
        store.catalog.snapshot().sources,
        list(store.catalog.documents()),
        store.catalog.sync_state("docs"),
    )
    return *found, store.journal.feedback(), store.catalog.chunks("docs/a.md")


@pytest.mark.parametrize("store", ["sqlite", "postgresql", "json"], indirect=True)
@pytest.mark.parametrize("act", REFUSED.values(), ids=list(REFUSED))
def test_half_a_character_is_refused_and_nothing_changes(store: Store, act: Callable[[Store], object]):
    put(store, "docs/a.md", "before")
    before = _all(store)
    with pytest.raises(BadValue, match="not valid Unicode|half a character") as refusal:
        act(store)
    assert refusal.value.hint
    assert _all(store) == before


@pytest.mark.parametrize("store", ["sqlite", "postgresql"], indirect=True)
def test_half_a_character_in_details_comes_back(store: Store):
    """They are written by an encoder that has a form for it."""
    put(store, "docs/a.md", "text", details={"author": HALF})
    (found,) = store.catalog.documents()
    assert found.details == {"author": HALF}
