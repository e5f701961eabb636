"""Headings of PDFs: hits stand under them, whether the file names them or only prints them larger."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import Damaged, Encrypted
from concord.extract.pdf import PdfExtractor
from concord.types import Heading
from support.kb_command import Kb
from support.pdf_samples import make_pdf

CHAPTERS = [("Filling", 0), ("Bleeding the `radiators'", 1), ("Not in the text", 1), ("Draining", 2)]


def body(about: str, lines: int = 15) -> list[str]:
    return [
        f"The {about} is turned by {number} and a half, and then the valve {'lets go ' * 4}"
        for number in range(lines)
    ]


def headings(pages: list[list[str]], **given: Any) -> list[Heading]:
    extracted = PdfExtractor().extract(make_pdf(pages, **given), "a.pdf")
    return [section.heading for section in extracted.sections or ()]


def test_passages_stand_under_the_headings_of_the_outline_numbered_or_not():
    pages = [
        ["1. Filling", *body("pipe")],
        [*body("screw"), "1.2 Bleeding the \u2018radiators\u2019", *body("key")],
    ]
    pages.append(["Draining", *body("tap")])
    assert headings(pages, outline=CHAPTERS) == [("Filling",), ("Bleeding the `radiators'",), ("Draining",)]


def test_without_an_outline_larger_lines_are_headings_and_the_title_is_none():
    pages = [["The Boiler", "Filling", "Slowly", *body("pipe")], ["x", "Draining", "By hand", *body("tap")]]
    pages.append(["y", "Long care", "Daily", *body("cloth")])
    found = headings(pages, sizes=[11, 20, 15])
    assert found == [(), ("Filling", "Slowly"), ("Draining", "By hand"), ("Long care", "Daily")]
    assert headings([["The Boiler", *body("pipe")], body("tap")], sizes=[11]) == []


def test_where_most_lines_are_large_none_is_a_heading():
    assert headings([["Some words", "Large words", *body("pipe", 3)]] * 4, sizes=[20, 20]) == []


def test_a_hit_in_a_pdf_has_its_heading(kb: Kb, tmp_path):
    pages = [["Filling", *body("pipe", 40)], ["Draining", *body("tap", 40)], ["Care", *body("cloth", 40)]]
    outline = [("Filling", 0), ("Draining", 1), ("Care", 2)]
    (tmp_path / "boiler.pdf").write_bytes(make_pdf(pages, outline=outline))
    assert kb("add", "boiler.pdf").status == 0
    first, *_ = kb("search", "draining tap", "--json").json["results"]
    assert (first["heading"], first["page"]) == (["Draining"], 2)


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=20))
@settings(max_examples=40)
def test_a_mutilated_outline_gives_text_or_one_of_our_errors(at: int, noise: bytes):
    whole = make_pdf([["Filling", *body("pipe")], ["Draining", *body("tap")]], outline=CHAPTERS[:2])
    at %= len(whole)
    with suppress(Damaged, Encrypted):
        PdfExtractor().extract(whole[:at] + noise + whole[at + len(noise) :], "a.pdf")
