"""What is special to the SQLite store: its file, its schema, its engines and the seams between them."""

from __future__ import annotations

import math
import random
import re
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from concord.core.errors import BadValue
from concord.index.lock import remove
from concord.store.sqlite.connections import Connection
from concord.store.sqlite.file import locate
from concord.store.sqlite.store import SQLiteStore
from concord.types import (
    Filter,
    Identity,
    Phrase,
    Word,
)
from contract.stored import (
    EVERYTHING,
    active_model,
    document,
    embed,
    file_of,
    keyed,
    pieces,
    put,
    source,
    unit,
    vectors_of,
)
from support.stores import sqlite_store

NORTH = unit(1, 0, 0, 0)


store = pytest.fixture(sqlite_store)


def beside(store: SQLiteStore) -> Connection:
    """A connection of our own to the store's file."""
    connection = Connection(file_of(store))
    connection.load_vec0()
    return connection


@pytest.mark.parametrize(
    ("url", "org", "path"),
    [
        ("sqlite:///data/kb", "default", "/data/kb/default.db"),
        ("sqlite:///data/kb.d/my.db", "acme", "/data/kb.d/my.db"),
        ("sqlite:///data?busy_timeout_ms=7&vfs=other", "a", "/data/a.db"),
    ],
)
def test_a_url_and_an_organisation_name_one_file(url: str, org: str, path: str):
    assert locate(url, org).path == path


@pytest.mark.parametrize(
    "org", ["", ".", "..", ".hidden", "a/b", "../x", "a\\b", "a\0", "a b", "é", "x" * 65, "a\n"]
)
def test_an_organisation_that_could_leave_the_folder_is_refused(tmp_path: Path, org: str):
    with pytest.raises(BadValue):
        SQLiteStore.open(f"sqlite://{tmp_path}", org)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://relative/path",
        "sqlite://",
        "sqlite:///x?vfs=",
    ],
)
def test_a_url_of_another_form_is_refused(url: str):
    with pytest.raises(BadValue) as failure:
        SQLiteStore.open(url, "default")
    assert failure.value.hint


def test_looking_makes_no_file_and_the_first_change_does(tmp_path: Path):
    store = SQLiteStore.open(f"sqlite://{tmp_path}/new/folder", "default")
    assert (store.place.is_begun, store.catalog.snapshot().sources, store.catalog.snapshot().generation) == (
        False,
        [],
        0,
    )
    assert (store.words.search(Word("text"), EVERYTHING, 9), store.check()) == ([], [])
    assert (active_model(store), store.cache.usage().entries) == (None, 0)
    store.maintain(lambda *_: None)
    assert list(tmp_path.iterdir()) == []
    put(store, "docs/a.md", "text")
    assert (store.place.is_begun, len(store.words.search(Word("text"), EVERYTHING, 9))) == (True, 1)
    store.close()


def test_an_opened_store_only_reads_until_something_is_written(store: SQLiteStore, tmp_path: Path):
    put(store, "docs/a.md", "text")
    other = beside(store)
    other.execute("BEGIN IMMEDIATE")  # nobody else can write now
    again = SQLiteStore.open(f"sqlite://{tmp_path}", "default")
    assert len(again.words.search(Word("text"), Filter(type="markdown"), 5)) == 1
    assert active_model(again) is None
    other.execute("ROLLBACK")
    other.close()
    again.close()


@pytest.mark.promise("001.fts.triggers")
def test_the_words_follow_the_chunks_by_triggers(store: SQLiteStore):
    put(store, "docs/a.md", "alpha beta", "gamma", title="One", tags=("x",))
    put(store, "docs/a.md", "alpha beta", "delta", title="One", tags=("y",))
    store.catalog.update_documents([document("docs/a.md", title="Two", tags=("z",))])
    put(store, "docs/b.md", "epsilon")
    store.catalog.delete_documents(["docs/b.md"])
    other = beside(store)
    schema = dict(other.execute("SELECT name, sql FROM sqlite_schema"))
    assert "tokenize='porter unicode61'" in schema["kb_chunks_fts"]
    assert (
        sum(name.startswith("kb_chunks_") and "CREATE TRIGGER" in (sql or "") for name, sql in schema.items())
        == 3
    )
    # FTS5 compares its index with the chunks, and fails when a single token differs
    other.execute("INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('integrity-check', 1)")
    other.execute("UPDATE kb_chunks SET content = 'changed by hand'")
    other.execute("INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('integrity-check', 1)")
    other.close()
    assert len(store.words.search(Phrase("changed by hand"), EVERYTHING, 9)) == 2


