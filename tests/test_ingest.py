"""What becomes of files: words at once, meaning after, and one bad file that never stops the others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from concord.core.errors import (
    ModelMismatch,
    NotIndexable,
)
from concord.core.protocols import Progress
from concord.core.reports import SyncReport
from concord.index import documents
from concord.types import Counts, Extracted, Filter, Identity, Word
from contract.stored import active_model
from support.pdf_samples import make_pdf
from support.recorders import Did, SyncBench, did, opened, write

EVERYTHING = Filter()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for n in range(200):
        write(folder / f"page{n:03}.md", f"# Page {n}\n\nThe page number{n} tells of fruit{n}.\n")
    return folder


def found(bench: SyncBench, word: str) -> int:
    return len(bench.store.words.search(Word(word), EVERYTHING, 1000))


def counts(bench: SyncBench) -> Counts:
    return bench.store.catalog.count()


@pytest.mark.promise("A.ingest.words-first")
def test_words_are_searchable_before_anything_is_embedded(bench: SyncBench, docs: Path):
    seen: list[int] = []
    bench.embedder.before = lambda texts: seen.append(found(bench, "page"))
    report = bench.add(docs)
    assert seen[0] == 200
    assert (report.embedded, report.pending) == (200, 0)


@pytest.mark.promise("A.ingest.words-first")
def test_a_document_is_searchable_long_before_the_last_file_is_read(
    bench: SyncBench, docs: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "GROUP_DOCUMENTS", 60)
    seen: list[int] = []
    bench.progress = lambda stage, done, total: seen.append(counts(bench).documents)
    bench.add(docs)
    assert max(done - stored for done, stored in enumerate(seen[:200], 1)) <= documents.GROUP_DOCUMENTS


def test_without_an_embedder_everything_waits_for_the_next_sync(bench: SyncBench, docs: Path):
    bench.embeds = False
    report = bench.add(docs)
    assert (report.embedded, report.pending, report.degraded) == (0, 200, None)
    bench.embeds = True
    report = bench.sync()
    assert (did(report), report.embedded, report.pending) == (Did(unchanged=200), 200, 0)


def test_the_same_text_in_many_places_is_embedded_once(bench: SyncBench, tmp_path: Path):
    for n in range(100):
        write(tmp_path / "d" / f"{n}" / "same.txt", "one and the same text")
    report = bench.add(tmp_path / "d")
    assert (len(bench.embedder.texts), report.embedded, report.reused) == (1, 1, 99)
    assert counts(bench).vectors == 100


@pytest.mark.promise("A.ingest.resumes")
def test_a_provider_that_breaks_down_leaves_the_rest_for_the_next_sync(bench: SyncBench, docs: Path):
    bench.embedder.fails_after = 130
    report = bench.add(docs)
    assert report.degraded == "the provider does not answer"
    assert (report.embedded, report.pending) == (128, 72)
    assert (found(bench, "page"), counts(bench).vectors) == (200, 128)
    bench.embedder.fails_after = None
    report = bench.sync()
    assert (report.embedded, report.pending, report.degraded) == (72, 0, None)
    assert len(bench.embedder.texts) == len(set(bench.embedder.texts)) == 200


@pytest.mark.promise("A.ingest.resumes")
@pytest.mark.parametrize("stage", ["index", "embed"])
@pytest.mark.parametrize("at", [1, 150])
def test_an_interrupted_run_goes_on_where_it_stopped(
    bench: SyncBench, docs: Path, stage: str, at: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(documents, "GROUP_DOCUMENTS", 60)

    def interrupt(now: str, done: int, total: int | None) -> None:
        if (now, done >= at) == (stage, True):
            raise KeyboardInterrupt

    bench.progress = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.add(docs)
    kept = counts(bench)
    assert (kept.documents if stage == "index" else kept.vectors) >= at - documents.GROUP_DOCUMENTS
    bench.progress = lambda *news: None
    report = bench.sync()
    assert did(report) == Did(added=200 - kept.documents, unchanged=kept.documents)
    assert counts(bench) == Counts(1, 200, 200, 200)
    assert len(bench.embedder.texts) == len(set(bench.embedder.texts)) == 200


@pytest.mark.promise("001.vec.same-model")
def test_vectors_of_another_model_are_refused_and_words_are_kept(bench: SyncBench, docs: Path):
    bench.add(docs)
    write(docs / "new.md", "# New\n\nSomething about melons.\n")
    bench.embedder.identity = replace(bench.embedder.identity, model="another")
    with pytest.raises(ModelMismatch, match="another") as failure:
        bench.sync()
    assert failure.value.hint
    assert found(bench, "melons") == 1
    assert active_model(bench.store) == Identity("hashing", "hashing-256", 256)


def bad_files(folder: Path) -> dict[str, str]:
    """Write files that cannot be indexed; return the reasons that are expected, by path."""
    write(folder / "locked.pdf", make_pdf([["a secret"]], password="open sesame"))
    write(folder / "cut.pdf", make_pdf([["some text", "more of it"]])[:300])
    write(folder / "nonsense.pdf", b"%PDF-1.7\n" + b"nonsense " * 50)
    return {"docs/locked.pdf": "password", "docs/cut.pdf": "", "docs/nonsense.pdf": ""}


@pytest.mark.promise("A.sync.one-bad-file", "A.faults.bad-input")
def test_bad_files_are_named_with_a_reason_and_stop_nobody(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "a.md", "# A\n\nApples.\n")
    write(folder / "z.md", "# Z\n\nPears.\n")
    reasons = bad_files(folder)
    report = bench.add(folder)
    assert did(report) == Did(added=2, failed=3)
    assert {failure.path for failure in report.failed} == set(reasons)
    assert all(reasons[failure.path] in failure.reason for failure in report.failed)
    assert all("\n" not in failure.reason and len(failure.reason) > 5 for failure in report.failed)


def test_a_bad_file_is_tried_again_and_found_once_it_is_mended(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "cut.pdf", make_pdf([["some text"]])[:300])
    assert did(bench.add(folder)) == Did(failed=1)
    assert did(bench.sync()) == Did(failed=1)
    write(folder / "cut.pdf", make_pdf([["some whole text about peaches"]]))
    assert did(bench.sync()) == Did(added=1)
    assert found(bench, "peaches") == 1


def test_a_file_that_breaks_keeps_its_last_good_text(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "a.pdf", make_pdf([["some text about peaches"]]))
    bench.add(folder)
    write(folder / "a.pdf", make_pdf([["some text about peaches"]])[:300], days_old=0.5)
    assert did(bench.sync()) == Did(failed=1)
    assert found(bench, "peaches") == 1


@pytest.mark.promise("A.faults.bad-input")
def test_empty_files_scans_and_binaries_are_skipped_and_counted(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "a.md", "# A\n\nApples.\n")
    write(folder / "zero.md", b"")
    write(folder / "blank.md", b" \n\n \n")
    write(folder / "scan.pdf", make_pdf([[]]))
    write(folder / "picture.png", b"\x89PNG\r\n\x1a\n" + bytes(100))
    write(folder / "program", b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)))
    report = bench.add(folder)
    assert did(report) == Did(added=1)
    assert report.skipped["empty"] == 1
    assert report.skipped["binary"] == 2
    assert sum(report.skipped.values()) == 5


class SeeingReader:
    """Sees the same words in any picture, while something else is done."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self.meanwhile = meanwhile

    def read(self, data: bytes, name: str, progress: Progress) -> Extracted:
        self.meanwhile()
        if b"empty" in data:
            raise NotIndexable("no words in its pictures")
        return Extracted("A gazelle at noon.", "image")


