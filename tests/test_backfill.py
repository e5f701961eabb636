"""Indexing anew what is stored: words as extracted now, vectors from the cache, while searches go on."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from concord.cli.main import main
from concord.core import plugins
from concord.core.errors import EmbedderDown
from concord.knowledge import KnowledgeBase
from concord.ops.backfill import Backfill
from concord.types import Answer, Word
from contract.stored import EVERYTHING, vectors_of
from support.kb_process import BOUND_S
from support.recorders import RecordingEmbedder, write
from support.small_library import opened

PAGES = 150


class Noted(RecordingEmbedder):
    """The recording embedder, of which the last one that was opened is known."""

    last: Noted

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        Noted.last = self


@pytest.fixture(params=["sqlite", "memory"])
def kb(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KnowledgeBase]:
    monkeypatch.setitem(plugins.TABLES["embedders"], "noted", "test_backfill:Noted")
    for n in range(PAGES):
        write(tmp_path / "docs" / f"page{n:03}.md", f"# Page {n}\n\nWords{n} about thing{n}.\n")
    url = "memory://" if request.param == "memory" else f"sqlite://{tmp_path}/store"
    with opened(url, embed__provider="noted") as made:
        made.add(tmp_path / "docs")
        Noted.last.texts.clear()
        yield made


def did(done: Backfill) -> dict[str, int]:
    counts = ("reworded", "unchanged", "reused", "embedded", "pending")
    return {name: getattr(done, name) for name in counts if getattr(done, name)}


@pytest.mark.promise("004.backfill.cached")
def test_where_all_is_as_it_should_be_nothing_is_written_or_embedded(kb: KnowledgeBase):
    before = kb.generation
    done = kb.backfill()
    assert (done.documents, done.chunks, done.degraded) == (PAGES, PAGES, None)
    assert did(done) == {"unchanged": PAGES}
    assert Noted.last.texts == []
    assert kb.generation == before


@pytest.mark.promise("004.backfill.cached")
def test_vectors_that_were_lost_come_back_from_the_cache(kb: KnowledgeBase):
    before = kb.search("words7 about thing7", mode="semantic").hits[0].chunk.id
    kb.store.outbox.move("http://elsewhere")
    kb.store.outbox.move("")  # as after vectors were moved there and back
    assert did(kb.backfill()) == {"reused": PAGES}
    assert Noted.last.texts == []
    assert kb.search("words7 about thing7", mode="semantic").hits[0].chunk.id == before


@pytest.mark.promise("004.backfill.cached")
def test_only_what_reads_differently_now_is_embedded(kb: KnowledgeBase):
    document = next(iter(kb.documents()))
    kb.store.catalog.update_documents([replace(document, title="Renamed")])  # which embeds nothing by itself
    assert did(kb.backfill()) == {"unchanged": PAGES - 1, "embedded": 1}
    assert [text.splitlines()[0] for text in Noted.last.texts] == ["Renamed"]


@pytest.mark.promise("004.backfill.words")
def test_words_are_indexed_as_they_are_extracted_now(tmp_path: Path):
    write(tmp_path / "docs" / "a.md", "# Board\n\nIt has a 386DX33 and getUserName in it.\n")
    write(tmp_path / "docs" / "b.md", "# Other\n\nNothing of that kind.\n")
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        older = apsw.Connection(str(tmp_path / "store" / "default.db"))
        older.execute("UPDATE kb_chunks SET terms = ''")  # as a version had it that knew no identifiers
        older.close()
        assert kb.store.words.search(Word("386"), EVERYTHING, 9) == []
        assert did(kb.backfill()) == {"reworded": 1, "unchanged": 2}
        assert len(kb.store.words.search(Word("386"), EVERYTHING, 9)) == 1
        check = apsw.Connection(str(tmp_path / "store" / "default.db"))
        check.execute("INSERT INTO kb_chunks_fts (kb_chunks_fts, rank) VALUES ('integrity-check', 1)")
        check.close()


@pytest.mark.promise("E.backfill.resumable")
def test_an_interrupted_run_has_less_to_do_the_next_time(kb: KnowledgeBase):
    kb.store.cache.trim(0)
    (source,) = kb.sources()
    vectors_of(kb.store).delete_source(source.source.id)

    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "vectors" and done > PAGES // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.backfill(progress=interrupt)
    first = len(Noted.last.texts)
    assert 0 < first < PAGES
    done = kb.backfill()
    assert (done.unchanged, done.embedded, done.pending) == (first, PAGES - first, 0)
    assert len(Noted.last.texts) == PAGES


def test_a_provider_that_is_down_leaves_the_vectors_as_they_are_and_says_so(kb: KnowledgeBase):
    (source,) = kb.sources()
    vectors_of(kb.store).delete_source(source.source.id)
    kb.store.cache.trim(0)
    Noted.last.fails_after = 0
    Noted.last.fault = EmbedderDown("the provider does not answer", hint="start it")
    done = kb.backfill()
    assert (done.degraded, done.pending) == ("the provider does not answer", PAGES)
    assert kb.store.catalog.count().chunks == PAGES


@pytest.mark.promise("E.backfill.beside-searches")
def test_searches_are_answered_while_a_backfill_runs(kb: KnowledgeBase):
    failures: list[Answer] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answer = kb.search("words7 about thing7", deadline_ms=60_000)
            if answer.degraded or answer.hits[0].document.title != "Page 7":
                failures.append(answer)

    asker = threading.Thread(target=ask)
    asker.start()
    for _ in range(3):
        kb.backfill()
    over.set()
    asker.join(BOUND_S)
    assert failures == []


def test_the_command_tells_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("KB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KB_EMBED_PROVIDER", "hashing")
    write(tmp_path / "docs" / "a.md", "# A\n\nSome text.\n")
    main(["add", str(tmp_path / "docs")])
    capsys.readouterr()
    assert main(["backfill"]) == 0
    assert re.search(r"^unchanged +1$", capsys.readouterr().out, re.MULTILINE)
    assert main(["backfill", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["documents"], told["unchanged"], told["embedded"], told["degraded"]) == (1, 1, 0, None)
