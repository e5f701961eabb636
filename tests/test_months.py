"""A month is found in whatever form it is written, and by its days; one that nothing holds gets no answer."""

from __future__ import annotations

from time import process_time

import pytest
from msgspec.structs import replace

from concord.ranking.calibrate import Logistic
from concord.ranking.named.kinds import FoundTexts
from concord.ranking.named.months import KIND
from concord.search import search
from concord.text.months import Month, is_of, month_of, months_in, months_told
from concord.text.query_language import parse
from concord.types import Filter, Query, Request
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
        "2010/11",  # two years of a school or a budget
        "2008-09",
    ]
    + ["in 2025 may be", "Room 2025", "2025-13", "port 05/20250"],
)
def test_what_has_a_day_or_no_year_or_is_no_month_is_none(text: str):
    assert [*months_in(text)] == []


def test_a_day_tells_its_month():
    text = "On 2025-05-12, 3 June 2025 and Jul 4th, 2025; again in August 2025."
    assert {*months_told(text)} == {Month(2025, number) for number in (5, 6, 7, 8)}


@pytest.mark.parametrize(
    "text",
    [
        "Incidents of 2025\n| April | May |",
        "logs/2025-05.md",
        "journal/2025/05/x.md",
        "Sales in May and June 2025",
        "May–June 2025",
        "May 2024 and 2025",
        "April, May and June 2025",
        "May to July 2025",
        "docs/newsletter-may-2025.md\nOf April.",
        "docs/newsletter_may_2025.md",
        "docs/2025/may.md",
        "05-2025",
        "5/2025",
        "202505",
        "backup-20250512.tar",
        "5/12/2025",
        "May '25",
        "# 2025\n## MAY",
        "| avril | mai |\n| 2025 |",
    ],
)
def test_a_text_that_has_a_month_and_its_year_in_any_way_is_of_it(text: str):
    assert is_of(text, Month(2025, 5))


@pytest.mark.parametrize(
    "text",
    ["In 2025 you may leave.", "May 2024", "2025-04", "15/2025", "Mayor of 2025", "2025-055", "May '24"],
)
def test_a_verb_another_year_and_other_numbers_are_not_of_a_month(text: str):
    assert not is_of(text, Month(2025, 5))


@pytest.mark.parametrize("name", ["février", "FÉVRIER", "fevrier", "Febrero"])
def test_names_of_a_month_are_known_with_and_without_accents(name: str):
    assert is_of(f"Of 2025:\n- {name}", Month(2025, 2))


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


@pytest.mark.parametrize(
    "query",
    [
        "incidents since March 2024",
        "incidents before May 2025",
        "incidents after 2025-05",
        "incidents between May and July 2025",
        "incidents seit März 2024",
        "incidents avant mai 2025",
        "incidents desde mayo de 2025",
        "incidents May to July 2025",
        "incidents June 2024 - August 2024",
    ],
)
def test_of_a_span_no_month_is_missed(query: str):
    assert "nothing holds" not in (search(Request(query), tools(library(INCIDENTS), SURE)).note or "")


@pytest.mark.parametrize("query", ["budget 2010/11", "budget 2010-11", "budget of the season 2008/09"])
def test_two_years_are_not_missed_as_a_month(query: str):
    notes = {"Budget": "Budget 2010/2011; 2009/10; season 2008-2009.", "Paid": "The budget of June 2012."}
    assert search(Request(query), tools(library(notes), SURE)).note is None


def test_months_in_a_row_are_held_beyond_the_passages_that_are_read():
    others = {f"Sales {n}": f"Sales of March 2025, sales, sales: part {n}." for n in range(60)}
    rows = {"Row": "April and May 2025 were good, as the shift wrote of all that was sold.", **others}
    knowledge = tools(library(rows), SURE)
    assert search(Request("sales April 2025"), knowledge).note is None
    assert search(Request("sales June 2025"), knowledge).note == "nothing holds June 2025"


def test_a_query_of_many_months_costs_little_more_than_one_of_one():
    line = "2025-04-{:02} 10:00:00 the rope was wound and may be wound again\n"
    texts = ["".join(line.format(day) for day in range(1, 29))] * 50

    def seconds(asked: str) -> float:
        start = process_time()
        query = Query(asked, (), (), (), None, None, 10, 30, Filter())
        assert [*KIND.named(FoundTexts(query, texts, lambda match: ()))] == []
        return process_time() - start

    seconds("April 2025")  # patterns are compiled
    assert seconds("April 2025 " * 100) < 20 * seconds("April 2025") + 0.1


def test_where_no_text_has_a_month_none_is_missed():
    notes = {"Plain": "Incidents of the lamp.", "Other": "Ropes and anchors of 2025."}
    assert search(Request("incidents in May 2025"), tools(library(notes), SURE)).note is None


def test_a_query_without_a_month_asks_for_nothing_more():
    assert parse("may 12 users leave").kept == parse("users 2025").kept == ()