@pytest.mark.promise("000.schema")
def test_the_counters_agree_with_the_tables(store: SQLiteStore):
    ids = [put(store, f"docs/{n}.md", *["text"] * n)[-1:] for n in range(6)]
    embed(store, [(chunk_id, NORTH) for last in ids for chunk_id in last])
    put(store, "docs/5.md", "other")
    store.catalog.delete_documents(["docs/4.md"])
    other = beside(store)
    linked = (
        "SELECT count(*) FROM kb_chunk_vectors JOIN kb_vectors_1 AS v ON v.rowid = kb_chunk_vectors.embedding"
    )
    counted = other.execute(f"SELECT count(*), ({linked}) FROM kb_chunks").get
    assert (store.catalog.count().chunks, store.catalog.count().vectors) == counted
    assert other.execute("PRAGMA foreign_key_check").get is None
    other.close()


@pytest.mark.promise("004.sentinel")
@pytest.mark.parametrize("sentinel", [None, "l2"])
def test_vectors_that_measure_another_distance_are_migrated_when_first_used(
    store: SQLiteStore, tmp_path: Path, sentinel: str | None
):
    near, far, zero, bare = put(store, "docs/a.md", "near", "far", "zero", "bare")
    embed(store, [(chunk_id, NORTH) for chunk_id in (near, far, zero)])
    store.close()
    old = beside(store)
    old.execute("DROP TABLE kb_vectors_1; CREATE VIRTUAL TABLE kb_vectors_1 USING vec0(embedding float[4])")
    # By L2 the far direction is nearer, because the vector in the right direction is long.
    rows = ((16, 1, 0, 0), (0.6, 0.8, 0, 0), (0, 0, 0, 0))
    for number, numbers in enumerate(rows, 1):
        values = (number, array("f", numbers).tobytes())
        old.execute("INSERT INTO kb_vectors_1 (rowid, embedding) VALUES (?, ?)", values)
    old.execute("DELETE FROM kb_vec_meta WHERE key = 'distance_metric'")
    if sentinel:
        old.execute("INSERT INTO kb_vec_meta VALUES ('distance_metric', ?)", (sentinel,))
    old.close()
    again = SQLiteStore.open(f"sqlite://{tmp_path}", "default")
    scored = vectors_of(again).search(NORTH, EVERYTHING, 9)
    assert [each.chunk_id for each in scored] == [near, far]
    assert [each.score for each in scored] == pytest.approx([16 / math.hypot(16, 1), 0.6], abs=1e-6)
    assert math.hypot(*array("f", vectors_of(again).fetch([near])[near])) == pytest.approx(1, abs=1e-6)
    assert [each.chunk_id for each in vectors_of(again).pending(0, 9)] == [zero, bare]
    assert again.catalog.count().vectors == 2
    now = beside(again)
    made = "SELECT sql FROM sqlite_schema WHERE name = 'kb_vectors_1'"
    assert "distance_metric=cosine" in now.execute(made).get
    assert now.execute("SELECT value FROM kb_vec_meta WHERE key = 'distance_metric'").get == "cosine"
    now.close()
    again.close()


@pytest.fixture(scope="module")
def large(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[SQLiteStore, dict[int, bytes], dict[int, str]]]:
    """Six thousand chunks in documents of ten, a fiftieth of them tagged, a half of them code."""
    chance = random.Random(7)
    store = SQLiteStore.open(f"sqlite://{tmp_path_factory.mktemp('large')}", "default")
    store.catalog.put_source(source("docs"))
    made: dict[int, bytes] = {}
    paths: dict[int, str] = {}
    for n in range(60):
        one = document(
            f"docs/{n}.md", type="code" if n % 2 else "markdown", tags=("rare",) if n == 50 else ()
        )
        for chunk_id in store.catalog.put_documents([(one, pieces(*(str(m) for m in range(100))))])[0]:
            made[chunk_id] = unit(*(chance.gauss(0, 1) for _ in range(8)))
            paths[chunk_id] = one.path
    store.models.add(Identity("test", "eight", 8), {})
    assert vectors_of(store).put(keyed(made.items())) == 6000
    yield store, made, paths
    store.close()


@pytest.mark.promise("000.remove.order")
def test_vectors_go_first_then_chunks_with_their_words_then_documents_then_the_source(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
):
    embed(store, [(put(store, "docs/a.md", "text")[0], NORTH)])
    order: list[str] = []

    def note(cursor: apsw.Cursor, statement: str, values: object) -> bool:
        order.extend(re.findall(r"^DELETE FROM (kb_(?:vectors_1|chunks|documents|sources))\b", statement))
        return True

    monkeypatch.setattr(apsw, "connection_hooks", [lambda made: setattr(made, "exec_trace", note)])
    with closing(SQLiteStore.open(f"sqlite://{Path(file_of(store)).parent}", "default")) as again:
        remove(again, source("docs"), 1)
    assert order == ["kb_vectors_1", "kb_chunks", "kb_documents", "kb_sources"]
