"""A quarter is found in whatever form it is written; one that nothing holds is not answered, nor a year."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from concord.ranking.calibrate import Logistic
from concord.search import search
from concord.text.query_language import parse
from concord.text.quarters import Quarter, is_of, quarter_of, quarters_in
from concord.types import Request
from support.small_library import fitted, library, titles, tools

FORMS = (
    "Q2 2023",
    "Q2/2023",
    "Q2, 2023",
    "Q2 of 2023",
    "Q2 FY2023",
    "2023-Q2",
    "2023Q2",
    "2023 Q2",
    "2Q 2023",
    "second quarter of 2023",
    "2nd quarter 2023",
    "2. Quartal 2023",
    "zweites Quartal 2023",
    "deuxième trimestre 2023",
    "segundo trimestre de 2023",
)
ALWAYS = Logistic(("cosine",), (0.0,), 3.0, (0.0,), (1.0,))
SURE = replace(fitted(answerable=0.6), hit=ALWAYS)


@pytest.mark.parametrize("written", FORMS)
def test_a_quarter_is_known_in_every_form(written: str):
    assert quarter_of(written) == Quarter(2023, 2)
    assert [one.written for one in quarters_in(f"Revenue of {written}, in euro.")] == [written]


@pytest.mark.parametrize(
    "text", ["Q2", "Q5 2023", "fiscal quarter 2023", "Q2 2023-05-01", "FAQ2 2023", "Q2 23"]
)
def test_what_has_no_year_or_is_no_quarter_is_none(text: str):
    assert [*quarters_in(text)] == []


@pytest.mark.parametrize("text", ["Revenue of 2023\n| Q1 | Q2 |", "In 2023, the second quarter was better."])
def test_the_year_may_stand_apart_unless_the_quarter_is_of_another(text: str):
    assert is_of(text, Quarter(2023, 2))
    assert not is_of("Q2 2024 and Q1 2023", Quarter(2023, 2))


REPORTS = {
    "Later": "Revenue in Q2 2024 was above plan.",
    "Earlier": "Revenue in the first quarter of 2023 was below plan.",
    "German": "Umsatz (revenue) im 3. Quartal 2023 nach Plan.",
    "Table": "Revenue of 2022\nQ1 10\nQ2 12\nQ3 11\nQ4 14",
    **{f"Number {n}": f"The {n}. note on revenue, the plan and the quarter of a pie." for n in range(40)},
}


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("revenue second quarter of 2024", "Later"),
        ("revenue 2024-Q2", "Later"),
        ("revenue in Q1 2023", "Earlier"),
        ("revenue 2023Q3", "German"),
    ],
)
def test_a_search_for_a_quarter_finds_it_in_another_form(asked: str, title: str):
    answer = search(Request(asked, mode="fts5"), tools(library(REPORTS), SURE))
    assert title in titles(answer)[:2]
    assert (search(Request(asked), tools(library(REPORTS), SURE))).note is None


@pytest.mark.parametrize("quarter", ["Q2 2023", "2023-Q2", "second quarter of 2023", "4. Quartal 2024"])
def test_a_quarter_that_nothing_holds_is_not_answered_by_another(quarter: str):
    answer = search(Request(f"revenue in {quarter}"), tools(library(REPORTS), SURE))
    assert (answer.answerable, answer.note) == (False, f"nothing holds {quarter}")


def test_the_columns_of_a_table_hold_the_quarters_of_its_year():
    answer = search(Request("revenue in Q2 2022"), tools(library(REPORTS), SURE))
    assert (answer.answerable, answer.note) == (True, None)


CHANGES = {
    "Newer": "In the year 2021 the billing service was split off; changes of the API followed.",
    "Older": "Changes of 2018: search moved. A limit of 4000 users.",
    **{f"Number {n}": f"The {n}. page on ropes and anchors." for n in range(40)},
}


@pytest.mark.parametrize("asked", ["changes in the year 2019", "changes 2019", "service changes of 2019?"])
def test_a_year_that_nothing_holds_is_not_answered_by_another(asked: str):
    answer = search(Request(asked), tools(library(CHANGES), SURE))
    assert (answer.answerable, answer.note) == (False, "nothing holds 2019")


@pytest.mark.parametrize(
    "asked",
    [
        "changes in the year 2021",
        "changes between 2018 and 2019",
        "service changes since 2019?",
        "changes before 2019",
        "changes 2019 users have noticed",
        "changes of port 2019/tcp",
        "changes in the year 1066",
    ],
)
def test_a_year_that_something_holds_one_of_two_and_other_numbers_cost_no_confidence(asked: str):
    answer = search(Request(asked), tools(library(CHANGES), SURE))
    assert answer.answerable
    assert "nothing holds" not in (answer.note or "")


def test_where_no_text_has_a_year_none_is_missed():
    notes = {"Plain": "Changes of the billing service.", "Other": "Ropes and anchors."}
    answer = search(Request("changes in the year 2019"), tools(library(notes), SURE))
    assert "nothing holds" not in (answer.note or "")


def test_a_query_without_a_quarter_asks_for_nothing_more():
    assert parse("what is Q2 about").kept == ()
    assert parse("a quarter of 2023 users").kept == ()
