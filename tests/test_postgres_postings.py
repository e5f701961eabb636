"""Postings on PostgreSQL: merged, sent to the client or left there, the same is found."""

from __future__ import annotations

import subprocess
import sys
import weakref
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from concord import KnowledgeBase
from concord.core.config import load_settings
from concord.core.errors import BackendDown, BadValue
from concord.store.columns import Columns, columns_of
from concord.types import AllOf, AnyOf, Filter, Match, Phrase, Word, silent
from contract.stored import EVERYTHING, document, faults, pieces, put, source
from support.postgres_server import fresh_org, server_url
from support.recorders import write
from support.stores import postgres_store

pytest.importorskip("psycopg", reason="psycopg comes with the dev extra")
from concord.backends.postgres import indexing, upkeep
from concord.backends.postgres.plain_words import ReadWords
from concord.backends.postgres.segment import Growing
from concord.backends.postgres.store import PostgresStore

store = pytest.fixture(postgres_store)


def test_many_small_writes_are_merged_and_found_as_before(store: PostgresStore, administrator: Any):
    def found() -> list[Any]:
        return [
            store.lexical.search(match, EVERYTHING, 99) for match in (Word("shared"), Word("w", prefix=True))
        ]

    def rows(table: str) -> int:
        statement = f"SELECT count(*) FROM {table} WHERE org = %s"
        return int(administrator.execute(statement, (store.org,)).fetchone()[0])

    many = upkeep._MANY + 4
    for n in range(many):
        put(store, f"docs/{n}.md", f"shared w{n}", "more")
    before, segments, postings = found(), rows("kb_segments"), rows("kb_postings")
    store.tend(silent)
    assert found() == before
    assert (rows("kb_segments"), segments) == (1, many)
    assert rows("kb_postings") < postings / 2
    store.catalog.delete_documents([f"docs/{n}.md" for n in range(10)])
    left = found()
    store.tend(silent)
    assert found() == left
    assert store.lexical.frequencies(["w3", "w15", "shared"]) == (
        2 * many - 20,
        {"w3": 0, "w15": 1, "shared": many - 10},
    )
    stale = administrator.execute("SELECT stale FROM kb_orgs WHERE key = %s", (store.org,)).fetchone()
    assert stale == (0,)
    assert rows("kb_gone") == 0


def test_a_group_of_many_chunks_is_written_in_several_segments_and_found_as_if_it_were_one(
    store: PostgresStore, administrator: Any, monkeypatch: pytest.MonkeyPatch
):
    texts = [f"shared w{n} v{n % 100} text" for n in range(2 * indexing._SEGMENT_CHUNKS + 1)]
    segments = "SELECT count(*), sum(chunks) FROM kb_segments WHERE org = %s"

    def stored(store: PostgresStore) -> tuple[Any, ...]:
        put(store, "docs/a.md", *texts)
        assert faults(store) == []
        terms = ["shared", "w3", "v7", f"w{len(texts) - 1}", "none"]
        found = [store.lexical.search(Word(term), EVERYTHING, 99) for term in terms]
        return found, store.lexical.frequencies(terms), store.catalog.counts(), store.vectors.count_pending()

    in_parts = stored(store)
    assert administrator.execute(segments, (store.org,)).fetchone() == (2, len(texts))
    monkeypatch.setattr(indexing, "_SEGMENT_CHUNKS", len(texts))
    with closing(PostgresStore.open(server_url(), fresh_org())) as other:
        assert stored(other) == in_parts
        assert administrator.execute(segments, (other.org,)).fetchone() == (1, len(texts))


