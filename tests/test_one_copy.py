"""SQLite files of earlier schemas: each vector is kept once afterwards, and each chunk has the one it had."""

from __future__ import annotations

import json
import lzma
import math
import subprocess
import sys
from array import array
from contextlib import closing
from pathlib import Path

import pytest

from concord.store.sqlite.connections import Connection
from concord.store.sqlite.store import SQLiteStore
from concord.types import ChunkId, Identity, Vector
from support.golden_files import GOLDEN

FILES = sorted((GOLDEN / "stores").glob("sqlite-[1-5]-*.db.xz"))
OUTSIDE = next(file for file in FILES if "qdrant" in file.name)
ONE_COPY = 6  # the schema from which on a vector is kept once
INSIDE = [file for file in FILES if file != OUTSIDE and int(file.name.split("-")[1]) < ONE_COPY]
LATEST = next(file for file in FILES if file.name.startswith("sqlite-4-9482f1c"))
ANY_CHUNK = list(range(1, 100))


def unpacked(file: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "default.db"
    path.write_bytes(lzma.decompress(file.read_bytes()))
    return path


def opened(path: Path) -> SQLiteStore:
    return SQLiteStore.open(f"sqlite://{path.parent}", "default")


def normalised(vector: Vector) -> list[float]:
    numbers = array("f", vector)
    return [number / math.hypot(*numbers) for number in numbers]


def earlier_vectors(path: Path) -> dict[int, dict[ChunkId, Vector]]:
    """Return the vectors by which chunks are searched, by the number of their table."""
    connection = Connection(str(path))
    connection.load_vec0()
    names = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE kb_vec%'"
    tables = [name for (name,) in connection.rows(names)]
    vectors = {
        int(name.removeprefix("kb_vec").strip("_") or 1): dict(
            connection.rows(f"SELECT rowid, embedding FROM {name}")
        )
        for name in tables
    }
    connection.close()
    return vectors


def earlier_cache(path: Path) -> dict[tuple[Identity, bytes], Vector]:
    connection = Connection(str(path))
    rows = connection.rows(
        "SELECT identity, text_hash, vector FROM kb_embedding_cache JOIN kb_embedders ON key = embedder"
    )
    connection.close()
    return {(Identity(*json.loads(identity)), key): vector for identity, key, vector in rows}


@pytest.mark.parametrize("file", INSIDE, ids=lambda file: file.name)
def test_every_chunk_has_the_vector_that_it_had(file: Path, tmp_path: Path):
    path = unpacked(file, tmp_path)
    before = earlier_vectors(path)
    with closing(opened(path)) as store:
        spaces = store.catalog.snapshot().models
        assert len(spaces) == len(before)
        for space, expected in zip(spaces, before.values(), strict=True):
            vectors = store.models.index(space.identity).fetch(ANY_CHUNK)
            assert vectors.keys() == expected.keys()
            for chunk_id, vector in vectors.items():
                assert list(array("f", vector)) == pytest.approx(normalised(expected[chunk_id]), abs=1e-6)
        assert store.check() == []


def test_vectors_that_were_kept_outside_are_still_known_to_be_there(tmp_path: Path):
    path = unpacked(OUTSIDE, tmp_path)
    connection = Connection(str(path))
    ask = "SELECT value FROM kb_vec_meta WHERE key = :key"
    home, key = (connection.value(ask, {"key": key}) for key in ("home", "key"))
    waiting = connection.rows("SELECT turn, chunk FROM kb_unsettled ORDER BY turn")
    pending = connection.value("SELECT count(*) FROM kb_pending WHERE space = 1")
    connection.close()
    with closing(opened(path)) as store:
        assert (store.outbox.home().url, store.outbox.home().key) == (home, key)
        assert store.outbox.changes(1000) == waiting
        assert store.catalog.count().vectors == store.catalog.count().chunks - pending
        known = store.outbox.changes(1000)
        document = next(store.catalog.documents())
        store.catalog.delete_documents([document.id])
        assert len(store.outbox.changes(1000)) > len(known)


KILLED = """
import os, sys
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.store import SQLiteStore

written = 0
write_rows = Connection.run_many

def killed(*given):
    global written
    written += 1
    if written == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    return write_rows(*given)

Connection.run_many = killed
SQLiteStore.open(f"sqlite://{sys.argv[1]}", "default")
"""


@pytest.mark.parametrize("after", [1, 5, 9])
def test_a_migration_that_is_killed_begins_again_with_everything_there(after: int, tmp_path: Path):
    path = unpacked(LATEST, tmp_path)
    before, cached = earlier_vectors(path), earlier_cache(path)
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(after)], check=False)
    assert run.returncode == -9
    assert (earlier_vectors(path), earlier_cache(path)) == (before, cached)
    with closing(opened(path)) as store:
        for space, expected in zip(store.catalog.snapshot().models, before.values(), strict=True):
            assert store.models.index(space.identity).fetch(ANY_CHUNK).keys() == expected.keys()
        assert store.check() == []


def test_a_new_file_has_the_tables_of_one_that_was_migrated(tmp_path: Path):
    unpacked(LATEST, tmp_path / "old")
    (tmp_path / "new").mkdir()
    schemas = []
    identities: list[Identity] = []
    for folder in ("old", "new"):
        store = opened(tmp_path / folder / "default.db")
        identities = identities or [space.identity for space in store.catalog.snapshot().models]
        for identity in identities:
            store.models.add(identity, {})
        store.close()
        schemas.append(tables_and_columns(tmp_path / folder / "default.db"))
    assert schemas[0] == schemas[1]


def tables_and_columns(path: Path) -> set[tuple[object, ...]]:
    connection = Connection(str(path))
    connection.load_vec0()
    columns = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk
    FROM sqlite_schema AS t LEFT JOIN pragma_table_info(t.name) AS c WHERE t.name LIKE 'kb%'"""
    found = set(connection.rows(columns))
    connection.close()
    return found
