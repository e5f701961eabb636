"""Vectors on PostgreSQL: what the index finds, when it is built, and what filters leave of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from concord import KnowledgeBase
from concord.core.config import load_settings
from concord.core.errors import BadValue, VectorsElsewhere
from concord.ops import migrate as moving
from concord.parts import Parts
from concord.store.json_file import MemoryStore
from concord.types import Filter, Scored, silent
from contract.stored import (
    EVERYTHING,
    IDENTITY,
    active_model,
    document,
    embed,
    faults,
    keyed,
    pieces,
    put,
    source,
    unit,
    vectors_of,
)
from support.postgres_server import asked, fresh_org, server_url, walks
from support.recorders import write
from support.stores import postgres_store

psycopg = pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import vectors, words  # noqa: E402
from concord.store.postgres.store import PostgresStore  # noqa: E402

POINTS, DIMENSION = 2400, 24
RARE = 3  # 0.1 % and a little
NORTH = unit(1, 0, 0, 0)
INDEX = "SELECT to_regclass('kb_vectors_1_hnsw') IS NOT NULL"


store = pytest.fixture(postgres_store)


@pytest.fixture(scope="module")
def many() -> Iterator[PostgresStore]:
    """More vectors than are compared one by one, some of them with a rare tag."""
    with closing(PostgresStore.open(server_url(), fresh_org())) as made:
        made.catalog.put_source(source("docs"))
        made.catalog.put_documents(
            (
                document(
                    f"docs/{n}.md", tags=("rare",) if n % (POINTS // RARE) == 7 else ("half",) * (n % 2)
                ),
                pieces(f"text {n}"),
            )
            for n in range(POINTS)
        )
        chance = random.Random(3)
        made.models.add(replace(IDENTITY, dimension=DIMENSION), {})
        vectors_of(made).put(
            keyed((each.chunk_id, point(chance)) for each in vectors_of(made).pending(0, POINTS))
        )
        made.maintain(silent)
        yield made


def test_the_server_builds_the_index_with_the_memory_that_is_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vectors, "INDEX_FROM", 1)
    values = {"store.url": server_url(), "store.index_memory_mb": 1 << 40}  # more than any server takes
    store = Parts(load_settings(values, {}), fresh_org()).store
    (a,) = put(store, "docs/a.md", "text")
    store.models.add(replace(IDENTITY, dimension=3), {})  # of which there is no index yet
    vectors_of(store).put(keyed([(a, unit(1, 0, 0))]))
    with pytest.raises(BadValue, match="maintenance_work_mem"):
        store.maintain(silent)
    store.close()


def point(chance: random.Random) -> bytes:
    return unit(*(chance.gauss(0, 1) for _ in range(DIMENSION)))


def exactly(store: PostgresStore, vector: bytes, ids: set[int], limit: int) -> list[int]:
    known = vectors_of(store).fetch(sorted(ids))
    matrix = np.frombuffer(b"".join(known.values()), "<f4").reshape(len(known), -1)
    nearest = np.argsort(-(matrix @ np.frombuffer(vector, "<f4")), kind="stable")[:limit]
    return [list(known)[place] for place in nearest]


def test_what_was_last_seen_of_the_vectors_is_not_what_is_searched(many: PostgresStore):
    """State and vectors are asked for in one trip, of the space as it was: another may be active by now."""
    with closing(PostgresStore.open(server_url(), many._connections.location.org)) as other:
        small = replace(IDENTITY, model="other")
        vectors_of(many).search(point(random.Random(1)), EVERYTHING, 3)
        (first,) = vectors_of(many).fetch([1])
        was = active_model(many)
        assert was is not None
        other.models.add(small, {})
        other.models.index(small).put(keyed([(1, unit(0, 0, 0, 1))]))
        other.models.activate(small)
        try:
            assert vectors_of(many).fetch([1, 2]) == {first: unit(0, 0, 0, 1)}
            assert vectors_of(many).search(unit(0, 0, 0, 1), EVERYTHING, 3) == [Scored(1, 1.0)]
            with pytest.raises(BadValue):
                vectors_of(many).search(point(random.Random(1)), EVERYTHING, 3)
        finally:
            other.models.activate(was)
            other.models.drop(small)
        assert len(vectors_of(many).search(point(random.Random(1)), EVERYTHING, 3)) == 3


def test_vectors_are_put_where_they_belong_by_now_not_where_they_were_put_last(store: PostgresStore):
    """They are sent to the space as it was last seen, before its answer is there."""
    a, b = put(store, "docs/a.md", "one", "two")
    embed(store, [(a, unit(1, 0, 0, 0))])
    vectors_of(store).put(keyed([(a, unit(0, 1, 0, 0))]))
    wider = replace(IDENTITY, model="wider", dimension=5)
    with closing(PostgresStore.open(server_url(), store._connections.location.org)) as other:
        other.models.add(wider, {})
        other.models.index(wider).put(keyed([(a, unit(0, 0, 0, 0, 1))]))
        other.models.activate(wider)
        with pytest.raises(BadValue, match="4 dimensions where the index has 5"):
            vectors_of(store).put(keyed([(b, unit(1, 0, 0, 0))]))
        assert vectors_of(store).put(keyed([(b, unit(1, 0, 0, 0, 0))])) == 1
        other.outbox.move("http://elsewhere")
        other.outbox.acknowledge(wider, [a])
        with pytest.raises(VectorsElsewhere):
            vectors_of(store).put(keyed([(b, unit(0, 1, 0, 0, 0))]))
        other.outbox.move("")
    assert vectors_of(store).put(keyed([(b, unit(0, 0, 1, 0, 0))])) == 1
    assert vectors_of(store).fetch([a, b]) == {b: unit(0, 0, 1, 0, 0)}
    assert faults(store) == []


@pytest.mark.promise("D.migrate.everything")
def test_a_store_that_was_migrated_has_its_vectors_indexed(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vectors, "INDEX_FROM", 3)
    origin = MemoryStore.open("memory://", "")
    origin.models.add(replace(IDENTITY, dimension=6), {})  # of which there is no index yet
    for n in range(3):
        (a,) = put(origin, f"docs/{n}.md", f"text {n}")
        vectors_of(origin).put(keyed([(a, unit(1, n, 0, 0, 0, 0))]))
    assert moving.migrate(origin, store, silent, lock_wait_s=1).counts.vectors == 3
    assert asked(store, INDEX)


def test_a_sync_leaves_many_vectors_indexed(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vectors, "INDEX_FROM", 1)
    given = {"store.url": database, "embed.provider": "hashing"}
    write(tmp_path / "docs" / "a.md", "# Pumps\n\nThe pump is tested on Mondays.\n")
    with KnowledgeBase(load_settings(given, {"KB_HOME": str(tmp_path)})) as kb:
        kb.add(tmp_path / "docs")
        index = kb.stats().index
        assert index is not None
        assert (index.covered, index.absent) == (1, None)


@pytest.mark.promise("002.hnsw")
@pytest.mark.parametrize("filter", [EVERYTHING, Filter(tags=("half",))], ids=str)
def test_many_vectors_are_indexed_when_a_sync_ends_and_the_index_answers(
    many: PostgresStore, filter: Filter, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(words, "MOST_LISTED", 0)
    monkeypatch.setattr(words, "NARROW_SHARE", 0)
    before = walks(many)
    chance = random.Random(8)
    allowed = set(range(1, POINTS + 1)) if filter.is_open else set(range(2, POINTS + 1, 2))
    hits = 0
    for _ in range(10):
        vector = point(chance)
        found = [scored.chunk_id for scored in vectors_of(many).search(vector, filter, 10)]
        assert len(found) == 10
        assert set(found) <= allowed
        hits += len(set(found) & set(exactly(many, vector, allowed, 10)))
    assert hits >= 95
    assert walks(many) == before + 10


@pytest.mark.parametrize("most_listed", [0, 1000])
def test_a_filter_that_was_asked_before_sees_what_others_have_changed_since(
    database: str, monkeypatch: pytest.MonkeyPatch, most_listed: int
):
    monkeypatch.setattr(vectors, "INDEX_FROM", 1)
    monkeypatch.setattr(words, "MOST_LISTED", most_listed)
    monkeypatch.setattr(words, "NARROW_SHARE", 0)
    filter = Filter(tags=("hot",))
    with (
        closing(PostgresStore.open(database, "default")) as store,
        closing(PostgresStore.open(database, "default")) as other,
    ):
        ids = [*put(store, "docs/a.md", "a", tags=("hot",)), *put(store, "docs/b.md", "b")]
        embed(store, [(chunk_id, NORTH) for chunk_id in ids])
        store.maintain(silent)

        def found() -> list[int]:
            return [one.chunk_id for one in vectors_of(store).search(NORTH, filter, 9)]

        assert found() == found() == ids[:1]
        other.catalog.update_documents([document("docs/b.md", tags=("hot",))])
        assert found() == ids
        (new,) = put(other, "docs/c.md", "c", tags=("hot",))
        assert found() == ids  # it has no vector yet
        embed(other, [(new, NORTH)])
        assert found() == [*ids, new]
        other.catalog.delete_documents(["docs/a.md"])
        assert found() == [ids[1], new]


@pytest.mark.promise("design.narrow-filters-are-exact")
def test_under_a_narrow_filter_nothing_is_lost(many: PostgresStore):
    rare = {n + 1 for n in range(POINTS) if n % (POINTS // RARE) == 7}
    chance = random.Random(9)
    for _ in range(10):
        vector = point(chance)
        scored = vectors_of(many).search(vector, Filter(tags=("rare",)), 10, ef_search=1)
        assert [each.chunk_id for each in scored] == exactly(many, vector, rare, 10)


def test_more_than_the_graph_would_show_is_found_all_the_same(many: PostgresStore):
    found = vectors_of(many).search(point(random.Random(1)), EVERYTHING, POINTS + 10, ef_search=1)
    assert {scored.chunk_id for scored in found} == set(range(1, POINTS + 1))


@pytest.mark.promise("002.ef-search")
def test_the_effort_is_that_of_one_search_alone(many: PostgresStore):
    def recall(ef_search: int) -> int:
        chance, hits = random.Random(4), 0
        for _ in range(20):
            vector = point(chance)
            found = {
                each.chunk_id for each in vectors_of(many).search(vector, EVERYTHING, 3, ef_search=ef_search)
            }
            hits += len(found & set(exactly(many, vector, set(range(1, POINTS + 1)), 3)))
        return hits

    assert recall(1) < recall(200)
    assert asked(many, "SHOW hnsw.ef_search") == "40"
