"""A month is found in whatever form it is written, and by its days; one that nothing holds gets no answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from concord.ranking.calibrate import Logistic
from concord.search import search
from concord.text.months import Month, is_of, month_of, months_in, months_told
from concord.text.parse import parse
from concord.types import Request
from support.small_library import fitted, library, titles, tools

ALWAYS = Logistic(("cosine",), (0.0,), 9.0, (0.0,), (1.0,))
SURE = replace(fitted(answerable=0.6), hit=ALWAYS)
FORMS = [
    "May 2025",
    "may 2025",
    "May, 2025",
    "May of 2025",
    "May-2025",
    "2025 May",
    "2025-05",
    "2025/05",
    "05/2025",
    "Mai 2025",
    "mayo de 2025",
]


@pytest.mark.parametrize("written", FORMS)
def test_a_month_is_known_in_every_form(written: str):
    assert month_of(written) == Month(2025, 5)
    assert [one.written for one in months_in(f"Incidents of {written}, by team.")] == [written]


@pytest.mark.parametrize(
    "text",
    [
        "May",
        "May 25",
        "12 May 2025",
        "May 12, 2025",
        "2025-05-12",
        "12.05.2025",
        "2025.05",
        "1/2000",
        "5/2025",
    ]
    + ["in 2025 may be", "Room 2025", "2025-13", "port 05/20250"],
)
def test_what_has_a_day_or_no_year_or_is_no_month_is_none(text: str):
    assert [*months_in(text)] == []


def test_a_day_tells_its_month():
    text = "On 2025-05-12, 3 June 2025 and Jul 4th, 2025; again in August 2025."
    assert {*months_told(text)} == {Month(2025, number) for number in (5, 6, 7, 8)}


@pytest.mark.parametrize(
    "text", ["Incidents of 2025\n| April | May |", "logs/2025-05.md", "journal/2025/05/x.md"]
)
def test_the_year_may_stand_apart_unless_the_month_is_of_another(text: str):
    assert is_of(text, Month(2025, 5))
    assert not is_of("May 2024 and April 2025", Month(2025, 5))
    assert not is_of("In 2025 you may leave.", Month(2025, 5))


INCIDENTS = {
    "Named": "Incidents in April 2025 were few.",
    "German": "Störungen (incidents) im Oktober 2024: zwei.",
    "Number": "Incidents 2024-11: three of the disk.",
    "Slash": "Incidents of 01/2025 were none.",
    "Day": "Incidents: the lamp failed on March 3, 2025.",
    "Stamp": "2025-02-14 incidents of the rope.",
    "Table": "Incidents of 2023\nApril 10\nMay 12\nJune 11",
    **{f"Number {n}": f"The {n}. note on incidents; it may be of any month." for n in range(40)},
}


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("incidents 2025-04", "Named"),
        ("incidents in October 2024", "German"),
        ("incidents 10/2024", "German"),
        ("incidents November 2024", "Number"),
        ("incidents im Januar 2025", "Slash"),
        ("incidents 2025-03", "Day"),
        ("incidents in März 2025", "Day"),
        ("incidents in February 2025", "Stamp"),
        ("incidents in May 2023", "Table"),
    ],
)
def test_a_search_for_a_month_finds_it_in_another_form(asked: str, title: str):
    answer = search(Request(asked, mode="fts5"), tools(library(INCIDENTS), SURE))
    assert title in titles(answer)[:2]
    assert search(Request(asked), tools(library(INCIDENTS), SURE)).note is None


@pytest.mark.parametrize("month", ["May 2025", "2025-05", "05/2025", "Mai 2025", "April 2024", "March 2024"])
def test_a_month_that_nothing_holds_is_not_answered_by_another(month: str):
    answer = search(Request(f"incidents in {month}"), tools(library(INCIDENTS), SURE))
    assert (answer.answerable, answer.note) == (False, f"nothing holds {month}")


def test_where_no_text_has_a_month_none_is_missed():
    notes = {"Plain": "Incidents of the lamp.", "Other": "Ropes and anchors of 2025."}
    assert search(Request("incidents in May 2025"), tools(library(notes), SURE)).note is None


def test_a_query_without_a_month_asks_for_nothing_more():
    assert parse("may 12 users leave").kept == parse("users 2025").kept == ()
