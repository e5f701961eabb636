"""All extractors together, by way of the process that reads files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from concord.core.errors import Damaged, NotIndexable, TooLarge
from concord.core.plugins import TABLES, load
from concord.extract.reader import SandboxedReader
from concord.extract.sandbox import Sandbox, WorkerLimits
from support.pdf_samples import make_bomb, make_pdf


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader()
    yield reader
    reader.close()


def test_one_reader_reads_every_format(reader: SandboxedReader):
    files = {
        "a.md": b"# Title",
        "a.txt": b"words",
        "a.py": b"x = 1",
        "a.html": b"<p>words</p>",
        "a.pdf": make_pdf([["words"]]),
        "a.csv": b"a,b",
    }
    types = [reader.read(data, name).type for name, data in files.items()]
    assert types == ["markdown", "text", "code", "html", "pdf", "data"]


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.md", b" \n\t\n", "no text"),
        ("a", b"\0\1\2", "binary"),
        ("a.ppt", b"PK\3\4", "unsupported format"),
        ("a.html", b"<script>x()</script>", "no text"),
        ("a.pdf", make_pdf([[], []]), "no text layer (scanned)"),
    ],
)
def test_what_has_no_text_is_skipped_with_a_reason(
    reader: SandboxedReader, name: str, data: bytes, reason: str
):
    with pytest.raises(NotIndexable) as nothing:
        reader.read(data, name)
    assert nothing.value.message == reason


def test_a_small_pdf_that_unfolds_beyond_its_memory_dies_alone():
    bomb = make_bomb(2_000_000)
    assert len(bomb) < 60_000
    reader = SandboxedReader(Sandbox(WorkerLimits(memory_bytes=200 * 1024**2)))
    try:
        with pytest.raises((Damaged, TooLarge), match="200 MB of memory"):
            reader.read(bomb, "bomb.pdf")
        assert reader.read(make_pdf([["fine"]]), "a.pdf").text.strip() == "fine"
    finally:
        reader.close()


@pytest.mark.parametrize("name", sorted(TABLES["extractors"]))
def test_every_extractor_survives_an_empty_file_or_says_what_is_wrong(name: str):
    extractor = load("extractors", name)()
    if name in ("pdf", "word", "sheets", "slides", "open_document", "book"):
        with pytest.raises(Damaged):
            extractor.extract(b"", "empty")
    else:
        assert extractor.extract(b"", "empty").text == ""
