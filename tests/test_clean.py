"""Cleaning: files keep every line, pages become prose again, and nothing that was said is lost."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.clean import clean, clean_pages

WILD = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\r\n\t\f\v\x00\x02\x1b\x85\ufeff\u200d\u0301[m")),
    max_size=200,
)


def body(*lines: str) -> str:
    return "\n".join(lines)


def pages_with(header: str, footer: str, count: int = 5) -> list[str]:
    texts = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"][:count]
    return [
        body(header.format(n), f"The {text} page says something.", footer.format(n))
        for n, text in enumerate(texts, 1)
    ]


@given(WILD)
@settings(max_examples=300)
def test_a_clean_text_has_the_lines_of_the_file(text: str):
    assert clean(text).count("\n") == len(re.findall("\r\n|\r|\n", text))


@given(WILD)
@settings(max_examples=300)
def test_cleaning_twice_changes_nothing_more(text: str):
    assert clean(clean(text)) == clean(text)


@given(WILD)
@settings(max_examples=300)
def test_a_clean_text_is_composed_storable_and_without_controls(text: str):
    result = clean(text)
    assert unicodedata.is_normalized("NFC", result)
    assert result.encode("utf-8").decode("utf-8") == result
    assert not [c for c in result if unicodedata.category(c) == "Cc" and c not in "\n\t"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("one\r\ntwo\rthree\n", "one\ntwo\nthree\n"),
        ("nu\x00l", "nul"),
        ("\fdef main():", "def main():"),
        ("\x1b[1;31mred\x1b[0m \x1b]0;title\x07text", "red text"),
        ("family 👨\u200d👩\u200d👧", "family 👨\u200d👩\u200d👧"),
        ("half \ud83d pair", "half \ufffd pair"),
        ("ﬁle names in code stay", "ﬁle names in code stay"),
    ],
)
def test_light_cleaning_takes_only_what_no_one_wrote(raw: str, expected: str):
    assert clean(raw) == expected


@pytest.mark.promise("000.flow.cleaning")
def test_running_headers_and_footers_are_removed_but_for_their_first_occurrence():
    text, _ = clean_pages(pages_with("Annual Report 2021", "Company Ltd, confidential"))
    assert text.count("Annual Report 2021") == 1
    assert text.count("Company Ltd") == 1
    assert text.count("page says something") == 5


@pytest.mark.parametrize("number", ["{0}", "- {0} -", "Page {0}", "{0} / 5", "Seite {0} von 5"])
def test_page_numbers_are_removed(number: str):
    text, _ = clean_pages(pages_with("", number))
    assert not re.search(r"\d", text)


def test_the_dots_of_a_table_of_contents_are_short_and_each_entry_has_its_line():
    names = ["asn1_der_coding", "asn1_check_version", "asn1_der_decoding_of_an_element", "preface"]
    pages = ["17", "23", "20", "iv"]
    for dots in (" . . . . . . . . . . . . . . ", "..............", "· · · · · · · · · · · · · ·"):
        entries = [f"{name}{dots}{page}" for name, page in zip(names, pages, strict=True)]
        text, _ = clean_pages([body("Index", *entries)])
        assert text.split("\n")[-4:] == [f"{name} … {page}" for name, page in zip(names, pages, strict=True)]
    assert clean_pages(["And so on.... He waited ..."])[0] == "And so on.... He waited ..."


def test_numbers_that_do_not_count_the_pages_stay():
    numbers = ["17", "4", "99", "42", "8"]
    pages = [body(f"The {word} total is", number) for word, number in zip("abcde", numbers, strict=True)]
    text, _ = clean_pages(pages)
    assert [n for n in numbers if n in text] == numbers


def test_lines_alike_but_for_unrelated_numbers_stay():
    totals = ["Total: 812 euro", "Total: 97 euro", "Total: 3 euro", "Total: 55 euro"]
    text, _ = clean_pages(
        [body(total, f"Because of {word}.") for total, word in zip(totals, "abcd", strict=True)]
    )
    assert [total for total in totals if total in text] == totals


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("this is an exam-", "ple of it"), "this is an example of it"),
        (("it is well-", "known by now"), "it is well-known by now"),
        (("soft hy\xad", "phen here"), "soft hyphen here"),
        (("an e-", "mail came"), "an e-mail came"),
        (("in\xadvisible", ""), "invisible"),
    ],
)
def test_divided_words_are_made_whole(lines: tuple[str, ...], expected: str):
    assert clean_pages([body(*lines)])[0] == expected


def test_the_document_decides_about_a_hyphen_it_writes_elsewhere():
    text, _ = clean_pages(["They did re-enter twice.\n\nThen they re-\nenter again."])
    assert text.count("re-enter") == 2
    text, _ = clean_pages(["A nontrivial proof.\n\nIt is non-\ntrivial."])
    assert text.count("nontrivial") == 2


def test_a_page_of_one_endless_word_takes_no_time():
    begun = process_time()
    assert clean_pages(["acgt" * 25_000, "a-" * 50_000])[1] == (0, 100_001)
    assert process_time() - begun < 2


def test_ligatures_become_letters_on_pages():
    assert (
        clean_pages(["ﬁne ﬂow, oﬀer, eﬃcient, waﬄe, ﬆone"])[0] == "fine flow, offer, efficient, waffle, stone"
    )


def test_sentences_broken_by_lines_are_joined_and_paragraphs_are_not():
    page = body(
        "The first paragraph of this page runs over several lines, and each of",
        "them but the last is about as long as the page is wide, as it was in",
        "Leipzig once.",
        "The second paragraph begins here and is quite as long as the first one",
        "was.",
        "- a list item",
    )
    assert clean_pages([page])[0] == (
        "The first paragraph of this page runs over several lines, and each of them but the last is about as "
        "long as the page is wide, as it was in Leipzig once.\n\n"
        "The second paragraph begins here and is quite as long as the first one was.\n\n"
        "- a list item"
    )


def test_page_starts_are_the_offsets_of_the_pages():
    text, starts = clean_pages(["First page.", "", "Third page goes", "on here. End."])
    assert len(starts) == 4
    assert [
        text.startswith(begin, at) for begin, at in zip(("First", "", "Third", "on"), starts, strict=True)
    ]
    assert text == "First page.\n\nThird page goes\non here. End."


@given(st.lists(st.text(alphabet="abcdeAB -.,\n12¬\xad", max_size=80), min_size=1, max_size=2))
@settings(max_examples=300)
def test_no_letter_is_lost_on_pages(pages: list[str]):
    text, starts = clean_pages(pages)
    letters = Counter(c for page in pages for c in page if c.isalpha())
    assert Counter(c for c in text if c.isalpha()) == letters
    assert list(starts) == sorted(starts)


@given(st.lists(WILD, max_size=6))
@settings(max_examples=200)
def test_any_pages_give_a_clean_text_with_one_start_each(pages: list[str]):
    text, starts = clean_pages(pages)
    assert len(starts) == len(pages)
    assert all(0 <= start <= len(text) for start in starts)
    assert clean(text) == text


def test_form_feeds_part_the_pages_of_a_paged_text():
    assert clean("first exam-\nple\fSecond", paged=True) == "first example\n\nSecond"