def test_while_pictures_are_read_others_sync_the_source(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    for name in ("a", "b", "empty"):
        write(folder / f"{name}.png", b"\x89PNG\0" + name.encode())
    other = SyncBench(bench.store)
    reports: list[SyncReport] = []

    def sync() -> None:
        write(folder / "notes.md", f"# Notes\n\nOf sync {len(reports)}.\n")
        reports.append(other.sync())

    bench.pictures = SeeingReader(sync)
    report = bench.add(folder)
    assert (report.added, report.skipped) == (2, {"no words in its pictures": 1})
    assert [other.added + other.changed for other in reports] == [1, 1, 1]
    assert sorted(bench.paths()) == ["docs/a.png", "docs/b.png", "docs/notes.md"]
    assert bench.store.catalog.count().vectors == 3
    reports.clear()
    again = bench.sync()
    assert (again.unchanged, again.skipped, reports) == (3, {"no words in its pictures": 1}, [])


@pytest.mark.promise("A.faults.bad-input")
def test_invalid_utf8_is_text_all_the_same(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "latin.txt", "Die Straße zum Café führt über die Brücke, höre ich.\n".encode("latin-1"))
    write(folder / "broken.md", b"# Title\n\nBroken \xff\xfe bytes and peaches \xc3 here.\n")
    report = bench.add(folder)
    assert did(report) == Did(added=2)
    assert (found(bench, "Straße"), found(bench, "peaches")) == (1, 1)


@pytest.mark.promise("A.faults.bad-input")
def test_a_loop_of_links_ends_and_is_counted(bench: SyncBench, tmp_path: Path):
    folder = tmp_path / "docs"
    write(folder / "sub" / "a.md", "# A\n\nApples.\n")
    (folder / "sub" / "back").symlink_to(folder)
    (folder / "self").symlink_to("self")
    report = bench.add(folder)
    assert did(report) == Did(added=1)
    assert sum(report.skipped.values()) == 2


@pytest.mark.promise("A.faults.bad-input", "A.sync.deleted")
def test_a_file_and_a_folder_that_may_not_be_read_are_named_and_keep_their_text(shared_folder: Path):
    name = shared_folder.name
    assert _said_by_nobody(shared_folder) == [
        f"new: 1 added, {name}/closed.md permission denied, {name}/shut permission denied",
        f"known: 0 added, {name}/closed.md permission denied, {name}/shut permission denied",
        f"stored: {name}/a.md {name}/closed.md {name}/shut/c.md",
    ]


def _said_by_nobody(folder: Path, *copies: str) -> list[str]:
    """Return what syncs of a folder say that may not be read as a whole; copies of a part are open."""
    write(folder / "a.md", "# A\n\nApples.\n")
    write(folder / "closed.md", "# B\n\nPears.\n")
    write(folder / "shut" / "c.md", "# C\n\nPlums.\n")
    command = [sys.executable, "-c", AS_NOBODY, str(folder), *copies]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment())
    (folder / "shut").chmod(0o755)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Tests often run as root, whom nothing is forbidden.
