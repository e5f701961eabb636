"""A knowledge base in one JSON file: it lasts, it is never half written, and processes share it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from concord import Note
from concord.core.errors import BackendDown, BadValue, CorruptStore, SchemaTooNew
from concord.store.json_file import JsonStore
from concord.types import Word
from contract.stored import EVERYTHING, IDENTITY, embed, put, unit, vectors_of
from support.small_library import NOTES, secluded, titles

NORTH = unit(1, 0, 0, 0)


def opened(folder: Path, org: str = "default") -> JsonStore:
    return JsonStore.open(f"json://{folder}", org)


@pytest.mark.promise("004.json.file")
def test_what_was_stored_is_there_when_it_is_opened_again(folder: Path):
    store = opened(folder)
    a, b = put(store, "docs/a.md", "alpha beta", "gamma", tags=("ops",), details={"n": [1, "ü"]})
    embed(store, [(a, NORTH)])
    store.models.index(IDENTITY).remember({b"k" * 32: NORTH})
    store.catalog.put_sync_state("docs", "memo")
    before = (
        list(store.catalog.documents()),
        store.catalog.chunks("docs/a.md"),
        store.catalog.snapshot().generation,
    )
    store.close()
    again = opened(folder)
    after = (
        list(again.catalog.documents()),
        again.catalog.chunks("docs/a.md"),
        again.catalog.snapshot().generation,
    )
    assert after == before
    assert again.catalog.sync_state("docs") == "memo"
    assert again.models.index(IDENTITY).cached([b"k" * 32]) == {b"k" * 32: NORTH}
    assert [found.chunk_id for found in again.words.search(Word("gamma"), EVERYTHING, 9)] == [b]
    assert [found.chunk_id for found in vectors_of(again).search(NORTH, EVERYTHING, 9)] == [a]
    assert put(again, "docs/b.md", "new") == [b + 1]  # ids are never used again


@pytest.mark.promise("004.json.fusion")
@pytest.mark.parametrize("fusion", [None, "dominant"])
def test_a_search_answers_as_it_does_from_memory(folder: Path, fusion: str | None):
    answers = []
    for url in ("memory://", f"json://{folder}"):
        with secluded(folder, url) as kb:
            for title, text in NOTES.items():
                kb.note(Note(text, title=title, tags=("ops",)))
            answers.append(kb.search("connection pool of the database", fusion=fusion))
    one, other = answers
    assert titles(one) == titles(other) != []
    assert [hit.scores for hit in one.hits] == [hit.scores for hit in other.hits]


def test_a_disk_that_fails_leaves_the_old_file_and_the_old_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    store = opened(folder)
    put(store, "docs/a.md", "a")
    before = (folder / "default.json").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(BackendDown, match="No space left"):
                put(store, "docs/b.md", "b")
        assert (folder / "default.json").read_bytes() == before
        assert [found.path for found in store.catalog.documents()] == ["docs/a.md"]
    assert [path.name for path in folder.iterdir()] == ["default.json"]
    put(store, "docs/b.md", "b")
    assert opened(folder).catalog.count().documents == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"documents": 3}', b"\xff\xfe"], ids=repr)
def test_a_file_that_is_none_of_ours_is_refused_and_left_as_it_is(folder: Path, content: bytes):
    (folder / "default.json").write_bytes(content)
    with pytest.raises(CorruptStore) as fault:
        opened(folder)
    assert fault.value.hint
    assert (folder / "default.json").read_bytes() == content


def test_a_file_of_a_newer_program_is_refused(folder: Path):
    (folder / "default.json").write_text('{"version": 99, "documents": {}}', encoding="utf-8")
    with pytest.raises(SchemaTooNew):
        opened(folder)


@pytest.mark.parametrize(
    ("url", "org"), [("json://relative", "a"), ("json:///x\0", "a"), ("json:///tmp", "../up")]
)
def test_a_place_that_cannot_be_one_is_refused(url: str, org: str):
    with pytest.raises(BadValue):
        JsonStore.open(url, org)


KILLED_WHILE_WRITING = """
import os, signal, sys
from concord.store.json_file import JsonStore

store = JsonStore.open(sys.argv[1], "default")
os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)  # the file is written, and not in its place yet
store.catalog.put_sync_state("docs", "lost")
"""


def test_what_a_process_left_that_was_killed_while_writing_goes_with_the_next_change(folder: Path):
    store = opened(folder)
    put(store, "docs/a.md", "alpha")
    done = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, f"json://{folder}"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(folder.iterdir())) > 1
    kept = folder / "default.json.old.draft"  # whatever it is, no store of ours calls a draft so
    kept.touch()
    store.catalog.put_sync_state("docs", "memo")
    assert sorted(path.name for path in folder.iterdir() if "lock" not in path.name) == [
        "default.json",
        "default.json.old.draft",
    ]
    assert opened(folder).catalog.sync_state("docs") == "memo"
