"""Vectors in Qdrant: what is kept there, what is told there, and what never comes back from there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.core.config import load_settings
from concord.core.errors import BackendDown, VectorsElsewhere
from concord.parts import Parts
from concord.store.contract import Store, documents_at
from concord.store.qdrant import store as qdrant_store
from concord.store.qdrant.store import QdrantStore
from concord.types import Filter, Piece, silent
from contract.stored import (
    EVERYTHING,
    IDENTITY,
    active_model,
    embed,
    keyed,
    put,
    unit,
    vectors_of,
)

pytest.importorskip("qdrant_client", reason="pip install 'concord-kb[qdrant]'")
pytest.importorskip("qdrant_edge", reason="pip install qdrant-edge-py")

from support.qdrant_shim import QdrantShim

NORTH, EAST = unit(1, 0, 0, 0), unit(0, 1, 0, 0)
COLLECTION = "conduit_kb"


def opened(shim: QdrantShim | str, folder: Path, org: str = "default", **more: Any) -> Store:
    url = shim if isinstance(shim, str) else shim.url
    given = {"store.url": f"sqlite://{folder}", "vectors.url": url, **more}
    return Parts(load_settings(given, {"KB_HOME": str(folder)}), org).store


@pytest.fixture
def store(shim: QdrantShim, tmp_path: Path) -> Iterator[Store]:
    made = opened(shim, tmp_path)
    yield made
    made.close()


def points(shim: QdrantShim) -> list[dict[str, Any]]:
    """Every point of the collection."""
    import qdrant_edge as edge

    request = edge.ScrollRequest(limit=1000, with_payload=True, with_vector=True)
    return [
        {"id": str(record.id), "vector": record.vector, **(record.payload or {})}
        for record in shim.shards[COLLECTION][0].scroll(request)[0]
    ]


def ids(store: Store, filter: Filter = EVERYTHING) -> list[int]:
    return [each.chunk_id for each in vectors_of(store).search(NORTH, filter, 100)]


@pytest.mark.promise("000.qdrant.collection")
def test_the_collection_is_made_with_the_models_dimension_and_cosine(store: Store, shim: QdrantShim):
    store.models.add(IDENTITY, {})
    assert shim.shards[COLLECTION][1]["vectors"] == {"size": 4, "distance": "Cosine"}


@pytest.mark.promise("000.qdrant.payload")
def test_a_point_carries_its_chunks_place_text_and_labels(store: Store, shim: QdrantShim):
    _, b = put(store, "docs/api/a.md", "first", "second", tags=("ops", "web"), mtime_ns=1_500_000_000)
    embed(store, [(b, EAST)])
    (point,) = points(shim)
    known = {"chunk_id": str(b), "document_id": "docs/api/a.md", "source_id": "docs", "path": "docs/api/a.md"}
    assert point.items() >= {**known, "content": "second", "chunk_index": 1, "org": "default"}.items()
    assert (point["tags"], point["type"], point["modified"]) == (["ops", "web"], "markdown", 1.5)


@pytest.mark.promise("000.qdrant.indexes")
def test_what_filters_ask_for_is_indexed(store: Store, shim: QdrantShim):
    store.models.add(IDENTITY, {})
    indexed = shim.shards[COLLECTION][0].info().payload_schema
    whose = {"org", "store", "space"}
    asked_for = {"source_id", "document_id", "folders", "tags", "type", "state", "modified"}
    assert indexed.keys() == whose | asked_for


@pytest.mark.promise("000.pool")
def test_connections_are_kept_open(store: Store, shim: QdrantShim):
    stored = put(store, "docs/a.md", *(str(n) for n in range(20)))
    embed(store, [(chunk_id, NORTH) for chunk_id in stored])
    before, asked = shim.connections, len(shim.requests)
    for _ in range(10):
        ids(store)
    assert len(shim.requests) == asked + 10
    assert shim.connections == before


def test_a_source_is_deleted_by_one_filter(store: Store, shim: QdrantShim):
    embed(store, [(chunk_id, NORTH) for chunk_id in put(store, "docs/a.md", "a", "b", "c")])
    (other,) = put(store, "wiki/b.md", "d")
    embed(store, [(other, NORTH)])
    shim.requests.clear()
    assert vectors_of(store).delete_source("docs") == 3
    assert shim.requests == [f"POST /collections/{COLLECTION}/points/delete"]
    assert [point["chunk_id"] for point in points(shim)] == [str(other)]


def test_chunks_that_the_catalog_dropped_are_dropped_there_too(store: Store, shim: QdrantShim):
    a, b = put(store, "docs/a.md", "a", "b")
    (c,) = put(store, "docs/c.md", "c")
    embed(store, [(chunk_id, NORTH) for chunk_id in (a, b, c)])
    put(store, "docs/a.md", "b")
    store.catalog.delete_documents(["docs/c.md"])
    assert ids(store) == [b]
    assert len(points(shim)) == 3  # nobody has told it yet
    store.maintain(silent)
    assert [point["chunk_id"] for point in points(shim)] == [str(b)]
    assert store.outbox.changes(10) == []


@pytest.mark.parametrize(
    ("change", "filter"),
    [
        ({"tags": ("new",)}, Filter(tags=("new",))),
        ({"type": "code"}, Filter(type="code")),
        ({"path": "docs/moved/a.md"}, Filter(path="docs/moved/**")),
        ({"path": "docs/moved/a.md"}, Filter(path="**/moved/*.md")),
        ({"mtime_ns": 50 * 10**9}, Filter(since=49, until=51)),
        ({"superseded_by": "docs/b.md"}, Filter(include_superseded=True)),
    ],
    ids=str,
)
def test_a_document_is_found_by_what_it_has_become(store: Store, change: dict[str, Any], filter: Filter):
    (a,) = put(store, "docs/a.md", "a", tags=("old",))
    embed(store, [(a, NORTH)])
    (document,) = store.catalog.documents()
    store.catalog.update_documents([replace(document, **change)])
    assert ids(store, filter) == [a]
    assert ids(store, Filter(tags=("old",))) == ([a] if change.keys() & {"type", "path", "mtime_ns"} else [])


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request tell two changes, and no more."""
    monkeypatch.setattr(qdrant_store, "SENT_AT_ONCE", 2)


