"""What every store writes down about vectors that are kept outside it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from concord.core.errors import StoreBusy, VectorsElsewhere
from concord.core.storage import Store
from concord.types import ChunkId, Filter, Home
from contract.stored import EVERYTHING, IDENTITY, embed, faults, put, source, unit

ELSEWHERE = "http://qdrant:6333/conduit_kb"
NORTH = unit(1, 0, 0, 0)
OTHER = replace(IDENTITY, model="other")


def changed(store: Store) -> set[ChunkId]:
    """Return what is unsettled, and settle it."""
    waiting = store.ledger.unsettled(1000)
    store.ledger.settle([turn for turn, _ in waiting])
    assert store.ledger.unsettled(1000) == []
    return {chunk_id for _, chunk_id in waiting}


def pending(store: Store) -> list[ChunkId]:
    return [waiting.chunk_id for waiting in store.vectors.pending(0, 100)]


def test_at_first_vectors_are_kept_in_the_store(store: Store):
    assert store.ledger.home() == Home("", "")
    put(store, "docs/a.md", "a")
    store.catalog.remove_source("docs")
    assert store.ledger.unsettled(10) == []


def test_moving_makes_every_chunk_pending(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH)])
    store.ledger.move(ELSEWHERE)
    first = store.ledger.home()
    assert first.url == ELSEWHERE
    assert first.key
    assert store.vectors.identity() == IDENTITY
    assert pending(store) == [a, b]
    assert store.catalog.counts().vectors == 0
    store.ledger.mark(IDENTITY, [a])
    store.ledger.move("http://other")
    assert store.ledger.home().url == "http://other"
    assert pending(store) == [a, b]
    store.ledger.move("")
    embed(store, [(a, NORTH)])
    assert [found.chunk_id for found in store.vectors.search(NORTH, EVERYTHING, 9)] == [a]


def test_what_is_sent_to_another_place_has_another_key(store: Store):
    store.ledger.move(ELSEWHERE)
    first = store.ledger.home()
    store.ledger.move(ELSEWHERE)
    assert store.ledger.home() == first
    store.ledger.move("http://other")
    assert store.ledger.home().key not in ("", first.key)
    store.ledger.move("")
    store.ledger.move(ELSEWHERE)
    assert store.ledger.home().key not in ("", first.key)


def test_places_that_vectors_were_moved_away_from_are_known_until_they_are_forgotten(store: Store):
    store.vectors.prepare(IDENTITY)
    (a,) = put(store, "docs/a.md", "a")
    homes = []
    for url in (ELSEWHERE, "http://other"):
        store.ledger.move(url)
        store.ledger.mark(IDENTITY, [a])
        homes.append(store.ledger.home())
    assert store.ledger.left() == homes[:1]
    store.ledger.move("http://other")  # all is sent there again
    assert store.ledger.left() == homes[:1]
    store.ledger.mark(IDENTITY, [a])
    store.ledger.move("")
    assert store.ledger.left() == homes
    store.ledger.forget(homes[0])
    assert store.ledger.left() == homes[1:]
    store.ledger.forget(homes[0])
    store.ledger.forget(homes[1])
    assert store.ledger.left() == []


def test_a_place_that_nothing_was_sent_to_is_not_left(store: Store):
    store.vectors.prepare(IDENTITY)
    (a,) = put(store, "docs/a.md", "a")
    store.ledger.move(ELSEWHERE)
    store.ledger.move("")
    assert store.ledger.left() == []
    store.ledger.move(ELSEWHERE)
    store.ledger.mark(IDENTITY, [a])
    store.catalog.delete_documents(["docs/a.md"])  # which the place has not been told of
    home = store.ledger.home()
    store.ledger.move("")
    assert store.ledger.left() == [home]


def test_two_stores_have_two_keys(store: Store):
    from concord.store.old_names import OldMemoryStore

    other = OldMemoryStore()
    for each in (store, other):
        each.ledger.move(ELSEWHERE)
    assert store.ledger.home().key != other.ledger.home().key


def test_a_store_is_empty_until_a_chunk_has_a_vector_in_any_space(store: Store):
    assert store.ledger.is_empty()
    (a,) = put(store, "docs/a.md", "a")
    assert store.ledger.is_empty()
    embed(store, [(a, NORTH)])
    store.spaces.add(OTHER, {})
    assert not store.ledger.is_empty()
    store.ledger.move(ELSEWHERE)
    assert store.ledger.is_empty()
    store.ledger.mark(OTHER, [a])
    assert not store.ledger.is_empty()
    assert (store.spaces.of(OTHER).count_pending(), store.vectors.count_pending()) == (0, 1)


def test_a_chunk_counts_as_embedded_once_it_is_marked(store: Store):
    store.vectors.prepare(IDENTITY)
    store.ledger.move(ELSEWHERE)
    a, b = put(store, "docs/a.md", "a", "b")
    (c,) = put(store, "wiki/c.md", "c")
    store.ledger.mark(IDENTITY, [a, c, 999])
    assert pending(store) == [b]
    assert store.catalog.counts().vectors == 2
    assert store.ledger.unmark(IDENTITY, "docs") == 1
    assert store.ledger.unmark(IDENTITY, "docs") == store.ledger.unmark(IDENTITY, "none") == 0
    assert pending(store) == [a, b]


def test_vectors_that_are_elsewhere_are_not_looked_for_in_the_store(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    store.vectors.prepare(IDENTITY)
    store.ledger.move(ELSEWHERE)
    assert store.vectors.delete_source("docs") == 0
    store.ledger.mark(IDENTITY, [a])
    for act in (
        lambda: store.vectors.search(NORTH, EVERYTHING, 9),
        lambda: store.vectors.fetch([a]),
        lambda: store.vectors.put([(a, NORTH)]),
        lambda: store.vectors.delete_source("docs"),
    ):
        with pytest.raises(VectorsElsewhere, match=ELSEWHERE):
            act()
    assert faults(store) == []
    store.ledger.unmark(IDENTITY, "docs")
    assert store.vectors.put([(a, NORTH)]) == 1
    assert store.ledger.home().url == ""


def test_deleted_chunks_wait_to_be_told_of(store: Store):
    store.ledger.move(ELSEWHERE)
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


def test_most_of_a_store_deleted_at_once_is_told_of_as_well(store: Store):
    store.ledger.move(ELSEWHERE)
    stored = put(store, "docs/a.md", *(str(n) for n in range(1200)))
    store.catalog.delete_documents(["docs/a.md"])
    assert {chunk_id for _, chunk_id in store.ledger.unsettled(2000)} == set(stored)


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
    store.ledger.move(ELSEWHERE)
    store.catalog.put_source(source("wiki"))
    stored = put(store, "docs/a.md", "a", "b", tags=("old",))
    put(store, "docs/other.md", "c")
    changed(store)
    (document,) = store.catalog.documents_at("docs/a.md")
    store.catalog.update_document(replace(document, **change))
    assert changed(store) == set(stored)


def test_a_chunk_in_a_new_place_waits_to_be_told_of(store: Store):
    store.ledger.move(ELSEWHERE)
    (a,) = put(store, "docs/a.md", "a")
    changed(store)
    put(store, "docs/a.md", "before", "a")
    assert a in changed(store)


def test_what_changes_while_the_rest_is_told_waits_for_the_next_time(store: Store):
    store.ledger.move(ELSEWHERE)
    a, b = (put(store, f"docs/{name}.md", name)[0] for name in "ab")
    changed(store)
    store.catalog.delete_documents(["docs/a.md"])
    told = store.ledger.unsettled(10)
    store.catalog.delete_documents(["docs/b.md"])
    store.ledger.settle([turn for turn, _ in told])
    assert ([i for _, i in told], [i for _, i in store.ledger.unsettled(10)]) == ([a], [b])


def test_no_more_than_the_limit_comes_back_the_oldest_first(store: Store):
    store.ledger.move(ELSEWHERE)
    stored = [put(store, f"docs/{n}.md", str(n))[0] for n in range(5)]
    changed(store)
    for n in range(5):
        store.catalog.delete_documents([f"docs/{n}.md"])
    assert [chunk_id for _, chunk_id in store.ledger.unsettled(3)] == stored[:3]


def test_chunks_are_allowed_by_the_catalog_as_it_is_now(store: Store):
    (a,) = put(store, "docs/a.md", "a", tags=("ops",))
    (b,) = put(store, "docs/b.md", "b", superseded_by="docs/a.md")
    (c,) = put(store, "docs/c.md", "c")
    store.catalog.delete_documents(["docs/c.md"])
    assert store.ledger.allowed([a, b, c], Filter()) == {a}
    assert store.ledger.allowed([a, b, c], Filter(include_superseded=True)) == {a, b}
    assert store.ledger.allowed([b, c], Filter(tags=("ops",))) == store.ledger.allowed([], Filter()) == set()


def test_documents_that_match_are_named_unless_they_are_many(store: Store):
    for name in "abc":
        put(store, f"docs/{name}.md", name)
    assert sorted(store.ledger.matching(Filter(path="**/*.md"), 3) or []) == [
        "docs/a.md",
        "docs/b.md",
        "docs/c.md",
    ]
    assert store.ledger.matching(Filter(path="**/*.md"), 2) is None
    assert store.ledger.matching(Filter(path="**/a.md"), 2) == ["docs/a.md"]
    assert store.ledger.matching(Filter(path="none"), 2) == []


def test_one_at_a_time_changes_what_is_kept_outside(store: Store):
    refused = pytest.raises(StoreBusy, match="changing the vectors")
    with store.ledger.exclusive(wait_s=1), refused, store.ledger.exclusive(wait_s=0.01):
        pass
    with store.ledger.exclusive(wait_s=1):
        pass
