"""What every store does that keeps the vectors of several models."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from concord.core.errors import BadValue, ModelMismatch, NotFound
from concord.core.storage import Store
from concord.types import Space
from contract.anywhere import store_anywhere  # noqa: F401
from contract.stored import EVERYTHING, IDENTITY, document, embed, put, unit

NORTH, EAST = unit(1, 0, 0, 0), unit(0, 1, 0, 0)
OTHER = replace(IDENTITY, model="other")  # of the same dimension: nothing but the name tells them apart
WIDE = replace(IDENTITY, model="wide", dimension=6)


def found(store: Store, vector: bytes, identity=None) -> list[int]:
    index = store.spaces.of(identity) if identity else store.vectors
    return [scored.chunk_id for scored in index.search(vector, EVERYTHING, 9)]


def test_before_the_first_embedder_there_is_no_space(store: Store):
    assert store.spaces.all() == []
    assert store.spaces.active() is None


def test_the_first_space_becomes_the_active_one_however_it_is_made(store: Store):
    store.spaces.add(IDENTITY, {"embed.provider": "test"})
    assert store.spaces.active() == Space(IDENTITY, {"embed.provider": "test"}, is_active=True)
    assert store.vectors.identity() == IDENTITY
    (a,) = put(store, "docs/a.md", "a")
    assert store.vectors.put([(a, NORTH)]) == 1


def test_a_glance_tells_the_generation_the_sources_and_the_active_space(store: Store):
    put(store, "docs/a.md", "a")
    store.spaces.add(IDENTITY, {"embed.provider": "test"})
    store.spaces.add(OTHER, {})
    first = store.glance()
    assert [source.name for source in first.sources] == ["docs"]
    assert first.space == Space(IDENTITY, {"embed.provider": "test"}, is_active=True)
    put(store, "docs/b.md", "b")
    store.spaces.activate(OTHER)
    later = store.glance()
    assert later.generation == store.catalog.generation() > first.generation
    assert later.space is not None
    assert later.space.identity == OTHER


def test_a_glance_tells_whether_anything_is_superseded(store: Store):
    put(store, "docs/a.md", "a")
    put(store, "docs/b.md", "b")
    assert store.glance().has_superseded is False
    store.catalog.update_document(document("docs/a.md", superseded_by=document("docs/b.md").id))
    assert store.glance().has_superseded is True
    store.catalog.delete_documents([document("docs/b.md").id])
    assert store.glance().has_superseded is False


def test_a_glance_leaves_out_no_type_of_document_that_there_is(store: Store):
    assert not store.glance().types
    put(store, "docs/a.md", "a")
    put(store, "src/a.py", "a", type="code")
    assert store.glance().types in (None, {"markdown", "code"})
    store.catalog.update_document(document("docs/a.md", type="text"))
    types = store.glance().types
    assert types is None or types >= {"text", "code"}
    store.catalog.remove_source("src")
    assert store.glance().types in (None, {"text"})


def test_preparing_makes_a_space_whose_recipe_can_be_written_down_later(store: Store):
    store.spaces.of(IDENTITY).prepare(IDENTITY)
    assert store.spaces.all() == [Space(IDENTITY, {}, is_active=True)]
    store.spaces.add(IDENTITY, {"embed.url": "http://127.0.0.1"})
    assert store.spaces.all() == [Space(IDENTITY, {"embed.url": "http://127.0.0.1"}, is_active=True)]


def test_a_space_beside_the_active_one_is_filled_without_anybody_seeing_it(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.spaces.add(OTHER, {})
    beside = store.spaces.of(OTHER)
    assert [each.chunk_id for each in beside.pending(0, 9)] == [a, b]
    assert (beside.count_pending(), beside.count_pending("docs"), beside.count_pending("none")) == (2, 2, 0)
    beside.prepare(OTHER)
    assert [space.was_active for space in store.spaces.all()] == [True, False]
    assert beside.put([(a, EAST)]) == 1
    assert beside.count_pending() == 1
    assert store.vectors.identity() == IDENTITY
    assert store.catalog.counts().vectors == 2
    assert store.vectors.fetch([a]) == {a: NORTH}
    assert found(store, NORTH) == [a, b]


@pytest.mark.promise("design.index-remembers-its-embedder")
def test_switching_changes_every_answer_at_once_and_going_back_changes_it_back(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.spaces.add(OTHER, {})
    store.spaces.of(OTHER).put([(a, EAST), (b, NORTH)])
    for active, nearest in ((OTHER, b), (IDENTITY, a), (OTHER, b)):
        store.spaces.activate(active)
        assert store.vectors.identity() == active
        assert [space.identity for space in store.spaces.all() if space.is_active] == [active]
        assert found(store, NORTH)[0] == nearest
        assert all(space.was_active for space in store.spaces.all())
        assert store.catalog.counts().vectors == 2


@pytest.mark.promise("E.models.never-mixed")
def test_an_index_bound_to_a_model_meets_its_vectors_whatever_is_active(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.spaces.add(OTHER, {})
    store.spaces.of(OTHER).put([(a, EAST), (b, NORTH)])
    old, new = store.spaces.of(IDENTITY), store.spaces.of(OTHER)
    for active in (IDENTITY, OTHER):
        store.spaces.activate(active)
        assert [hit.chunk_id for hit in old.search(NORTH, EVERYTHING, 1)] == [a]
        assert [hit.chunk_id for hit in new.search(NORTH, EVERYTHING, 1)] == [b]
        assert (old.fetch([a]), new.fetch([a])) == ({a: NORTH}, {a: EAST})
        assert (old.identity(), new.identity()) == (IDENTITY, OTHER)


def test_an_index_takes_no_vectors_of_a_model_it_is_not_bound_to(store: Store):
    store.spaces.add(IDENTITY, {})
    with pytest.raises(ModelMismatch):
        store.spaces.of(IDENTITY).prepare(OTHER)


def test_a_model_that_nobody_added_is_refused_while_another_has_vectors(store: Store):
    embed(store, [(put(store, "docs/a.md", "a")[0], NORTH)])
    with pytest.raises(ModelMismatch):
        store.spaces.of(OTHER).prepare(OTHER)
    with pytest.raises(BadValue):
        store.spaces.of(OTHER).put([(1, NORTH)])


def test_models_of_different_dimensions_live_side_by_side(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.spaces.add(WIDE, {})
    wide = unit(*[1.0] * 6)
    assert store.spaces.of(WIDE).put([(a, wide)]) == 1
    with pytest.raises(BadValue):
        store.spaces.of(WIDE).put([(a, NORTH)])
    with pytest.raises(BadValue):
        store.vectors.search(wide, EVERYTHING, 1)
    assert found(store, wide, WIDE) == [a]


def test_chunks_that_come_and_go_do_so_in_every_space(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, NORTH)])
    store.spaces.add(OTHER, {})
    beside = store.spaces.of(OTHER)
    beside.put([(a, NORTH), (b, NORTH)])
    _, c = put(store, "docs/a.md", "b", "c")
    assert [each.chunk_id for each in beside.pending(0, 9)] == [c]
    assert [each.chunk_id for each in store.vectors.pending(0, 9)] == [c]
    assert found(store, NORTH) == found(store, NORTH, OTHER) == [b]
    store.catalog.delete_documents(["docs/a.md"])
    assert found(store, NORTH) == found(store, NORTH, OTHER) == []
    assert beside.count_pending() == store.vectors.count_pending() == 0


def test_a_sources_vectors_are_deleted_in_the_space_that_was_asked(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.spaces.add(OTHER, {})
    store.spaces.of(OTHER).put([(a, NORTH)])
    assert store.spaces.of(OTHER).delete_source("docs") == 1
    assert store.spaces.of(OTHER).count_pending() == 1
    assert found(store, NORTH) == [a]


def test_a_dropped_space_is_gone_and_the_others_stay(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.spaces.add(OTHER, {})
    bound = store.spaces.of(OTHER)
    bound.put([(a, EAST)])
    assert store.spaces.drop(OTHER) == 1
    assert [space.identity for space in store.spaces.all()] == [IDENTITY]
    assert bound.identity() is None
    assert bound.fetch([a]) == {}
    with pytest.raises(ModelMismatch):
        bound.search(NORTH, EVERYTHING, 1)
    assert found(store, NORTH) == [a]
    store.spaces.add(OTHER, {})
    assert bound.count_pending() == 1
    assert bound.search(NORTH, EVERYTHING, 1) == []


def test_the_first_space_can_be_dropped_once_another_is_active(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.spaces.add(OTHER, {})
    store.spaces.of(OTHER).put([(a, EAST)])
    store.spaces.activate(OTHER)
    assert store.spaces.drop(IDENTITY) == 1
    (b,) = put(store, "docs/b.md", "b")
    assert [each.chunk_id for each in store.vectors.pending(0, 9)] == [b]
    assert found(store, EAST) == [a]


def test_the_active_space_cannot_be_dropped_nor_an_unknown_one_used(store: Store):
    store.spaces.add(IDENTITY, {})
    with pytest.raises(BadValue) as refusal:
        store.spaces.drop(IDENTITY)
    assert refusal.value.hint
    for act in (store.spaces.drop, store.spaces.activate):
        with pytest.raises(NotFound):
            act(OTHER)


def test_an_emptied_active_space_gives_way_to_a_model_that_has_one(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.spaces.add(OTHER, {})
    store.vectors.delete_source("docs")
    store.vectors.prepare(OTHER)
    assert store.vectors.identity() == OTHER
    assert store.vectors.put([(a, EAST)]) == 1