def tagged(store: Store) -> list[int]:
    """Store ten passages, then give all of them a tag that the server has not been told of."""
    made = [put(store, f"docs/{n}.md", str(n))[0] for n in range(10)]
    embed(store, [(chunk_id, NORTH) for chunk_id in made])
    store.catalog.update_documents(
        [replace(document, tags=("hot",)) for document in store.catalog.documents()]
    )
    return made


@pytest.mark.usefixtures("slow")
def test_a_filter_misses_nothing_however_many_labels_have_changed(store: Store):
    made = tagged(store)
    assert ids(store, Filter(tags=("hot",))) == made


@pytest.mark.usefixtures("slow")
def test_all_labels_are_told_when_a_sync_ends(store: Store, shim: QdrantShim):
    tagged(store)
    shim.stop()
    try:
        store.maintain(silent)  # which is no error
    finally:
        shim.start()
    assert len(store.outbox.changes(99)) == 10
    store.maintain(silent)
    assert store.outbox.changes(1) == []
    assert [point["tags"] for point in points(shim)] == [["hot"]] * 10


def test_what_is_gone_or_superseded_is_not_found_even_where_the_server_cannot_be_told(
    store: Store, shim: QdrantShim
):
    a, b, c = (put(store, f"docs/{name}.md", name)[0] for name in "abc")
    embed(store, [(chunk_id, NORTH) for chunk_id in (a, b, c)])
    store.catalog.delete_documents(["docs/a.md"])
    (document,) = documents_at(store.catalog, "docs/b.md")
    store.catalog.update_documents([replace(document, superseded_by="docs/c.md")])
    with store.lock(
        "vectors kept elsewhere", "changing the vectors", wait_s=1
    ):  # as another process that is at it
        assert ids(store) == [c]
        assert vectors_of(store).fetch([a, c]) == {c: NORTH}
    assert len(points(shim)) == 3


@pytest.mark.promise("000.remove.retryable")
def test_removal_while_the_server_is_down_deletes_nothing_and_can_be_tried_again(
    store: Store, shim: QdrantShim
):
    embed(store, [(chunk_id, NORTH) for chunk_id in put(store, "docs/a.md", "a", "b")])
    before = store.catalog.count()
    shim.stop()
    try:
        with pytest.raises(BackendDown) as fault:
            vectors_of(store).delete_source("docs")
        assert fault.value.hint
        assert store.catalog.count() == before
    finally:
        shim.start()
    assert vectors_of(store).delete_source("docs") == 2
    assert points(shim) == []


def test_a_store_whose_vectors_are_outside_says_so_when_that_is_not_set(
    store: Store, shim: QdrantShim, tmp_path: Path
):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    inside = opened("", tmp_path)
    for act in (
        lambda: ids(inside),
        lambda: vectors_of(inside).fetch([a]),
        lambda: vectors_of(inside).put(keyed([(a, NORTH)])),
        lambda: vectors_of(inside).delete_source("docs"),
    ):
        with pytest.raises(VectorsElsewhere, match=shim.url):
            act()
    assert active_model(inside) == IDENTITY
    assert inside.catalog.count().vectors == 1
    inside.close()


def test_a_collection_that_somebody_dropped_is_filled_again(store: Store, shim: QdrantShim):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH)])
    shim.answer("DELETE", f"/collections/{COLLECTION}", None)
    with pytest.raises(BackendDown, match="migrate` sends it again"):
        ids(store)
    store.models.add(IDENTITY, {})
    assert [waiting.chunk_id for waiting in vectors_of(store).pending(0, 10)] == [a, b]
    embed(store, [(a, NORTH)])
    assert ids(store) == [a]


