"""What every store writes down about vectors that are kept outside it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from concord.core.errors import StoreBusy, VectorsElsewhere
from concord.store.contract import Store, documents_at
from concord.types import ChunkId, Filter, Home
from contract.stored import (
    EVERYTHING,
    IDENTITY,
    active_model,
    embed,
    faults,
    keyed,
    put,
    source,
    unit,
    vectors_of,
    writing,
)

ELSEWHERE = "http://qdrant:6333/conduit_kb"
NORTH = unit(1, 0, 0, 0)
OTHER = replace(IDENTITY, model="other")


def changed(store: Store) -> set[ChunkId]:
    """Return what is unsettled, and settle it."""
    waiting = store.outbox.changes(1000)
    store.outbox.settle([turn for turn, _ in waiting])
    assert store.outbox.changes(1000) == []
    return {chunk_id for _, chunk_id in waiting}


def pending(store: Store) -> list[ChunkId]:
    return [waiting.chunk_id for waiting in vectors_of(store).pending(0, 100)]


def test_at_first_vectors_are_kept_in_the_store(store: Store):
    assert store.outbox.home() == Home("", "")
    put(store, "docs/a.md", "a")
    store.catalog.remove_source("docs")
    assert store.outbox.changes(10) == []


def test_moving_makes_every_chunk_pending(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH)])
    store.outbox.move(ELSEWHERE)
    first = store.outbox.home()
    assert first.url == ELSEWHERE
    assert first.key
    assert active_model(store) == IDENTITY
    assert pending(store) == [a, b]
    assert store.catalog.count().vectors == 0
    store.outbox.acknowledge(IDENTITY, [a])
    store.outbox.move("http://other")
    assert store.outbox.home().url == "http://other"
    assert pending(store) == [a, b]
    store.outbox.move("")
    embed(store, [(a, NORTH)])
    assert [found.chunk_id for found in vectors_of(store).search(NORTH, EVERYTHING, 9)] == [a]


def test_a_store_is_empty_until_a_chunk_has_a_vector_in_any_space(store: Store):
    assert store.outbox.is_empty()
    (a,) = put(store, "docs/a.md", "a")
    assert store.outbox.is_empty()
    embed(store, [(a, NORTH)])
    store.models.add(OTHER, {})
    assert not store.outbox.is_empty()
    store.outbox.move(ELSEWHERE)
    assert store.outbox.is_empty()
    store.outbox.acknowledge(OTHER, [a])
    assert not store.outbox.is_empty()
    assert (store.models.index(OTHER).count_pending(), vectors_of(store).count_pending()) == (0, 1)


def test_a_chunk_counts_as_embedded_once_it_is_marked(store: Store):
    store.models.add(IDENTITY, {})
    store.outbox.move(ELSEWHERE)
    a, b = put(store, "docs/a.md", "a", "b")
    (c,) = put(store, "wiki/c.md", "c")
    store.outbox.acknowledge(IDENTITY, [a, c, 999])
    assert pending(store) == [b]
    assert store.catalog.count().vectors == 2
    assert store.outbox.retract(IDENTITY, "docs") == 1
    assert store.outbox.retract(IDENTITY, "docs") == store.outbox.retract(IDENTITY, "none") == 0
    assert pending(store) == [a, b]


def test_vectors_that_are_elsewhere_are_not_looked_for_in_the_store(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    store.models.add(IDENTITY, {})
    store.outbox.move(ELSEWHERE)
    assert vectors_of(store).delete_source("docs") == 0
    store.outbox.acknowledge(IDENTITY, [a])
    for act in (
        lambda: vectors_of(store).search(NORTH, EVERYTHING, 9),
        lambda: vectors_of(store).fetch([a]),
        lambda: vectors_of(store).put(keyed([(a, NORTH)])),
        lambda: vectors_of(store).delete_source("docs"),
    ):
        with pytest.raises(VectorsElsewhere, match=ELSEWHERE):
            act()
    assert faults(store) == []
    store.outbox.retract(IDENTITY, "docs")
    assert vectors_of(store).put(keyed([(a, NORTH)])) == 1
    assert store.outbox.home().url == ""


def test_deleted_chunks_wait_to_be_told_of(store: Store):
    store.outbox.move(ELSEWHERE)
    a, b = put(store, "docs/a.md", "a", "b")
    (c,) = put(store, "docs/c.md", "c")
    (d,) = put(store, "wiki/d.md", "d")
    changed(store)
    put(store, "docs/a.md", "b")
    assert a in changed(store)
    store.catalog.delete_documents(["docs/c.md"])
    assert changed(store) == {c}
    store.catalog.remove_source("wiki")
    assert changed(store) == {d}
    store.catalog.remove_source("docs")
    assert changed(store) == {b}


@pytest.mark.parametrize(
    "change",
    [
        {"path": "docs/b.md"},
        {"type": "code"},
        {"mtime_ns": 5},
        {"superseded_by": "docs/b.md"},
        {"tags": ("new",)},
        {"tags": ()},
        {"source_id": "wiki"},
    ],
    ids=str,
)
def test_a_documents_changes_wait_to_be_told_of(store: Store, change: dict[str, Any]):
    store.outbox.move(ELSEWHERE)
    store.catalog.put_source(source("wiki"))
    stored = put(store, "docs/a.md", "a", "b", tags=("old",))
    put(store, "docs/other.md", "c")
    changed(store)
    (document,) = documents_at(store.catalog, "docs/a.md")
    store.catalog.update_documents([replace(document, **change)])
    assert changed(store) == set(stored)


def test_chunks_are_allowed_by_the_catalog_as_it_is_now(store: Store):
    (a,) = put(store, "docs/a.md", "a", tags=("ops",))
    (b,) = put(store, "docs/b.md", "b", superseded_by="docs/a.md")
    (c,) = put(store, "docs/c.md", "c")
    store.catalog.delete_documents(["docs/c.md"])
    assert store.catalog.allowed(Filter(), [a, b, c]) == {a}
    assert store.catalog.allowed(Filter(include_superseded=True), [a, b, c]) == {a, b}
    assert (
        store.catalog.allowed(Filter(tags=("ops",)), [b, c]) == store.catalog.allowed(Filter(), []) == set()
    )


def test_one_at_a_time_changes_what_is_kept_outside(store: Store):
    refused = pytest.raises(StoreBusy, match="changing the vectors")
    with (
        writing(store),
        refused,
        writing(store, 0.01),
    ):
        pass
    with writing(store):
        pass
