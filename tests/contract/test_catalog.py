"""What every catalog does."""

from __future__ import annotations

import threading

import pytest

from concord.core.errors import BadValue, NotFound, StoreBusy
from concord.store.contract import Select, Store, document_by_id
from concord.types import Counts, Piece, Word
from contract.stored import (
    EVERYTHING,
    document,
    embed,
    pieces,
    put,
    source,
    unit,
    vectors_of,
)


def found(store: Store, word: str) -> list[int]:
    return [scored.chunk_id for scored in store.words.search(Word(word), EVERYTHING, 100)]


def test_sources_come_back_whole_and_by_name(store: Store):
    zoo = source(
        "zoo",
        patterns=("*.md", "*.txt"),
        tags=("ops", "ä b"),
        trust="untrusted",
        created_at=1.5,
        about="keepers’ handbook",
    )
    notes = source("notes", path=None, kind="notes", synced_at=2.5)
    store.catalog.put_source(zoo)
    store.catalog.put_source(notes)
    assert store.catalog.snapshot().sources == [notes, zoo]


def test_putting_a_source_again_replaces_it_and_keeps_its_documents(store: Store):
    ids = put(store, "docs/a.md", "hello")
    store.catalog.put_source(source("docs", name="Manual", synced_at=9.0))
    assert [known.name for known in store.catalog.snapshot().sources] == ["Manual"]
    assert list(store.catalog.read(ids)) == ids


@pytest.mark.parametrize("field", ["name", "prefix"])
def test_two_sources_cannot_share_a_name_or_prefix(store: Store, field: str):
    store.catalog.put_source(source("docs"))
    with pytest.raises(BadValue):
        store.catalog.put_source(source("other", **{field: "docs"}))
    assert [known.id for known in store.catalog.snapshot().sources] == ["docs"]


def test_a_document_comes_back_whole(store: Store):
    store.catalog.put_source(source("docs"))
    whole = document(
        "docs/grüße 漢字.pdf",
        id="d1",
        type="pdf",
        title='Say "hi" \x1b 𝄞',
        tags=("b", "a", "ops team"),
        details={"author": {"name": "Ä"}, "pages": [1, 2.5, None, True]},
        file_hash="f",
        content_hash="c",
        size=2**40,
        mtime_ns=1_700_000_000_123_456_789,
        superseded_by="d2",
        indexed_at=1.25,
    )
    store.catalog.put_documents([(whole, pieces("text"))])[0]
    assert document_by_id(store.catalog, "d1") == whole
    assert document_by_id(store.catalog, "d2") is None


def test_a_document_needs_a_source_that_exists(store: Store):
    with pytest.raises(NotFound):
        store.catalog.put_documents([(document(), pieces("x"))])[0]
    assert store.catalog.count() == Counts(0, 0, 0, 0)


def test_two_documents_cannot_have_one_path(store: Store):
    ids = put(store, "docs/a.md", "first")
    generation = store.catalog.snapshot().generation
    with pytest.raises(BadValue):
        store.catalog.put_documents([(document("docs/a.md", id="other"), pieces("second"))])[0]
    assert [chunk.id for chunk in store.catalog.chunks("docs/a.md")] == ids
    assert found(store, "second") == []
    assert store.catalog.snapshot().generation == generation


def test_chunks_come_back_in_order_with_all_their_places(store: Store):
    written = [
        Piece("one\x1b", 0, 4, 1, 2, page=3, heading=("A", "B"), last_page=4),
        Piece("𝄞 zwei", 5, 11, 3, 9),
        Piece("", 11, 11, 9, 9, heading=("",)),
    ]
    ids = put(store, "docs/a.md", *written)
    chunks = store.catalog.chunks("docs/a.md")
    assert [chunk.id for chunk in chunks] == ids
    assert [chunk.index for chunk in chunks] == [0, 1, 2]
    assert [
        Piece(c.text, c.start, c.end, c.start_line, c.end_line, c.page, c.heading, c.last_page)
        for c in chunks
    ] == written
    assert store.catalog.chunks("docs/none.md") == []


