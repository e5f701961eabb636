"""What every catalog does with documents that supersede each other."""

from __future__ import annotations

import pytest

from concord.store.contract import Select, Store, document_by_id
from concord.types import Filter
from contract.stored import document, put


def chain(store: Store) -> None:
    """Store a, superseded by b, superseded by c."""
    put(store, "docs/a.md", "the word", superseded_by="more/b.md")
    put(store, "more/b.md", "the word", superseded_by="docs/c.md")
    put(store, "docs/c.md", "the word")


def current(store: Store) -> set[str]:
    return {d.path for d in store.catalog.documents() if d.superseded_by is None}


def test_a_document_knows_what_it_superseded(store: Store):
    put(store, "docs/a.md", "one", superseded_by="docs/c.md")
    put(store, "docs/b.md", "two", superseded_by="docs/c.md")
    put(store, "docs/c.md", "three")
    assert [d.path for d in list(store.catalog.documents(Select(superseded_by="docs/c.md")))] == [
        "docs/a.md",
        "docs/b.md",
    ]
    assert list(store.catalog.documents(Select(superseded_by="docs/a.md"))) == []


@pytest.mark.promise("002.supersede")
def test_deleting_the_last_of_a_chain_brings_the_one_before_it_back(store: Store):
    chain(store)
    store.catalog.delete_documents(["docs/c.md"])
    assert current(store) == {"more/b.md"}
    assert store.catalog.count_documents(Filter()) == 1


@pytest.mark.promise("002.supersede")
def test_deleting_the_middle_of_a_chain_joins_its_ends(store: Store):
    chain(store)
    store.catalog.delete_documents(["more/b.md"])
    assert document_by_id(store.catalog, "docs/a.md") == document("docs/a.md", superseded_by="docs/c.md")
    assert current(store) == {"docs/c.md"}


@pytest.mark.promise("002.supersede")
def test_removing_a_source_brings_back_what_its_documents_superseded(store: Store):
    put(store, "docs/a.md", "the word", superseded_by="more/b.md")
    put(store, "more/b.md", "the word")
    store.catalog.remove_source("more")
    assert current(store) == {"docs/a.md"}


def test_documents_that_supersede_each_other_do_not_hide_the_one_that_is_left(store: Store):
    put(store, "docs/a.md", "one", superseded_by="docs/b.md")
    put(store, "docs/b.md", "two", superseded_by="docs/a.md")
    store.catalog.delete_documents(["docs/b.md"])
    assert current(store) == {"docs/a.md"}


def test_what_a_note_was_made_of_is_kept_with_it(store: Store):
    fields = {"content": "  as typed\n", "highlights": ["a", "ü"], "summary": None}
    put(store, "docs/a.md", "as typed", fields=fields)
    assert document_by_id(store.catalog, "docs/a.md") == document("docs/a.md", fields=fields)
    ((_, read),) = store.catalog.read([store.catalog.chunks("docs/a.md")[0].id]).values()
    assert read.fields == fields