def test_a_segment_that_is_written_takes_no_memory_while_the_next_ones_are(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    segments: list[weakref.ref[Growing]] = []
    alive: list[int] = []

    def growing(chunks: Any) -> Growing:
        made = Growing(chunks)
        segments.append(weakref.ref(made))
        alive.append(sum(one() is not None for one in segments))
        return made

    monkeypatch.setattr(indexing, "_SEGMENT_CHUNKS", 10)
    monkeypatch.setattr(indexing, "_growing", growing)
    put(store, "docs/a.md", *(f"text {n}" for n in range(100)))
    assert len(segments) > 10
    assert max(alive) <= 3


@pytest.mark.parametrize(
    ("broken", "reason"), [("half \ud800", "cannot"), (" ".join(map(hex, range(200_000))), "too large")]
)
def test_a_fault_in_a_later_segment_leaves_nothing_of_the_earlier_ones(
    store: PostgresStore, administrator: Any, broken: str, reason: str
):
    put(store, "docs/before.md", "before")
    before = store.catalog.counts()
    many = [f"text {n}" for n in range(2 * indexing._SEGMENT_CHUNKS)]
    with pytest.raises(BadValue, match=reason):
        put(store, "docs/many.md", *many, broken)
    assert store.catalog.counts() == before
    assert store.lexical.frequencies(["text"]) == (1, {"text": 0})
    left = "SELECT count(*) FROM kb_segments WHERE org = %s"
    assert administrator.execute(left, (store.org,)).fetchone() == (1,)
    put(store, "docs/many.md", *many)
    assert store.lexical.frequencies(["text"]) == (len(many) + 1, {"text": len(many)})


def test_an_interruption_while_postings_are_sent_leaves_nothing_and_the_store_goes_on(
    store: PostgresStore, administrator: Any, monkeypatch: pytest.MonkeyPatch
):
    many = [f"text {n}" for n in range(2 * indexing._SEGMENT_CHUNKS)]
    asked = "SELECT query FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY kb_postings%'"
    sending: list[Any] = []

    def interrupted(title: str, tags: Any, heading: Any, text: str) -> Columns:
        if text == many[indexing._SEGMENT_CHUNKS]:  # the first of the second segment
            sending.extend(administrator.execute(asked).fetchall())
            raise KeyboardInterrupt
        return columns_of(title, tags, heading, text)

    put(store, "docs/before.md", "before")
    before = store.catalog.counts()
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "columns_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put(store, "docs/many.md", *many)
    assert len(sending) == 1
    assert store.catalog.counts() == before
    assert administrator.execute(asked).fetchall() == []
    put(store, "docs/many.md", *many)
    assert store.lexical.frequencies(["text"]) == (len(many) + 1, {"text": len(many)})


def test_a_folder_that_gets_and_loses_tags_has_its_postings_rewritten_once_not_for_every_file(
    tmp_path: Path, administrator: Any
):
    for n in range(8):
        write(tmp_path / "docs" / f"{n}.md", f"# Page {n}\n\nWhat there is to say about number {n}.\n")
    settings = load_settings(
        {"store.url": server_url(), "embed.provider": "none"}, {"KB_HOME": str(tmp_path)}
    )
    with KnowledgeBase(settings.replaced(org=fresh_org())) as kb:
        store = kb.store
        assert isinstance(store, PostgresStore)
        rewritten = "SELECT count(DISTINCT xmin::text) FROM kb_postings WHERE org = %s"

        def writes() -> int:
            return int(administrator.execute(rewritten, (store.org,)).fetchone()[0])

        kb.add(tmp_path / "docs")
        assert writes() == 1
        kb.add(tmp_path / "docs", tags=["hot"])
        assert kb.store.lexical.frequencies(["hot", "number"]) == (8, {"hot": 8, "number": 8})
        assert writes() == 1  # nothing is left of the first: every chunk is indexed anew
        kb.add(tmp_path / "docs", tags=["cold"])
        assert kb.store.lexical.frequencies(["hot", "cold"]) == (8, {"hot": 0, "cold": 8})
        assert faults(store) == []


def test_a_document_given_twice_is_as_it_was_given_last(store: PostgresStore):
    store.catalog.put_source(source("docs"))
    store.catalog.put_documents([(document(), pieces("first")), (document(), pieces("second", "third"))])
    assert [chunk.text for chunk in store.catalog.chunks_of("docs/a.md")] == ["second", "third"]
    assert store.lexical.frequencies(["first", "second"]) == (2, {"first": 0, "second": 1})


@pytest.mark.parametrize("most", [0, 5, 20_000])
def test_what_is_found_does_not_depend_on_which_postings_are_sent(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, most: int
):
    put(store, "docs/a.md", *(f"often {'rare' if n == 3 else 'filler'} w{n}" for n in range(12)))
    put(store, "docs/b.md", "often rare")
    store.catalog.delete_documents(["docs/b.md"])
    everything = AnyOf((Word("often"), Word("rare"))), AllOf((Word("often"), Word("rare"))), Word("often")
    known = store.lexical.frequencies(["often", "rare"], 1.0)[1]

    def found(known: dict[str, int]) -> list[list[tuple[int, float]]]:
        lists = (store.lexical.search(match, Filter(), 20, known) for match in everything)
        return [[(one.chunk_id, round(one.score, 9)) for one in some] for some in lists]

    expected = found(known)
    assert [len(some) for some in expected] == [12, 1, 12]
    monkeypatch.setattr("concord.backends.postgres.plain_words.RARE", 2)
    monkeypatch.setattr("concord.backends.postgres.plain_words.MOST_SENT", most)
    nowhere = AllOf((Word("often"), Word("rare"), Word("w5")))
    for share in (None, 0.2):
        known = store.lexical.frequencies(["often", "rare"], share)[1]
        assert known == {"often": 12, "rare": 1}
        assert found(known) == expected
        assert store.lexical.search(nowhere, Filter(), 20, known) == []


def sent(store: PostgresStore, *words: str) -> set[str]:
    """Return the tokens whose postings come with the counts of some words."""
    _, known = store.lexical.frequencies(words, 0.2)
    assert isinstance(known, ReadWords)
    return set(known.tokens.postings)


def test_no_more_postings_are_sent_than_a_query_may_have(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
):
    put(store, "docs/a.md", *(f"often {'rare' if n < 2 else 'filler'}" for n in range(12)))
    assert sent(store, "often", "rare", "absent") == {"often", "rare"}
    monkeypatch.setattr("concord.backends.postgres.plain_words.MOST_SENT", 13)
    assert sent(store, "often", "rare") == {"rare"}  # together too many: a search for both begins there
    assert sent(store, "often") == {"often"}
    put(store, "docs/b.md", *("often" for _ in range(3)))
    store.catalog.delete_documents(["docs/b.md"])
    assert sent(store, "often") == set()  # what was deleted would be sent as well


@pytest.mark.parametrize(
    ("match", "filter", "is_at_hand"),
    [
        (Word("often"), Filter(), True),
        (AllOf((Word("often"), Word("absent"))), Filter(), True),
        (AllOf((Word("often"), Word("unheard"))), Filter(), False),  # nobody has counted it
        (Phrase("often filler"), Filter(), False),
        (Word("oft", prefix=True), Filter(), False),
        (Word("often"), Filter(type="markdown"), False),
        (Word("superseded"), Filter(), False),
        (Word("superseded"), Filter(include_superseded=True), True),
    ],
)
def test_what_is_at_hand_is_found_without_asking_and_the_rest_is_not(
    match: Match, filter: Filter, is_at_hand: bool
):
    with closing(PostgresStore.open(server_url(), fresh_org())) as store:
        put(store, "docs/a.md", "often filler", "filler")
        if match == Word("superseded"):
            put(store, "docs/old.md", "superseded", superseded_by="docs/a.md")
        _, known = store.lexical.frequencies(["often", "filler", "absent", "superseded"], 1.0)
        expected = store.lexical.search(match, filter, 9, known)
        assert store.lexical.is_at_hand(match, filter, known) == is_at_hand
    if is_at_hand:
        assert store.lexical.search(match, filter, 9, known) == expected
    else:
        with pytest.raises(BackendDown):
            store.lexical.search(match, filter, 9, known)


def test_postings_that_name_deleted_chunks_are_not_at_hand(store: PostgresStore):
    put(store, "docs/a.md", "often")
    put(store, "docs/b.md", "often")
    store.catalog.delete_documents(["docs/b.md"])
    _, known = store.lexical.frequencies(["often"], 1.0)
    assert not store.lexical.is_at_hand(Word("often"), Filter(), known)


SEARCHED = """
import sys, time
from concord.backends.postgres.store import PostgresStore
from concord.types import AllOf, AnyOf, Filter, Word
store = PostgresStore.open(sys.argv[1], sys.argv[2])
words = (Word("shared"), Word("second"))
def found():
    known = store.lexical.frequencies(["shared", "second"], 0.2)[1]
    lists = (store.lexical.search(kind(words), Filter(), 5, known) for kind in (AllOf, AnyOf))
    return [[(one.chunk_id, round(one.score, 9)) for one in some] for some in lists]
first = found()
print("numpy" in sys.modules, [len(some) for some in first])
ends = time.monotonic() + 60
while "numpy" not in sys.modules and time.monotonic() < ends:
    assert found() == first
print("numpy" in sys.modules, found() == first)
"""


def test_a_process_that_searches_once_loads_no_numpy_and_one_that_goes_on_does(store: PostgresStore):
    put(store, "docs/a.md", "the first shared text", "a second shared text", "nothing of the kind")
    asked = [sys.executable, "-c", SEARCHED, server_url(), store._connections.location.org]
    told = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120).stdout
    assert told.split("\n")[:2] == ["False [1, 2]", "True True"]


def test_many_deleted_chunks_leave_the_others_to_be_found(store: PostgresStore):
    put(store, "docs/kept.md", *(f"often and {'at length ' * 9} w{n}" for n in range(3)))
    for n in range(4):
        put(store, f"docs/{n}.md", *("often" for _ in range(60)))
    store.catalog.delete_documents([f"docs/{n}.md" for n in range(4)])
    kept = [chunk.id for chunk in store.catalog.chunks_of("docs/kept.md")]
    assert [one.chunk_id for one in store.lexical.search(Word("often"), Filter(), 2)] == kept[:2]
    assert [one.chunk_id for one in store.lexical.search(Word("often"), Filter(), 9)] == kept
