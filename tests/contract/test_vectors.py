"""What every vector index does."""

from __future__ import annotations

from array import array
from math import cos, pi
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import BadValue, ModelMismatch
from concord.search.grouping import document_vectors, nearest_documents
from concord.store.contract import Store
from concord.types import Filter, Pending, Piece
from contract.anywhere import rivals_anywhere, store_anywhere  # noqa: F401
from contract.stored import EVERYTHING, IDENTITY, embed, keyed, put, unit, vectors_of

NORTH, EAST = unit(1, 0, 0, 0), unit(0, 1, 0, 0)


def ids(store: Store, vector: bytes, filter: Filter = EVERYTHING, limit: int = 100) -> list[int]:
    return [scored.chunk_id for scored in vectors_of(store).search(vector, filter, limit)]


@pytest.mark.promise("001.vec.cosine")
def test_the_nearest_vector_comes_first_and_scores_its_cosine(store: Store):
    a, b, c, d = put(store, "docs/a.md", "a", "b", "c", "d")
    embed(store, [(a, EAST), (b, NORTH), (c, unit(1, 1, 0, 0)), (d, unit(-1, 0, 0, 0))])
    scored = vectors_of(store).search(NORTH, EVERYTHING, 10)
    assert [each.chunk_id for each in scored] == [b, c, a, d]
    assert [each.score for each in scored] == pytest.approx([1, 0.5**0.5, 0, -1], abs=1e-6)
    assert all(each.score <= 1 for each in scored)


def test_ties_go_by_id_also_where_the_list_ends(store: Store):
    same = put(store, "docs/a.md", *(str(n) for n in range(40)))
    embed(store, [(chunk_id, NORTH) for chunk_id in reversed(same)])
    assert ids(store, NORTH, limit=7) == same[:7]
    assert ids(store, EAST, limit=40) == same


def test_before_the_first_vector_nothing_is_found(store: Store):
    a = put(store, "docs/a.md", "a")
    with pytest.raises(ModelMismatch):
        ids(store, NORTH)
    assert vectors_of(store).fetch(a) == {}
    store.models.add(IDENTITY, {})
    assert ids(store, NORTH) == []
    assert vectors_of(store).fetch(a) == {}


@pytest.mark.parametrize(
    "broken",
    [
        unit(1, 0, 0),
        unit(1, 0, 0, 0, 0),
        b"",
        b"abc",
        array("f", [2, 0, 0, 0]).tobytes(),
        array("f", [0, 0, 0, 0]).tobytes(),
        array("f", [float("nan"), 1, 0, 0]).tobytes(),
        array("f", [float("inf"), 0, 0, 0]).tobytes(),
    ],
    ids=["short", "long", "empty", "odd", "unnormalised", "zero", "nan", "infinite"],
)
def test_a_broken_vector_is_refused_with_all_that_came_with_it(store: Store, broken: bytes):
    a, b = put(store, "docs/a.md", "a", "b")
    store.models.add(IDENTITY, {})
    with pytest.raises(BadValue):
        vectors_of(store).put(keyed([(a, NORTH), (b, broken)]))
    assert store.catalog.count().vectors == 0
    with pytest.raises(BadValue):
        vectors_of(store).search(broken, EVERYTHING, 3)


