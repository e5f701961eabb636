"""A store that is searched again and again keeps its vectors in memory; nobody can tell but by the time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.store.json_file import MemoryStore
from concord.store.sqlite.in_memory import WORTH_KEEPING
from concord.store.sqlite.store import SQLiteStore
from concord.types import Filter, Scored
from contract.stored import EVERYTHING, IDENTITY, embed, keyed, put, unit, vectors_of
from support.stores import sqlite_store

QUERY = unit(1, 1, 0, 0)
TURNS = WORTH_KEEPING + 2


store = pytest.fixture(sqlite_store)


def often(store: SQLiteStore, limit: int = 10, filter: Filter = EVERYTHING) -> list[list[Scored]]:
    """Ask until the vectors are kept, and once more."""
    return [vectors_of(store).search(QUERY, filter, limit) for _ in range(TURNS)]


def assert_alike(found: list[list[Scored]]) -> None:
    """Assert that answers are the same, but for who comes first of two whose scores differ by rounding."""
    first = found[0]
    for later in found[1:]:
        assert [hit.score for hit in later] == pytest.approx([hit.score for hit in first], abs=1e-6)
        last = first[-1].score if first else 0.0
        assert {hit.chunk_id for hit in later if hit.score > last + 1e-5} == {
            hit.chunk_id for hit in first if hit.score > last + 1e-5
        }


def kept(store: SQLiteStore) -> bool:
    memory = store._tables._memory
    return memory is not None and memory._kept is not None


vectors = st.lists(st.tuples(*[st.integers(-3, 3)] * 4).filter(any), min_size=1, max_size=12)


@settings(max_examples=25)
@given(vectors, st.integers(1, 13))
def test_kept_vectors_give_the_same_answers(tmp_path_factory, numbers, limit):
    store = SQLiteStore.open(f"sqlite://{tmp_path_factory.mktemp('store')}", "default")
    ids = put(store, "docs/a.md", *map(str, range(len(numbers))))
    embed(store, [(chunk_id, unit(*row)) for chunk_id, row in zip(ids, numbers, strict=True)])
    found = often(store, limit)
    assert kept(store)
    assert_alike(found)
    store.close()


def test_equal_vectors_come_in_order_of_id_also_where_the_list_ends(store: SQLiteStore):
    ids = put(store, "docs/a.md", *"abcde")
    embed(store, [(chunk_id, QUERY) for chunk_id in reversed(ids)])
    assert [[hit.chunk_id for hit in answer] for answer in often(store, limit=3)] == [ids[:3]] * TURNS


def test_what_changes_meanwhile_is_seen_by_the_next_search(store: SQLiteStore):
    reference = MemoryStore.open("memory://", "default")
    for one in (store, reference):
        ids = put(one, "docs/a.md", "north", "east", "both")
        embed(one, list(zip(ids, (unit(1, 0, 0, 0), unit(0, 1, 0, 0), QUERY), strict=True)))
    changes = (
        lambda s: vectors_of(s).put(keyed([(ids[0], QUERY)])),
        lambda s: embed(s, [(put(s, "docs/b.md", "more")[0], unit(1, 2, 0, 0))]),
        lambda s: put(s, "docs/a.md", "both", "west"),
        lambda s: s.catalog.delete_documents(["docs/b.md"]),
        lambda s: vectors_of(s).delete_source("docs"),
    )
    for change in changes:
        often(store)
        assert kept(store)
        change(store)
        change(reference)
        expected = vectors_of(reference).search(QUERY, EVERYTHING, 10)
        assert_alike([expected, *often(store)])


def test_another_processes_changes_are_seen_too(store: SQLiteStore, tmp_path: Path):
    ids = put(store, "docs/a.md", "north")
    embed(store, [(ids[0], unit(1, 0, 0, 0))])
    often(store)
    other = SQLiteStore.open(f"sqlite://{tmp_path}", "default")
    embed(other, [(put(other, "docs/b.md", "both")[0], QUERY)])
    other.close()
    assert vectors_of(store).search(QUERY, EVERYTHING, 1)[0].score == pytest.approx(1.0)


def test_kept_vectors_are_fetched_as_they_were_put(store: SQLiteStore):
    ids = put(store, "docs/a.md", "north", "east", "bare")
    given = dict(zip(ids, (unit(1, 2, 3, 4), unit(4, 3, 2, 1)), strict=False))
    embed(store, list(given.items()))
    often(store)
    assert kept(store)
    assert vectors_of(store).fetch([*ids, 999, ids[0]]) == given


def test_a_filter_is_kept_to_whatever_is_in_memory(store: SQLiteStore):
    near, far = put(store, "docs/a.md", "near"), put(store, "wiki/b.md", "far")
    embed(store, [(near[0], QUERY), (far[0], unit(0, 0, 1, 0))])
    often(store)
    found = often(store, filter=Filter(source_id="wiki"))
    assert {hit.chunk_id for answer in found for hit in answer} == set(far)


def test_one_search_reads_nothing_ahead(store: SQLiteStore):
    embed(store, [(put(store, "docs/a.md", "north")[0], QUERY)])
    vectors_of(store).search(QUERY, EVERYTHING, 10)
    vectors_of(store).fetch([1])
    assert not kept(store)


def test_an_index_without_vectors_stays_empty(store: SQLiteStore):
    put(store, "docs/a.md", "north")
    store.models.add(IDENTITY, {})
    assert often(store) == [[]] * TURNS
    assert vectors_of(store).fetch([1]) == {}
