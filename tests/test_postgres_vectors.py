"""Vectors on PostgreSQL: what the index finds, when it is built, and what filters leave of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import replace

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.store.postgres import vectors
from concord.store.postgres.store import PostgresStore
from concord.types import Filter, silent
from contract.stored import (
    EVERYTHING,
    IDENTITY,
    document,
    keyed,
    pieces,
    source,
    unit,
    vectors_of,
)
from support.postgres_server import asked, fresh_org, server_url, walks
from support.stores import postgres_store

POINTS, DIMENSION = 2400, 24
RARE = 3  # 0.1 % and a little


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


def point(chance: random.Random) -> bytes:
    return unit(*(chance.gauss(0, 1) for _ in range(DIMENSION)))


def exactly(store: PostgresStore, vector: bytes, ids: set[int], limit: int) -> list[int]:
    known = vectors_of(store).fetch(sorted(ids))
    matrix = np.frombuffer(b"".join(known.values()), "<f4").reshape(len(known), -1)
    nearest = np.argsort(-(matrix @ np.frombuffer(vector, "<f4")), kind="stable")[:limit]
    return [list(known)[place] for place in nearest]


@pytest.mark.promise("002.hnsw")
@pytest.mark.parametrize("filter", [EVERYTHING, Filter(tags=("half",))], ids=str)
def test_many_vectors_are_indexed_when_a_sync_ends_and_the_index_answers(
    many: PostgresStore, filter: Filter, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(vectors, "MOST_COMPARED", 0)
    monkeypatch.setattr(vectors, "NARROW_SHARE", 0)
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


@pytest.mark.promise("design.narrow-filters-are-exact")
def test_under_a_narrow_filter_nothing_is_lost(many: PostgresStore):
    rare = {n + 1 for n in range(POINTS) if n % (POINTS // RARE) == 7}
    chance = random.Random(9)
    for _ in range(10):
        vector = point(chance)
        scored = vectors_of(many).search(vector, Filter(tags=("rare",)), 10, ef_search=1)
        assert [each.chunk_id for each in scored] == exactly(many, vector, rare, 10)


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
