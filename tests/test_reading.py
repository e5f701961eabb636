"""Reading what a citation stands for: its lines, their neighbours, and whether the file still says so."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import BadValue, KBError, NotFound
from concord.knowledge import KnowledgeBase
from concord.reading.budget import tokens
from concord.reading.pages import MOST_TOKENS
from concord.text.citations import Citation, cite, parse_citation
from support.pdf_samples import make_pdf
from support.recorders import age, write

GUIDE = """---
title: The Guide
tags: [help]
---
# Guide

Before the parts.

## Install

Install with one command. It takes a minute on most machines, and nothing has to be set up before.

```sh
kb add ./docs

kb search "install"
```

## Use

Use it every day.

| a | b |
|---|---|
| 1 | 2 |

The end.
"""


def filled(backend: str, folder: Path) -> KnowledgeBase:
    """Return a knowledge base of what is in folder/docs, with a few documents in it."""
    url = "memory://" if backend == "memory" else f"sqlite://{folder}/store"
    kb = KnowledgeBase.open(store__url=url, embed__provider="none", ingest__chunk_tokens=24)
    write(folder / "docs" / "guide.md", GUIDE)
    write(folder / "docs" / "sub" / "other.md", "# Other\n\nAnother page.\n")
    kb.add(folder / "docs")
    return kb


@pytest.fixture(params=["memory", "sqlite"], scope="module")
def kb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """One to read from."""
    folder = tmp_path_factory.mktemp(request.param)
    pages = [[f"Page {n} is about {fruit}."] * 9 for n, fruit in enumerate(["apples", "pears", "plums"])]
    write(folder / "docs" / "book.pdf", make_pdf(pages))
    with filled(request.param, folder) as opened:
        yield opened


@pytest.fixture(params=["memory", "sqlite"])
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """One whose files may be changed."""
    with filled(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def guide(kb: KnowledgeBase) -> Path:
    return Path(kb.source("docs").source.path or "", "guide.md")


@pytest.mark.promise("A.search.citations")
def test_a_citation_reads_exactly_what_was_found_there(kb: KnowledgeBase, guide: Path):
    lines = guide.read_text(encoding="utf-8").splitlines()
    for hit in kb.search("install", mode="fts5").hits:
        passage = kb.get(hit.citation)
        assert passage.text == hit.chunk.text
        assert passage.citation == hit.citation
        assert (passage.start_line, passage.end_line) == (hit.chunk.start_line, hit.chunk.end_line)
        there = "\n".join(lines[passage.start_line - 1 : passage.end_line])
        assert there.split() == passage.text.split()


@pytest.mark.parametrize(
    "reference",
    ["docs/guide.md", "guide.md", "docs/guide.md:1-99", "id", "file", "relative"],
)
def test_a_document_is_known_by_path_ending_id_or_file(
    kb: KnowledgeBase, guide: Path, monkeypatch: pytest.MonkeyPatch, reference: str
):
    monkeypatch.chdir(guide.parent.parent)
    (document,) = [d for d in kb.documents() if d.path == "docs/guide.md"]
    spelt = {"id": document.id, "file": str(guide), "relative": "./docs/../docs/guide.md"}
    passage = kb.get(spelt.get(reference, reference))
    assert passage.document == document
    assert passage.text.split() == GUIDE.partition("---\n#")[2].join(["#", ""]).split()
    assert (passage.before, passage.after) == (None, None)


def test_context_that_does_not_fit_leaves_what_was_asked_for_on_the_first_page(
    own: KnowledgeBase, tmp_path: Path
):
    parts = [f"# Part {at}\n\n{f'What part {at} says.{chr(10)}' * 6}\n" for at in range(60)]
    write(tmp_path / "docs" / "parts.md", "".join(parts))
    own.sync()
    (hit,) = own.search('"what part 20 says"', mode="fts5", top=1).hits
    pages = [own.page(hit.citation, max_bytes=900, context=15)]
    while pages[-1].next_cursor:
        pages.append(own.page("", max_bytes=900, cursor=pages[-1].next_cursor))
    wide = own.page(hit.citation, max_bytes=100_000, context=15)
    first, last = pages[0].slice, pages[-1].slice
    assert hit.chunk.text in first.text
    assert wide.slice.start_line < first.start_line < hit.chunk.start_line
    assert hit.chunk.end_line < first.end_line < last.end_line == wide.slice.end_line


CODE = """import os


class Pump:
    \"\"\"It pumps.\"\"\"

    def start(self, valve, pressure):
        self.valve = valve


        self.pressure = pressure + self.valve.least_pressure

    def stop(self):
        self.valve = None



def main(arguments):
    return Pump().start(arguments[0], int(arguments[1]))
