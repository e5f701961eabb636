"""Changelogs in Markdown: each section stands under its release, whatever the levels of their headings."""

from __future__ import annotations

import pytest

from concord.extract.text import MarkdownExtractor, PlainExtractor
from concord.text.chunk import ChunkSize, chunk
from concord.types import DocumentType, Extracted, Piece


def pieces(text: str, kind: DocumentType = "markdown") -> list[Piece]:
    size = ChunkSize.for_target(60, overlap=0)
    return chunk(Extracted(text, kind), lambda whole: range(0, len(whole), 4), size)


def test_no_passage_has_two_releases():
    entries = [
        f"## 1.0.{n} (2026-01-02)\n\n### Fixed\n\n- knot {n}\n\n### Added\n\n- lamp {n}" for n in range(9)
    ]
    found = pieces("# Changelog\n\n" + "\n\n".join(entries))
    assert [piece.text.count("## 1.0.") for piece in found] == [1] * 9
    assert [piece.heading[1] for piece in found] == [f"1.0.{n} (2026-01-02)" for n in range(9)]


RELEASES = [
    ("3.14.5 (2026-10-10)", "3.14.4 (2026-09-01)"),
    ("Version 3.1.3", "Version 3.1.2"),
    ("[1.4.0] - 2026-10-10", "[1.3.9] - 2026-09-01"),
]


def markdown_title(*headings: str) -> str | None:
    text = "".join(f"## {heading}\n\nfaster\n\n" for heading in headings)
    return MarkdownExtractor().extract(text.encode(), "CHANGELOG.md").title


def light_title(name: str, *headings: str) -> str | None:
    marks = {"a.rst": "{}\n{line}", "a.adoc": "= {}", "a.org": "* {}"}
    text = "\n\n".join(
        marks[name].format(heading, line="=" * len(heading)) + "\n\nfaster" for heading in headings
    )
    return PlainExtractor().extract(text.encode(), name).title


@pytest.mark.parametrize("releases", RELEASES)
def test_a_release_among_others_is_no_title(releases: tuple[str, str]):
    assert markdown_title(*releases) is None
    assert [light_title(name, *releases) for name in ("a.rst", "a.adoc", "a.org")] == [None] * 3


@pytest.mark.parametrize("first", ["Unreleased", "[Unreleased]", "4.0.0 (unreleased)"])
def test_what_is_yet_to_be_a_release_is_no_title_above_some(first: str):
    assert markdown_title(first, "Fixed", "3.9.1 (2026-10-10)") is None
    assert markdown_title(first, "Fixed", "Removed") == first


@pytest.mark.parametrize(
    "headings",
    [
        ("Changelog", "1.2.0 (2026-10-10)", "1.1.0 (2026-09-01)"),
        ("0.10 series", "Release 0.10.2", "Release 0.10.1"),
        ("Version 2.0", "Requirements of Version 1.0"),
        ("3.12 - Networking", "3.12.1", "3.12.2"),
        ("Next", "Steps"),
    ],
)
def test_other_first_headings_are_titles(headings: tuple[str, ...]):
    assert markdown_title(*headings) == light_title("a.rst", *headings) == headings[0]