def test_a_vector_whose_chunk_has_gone_is_passed_over(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    store.models.add(IDENTITY, {})
    put(store, "docs/a.md", "b")
    assert vectors_of(store).put(keyed([(a, NORTH), (b, NORTH)])) == 1
    assert ids(store, NORTH) == [b]


def test_fetching_returns_exactly_what_was_put(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    made = unit(0.1, 0.2, -0.3, 0.4)
    embed(store, [(a, made)])
    assert vectors_of(store).fetch([a, b, 999, a]) == {a: made}
    assert vectors_of(store).fetch([]) == {}


@pytest.mark.promise("004.embed.backfill")
def test_chunks_without_a_vector_are_pending_in_order_with_all_that_is_embedded(store: Store):
    a, b = put(store, "docs/a.md", Piece("one", 0, 3, 1, 1, heading=("H", "I")), "two", title="T")
    (c,) = put(store, "wiki/c.md", "three")
    one, two, three = (
        Pending(a, "T", ("H", "I"), "one"),
        Pending(b, "T", (), "two"),
        Pending(c, "Untitled", (), "three"),
    )
    assert vectors_of(store).pending(0, 10) == [one, two, three]
    assert vectors_of(store).pending(a, 1) == [two]
    assert vectors_of(store).pending(0, 10, "wiki") == [three]
    assert (
        vectors_of(store).pending(0, 10, "none")
        == vectors_of(store).pending(c, 10)
        == vectors_of(store).pending(0, 0)
        == []
    )
    embed(store, [(b, NORTH)])
    assert vectors_of(store).pending(0, 10) == [one, three]


def test_deleting_a_sources_vectors_makes_its_chunks_pending_again_and_leaves_the_others(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    (c,) = put(store, "wiki/c.md", "c")
    embed(store, [(a, NORTH), (c, NORTH)])
    assert vectors_of(store).delete_source("docs") == 1
    assert vectors_of(store).delete_source("docs") == vectors_of(store).delete_source("none") == 0
    assert [each.chunk_id for each in vectors_of(store).pending(0, 10)] == [a, b]
    assert ids(store, NORTH) == [c]


@pytest.fixture
def varied(store: Store) -> dict[str, int]:
    """One chunk a document, all at the same distance, one in every corner that a filter can reach."""
    fields: dict[str, dict[str, Any]] = {
        "docs/a.md": {"tags": ("ops",), "mtime_ns": 10 * 10**9},
        "docs/b.py": {"tags": ("ops", "web"), "type": "code", "mtime_ns": 20 * 10**9},
        "docs/api/c.md": {"superseded_by": "docs/a.md"},
        "wiki/d.md": {"tags": ("web",), "mtime_ns": 30 * 10**9},
    }
    stored = {path: put(store, path, path, **given)[0] for path, given in fields.items()}
    embed(store, [(chunk_id, NORTH) for chunk_id in stored.values()])
    return stored


@pytest.mark.parametrize(
    ("filter", "paths"),
    [
        (Filter(), ["docs/a.md", "docs/b.py", "wiki/d.md"]),
        (Filter(include_superseded=True), ["docs/a.md", "docs/b.py", "docs/api/c.md", "wiki/d.md"]),
        (Filter(tags=("ops",)), ["docs/a.md", "docs/b.py"]),
        (Filter(tags=("ops", "web")), ["docs/b.py"]),
        (Filter(type="code"), ["docs/b.py"]),
        (Filter(source_id="wiki"), ["wiki/d.md"]),
        (Filter(path="docs/*"), ["docs/a.md", "docs/b.py"]),
        (Filter(path="docs/**", include_superseded=True), ["docs/a.md", "docs/b.py", "docs/api/c.md"]),
        (Filter(since=20), ["docs/b.py", "wiki/d.md"]),
        (Filter(since=15, until=25, tags=("web",)), ["docs/b.py"]),
        (Filter(type="pdf"), []),
        (Filter(source_id="none"), []),
    ],
    ids=str,
)
@pytest.mark.promise("design.filters-inside-engines")
def test_a_filter_applies_before_the_nearest_are_chosen(
    store: Store, varied: dict[str, int], filter: Filter, paths: list[str]
):
    assert ids(store, NORTH, filter) == [varied[path] for path in paths]
    assert ids(store, NORTH, filter, limit=1) == [varied[path] for path in paths[:1]]


COORDINATES = st.tuples(*[st.integers(-3, 3)] * 4).filter(any)


@given(st.lists(COORDINATES, min_size=1, max_size=40), COORDINATES, st.integers(1, 12), st.booleans())
@settings(max_examples=40)
def test_the_nearest_are_those_of_the_reference(
    rivals: tuple[Store, Store], points: list[Any], query: tuple[Any, ...], limit: int, filtered: bool
):
    filter = Filter(tags=("even",)) if filtered else EVERYTHING
    found = []
    for store in rivals:
        store.catalog.remove_source("docs")
        stored = [
            put(store, f"docs/{n}.md", "text", tags=("even",) if n % 20 == 0 else ())[0]
            for n in range(len(points))
        ]
        embed(store, [(chunk_id, unit(*point)) for chunk_id, point in zip(stored, points, strict=True)])
        found.append(vectors_of(store).search(unit(*query), filter, limit))
    expected, scored = found
    assert [each.score for each in scored] == pytest.approx([each.score for each in expected], abs=1e-5)
    assert scored == sorted(scored, key=lambda each: (-each.score, each.chunk_id))


def test_a_documents_vector_is_the_mean_of_its_chunks_vectors(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    c, _ = put(store, "docs/b.md", "c", "without a vector")
    (e,) = put(store, "docs/c.md", "without a vector")
    embed(store, [(a, NORTH), (b, EAST), (c, NORTH)])
    vectors = document_vectors([b, c, e], store.catalog, vectors_of(store))
    assert list(array("f", vectors["docs/a.md"])) == pytest.approx(array("f", unit(1, 1, 0, 0)))
    assert list(array("f", vectors["docs/b.md"])) == pytest.approx(array("f", NORTH))
    assert "docs/c.md" not in vectors


def test_near_documents_come_with_the_cosine_of_their_means(store: Store):
    near, far = put(store, "docs/near.md", "a", "b"), put(store, "docs/far.md", "c", "d")
    (own,) = put(store, "docs/own.md", "e")
    embed(store, [(own, NORTH), (near[0], unit(1, 1, 0, 0)), (near[1], NORTH), (far[0], NORTH)])
    embed(store, [(far[1], unit(0, 0, 1, 0))])
    found = nearest_documents("docs/own.md", ["docs/far.md"], store.catalog, vectors_of(store))
    assert found["docs/near.md"] == pytest.approx(cos(pi / 8))
    assert found["docs/far.md"] == pytest.approx(0.5**0.5)
    assert len(found) == 2
    assert nearest_documents("docs/gone.md", [], store.catalog, vectors_of(store)) == {}
