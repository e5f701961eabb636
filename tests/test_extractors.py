"""All extractors together, by way of the process that reads files."""

from __future__ import annotations

import gzip
import random
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


PAGE = b".TH PEAR 1\n.SH NAME\npear \\- a fruit\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("man/pear.1", PAGE),
        ("man/pear-log.1", PAGE),
        ("pear.md", b"# Pear\n\nGreen.\n"),
        ("PEAR.TXT", b"Pears are green.\n"),
        ("README.Debian", b"Pears for Debian\n-----------------\n\nGreen.\n"),
        ("changelog", b"pear (1.0) unstable; urgency=low\n\n  * Green.\n"),
        ("NEWS.24", b"Pears 24\n\nGreen, since 10:00:00.\n\nRipe.\n"),
        ("catalog.d-notes", b"Pears are green.\n"),
        ("v2.38-ReleaseNotes", b"Pears 2.38\n\nGreen.\n"),
        ("pear.html", b"<html><body><h1>Pear</h1><p>Green.</p></body></html>"),
        ("pear.pdf", make_pdf([["Green pears."]])),
    ],
)
def test_a_document_that_is_packed_is_read_as_if_it_were_not(reader: SandboxedReader, name: str, data: bytes):
    plain = reader.read(data, name)
    assert reader.read(gzip.compress(data), f"{name}.gz") == plain
    assert reader.read(gzip.compress(data[:9]) + gzip.compress(data[9:]) + bytes(512), f"{name}.gz") == plain


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("syslog.1", b"Nov 17 10:00:00 host sshd: .TH\n"),
        ("access.log", b"GET / 200\n"),
        ("dump.sql", b"CREATE TABLE pear (id int);\n"),
        ("rows.csv", b"id,name\n1,pear\n"),
        ("pear.ps", b"%!PS-Adobe-3.0\n(Green) show\n"),
        ("pear", bytes(1000)),
        ("messages-20261117", b"Nov 17 10:00:00 host sshd: pears\n" * 9),
        ("access_log.12", b'::1 - - [17/Nov/2026:10:00:00 +0000] "GET /pear" 200\n'),
        ("trace.log-20261117", b"Pears were green.\n"),
    ],
)
def test_other_packed_files_are_binary(reader: SandboxedReader, name: str, data: bytes):
    for packed in (gzip.compress(data), gzip.compress(data)[:-9]):
        with pytest.raises(NotIndexable, match="binary"):
            reader.read(packed, f"{name}.gz")


@pytest.mark.parametrize("name", ["pear.1.gz", "pear.md.gz"])
def test_a_packed_document_that_is_cut_off_or_unfolds_beyond_measure_says_so(
    reader: SandboxedReader, monkeypatch: pytest.MonkeyPatch, name: str
):
    long = PAGE + bytes(random.Random(1).choices(b"abc \n", k=100_000))
    with pytest.raises(Damaged, match="cut off"):
        reader.read(gzip.compress(long)[:-2_000], name)
    with pytest.raises(Damaged, match="cut off"):
        reader.read(gzip.compress(PAGE) + gzip.compress(long)[:-2_000], name)
    with pytest.raises(Damaged, match="damaged"):
        reader.read(gzip.compress(PAGE)[:-8] + bytes(8), name)
    monkeypatch.setattr("concord.extract.reader.MAX_UNPACKED", 50_000)
    with pytest.raises(NotIndexable, match="unfolds"):
        reader.read(gzip.compress(long), name)
    with pytest.raises(NotIndexable, match="unfolds"):
        reader.read(gzip.compress(PAGE + b"a " * 8_000) * 4, name)


def test_what_is_packed_in_very_many_parts_is_left_out_at_once(reader: SandboxedReader):
    with pytest.raises(NotIndexable, match="parts"):
        reader.read(gzip.compress(b"") * 20_000, "pear.md.gz")


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