"""
PROSE = "One line that goes on and on about pumps. It ends after a while.  Or does it? " * 8


@pytest.fixture
def files(own: KnowledgeBase, tmp_path: Path) -> dict[str, str]:
    """The texts of what is indexed, by path, in chunks of a few lines."""
    texts = {"docs/guide.md": GUIDE, "docs/pump.py": CODE, "docs/prose.txt": PROSE}
    for path, text in texts.items():
        write(tmp_path / path, text)
    own.sync()
    return texts


def lines_of(text: str, cited: Citation) -> list[str]:
    """Return what a file has at a place, line by line."""
    (first, start), (last, end) = cited.extent
    lines = text.split("\n")[first - 1 : last]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start - 1 :]
    return [line.strip() for line in lines]


@pytest.mark.parametrize("path", ["docs/guide.md", "docs/pump.py", "docs/prose.txt"])
def test_a_whole_document_is_read_back_line_by_line(own: KnowledgeBase, files: dict[str, str], path: str):
    passage = own.get(path, whole=True)
    assert len(own.store.catalog.chunks(passage.document.id)) > 2
    expected = files[path].split("\n")[passage.start_line - 1 :]
    assert passage.text == "\n".join(expected).strip()


@pytest.mark.parametrize("path", ["docs/guide.md", "docs/pump.py", "docs/prose.txt"])
@pytest.mark.parametrize("max_bytes", [60, 100, 200, 1000])
def test_pages_together_are_the_text_and_each_cites_its_own_lines(
    own: KnowledgeBase, files: dict[str, str], path: str, max_bytes: int
):
    pages = [own.page(path, max_bytes=max_bytes)]
    while pages[-1].next_cursor:
        pages.append(own.page("", max_bytes=max_bytes, cursor=pages[-1].next_cursor))
    passages = [page.slice for page in pages]
    assert "".join(passage.text for passage in passages) == own.get(path).text
    assert all(len(passage.text.encode()) <= max_bytes for passage in passages)
    for passage in passages:
        cited = parse_citation(passage.citation)
        assert cited.lines == (passage.start_line, passage.end_line)
        assert (cited.columns or (None, None)) == (passage.start_column, passage.end_column)
        there = lines_of(files[path], cited)
        shown = [line.strip() for line in passage.text.strip("\n").split("\n")]
        assert len(shown) == len(there)
        assert all(part in line for part, line in zip(shown, there, strict=True))
        assert path != "docs/prose.txt" or max_bytes > len(PROSE) or shown == there


@pytest.mark.parametrize(
    "reference",
    [
        "docs/guide.md:500-600",
        "docs/",
        "",
        "a\x00b",
        "../../etc/passwd",
    ],
)
def test_what_is_not_there_is_an_error_with_a_hint(kb: KnowledgeBase, reference: str):
    with pytest.raises(NotFound) as failure:
        kb.get(reference)
    assert failure.value.hint
    assert len(failure.value.message) < 400


def test_an_ending_that_fits_several_documents_asks_which(own: KnowledgeBase, tmp_path: Path):
    write(tmp_path / "more" / "guide.md", "# Guide\n\nAnother guide.\n")
    own.add(tmp_path / "more")
    with pytest.raises(BadValue, match="2 documents") as failure:
        own.get("guide.md")
    assert "docs/guide.md" in (failure.value.hint or "")
    assert own.get("more/guide.md").document.path == "more/guide.md"


@pytest.mark.parametrize("lines", ["#L9-L11", "#L9-11", ":9-11", ":9-11:", "#L11", ":10:3", ":10:3:"])
def test_lines_may_be_written_as_links_to_code_and_compilers_do(kb: KnowledgeBase, lines: str):
    passage = kb.get(f"docs/guide.md{lines}")
    assert passage.document.path == "docs/guide.md"
    assert "Install with one command." in passage.text
    assert "Use it every day." not in passage.text


def test_freshness_tells_what_has_happened_to_the_file(own: KnowledgeBase, tmp_path: Path):
    guide = tmp_path / "docs" / "guide.md"
    assert own.get("docs/guide.md").freshness == "fresh"
    age(guide, 0.5)  # touched, not changed
    assert own.get("docs/guide.md").freshness == "fresh"
    write(guide, GUIDE.replace("minute", "MINUTE"), days_old=0.2)  # as long as before
    passage = own.get("docs/guide.md")
    assert (passage.freshness, "minute" in passage.text) == ("changed", True)
    guide.unlink()
    assert own.get("docs/guide.md").freshness == "deleted"
    guide.mkdir()
    assert own.get("docs/guide.md").freshness == "changed"
    shutil.rmtree(guide.parent)  # or a disk that is not mounted: nobody knows
    assert own.get("docs/guide.md").freshness is None


@settings(max_examples=150)
@given(
    reference=st.one_of(
        st.text(max_size=40),
        st.text(":p-0123456789 /.~\x00\ud800docsguide.m", max_size=30),
        st.integers(-10, 10**25).map(str),
    )
)
def test_any_reference_is_read_or_refused(kb: KnowledgeBase, reference: str):
    hint: str | None = ""
    try:
        assert kb.get(reference).text
    except KBError as refused:
        hint = refused.hint
    assert hint is not None


ROWS = [{"id": n, "name": f"pump {n}", "valves": [n, n + 1], "note": "a\u00e9b " * 3} for n in range(40)]
FIXTURES = {
    "one-line.json": json.dumps(ROWS),
    "lines.json": json.dumps(ROWS, indent=1),
    "app.js": ";".join(f"function f{n}(a,b){{return a*{n}+b}}" for n in range(90)) + "\n" + "x=1;" * 200,
    "prose.txt": PROSE + "\n\n" + "A short line of prose.\n" * 30 + PROSE,
    "indented.txt": "\n".join(f"    {PROSE}" for _ in range(3)),
    "pump.py": CODE * 3,
    "rooms.csv": "room,floor,people\n" + "".join(f"room {n},{n % 9},{n * 3}\n" for n in range(120)),
    "wide.csv": ",".join(f"column {n}" for n in range(300)) + "\n" + ",".join(map(str, range(300))) + "\n",
    "guide.md": GUIDE + "\n" + PROSE + "\n",
    "windows.txt": (PROSE + "\r\n") * 2,
}


@pytest.mark.promise("A.search.citations")
@pytest.mark.parametrize("name", FIXTURES)
def test_a_citation_names_one_passage_and_reading_it_gives_exactly_that(
    own: KnowledgeBase, tmp_path: Path, name: str
):
    write(tmp_path / "docs" / name, FIXTURES[name])
    own.sync()
    document = own.document_named(f"docs/{name}")
    chunks = own.store.catalog.chunks(document.id)
    cited = {cite(document, chunk): chunk for chunk in chunks}
    assert len(cited) == len(chunks) > 2
    for citation, chunk in cited.items():
        read, wider = own.get(citation), own.get(citation, context=1)
        assert (read.citation, read.text) == (citation, chunk.text)
        assert (read.start_column, read.end_column) == (chunk.start_column, chunk.end_column)
        assert read.text in wider.text
        for part in (read, wider):
            there = lines_of(FIXTURES[name].replace("\r\n", "\n"), parse_citation(part.citation))
            assert "\n".join(there).split() == part.text.split()


def test_a_line_longer_than_a_passage_is_read_and_explained_by_the_part_that_is_cited(own: KnowledgeBase):
    folder = Path(own.source("docs").source.path or "")
    rules = " ".join(f"Rule {n}: everybody keeps locker {n} tidy." for n in range(400))
    write(folder / "handbook.md", f"# Handbook\n\n{rules} The spare fuse is taped under the toolbox.\n")
    own.sync()
    hit = own.search("spare fuse under the toolbox", mode="fts5").hits[0]
    assert hit.citation == f"docs/handbook.md:3:{hit.chunk.start_column}-{hit.chunk.end_column}"
    assert own.get(hit.citation).text == hit.chunk.text
    assert "taped under the toolbox" in own.search(hit.citation).hits[0].chunk.text
    assert own.explain("spare fuse under the toolbox", hit.citation).chunk_id == str(hit.chunk.id)


@pytest.mark.promise("design.level")
def test_a_section_is_read_from_its_heading_to_its_end(own: KnowledgeBase, files: dict[str, str]):
    chunks = own.store.catalog.chunks(own.document_named("docs/guide.md").id)
    install = [chunk for chunk in chunks if chunk.heading == ("Guide", "Install")]
    assert len(install) > 1
    for chunk in install:
        cited = cite(own.document_named("docs/guide.md"), chunk)
        read = own.get(cited, level="section")
        assert (read.start_line, read.end_line) == (install[0].start_line, install[-1].end_line)
        assert own.get(cited, level="passage") == own.get(cited)
        assert own.get(cited, level="document") == own.get(cited, whole=True)
        page = own.page(cited, max_bytes=100, level="section")
        assert chunk.text[:20] in page.slice.text


def test_an_outline_tells_headings_with_lines_and_stays_short(own: KnowledgeBase, tmp_path: Path):
    write(tmp_path / "docs" / "guide.md", GUIDE)
    parts = [
        f"# Part {n}\n\n" + "\n\n".join(f"## Step {n}.{m}\n\nDo it." for m in range(40)) for n in range(9)
    ]
    write(tmp_path / "docs" / "long.md", "\n\n".join(parts))
    write(tmp_path / "docs" / "plain.txt", PROSE)
    own.sync()
    told = own.get("docs/guide.md:9-9", level="outline")
    assert told.citation == "docs/guide.md"
    assert re.search(r"^9-17 +Install \(\d+ tokens\)$", told.text, re.MULTILINE)
    long = own.page("docs/long.md", max_bytes=10_000, level="outline").slice.text
    assert [line.split()[1:3] for line in long.split("\n")] == [["Part", f"{n}"] for n in range(9)]
    assert tokens(long) <= MOST_TOKENS
    assert "(without a heading)" in own.get("docs/plain.txt", level="outline").text
