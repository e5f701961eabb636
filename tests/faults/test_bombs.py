"""Files that hang, bomb or nest: each costs no more than its limit, and is still found by its lines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from concord.extract.reader import SandboxedReader
from concord.extract.sandbox import Sandbox, WorkerLimits
from concord.text.chunk import chunk

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reader() -> Iterator[SandboxedReader]:
    reader = SandboxedReader()
    yield reader
    reader.close()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("headings.md", b"# a\n" * 30_000, "has more than 20,000 sections"),
        ("lines.txt", b"a\n\n" * 200_000, "its structure is 8 times as long"),
    ],
)
def test_a_structure_beyond_its_limits_is_read_as_plain_lines_and_says_so(
    reader: SandboxedReader, name: str, data: bytes, reason: str
):
    extracted = reader.read(data, name)
    assert extracted.sections == []
    said, _, why = extracted.details["structure"].partition(": ")
    assert said == "read as plain lines"
    assert why.startswith(reason)
    pieces = chunk(extracted, lambda text: range(0, len(text), 4))
    assert {piece.heading for piece in pieces} == {()}
    assert sum(len(piece.text) for piece in pieces) > 0.6 * len(extracted.text.rstrip())


@pytest.mark.parametrize(("name", "data"), [("open.json", b"[" * 1_000_000), ("colons.rs", b"a: " * 166_000)])
def test_a_structure_that_takes_longer_than_it_may_is_read_as_plain_lines_and_says_so(name: str, data: bytes):
    reader = SandboxedReader(Sandbox(WorkerLimits(cpu_s=1)))  # a fast machine needs 2 s for either
    extracted = reader.read(data, name)
    reader.close()
    assert extracted.sections == []
    assert extracted.details["structure"].startswith("read as plain lines: took more than 1 s of processor")
    assert len(extracted.text.rstrip()) == len(data.rstrip())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("tags.cs", b"<a " * 2_700),  # takes the parser 528 MB
        ("colons.yaml", b"a: " * 83_000),
        ("nested.json", b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
        ("colons.md", b"---\n" + b"a: " * 83_000 + b"\n---\nThe text.\n"),
    ],
)
def test_what_only_looks_bad_is_read_with_its_structure(reader: SandboxedReader, name: str, data: bytes):
    extracted = reader.read(data, name)
    assert extracted.sections
    assert "structure" not in extracted.details
    assert chunk(extracted, lambda text: range(0, len(text), 4))
