"""Incremental sync: what a file that stayed, changed, moved or went costs, and what becomes of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.core.errors import Unreadable
from concord.files.opening import read_unchanging
from concord.files.state import read_memo, write_memo
from concord.files.walk import Found
from concord.index import documents
from concord.index.sources import register
from concord.text.chunk import ChunkSize
from concord.types import Document, Filter, Word
from support.failing_folder import fail_listing
from support.recorders import MAX_BYTES, Did, SyncBench, age, did, opened, write

EVERYTHING = Filter()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder / "alpha.md", "# Alpha\n\nThe alpha page is about apples.\n")
    write(folder / "beta.md", "# Beta\n\nThe beta page is about pears.\n")
    write(folder / "deep" / "gamma.txt", "A plain text about plums.\n")
    return folder


def found(bench: SyncBench, word: str) -> set[str]:
    """Return the paths of the documents that hold a word."""
    hits = bench.store.words.search(Word(word), EVERYTHING, 100)
    return {
        document.path for _, document in bench.store.catalog.read([hit.chunk_id for hit in hits]).values()
    }


def read_later(bench: SyncBench, path: str) -> Document:
    """Have a document read long after its file was made, so that no doubt is left about it."""
    document: Document = replace(bench.document(path), indexed_at=time.time() + 3600)
    bench.store.catalog.update_documents([document])
    return document


def test_who_waits_for_another_sync_of_the_source_is_told_so(bench: SyncBench, docs: Path):
    source = register(docs, bench.store.catalog)
    other = ExitStack()
    other.enter_context(bench.store.lock(source.id, "syncing this source", wait_s=0))
    told: list[str] = []

    def progress(stage: str, done: int, total: int | None) -> None:
        told.append(stage)
        other.close()  # the other one is done, as soon as it is known that we wait for it

    bench.progress = progress
    assert did(bench.sync(source)) == Did(added=3)
    assert told[0] == "waiting"
    assert "waiting" not in told[1:]


@pytest.mark.promise("A.sync.one-stat")
def test_unchanged_files_cost_one_look_and_nothing_is_read(bench: SyncBench, docs: Path):
    assert did(bench.add(docs)) == Did(added=3)
    for path in bench.paths():
        read_later(bench, path)
    bench.forget()
    before = {path.name: path.stat().st_atime_ns for path in docs.rglob("*.md")}
    assert did(bench.sync()) == Did(unchanged=3)
    assert (bench.reader.names, bench.embedder.texts) == ([], [])
    assert {path.name: path.stat().st_atime_ns for path in docs.rglob("*.md")} == before


def test_a_file_that_was_only_touched_is_looked_into_once_and_not_read_as_text(bench: SyncBench, docs: Path):
    bench.add(docs)
    bench.forget()
    age(docs / "alpha.md", days_old=0.5)
    assert did(bench.sync()) == Did(unchanged=3)
    assert bench.reader.names == []
    assert bench.document("docs/alpha.md").mtime_ns == (docs / "alpha.md").stat().st_mtime_ns


def test_a_changed_file_is_replaced_and_keeps_its_document(bench: SyncBench, docs: Path):
    bench.add(docs)
    before = bench.document("docs/alpha.md")
    bench.forget()
    write(docs / "alpha.md", "# Alpha\n\nNow it is about cherries.\n", days_old=0.5)
    assert did(bench.sync()) == Did(changed=1, unchanged=2)
    assert bench.reader.names == ["alpha.md"]
    assert (found(bench, "cherries"), found(bench, "apples")) == ({"docs/alpha.md"}, set())
    assert bench.document("docs/alpha.md").id == before.id


def test_a_save_within_the_same_tick_is_not_missed(bench: SyncBench, docs: Path):
    """Two saves so close that size and time are equal: the first sync must not trust what it saw."""
    # In the future, so that no slow machine makes it old.
    write(docs / "alpha.md", "# Alpha\n\nIt is about grapes.\n", days_old=-0.01)
    moment = (docs / "alpha.md").stat().st_mtime_ns
    bench.add(docs)
    (docs / "alpha.md").write_bytes(b"# Alpha\n\nIt is about quince.\n")
    os.utime(docs / "alpha.md", ns=(moment, moment))
    assert did(bench.sync()) == Did(changed=1, unchanged=2)
    assert (found(bench, "quince"), found(bench, "grapes")) == ({"docs/alpha.md"}, set())


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_not_missed(bench: SyncBench, docs: Path):
    """As packages and synchronised folders do, whose files keep their times."""
    write(docs / "alpha.md", "# Alpha\n\nIt is about grapes.\n", days_old=9)
    bench.add(docs)
    shutil.copystat(docs / "alpha.md", write(docs.parent / "new.md", "# Alpha\n\nIt is about quince.\n"))
    (docs.parent / "new.md").rename(docs / "alpha.md")
    assert did(bench.sync()) == Did(changed=1, unchanged=2)
    assert (found(bench, "quince"), found(bench, "grapes")) == ({"docs/alpha.md"}, set())


@pytest.mark.promise("A.sync.deleted")
def test_deleted_files_disappear(bench: SyncBench, docs: Path):
    bench.add(docs)
    (docs / "beta.md").unlink()
    shutil.rmtree(docs / "deep")
    assert did(bench.sync()) == Did(removed=2, unchanged=1)
    assert bench.paths() == ["docs/alpha.md"]
    assert found(bench, "pears") == set()


def test_other_patterns_for_a_known_source_leave_only_what_they_match(bench: SyncBench, docs: Path):
    bench.add(docs)
    assert did(bench.add(docs, patterns=["*.txt"])) == Did(removed=2, unchanged=1)
    assert bench.paths() == ["docs/deep/gamma.txt"]


def test_a_file_that_becomes_binary_disappears(bench: SyncBench, docs: Path):
    bench.add(docs)
    write(docs / "beta.md", b"\x7fELF\x00\x01\x02" * 100, days_old=0.5)
    report = bench.sync()
    assert did(report) == Did(removed=1, unchanged=2)
    assert sum(report.skipped.values()) == 1


@pytest.mark.promise("004.cache", "A.sync.renamed")
def test_a_renamed_file_keeps_its_document_chunks_and_embeddings(bench: SyncBench, docs: Path):
    bench.add(docs)
    before, chunks = bench.document("docs/alpha.md"), bench.chunks("docs/alpha.md")
    bench.forget()
    (docs / "alpha.md").rename(docs / "deep" / "first.md")
    report = bench.sync()
    assert did(report) == Did(renamed=1, unchanged=2)
    assert (bench.reader.names, bench.embedder.texts, report.pending) == ([], [], 0)
    assert bench.document("docs/deep/first.md").id == before.id
    assert bench.chunks("docs/deep/first.md") == chunks
    assert found(bench, "apples") == {"docs/deep/first.md"}


def test_a_copy_is_a_document_of_its_own_and_embeds_nothing(bench: SyncBench, docs: Path):
    bench.add(docs)
    bench.forget()
    write(docs / "copy.md", (docs / "alpha.md").read_bytes())
    assert did(bench.sync()) == Did(added=1, unchanged=3)
    assert bench.embedder.texts == []
    assert found(bench, "apples") == {"docs/alpha.md", "docs/copy.md"}


@pytest.mark.promise("004.cache", "000.hash")
def test_of_a_changed_file_only_what_changed_is_embedded(bench: SyncBench, docs: Path):
    sections = [f"## Part {n}\n\n" + f"Sentence {n} tells of fruit number {n}. " * 8 for n in range(6)]
    write(docs / "long.md", "# Long\n\n" + "\n\n".join(sections))
    bench.add(docs)
    ids = {chunk.text: chunk.id for chunk in bench.chunks("docs/long.md")}
    bench.forget()
    sections.insert(2, "## Between\n\n" + "Something new about melons. " * 8)
    write(docs / "long.md", "# Long\n\n" + "\n\n".join(sections), days_old=0.5)
    bench.sync()
    assert all("melons" in text for text in bench.embedder.texts)
    assert len(bench.embedder.texts) >= 1
    after = {chunk.text: chunk.id for chunk in bench.chunks("docs/long.md")}
    assert all(after[text] == known for text, known in ids.items())


def test_tags_that_a_source_gets_later_reach_the_documents_it_has(bench: SyncBench, docs: Path):
    write(docs / "beta.md", "---\ntags: [own]\n---\n# Beta\n\nPears.\n")
    bench.add(docs)
    bench.forget()
    assert did(bench.add(docs, tags=["fruit"])) == Did(unchanged=3)
    assert bench.store.catalog.count_documents(Filter(tags=("fruit",))) == 3
    assert bench.store.catalog.count_documents(Filter(tags=("fruit", "own"))) == 1
    assert (bench.reader.names, bench.embedder.texts) == ([], [])


@pytest.mark.promise("A.sync.one-stat")
def test_what_holds_no_text_is_counted_every_time_and_read_once(bench: SyncBench, docs: Path):
    write(docs / "program", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 20)
    first = bench.add(docs)
    bench.forget()
    again = bench.sync()
    assert again.skipped == first.skipped
    assert sum(again.skipped.values()) == 1
    assert bench.reader.names == []


def test_a_program_that_reads_more_formats_looks_again(
    bench: SyncBench, docs: Path, monkeypatch: pytest.MonkeyPatch
):
    write(docs / "program", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 20)
    bench.add(docs)
    bench.forget()
    monkeypatch.setattr("concord.files.state.__version__", "99")
    bench.sync()
    assert bench.reader.names == ["program"]


def test_other_lengths_of_chunks_hold_for_files_that_are_indexed_already(bench: SyncBench, docs: Path):
    write(docs / "long.md", "# Long\n\n" + " ".join(f"Sentence {n} tells of fruit." for n in range(40)))
    bench.add(docs)
    before, known = len(bench.chunks("docs/long.md")), bench.document("docs/long.md").id
    bench.size = ChunkSize.for_target(80, overlap=0)
    assert did(bench.sync()) == Did(changed=4)
    assert 1 < len(bench.chunks("docs/long.md")) < before
    assert bench.document("docs/long.md").id == known
    assert did(bench.sync()) == Did(unchanged=4)


@pytest.mark.promise("G.upgrade.reads-nothing")
@pytest.mark.parametrize("version", [1, None])
def test_an_upgrade_reads_and_embeds_nothing_until_a_file_changes(
    bench: SyncBench, docs: Path, version: int | None
):
    source = bench.add(docs).source
    key = [version, bench.size.target, bench.size.maximum, bench.size.overlap] if version else []
    memo = replace(read_memo(bench.store.catalog.sync_state(source.id)), chunking=key)
    bench.store.catalog.put_sync_state(source.id, write_memo(memo))
    bench.forget()
    assert did(bench.sync()) == Did(unchanged=3)
    write(docs / "alpha.md", "# Alpha\n\nNew apples.\n", days_old=0.5)
    assert did(bench.sync()) == Did(changed=1, unchanged=2)
    assert bench.reader.names == ["alpha.md"]
    assert len(bench.embedder.texts) == 1


SAMPLES = {
    "page.md": "---\ntitle: Fruit\n---\n# Fruit\n\nIt is sweet.\n\n## Pears\n\n- green\n- ripe\n",
    "NEWS": "version 1.2 - better pears, 2021-01-07\n\n * pears\n\nversion 1.1, 2020-05-01\n\n * apples\n",
    "CHANGELOG.md": "# 1.3.0 (2021-01-07)\n\n### Added\n\n- pears\n\n## 1.2.6 (2020-05-01)\n\n- figs\n",
    "fruit.py": "class Pear:\n    ripe = True\n\n    def eat(self):\n        return self.ripe\n" * 3,
    "fruit.csv": "name,colour\npear,green\nplum,blue\n",
    "trees.csv": "name,colour,from\n" + "pear,green,Latin\nplum,blue,Greek\n" * 80,
    "trees.json": '[{"name": "pear", "of": [1, 2]}' + ', {"name": "fig", "of": [3]}' * 80 + "]",
    "orchard.json": '{"east": {"trees": [' + ", ".join(['{"name": "pear"}'] * 120) + "]}}",
    "JUMP": "Jump\n====\n\nIt prints:\n\n-----------------\nfoo.c:2:9: puts()\n-----------------\n",
    "trees.md": "# Trees\n\n| name | colour |\n|---|---|\n" + "| pear | green as grass |\n" * 80,
    "plum.md": "# A *sweet* `plum` [of ours](plum.md) {#plum}\n\nIt is blue.\n",
    "fruit.html": "<h1>Fruit</h1><nav>Home</nav><p>It is sweet.</p><h2>Pears</h2><p>Green.</p>",
    "pears.rst": "Pears\n=====\n\nGreen.\n\n"
    + "Ripe in May.\n\n" * 99
    + ".. _figs:\n\nFigs\n====\n\nBlue.\n",
    "pear.1": ".TH PEAR 1\n.SH NAME\npear \\- fruit\n.SH OPTIONS\n.TP\n\\fB\\-\\-ripe\\fR\nEat it.\n",
    "pears.srt": "1\n00:00:01,000 --> 00:00:04,000\n<i>Green</i> pears.\n",
    "pears.org": "* Pears\nGreen.\n** Old ones\nBrown.\n",
    "pears.adoc": "= Pears\n\nGreen.\n\n[[old]]\n== Old ones\n\nBrown.\n" + "They are sweet. " * 300,
    "CHANGES": "Changes with pears 1.1   02 Oct 2018\n\n *) Green.\n\nChanges with pears 1.0\n\n *) Brown.\n",
}
CUT = {13: "b226a009"}  # by READER_VERSION: the beginning of a digest of the samples' chunks


def test_who_changes_how_files_are_read_or_cut_raises_the_reader_version(bench: SyncBench, tmp_path: Path):
    for name, text in SAMPLES.items():
        write(tmp_path / "docs" / name, text)
    bench.add(tmp_path / "docs")
    cut = [
        (
            name,
            bench.document(f"docs/{name}").title,
            chunk.text,
            chunk.heading,
            chunk.start_line,
            chunk.start_column,
        )
        for name in SAMPLES
        for chunk in bench.chunks(f"docs/{name}")
    ]
    assert hashlib.sha256(repr(cut).encode()).hexdigest()[:8] == CUT[documents.READER_VERSION], cut


def test_a_folder_that_is_gone_keeps_its_index_and_says_what_to_do(bench: SyncBench, docs: Path):
    source = bench.add(docs).source
    docs.rename(docs.with_name("elsewhere"))
    with pytest.raises(Unreadable, match="is not there any more") as failure:
        bench.sync(source)
    assert "`kb remove docs`" in (failure.value.hint or "")
    assert len(bench.paths()) == 3
    docs.with_name("elsewhere").rename(docs)
    assert did(bench.sync()) == Did(unchanged=3)


@pytest.mark.parametrize("listed", [0, 1])
def test_a_folder_that_cannot_be_listed_for_a_moment_keeps_its_index(
    bench: SyncBench, docs: Path, monkeypatch: pytest.MonkeyPatch, listed: int
):
    source = bench.add(docs).source
    with monkeypatch.context() as disk:
        fail_listing(docs, disk, after=listed)
        with pytest.raises(Unreadable, match="input/output error"):
            bench.sync(source)
    assert len(bench.paths()) == 3
    assert did(bench.sync()) == Did(unchanged=3)


@pytest.mark.parametrize("is_left", [True, False])
def test_a_folder_that_goes_away_while_its_files_are_read_keeps_its_index(
    bench: SyncBench, docs: Path, is_left: bool
):
    """Gone altogether, or a mount point is left: an empty folder of the same name."""
    source = bench.add(docs).source
    write(docs / "alpha.md", "# Alpha\n\nNew apples.\n", days_old=0.5)

    def unmount(name: str) -> None:
        docs.rename(docs.with_name("disk"))
        if is_left:
            docs.mkdir()

    bench.reader.during = unmount
    with pytest.raises(Unreadable, match="went away"):
        bench.sync(source)
    assert len(bench.paths()) == 3


@pytest.mark.parametrize("was", ["file", "folder"])
def test_a_source_that_becomes_something_else_keeps_its_index(bench: SyncBench, tmp_path: Path, was: str):
    path = tmp_path / "thing.md"
    inside = path if was == "file" else path / "a.md"
    write(inside, "Some apples.\n")
    source = bench.add(path).source
    if was == "file":
        path.unlink()
        write(path / "a.md", "Other pears.\n")
        write(path / "b.md", "More plums.\n")
    else:
        shutil.rmtree(path)
        write(path, "Other pears.\n")
    with pytest.raises(Unreadable, match=f"was a {was}"):
        bench.sync(source)
    assert len(found(bench, "apples")) == 1


def test_a_file_that_changes_after_it_was_read_is_noticed_by_the_next_sync(bench: SyncBench, docs: Path):
    def change(name: str) -> None:
        if name == "alpha.md":
            write(docs / name, "# Alpha\n\nChanged behind our back.\n", days_old=0.2)

    bench.reader.during = change
    bench.add(docs)
    assert found(bench, "apples") == {"docs/alpha.md"}
    bench.reader.during = lambda name: None
    assert did(bench.sync()) == Did(changed=1, unchanged=2)
    assert found(bench, "behind") == {"docs/alpha.md"}


@pytest.mark.promise("A.faults.bad-input")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs a file that is never of its size")
def test_a_file_that_changes_each_time_it_is_read_is_reported_and_left_for_later():
    restless = Found(f"/proc/{os.getpid()}", "status", 1, 1, 1)
    with pytest.raises(Unreadable, match="changed while it was being read"):
        read_unchanging(restless, MAX_BYTES)


@pytest.mark.promise("A.sync.one-transaction")
def test_readers_see_the_old_text_or_the_new_one_and_never_a_mix(bench: SyncBench, docs: Path):
    """Looked at whenever the sync lets anybody look: between any two of its steps."""
    old = "# Long\n\n" + "\n\n".join(f"## P{n}\n\n" + f"old text {n} " * 30 for n in range(5))
    write(docs / "long.md", old)
    bench.add(docs)
    before = [chunk.text for chunk in bench.chunks("docs/long.md")]
    seen: list[list[str]] = []

    def look(*_: object) -> None:
        seen.append([chunk.text for chunk in bench.chunks("docs/long.md")])
        assert len(found(bench, "old") & {"docs/long.md"}) + len(found(bench, "new") & {"docs/long.md"}) == 1

    bench.reader.during = bench.embedder.before = look
    bench.progress = look
    write(docs / "long.md", old.replace("old", "new"), days_old=0.5)
    bench.sync()
    after = [chunk.text for chunk in bench.chunks("docs/long.md")]
    assert seen[0] == before
    assert seen[-1] == after
    assert all(texts in (before, after) for texts in seen)


FILES = ("a.md", "b.md", "sub/c.md", "sub/d.txt")
TEXTS = ("# One\n\napples\n", "# Two\n\npears and plums\n", "no heading, only cherries\n", "")


@settings(max_examples=25)
@given(
    history=st.lists(
        st.dictionaries(st.sampled_from(FILES), st.sampled_from(TEXTS), max_size=4), min_size=1, max_size=5
    )
)
def test_any_history_of_syncs_ends_where_a_first_sync_would(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, str]]
):
    folder = tmp_path_factory.mktemp("history") / "docs"
    write(folder / ".kbignore", "")  # an empty folder might be that of a disk that is not mounted
    lived = SyncBench(opened("memory://"))
    for n, state in enumerate(history):
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        for name, text in state.items():
            write(folder / name, text, days_old=100 - n)
        lived.add(folder)
    newborn = SyncBench(opened("memory://"))
    newborn.add(folder)
    assert _state(lived) == _state(newborn)


def _state(bench: SyncBench) -> list[tuple[object, ...]]:
    catalog = bench.store.catalog
    return [
        (
            d.path,
            d.type,
            d.title,
            d.file_hash,
            d.content_hash,
            d.size,
            [c.text for c in catalog.chunks(d.id)],
        )
        for d in catalog.documents()
    ]