def test_reading_returns_the_chunks_that_exist_each_with_its_document(store: Store):
    a = put(store, "docs/a.md", "one", "two", title="A")
    b = put(store, "docs/b.md", "three", title="B")
    read = store.catalog.read([b[0], 999_999, a[1]])
    assert {chunk_id: (chunk.text, doc.title) for chunk_id, (chunk, doc) in read.items()} == {
        b[0]: ("three", "B"),
        a[1]: ("two", "A"),
    }
    assert store.catalog.read([]) == {}


def test_a_changed_piece_gets_a_new_id_and_the_others_keep_id_place_and_vector(store: Store):
    before = put(store, "docs/a.md", "alpha", "beta", "gamma")
    embed(store, [(chunk_id, unit(1, 0, 0, 0)) for chunk_id in before])
    after = put(store, "docs/a.md", "new", "alpha", "delta", "gamma")
    assert (after[1], after[3]) == (before[0], before[2])
    assert set(after).isdisjoint({before[1]})
    assert set(vectors_of(store).fetch([*before, *after])) == {before[0], before[2]}
    assert [chunk.index for chunk in store.catalog.chunks("docs/a.md")] == [0, 1, 2, 3]
    assert found(store, "beta") == []
    assert found(store, "delta") == [after[2]]


def test_a_chunk_id_is_never_used_again(store: Store):
    (old,) = put(store, "docs/a.md", "x")
    store.catalog.delete_documents(["docs/a.md"])
    (new,) = put(store, "docs/a.md", "x")
    assert new > old


def test_updating_a_document_changes_what_its_chunks_are_found_by(store: Store):
    ids = put(store, "docs/a.md", "text", "more text", title="Old", tags=("ops",))
    moved = document("docs/b.md", id="docs/a.md", title="New", tags=("web",), superseded_by=None, size=7)
    store.catalog.update_documents([moved])
    assert document_by_id(store.catalog, "docs/a.md") == moved
    assert [chunk.id for chunk in store.catalog.chunks("docs/a.md")] == ids
    assert (found(store, "old"), found(store, "ops")) == ([], [])
    assert (found(store, "new"), found(store, "web")) == (ids, ids)


def test_updating_a_document_that_is_gone_is_refused(store: Store):
    store.catalog.put_source(source("docs"))
    with pytest.raises(NotFound):
        store.catalog.update_documents([document()])


def test_deleting_documents_takes_their_chunks_words_and_vectors_and_no_others(store: Store):
    a, b = put(store, "docs/a.md", "shared one"), put(store, "docs/b.md", "shared two")
    embed(store, [(a[0], unit(1, 0, 0, 0)), (b[0], unit(0, 1, 0, 0))])
    assert store.catalog.delete_documents(["docs/a.md", "docs/none.md"]) == 1
    assert found(store, "shared") == b
    assert set(vectors_of(store).fetch([*a, *b])) == set(b)
    assert store.catalog.count() == Counts(1, 1, 1, 1)
    assert store.catalog.delete_documents(["docs/a.md"]) == 0


@pytest.mark.promise("000.remove.counts")
def test_removing_a_source_takes_all_that_came_from_it_and_nothing_else(store: Store):
    ids = [put(store, f"docs/{n}.md", "shared text", "more") for n in range(5)]
    kept = put(store, "wiki/a.md", "shared text")
    embed(store, [(chunk_id, unit(1, 0, 0, 0)) for chunk_id in [*sum(ids, []), *kept]])
    assert vectors_of(store).delete_source("docs") == 10
    assert store.catalog.remove_source("docs") == 5
    assert [known.id for known in store.catalog.snapshot().sources] == ["wiki"]
    assert found(store, "shared") == kept
    assert store.catalog.count() == Counts(1, 1, 1, 1)
    assert store.catalog.remove_source("docs") == 0


@pytest.mark.promise("000.remove.no-vectors")
def test_removing_a_source_without_vectors_reports_none(store: Store):
    put(store, "docs/a.md", "text")
    assert vectors_of(store).delete_source("docs") == 0
    assert store.catalog.remove_source("docs") == 1


