"""PDF: text page by page, and files that cannot be read."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.errors import Damaged, Encrypted, TooLarge
from concord.extract.pdf import PdfExtractor
from support.pdf_samples import make_pdf


def test_a_pdf_gives_its_text_by_page_and_what_it_says_of_itself():
    pages = [["Deep Title", "The body of the first page,", "and its second line."], [], ["Third page: café"]]
    info = {"Author": "A. Writer", "CreationDate": "D:20240131120000+01'00'", "Title": "untitled"}
    extracted = PdfExtractor().extract(make_pdf(pages, info=info, sizes=[24]), "a.pdf")
    first, _, third = extracted.page_starts
    assert extracted.text[first:].startswith("Deep Title\nThe body of the first page,")
    assert extracted.text[third:].startswith("Third page: café")
    assert extracted.title == "Deep Title"
    assert extracted.details == {"pages": 3, "author": "A. Writer"}


def test_a_title_that_somebody_gave_is_the_title():
    given_title = make_pdf([["Large", "small"]], info={"Title": "Microsoft Word - A Real Title"}, sizes=[30])
    assert PdfExtractor().extract(given_title, "a.pdf").title == "A Real Title"
    assert PdfExtractor().extract(make_pdf([["all", "alike"]]), "a.pdf").title is None


def test_a_pdf_that_needs_a_password_is_told_apart_from_one_that_only_forbids_printing():
    with pytest.raises(Encrypted) as fault:
        PdfExtractor().extract(make_pdf([["secret"]], password="swordfish"), "a.pdf")
    assert fault.value.hint
    assert PdfExtractor().extract(make_pdf([["open"]], password=""), "a.pdf").text.strip() == "open"


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.8])
def test_a_pdf_that_is_cut_off_is_damaged(keep: float):
    whole = make_pdf([["text"]])
    with pytest.raises(Damaged) as fault:
        PdfExtractor().extract(whole[: int(len(whole) * keep)], "a.pdf")
    assert fault.value.hint


def test_a_scan_comes_back_empty_and_says_so():
    extracted = PdfExtractor().extract(make_pdf([[], []]), "a.pdf")
    assert (extracted.text, extracted.details["pages"], extracted.details["no_text_layer"]) == ("", 2, True)


def test_pages_that_show_something_and_hold_no_text_are_counted_and_blank_ones_are_not():
    extracted = PdfExtractor().extract(make_pdf([["A cover."], None, [], None]), "a.pdf")
    assert extracted.text.strip() == "A cover."
    assert extracted.details == {"pages": 4, "pages_without_text": 2}


def test_a_pdf_with_too_many_pages_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("concord.extract.pdf.MAX_PAGES", 2)
    with pytest.raises(TooLarge, match="3 pages"):
        PdfExtractor().extract(make_pdf([["a"], ["b"], ["c"]]), "a.pdf")


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=20))
@settings(max_examples=60)
def test_a_mutilated_pdf_gives_text_or_one_of_our_errors(at: int, noise: bytes):
    whole = make_pdf([["some text", "more"], ["end"]])
    at %= len(whole)
    with suppress(Damaged, Encrypted):
        PdfExtractor().extract(whole[:at] + noise + whole[at + len(noise) :], "a.pdf")
