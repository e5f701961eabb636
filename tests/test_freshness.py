"""What an answer says of the files behind it, and how a caller reads its own writes."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concord.index.notes import Note
from concord.knowledge import KnowledgeBase
from concord.search import passages
from concord.store.contract import Snapshot
from concord.types import Answer
from support.recorders import write
from support.small_library import opened

TEXT = "# Part {n}\n\nThe heron number {n} stands in the water and waits for fish.\n"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for n in range(6):
        write(folder / f"{n}.md", TEXT.format(n=n))
    return folder


@pytest.fixture
def kb(docs: Path, tmp_path: Path) -> Iterator[KnowledgeBase]:
    with opened(tmp_path) as made:
        made.add(docs)
        yield made


def states(answer: Answer) -> dict[str, str | None]:
    return {hit.document.path: hit.freshness for hit in answer.hits}


def test_a_file_that_nobody_can_look_at_is_a_hit_that_may_have_changed(kb: KnowledgeBase, docs: Path):
    (docs / "1.md").unlink()
    (docs / "1.md").symlink_to("1.md")  # a loop
    assert states(kb.search("heron number 1"))["docs/1.md"] == "changed"


@pytest.mark.promise("freshness.hits")
def test_each_hit_says_whether_its_file_is_as_it_was_indexed(kb: KnowledgeBase, docs: Path):
    os.utime(docs / "1.md")  # touched, and the same
    write(docs / "2.md", TEXT.format(n=7), days_old=0.5)  # as long as before
    write(docs / "3.md", "longer than before " * 20, days_old=0.5)
    shutil.copystat(docs / "4.md", write(docs.parent / "new.md", TEXT.format(n=8)))
    (docs.parent / "new.md").rename(docs / "4.md")  # as old and as long as before
    kb.note(Note("A heron stands in the garden."))
    found = states(kb.search("heron stands"))
    assert {path: found.pop(f"docs/{path}") for path in ("0.md", "1.md", "2.md", "3.md", "4.md")} == {
        "0.md": "fresh",
        "1.md": "fresh",
        "2.md": "changed",
        "3.md": "changed",
        "4.md": "changed",
    }
    assert set(found.values()) == {"fresh"}  # the note's among them


@pytest.mark.promise("freshness.deleted")
def test_passages_of_deleted_files_are_left_out_counted_and_replaced_by_the_next(
    kb: KnowledgeBase, docs: Path
):
    best = [hit.document.path for hit in kb.search("heron stands", top=3).hits]
    (docs.parent / best[0]).unlink()
    answer = kb.search("heron stands", top=3)
    assert len(answer.hits) == 3
    assert best[0] not in states(answer)
    assert answer.omitted["deleted"] == 1
    assert [hit.rank for hit in answer.hits] == [1, 2, 3]
    kb.sync()
    assert kb.search("heron stands", top=3).omitted["deleted"] == 0


@pytest.mark.promise("freshness.deleted")
def test_an_answer_that_lost_everything_says_why(kb: KnowledgeBase, docs: Path):
    for path in docs.iterdir():
        path.unlink()
    (docs / ".kbignore").touch()  # an empty folder might be that of a disk that is not mounted
    answer = kb.search("heron stands")
    assert (answer.hits, answer.omitted["deleted"], answer.confidence) == ((), 6, "no_results")
    assert answer.suggestions == ()  # their titles would lead nowhere
    assert answer.note is not None
    assert "deleted since: `kb sync`" in answer.note


def test_a_disk_that_does_not_answer_costs_only_what_it_would_have_told(
    kb: KnowledgeBase, docs: Path, monkeypatch: pytest.MonkeyPatch
):
    lstat, never = os.lstat, threading.Event()

    def hung(path: Any, **options: Any) -> os.stat_result:
        if str(path).startswith(str(docs)):  # the store is on a disk that works
            never.wait(60)
        return lstat(path, **options)

    monkeypatch.setattr("concord.files.state.os.lstat", hung)
    monkeypatch.setattr(passages, "FILES_MS", 20.0)
    answer = kb.search("heron stands")
    monkeypatch.undo()
    never.set()
    assert set(states(answer).values()) == {None}
    assert "files" in {part.strategy for part in answer.degraded}


@pytest.mark.promise("freshness.own-writes")
def test_a_search_waits_for_the_generation_it_was_promised(kb: KnowledgeBase, docs: Path):
    kb.note(Note("The first note of all, with which its source begins."), embed=False)
    wanted = kb.generation + 1
    looked = threading.Event()
    snapshot = kb.store.catalog.snapshot

    def watched() -> Snapshot:
        looked.set()
        return snapshot()

    kb.store.catalog.snapshot = watched  # type: ignore[method-assign]
    writer = threading.Thread(
        target=lambda: looked.wait(30) and kb.note(Note("A kingfisher came by."), embed=False)
    )
    writer.start()
    answer = kb.search("kingfisher", mode="fts5", min_generation=wanted, deadline_ms=60_000)
    writer.join()
    assert [hit.snippet for hit in answer.hits] == ["A kingfisher came by."]
    assert (answer.generation >= wanted, answer.degraded, answer.note) == (True, (), None)
    assert answer.request.deadline_ms == 60_000


@pytest.mark.promise("freshness.own-writes")
def test_a_generation_that_does_not_come_is_admitted(kb: KnowledgeBase):
    wanted = kb.generation + 5
    answer = kb.search("heron stands", mode="fts5", min_generation=wanted, deadline_ms=500)
    assert answer.hits
    assert answer.note is not None
    assert f"not yet at {wanted}" in answer.note
    assert [part.strategy for part in answer.degraded] == ["generation"]