def test_documents_come_in_order_of_path_and_of_one_source_when_asked(store: Store):
    for path in ("wiki/b.md", "docs/z.md", "docs/a.md"):
        put(store, path, "x")
    assert [d.path for d in store.catalog.documents()] == ["docs/a.md", "docs/z.md", "wiki/b.md"]
    assert [d.path for d in store.catalog.documents(Select(source_id="docs"))] == ["docs/a.md", "docs/z.md"]
    assert list(store.catalog.documents(Select(source_id="none"))) == []


def test_counts_are_of_everything_or_of_one_source(store: Store):
    docs = put(store, "docs/a.md", "x", "y")
    put(store, "docs/b.md", "z")
    put(store, "wiki/a.md", "w")
    embed(store, [(docs[0], unit(1, 0, 0, 0))])
    assert store.catalog.count() == Counts(2, 3, 4, 1)
    assert store.catalog.count("docs") == Counts(1, 2, 3, 1)
    assert store.catalog.count("wiki") == Counts(1, 1, 1, 0)
    assert store.catalog.count("none") == Counts(0, 0, 0, 0)


def test_the_generation_grows_with_every_change_of_content_and_with_nothing_else(store: Store):
    seen = [store.catalog.snapshot().generation]

    def grew() -> bool:
        seen.append(store.catalog.snapshot().generation)
        return seen[-1] > seen[-2]

    store.catalog.put_source(source("docs"))
    assert grew()
    ids = put(store, "docs/a.md", "x")
    assert grew()
    embed(store, [(ids[0], unit(1, 0, 0, 0))])
    store.catalog.read(ids)
    assert not grew()
    store.catalog.update_documents([document("docs/a.md", title="New")])
    assert grew()
    store.catalog.delete_documents(["docs/a.md"])
    assert grew()
    store.catalog.delete_documents(["docs/a.md"])
    assert not grew()
    store.catalog.remove_source("docs")
    assert grew()


def test_a_source_is_synced_by_one_at_a_time(store: Store):
    with store.lock("docs", "syncing this source", wait_s=0):
        with pytest.raises(StoreBusy, match="syncing"), store.lock("docs", "syncing this source", wait_s=0):
            pytest.fail("the lock was given twice")
        with store.lock("wiki", "syncing this source", wait_s=0):
            pass
    with store.lock("docs", "syncing this source", wait_s=0):
        pass


def test_many_threads_may_read_and_write_at_once(store: Store):
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for n in range(5):
                ids = put(store, f"docs/{name}-{n}.md", f"shared text {name} {n}", "tail")
                assert set(store.catalog.read(ids)) == set(ids)
                assert set(ids) <= set(found(store, "shared")) | {ids[1]}
        except BaseException as fault:
            failures.append(fault)

    store.catalog.put_source(source("docs"))
    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert store.catalog.count() == Counts(1, 20, 40, 0)


@pytest.mark.promise("004.embed.backfill")
def test_indexing_anew_changes_nothing_that_is_indexed_as_it_would_be_now(store: Store):
    ids = put(store, "docs/a.md", "alpha", "beta", title="T", tags=("ops",))
    put(store, "docs/b.md", "alpha")
    embed(store, [(ids[0], unit(1, 0, 0, 0))])
    before = store.words.search(Word("alpha"), EVERYTHING, 9)
    assert store.catalog.reindex_words(["docs/a.md", "docs/b.md", "none"]) == 0
    assert store.words.search(Word("alpha"), EVERYTHING, 9) == before
    assert store.catalog.count().vectors == 1


def test_tags_are_embedded_with_notes_and_with_nothing_else(store: Store):
    (note,) = put(store, "notes/a", "a text", type="note", tags=("ops", "red"))
    (page,) = put(store, "docs/a.md", "a text", tags=("ops",))
    tags = {waiting.chunk_id: waiting.tags for waiting in vectors_of(store).pending(0, 10)}
    assert tags == {note: ("ops", "red"), page: ()}
    embed(store, [(note, unit(1, 0, 0, 0)), (page, unit(0, 1, 0, 0))])
    put(store, "docs/a.md", "a text", tags=("other",))
    put(store, "notes/a", "a text", type="note", tags=("ops", "red"))
    assert vectors_of(store).pending(0, 10) == []
    put(store, "notes/a", "a text", type="note", tags=("ops",))
    assert [waiting.tags for waiting in vectors_of(store).pending(0, 10)] == [("ops",)]
