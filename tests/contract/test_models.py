"""What every store does that keeps the vectors of several models."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from concord.core.errors import BadValue, ModelMismatch, NotFound
from concord.index.embedding import ready_index
from concord.store.contract import Store
from concord.types import Identity, Model
from contract.anywhere import store_anywhere  # noqa: F401
from contract.stored import EVERYTHING, IDENTITY, active_model, embed, keyed, put, unit, vectors_of

NORTH, EAST = unit(1, 0, 0, 0), unit(0, 1, 0, 0)
OTHER = replace(IDENTITY, model="other")  # of the same dimension: nothing but the name tells them apart


def found(store: Store, vector: bytes, identity: Identity | None = None) -> list[int]:
    index = store.models.index(identity) if identity else vectors_of(store)
    return [scored.chunk_id for scored in index.search(vector, EVERYTHING, 9)]


def test_the_first_model_becomes_the_active_one(store: Store):
    store.models.add(IDENTITY, {"embed.provider": "test"})
    assert store.catalog.snapshot().active == Model(IDENTITY, {"embed.provider": "test"}, is_active=True)
    (a,) = put(store, "docs/a.md", "a")
    assert vectors_of(store).put(keyed([(a, NORTH)])) == 1


def test_a_snapshot_tells_the_generation_the_sources_and_the_active_model(store: Store):
    put(store, "docs/a.md", "a")
    store.models.add(IDENTITY, {"embed.provider": "test"})
    store.models.add(OTHER, {})
    first = store.catalog.snapshot()
    assert [source.name for source in first.sources] == ["docs"]
    assert first.active == Model(IDENTITY, {"embed.provider": "test"}, is_active=True)
    put(store, "docs/b.md", "b")
    store.models.activate(OTHER)
    later = store.catalog.snapshot()
    assert later.generation > first.generation
    assert later.active is not None
    assert later.active.identity == OTHER


def test_a_model_beside_the_active_one_is_filled_without_anybody_seeing_it(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.models.add(OTHER, {})
    beside = store.models.index(OTHER)
    assert [pending.chunk_id for pending in beside.pending(0, 9)] == [a, b]
    assert (beside.count_pending(), beside.count_pending("docs"), beside.count_pending("none")) == (2, 2, 0)
    assert beside.put(keyed([(a, EAST)])) == 1
    assert beside.count_pending() == 1
    assert active_model(store) == IDENTITY
    assert store.catalog.count().vectors == 2
    assert vectors_of(store).fetch([a]) == {a: NORTH}
    assert found(store, NORTH) == [a, b]


@pytest.mark.promise("design.index-remembers-its-embedder")
def test_switching_changes_every_answer_at_once_and_going_back_changes_it_back(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.models.add(OTHER, {})
    store.models.index(OTHER).put(keyed([(a, EAST), (b, NORTH)]))
    for identity, nearest in ((OTHER, b), (IDENTITY, a), (OTHER, b)):
        store.models.activate(identity)
        assert active_model(store) == identity
        assert [model.identity for model in store.catalog.snapshot().models if model.is_active] == [identity]
        assert found(store, NORTH)[0] == nearest
        assert store.catalog.count().vectors == 2


@pytest.mark.promise("E.models.never-mixed")
def test_an_index_bound_to_a_model_meets_its_vectors_whatever_is_active(store: Store):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, EAST)])
    store.models.add(OTHER, {})
    store.models.index(OTHER).put(keyed([(a, EAST), (b, NORTH)]))
    old, new = store.models.index(IDENTITY), store.models.index(OTHER)
    for identity in (IDENTITY, OTHER):
        store.models.activate(identity)
        assert [hit.chunk_id for hit in old.search(NORTH, EVERYTHING, 1)] == [a]
        assert [hit.chunk_id for hit in new.search(NORTH, EVERYTHING, 1)] == [b]
        assert (old.fetch([a]), new.fetch([a])) == ({a: NORTH}, {a: EAST})


def test_a_dropped_model_is_gone_and_the_others_stay(store: Store):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    store.models.add(OTHER, {})
    bound = store.models.index(OTHER)
    bound.put(keyed([(a, EAST)]))
    assert store.models.drop(OTHER) == 1
    assert [model.identity for model in store.catalog.snapshot().models] == [IDENTITY]
    assert bound.fetch([a]) == {}
    with pytest.raises(ModelMismatch):
        bound.search(NORTH, EVERYTHING, 1)
    assert found(store, NORTH) == [a]
    store.models.add(OTHER, {})
    assert bound.count_pending() == 1
    assert bound.search(NORTH, EVERYTHING, 1) == []


def test_the_active_model_cannot_be_dropped_nor_an_unknown_one_used(store: Store):
    store.models.add(IDENTITY, {})
    with pytest.raises(BadValue) as refusal:
        store.models.drop(IDENTITY)
    assert refusal.value.hint
    for act in (store.models.drop, store.models.activate):
        with pytest.raises(NotFound):
            act(OTHER)


@pytest.mark.parametrize(
    "change", [{"provider": "p"}, {"model": "m"}, {"dimension": 8}, {"prefix_version": "v2"}], ids=str
)
@pytest.mark.promise("design.index-remembers-its-embedder")
def test_another_model_is_refused_while_there_are_vectors_and_then_takes_the_place(
    store: Store, change: dict[str, Any]
):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    other = replace(IDENTITY, **change)
    with pytest.raises(ModelMismatch) as refusal:
        ready_index(store, other)
    assert refusal.value.hint
    assert active_model(store) == IDENTITY
    vectors_of(store).delete_source("docs")
    made = unit(*[1.0] * other.dimension)
    assert ready_index(store, other).put(keyed([(a, made)])) == 1
    assert [model.identity for model in store.catalog.snapshot().models] == [other]
    assert found(store, made) == [a]
