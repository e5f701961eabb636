"""A SQLite store keeps each vector once, by its text: chunks share it, and it is the cache as well."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from concord.store.sqlite.connections import Connection
from concord.store.sqlite.store import SQLiteStore
from concord.types import Filter, Vector
from contract.stored import (
    EVERYTHING,
    IDENTITY,
    embed,
    file_of,
    put,
    unit,
    vectors_of,
)
from support.stores import sqlite_store

NORTH, EAST = unit(1, 0, 0, 0), unit(0, 1, 0, 0)
store = pytest.fixture(sqlite_store)


def stored_vectors(store: SQLiteStore) -> int:
    connection = Connection(file_of(store))
    connection.load_vec0()
    count = connection.value("SELECT count(*) FROM kb_vectors_1")
    connection.close()
    return int(count)


def nearest(store: SQLiteStore, vector: Vector, filter: Filter = EVERYTHING, limit: int = 40) -> list[int]:
    return [scored.chunk_id for scored in vectors_of(store).search(vector, filter, limit)]


def test_chunks_of_the_same_text_share_a_vector_and_are_all_found(store: SQLiteStore):
    ids = [put(store, f"docs/{n}.md", "the same text")[0] for n in range(5)]
    store.models.add(IDENTITY, {})
    vectors_of(store).put((chunk_id, b"the hash of their text", NORTH) for chunk_id in ids)
    assert stored_vectors(store) == 1
    assert nearest(store, NORTH) == ids
    assert nearest(store, NORTH, limit=2) == ids[:2]
    assert store.catalog.count().vectors == 5


@pytest.mark.promise("000.remove.order")
def test_removing_a_source_deletes_the_vectors_that_no_other_source_uses(store: SQLiteStore):
    a, b = put(store, "docs/a.md", "shared", "own")
    (c,) = put(store, "wiki/a.md", "shared")
    embed(store, [(a, NORTH), (b, EAST), (c, NORTH)])
    assert vectors_of(store).delete_source("docs") == 2
    store.catalog.remove_source("docs")
    assert stored_vectors(store) == 1
    assert nearest(store, NORTH) == [c]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore.open(f"sqlite://{tmp_path}/fresh", "default")) as made:
        yield made


def damage(store: SQLiteStore, chunk_id: int, at: int, bits: int) -> None:
    """Flip bits of a chunk's vector, as a disk might."""
    connection = Connection(file_of(store))
    place = connection.rows(
        "SELECT r.chunk_id, r.chunk_offset FROM kb_vectors_1_rowids AS r JOIN kb_chunk_vectors AS v"
        " ON v.embedding = r.rowid WHERE v.chunk = :chunk",
        {"chunk": chunk_id},
    )
    ((value, offset),) = place
    with connection.blob_open("main", "kb_vectors_1_vector_chunks00", "vectors", value, True) as blob:
        blob.seek(offset * 16 + at)
        old = blob.read(1)[0]
        blob.seek(offset * 16 + at)
        blob.write(bytes([old ^ bits]))
    connection.close()


@pytest.mark.parametrize(("at", "bits"), [(3, 0x40), (3, 0x01), (2, 0x80), (0, 0x01), (7, 0x7F), (11, 0xFF)])
def test_a_vector_that_a_disk_has_changed_is_skipped_and_moves_no_other(
    store: SQLiteStore, at: int, bits: int
):
    chance = random.Random(5)
    ids = put(store, "docs/a.md", *(f"text {n}" for n in range(200)))
    embed(store, [(chunk_id, unit(*(chance.gauss(0, 1) for _ in range(4)))) for chunk_id in ids])
    queries = [unit(*(chance.gauss(0, 1) for _ in range(4))) for _ in range(12)]
    before = [nearest(store, query, limit=200) for query in queries]
    spoiled = before[0][3]
    damage(store, spoiled, at, bits)
    with closing(SQLiteStore.open(f"sqlite://{Path(file_of(store)).parent}", "default")) as again:
        for query, order in zip(queries, before, strict=True):  # read from the file at first, then kept
            expected = [chunk_id for chunk_id in order if chunk_id != spoiled]
            assert nearest(again, query, limit=20) == expected[:20]
        assert vectors_of(again).fetch([spoiled]) == {}
        (finding,) = again.check()
        assert (finding.fault, finding.is_repairable) == ("damaged-vectors", True)
        again.repair([finding])
        assert again.check() == []
        assert [chunk.chunk_id for chunk in vectors_of(again).pending(0, 9)] == [spoiled]