def test_a_source_can_be_removed_whose_collection_somebody_dropped(store: Store, shim: QdrantShim):
    (a,) = put(store, "docs/a.md", "a")
    embed(store, [(a, NORTH)])
    shim.answer("DELETE", f"/collections/{COLLECTION}", None)
    assert vectors_of(store).delete_source("docs") == 1


def test_a_check_says_what_the_server_has_lost(store: Store, shim: QdrantShim):
    a, b = put(store, "docs/a.md", "a", "b")
    embed(store, [(a, NORTH), (b, NORTH)])
    assert store.check() == []
    import qdrant_edge as edge

    (first, _) = (point["id"] for point in points(shim))
    shim.shards[COLLECTION][0].update(edge.UpdateOperation.delete_points([first]))
    (finding,) = store.check()
    assert "1 vectors of the 2" in finding.message
    assert "migrate` sends" in finding.hint
    shim.status = 503
    assert ["503" in finding.message for finding in store.check()] == [True]


ORGS = {"alpha": NORTH, "beta": EAST, "gamma": unit(0, 0, 1, 0)}  # each embeds in a direction of its own
WILD = st.lists(
    st.tuples(
        st.sampled_from([*ORGS]),
        st.sampled_from(["add", "embed", "delete", "remove"]),
        st.sampled_from(["docs/a.md", "docs/b.md", "wiki/a.md"]),
    ),
    min_size=12,
    max_size=30,
)
FILTERS = [
    Filter(tags=tags, source_id=source_id, path=path, include_superseded=is_everything)
    for tags in ((), ("t",))
    for source_id in (None, "docs")
    for path in (None, "docs/**", "**/a.md")
    for is_everything in (False, True)
]
WORLDS, QUESTIONS = 5, 200  # on each of the two legs
LIMITS = (1, 3, 100)


@pytest.fixture(scope="module", params=["local", "shim"])
def tenants(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Store]]:
    """Organisations that share a store, a client and a collection."""
    from qdrant_client import QdrantClient

    local = "qdrant-local::memory:"
    url = local if request.param == "local" else request.getfixturevalue("qdrant_server").url
    folder, shared = tmp_path_factory.mktemp("orgs"), QdrantClient(":memory:")
    made = {org: opened(url, folder, org, **{"vectors.collection": "shared"}) for org in ORGS}
    for store in made.values():
        if url == local:  # each would have an engine of its own
            assert isinstance(store, QdrantStore)
            store.connection._client = shared
    yield made
    for store in made.values():
        store.close()


@pytest.mark.promise("design.organisations-apart")
@given(WILD, st.integers(0))
@settings(max_examples=WORLDS)
def test_no_query_crosses_an_organisation(tenants: dict[str, Store], work: list[Any], seed: int):
    for org, act, path in work:
        change(tenants[org], org, act, path)
    own = {org: embedded(store) for org, store in tenants.items()}
    allowed = cache(lambda org, filter: tenants[org].catalog.allowed(filter, own[org]))
    chance = random.Random(seed)
    for _ in range(QUESTIONS):
        asking, filter = chance.choice([*ORGS]), chance.choice(FILTERS)
        if chance.random() < 0.4:
            check_fetched(tenants[asking], ORGS[asking], own[asking], chance)
        else:
            check_found(tenants[asking], asking, filter, allowed(asking, filter), chance)


def change(store: Store, org: str, act: str, path: str) -> None:
    if act == "add":
        put(store, path, Piece(f"{org} {path}", 0, 5, 1, 1), tags=("t",))
    elif act == "embed":
        embed(store, [(waiting.chunk_id, ORGS[org]) for waiting in vectors_of(store).pending(0, 100)])
    elif act == "delete":
        store.catalog.delete_documents([path])
    else:
        vectors_of(store).delete_source(path.split("/")[0])
        store.catalog.remove_source(path.split("/")[0])


def embedded(store: Store) -> list[int]:
    """The chunks that have a vector, as the catalog knows it."""
    waiting = {each.chunk_id for each in vectors_of(store).pending(0, 100)}
    chunks = {chunk.id for known in store.catalog.documents() for chunk in store.catalog.chunks(known.id)}
    return sorted(chunks - waiting)


def check_fetched(store: Store, direction: bytes, own: list[int], chance: random.Random) -> None:
    """Chunks are counted anew in every organisation: the same number is another chunk in each."""
    asked = sorted({*own, *chance.choices(range(1, 99), k=5)})
    assert vectors_of(store).fetch(asked) == dict.fromkeys(own, direction)


def check_found(store: Store, org: str, filter: Filter, allowed: set[int], chance: random.Random) -> None:
    asked, limit = chance.choice([*ORGS]), chance.choice(LIMITS)
    if active_model(store) is None:
        assert not allowed
        return
    found = vectors_of(store).search(ORGS[asked], filter, limit)
    assert {each.chunk_id for each in found} <= allowed
    assert len(found) == min(limit, len(allowed))
    # No vector is another's: all of one's own are as near as this.
    assert [each.score for each in found] == pytest.approx([float(asked == org)] * len(found), abs=1e-6)
