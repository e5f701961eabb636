"""Headings of AsciiDoc and Org, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest

from concord.text.plain import headings_of, read_plain
from support.recorders import write
from support.small_library import opened


def headings(text: str, markup: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.words) for heading in headings_of(text, markup)]


@pytest.mark.parametrize(
    ("markup", "text", "found"),
    [
        (
            "asciidoc",
            "= Harbour\n\n== Fees ==\nText\n=== A = b\n==== \n==none\n",
            [(1, "Harbour"), (2, "Fees"), (3, "A = b")],
        ),
        (
            "org",
            "* Fees\ntext\n** At sea\n*bold* text\n - * item\n",
            [(1, "Fees"), (2, "At sea")],
        ),
    ],
)
def test_each_markup_has_headings_of_its_own(markup: str, text: str, found: list[tuple[int, str]]):
    assert headings(text, markup) == found


def test_levels_may_be_left_out_and_headings_need_no_blank_lines():
    text = "Before.\n* Harbour\nIntro.\n*** Fees\n    34 euros\n*** Hours\nAt noon.\n* Sea\n"
    sections = read_plain(text, "org")
    assert [section.heading for section in sections] == [
        (),
        ("Harbour",),
        ("Harbour", "Fees"),
        ("Harbour", "Hours"),
        ("Sea",),
    ]
    assert text[sections[2].blocks[1].start :].startswith("    34 euros")
    assert "".join(text[block.start : block.end] for section in sections for block in section.blocks) == text


def test_a_result_says_under_which_heading_of_its_file_it_stands(tmp_path: Path):
    text = "= Harbour\n\n== Fees\n\nYachts pay.\n\n== Hours\n\n" + "The gates open at noon.\n" * 90
    write(tmp_path / "docs" / "harbour.adoc", text)
    with opened(tmp_path) as kb:
        kb.add(tmp_path / "docs")
        first = kb.search("gates open at noon").hits[0]
    assert first.chunk.heading == ("Harbour", "Hours")