AS_NOBODY = """
import os, sys
from pathlib import Path
from support.recorders import SyncBench, opened, write

def tell(what, report):
    failed = sorted(f"{failure.path} {failure.reason}" for failure in report.failed)
    print(f"{what}: {report.added} added", *failed, sep=", ")

folder = Path(sys.argv[1])
known, new = SyncBench(opened("memory://")), SyncBench(opened("memory://"))
known.add(folder)
write(folder / "closed.md", "# B\\n\\nOther pears.\\n").chmod(0)
for name in sys.argv[2:]:
    write(folder / name, (folder / "shut" / "c.md").read_bytes())
(folder / "shut").chmod(0)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
tell("new", new.add(folder))
tell("known", known.sync())
print("stored:", *known.paths())
"""


def _environment() -> dict[str, str]:
    tests = Path(__file__).parent
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent / "src")])}


NAMES = ("a.md", "a.txt", "a.py", "a.json", "a.csv", "a.rst", "a.toml", "Makefile", "README")


@pytest.mark.promise("A.sync.one-bad-file")
@settings(max_examples=60)
@given(
    name=st.sampled_from(NAMES),
    data=st.one_of(
        st.binary(min_size=1, max_size=400),
        st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text("-:[]{}()#\"'`*|<>\n \tabc0!&%@", max_size=300).map(str.encode),
        st.sampled_from([b"(" * 20_000, b"[" * 20_000, b"> " * 5_000, b"---\n" + b"- " * 9_000 + b"\n---\n"]),
    ),
)
def test_no_bytes_in_a_file_stop_a_run(tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes):
    folder = tmp_path_factory.mktemp("wild") / "docs"
    write(folder / name, data)
    write(folder / "z.md", "# Z\n\nThe last file.\n")
    bench = SyncBench(opened("memory://"))
    with closing(bench.reader):
        bench.add(folder)
    assert "docs/z.md" in bench.paths()
