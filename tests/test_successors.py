"""Files that say which other file has replaced them: decision records, front matter."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from concord.index import documents
from concord.index.sources import register
from concord.text.document import declares, status_of, successors
from concord.types import Document, Filter, Json, Word
from support.recorders import SyncBench, write


def record(path: str, title: str = "", **details: Json) -> Document:
    return Document(path, "s", f"adr/{path}", "markdown", title or path, details=details)


@pytest.mark.parametrize(
    "named",
    [
        "0007-queues.md",
        "../adr/0007-queues.md",
        "[[0007-queues]]",
        "7",
        ["0007-queues.md", "Queues for everything"],
    ],
)
def test_another_document_is_named_by_path_link_name_or_title(named: Json):
    old = record("0003-polling.md", superseded_by=named)
    new = record("0007-queues.md", "Queues for everything")
    assert successors([old, new, record("0008-topics.md")], "adr") == {old.id: new.id}


@pytest.mark.parametrize(
    "named",
    [
        "0009-gone.md",
        "7 smaller services",
        2024,
        {"a": 1},
    ],
)
def test_who_names_nobody_that_is_there_or_itself_has_said_nothing(named: Json):
    others = [*map(record, ("0007-queues.md", "2024-01-05-standup.md", "utf8.md", "v2-migration.md"))]
    assert successors([record("0003-polling.md", superseded_by=named), *others], "adr") == {}
    assert successors([record("0003-polling.md", superseded_by=named), others[2]], "adr") == {}


@pytest.mark.parametrize(
    "named", [["0007.md", "0008.md"], "0007.md and 0008.md", "[7](0007.md) and [8](0008.md)"]
)
def test_who_names_two_documents_has_said_nothing(named: Json):
    documents = [record("0003.md", superseded_by=named), record("0007.md"), record("0008.md")]
    assert successors(documents, "adr") == {}


def test_a_document_that_two_others_claim_to_replace_stays_unless_it_says_which_one_has():
    claims = [record("0007.md", supersedes="0003.md"), record("0008.md", supersedes="0003.md")]
    assert successors([record("0003.md"), *claims], "adr") == {}
    assert successors([record("0003.md", superseded_by="0008.md"), *claims], "adr") == {"0003.md": "0008.md"}


def test_a_document_may_say_which_ones_it_replaces():
    documents = [record("0001.md"), record("0002.md"), record("0003.md", supersedes=["0001.md", "0002.md"])]
    assert declares(documents[2].details)
    assert successors(documents, "adr") == {"0001.md": "0003.md", "0002.md": "0003.md"}


def test_documents_that_replace_each_other_in_a_circle_all_stay():
    documents = [record("a.md", superseded_by="b.md"), record("b.md", superseded_by="a.md")]
    assert successors(documents, "adr") == {}
    documents += [record("c.md", superseded_by="a.md"), record("d.md", superseded_by="e.md"), record("e.md")]
    assert successors(documents, "adr") == {"d.md": "e.md"}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# 3. Polling\n\n## Status\n\nOld\n\nSuperceded by [7](0007.md)\n", "Superceded by [7](0007.md)"),
        ("# Polling\n\n*Superseded by [7](0007.md)*.\n", "*Superseded by [7](0007.md)*."),
        ("# Polling\n\n## Status\n\nAccepted\n\n## Context\n\nSuperseded by nothing so far.\n", None),
        ("# Log\n\n## 3. Polling\n\nStatus: superseded by ADR-7\n", None),
    ],
)
def test_the_status_of_a_decision_record_tells_what_it_was_replaced_by(text: str, status: str | None):
    assert status_of(text) == status
    assert declares({"status": status}) is (status is not None)
    if status:
        documents = [record("0003-polling.md", status=status), record("0007.md")]
        assert successors(documents, "adr") == {"0003-polling.md": "0007.md"}


OLD = "---\nsuperseded_by: {}\n---\n# Polling\n\nWe poll for herring.\n"


NEW = "# Queues\n\nHerring come by a queue.\n"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "adr"
    write(folder / "0003-polling.md", OLD.format("0007-queues.md"))
    write(folder / "0007-queues.md", NEW)
    return folder


def found(bench: SyncBench, filter: Filter | None = None) -> set[str]:
    hits = bench.store.words.search(Word("herring"), filter or Filter(), 10)
    return {
        document.path for _, document in bench.store.catalog.read([hit.chunk_id for hit in hits]).values()
    }


BOTH = {"adr/0003-polling.md", "adr/0007-queues.md"}


def test_a_file_that_says_it_was_replaced_is_left_out_unless_it_is_asked_for(bench: SyncBench, records: Path):
    bench.add(records)
    assert found(bench) == {"adr/0007-queues.md"}
    assert found(bench, Filter(include_superseded=True)) == BOTH


def test_a_file_comes_back_when_what_replaced_it_goes_and_is_replaced_again_when_that_comes(
    bench: SyncBench, records: Path
):
    bench.add(records)
    (records / "0007-queues.md").unlink()
    bench.sync()
    assert found(bench) == {"adr/0003-polling.md"}
    write(records / "0007-queues.md", NEW)
    bench.sync()
    assert found(bench) == {"adr/0007-queues.md"}


def test_what_a_note_superseded_stays_so_whatever_the_file_says(bench: SyncBench, records: Path):
    bench.add(records)
    old = bench.document("adr/0007-queues.md")
    bench.store.catalog.update_documents([replace(old, superseded_by="a note")])
    write(records / "0003-polling.md", "# Polling\n\nWe poll for herring once more.\n")
    bench.sync()
    assert bench.document("adr/0007-queues.md").superseded_by == "a note"


def test_an_interrupted_sync_is_made_good_by_the_next_although_no_file_changed_since(
    bench: SyncBench, records: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "GROUP_DOCUMENTS", 1)
    write(records / "0008-between.md", "# Between\n\nNothing.\n")  # is being read, and is lost
    write(records / "0009-last.md", "# Last\n\nNothing.\n")
    register(records, bench.store.catalog)
    bench.reader.during = _interrupt_at_the_last
    with pytest.raises(KeyboardInterrupt):
        bench.sync()
    bench.reader.during = lambda name: None
    (records / "0009-last.md").unlink()
    assert found(bench) == BOTH
    bench.sync()
    assert found(bench) == {"adr/0007-queues.md"}


def _interrupt_at_the_last(name: str) -> None:
    if name == "0009-last.md":
        raise KeyboardInterrupt
