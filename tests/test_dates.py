"""The same day is found in whatever form it is written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from concord.ranking.calibrate import Logistic
from concord.search import search
from concord.text.held import contains
from concord.text.dates import Day, dates_in, days_of, yearless_in
from concord.text.query_language import parse
from concord.types import Request
from support.small_library import fitted, library, titles, tools

FORMS = (
    "2025-06-24",
    "2025/6/24",
    "2025.06.24",
    "24.06.2025",
    "24.6.2025",
    "24/06/2025",
    "6/24/2025",
    "24-Jun-2025",
    "June 24 2025",
    "June 24th, 2025",
    "Jun. 24, 2025",
    "24 June 2025",
    "24th of June 2025",
    "24. Juni 2025",
    "24 juin 2025",
    "24 de junio de 2025",
)


@pytest.mark.parametrize("written", FORMS)
def test_a_day_is_known_in_every_form(written: str):
    assert days_of(written) == (Day(2025, 6, 24),)
    assert [one.written for one in dates_in(f"It was on {written}, at noon.")] == [written]


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("1er août 2025", Day(2025, 8, 1)),
        ("3. März 2025", Day(2025, 3, 3)),
        ("Sept. 2nd, 2025", Day(2025, 9, 2)),
        ("13. Jänner 2025", Day(2025, 1, 13)),
    ],
)
def test_names_of_months_have_accents_and_are_abbreviated(written: str, day: Day):
    assert days_of(written) == (day,)


def test_of_two_numbers_that_may_both_be_the_month_both_are_tried():
    assert days_of("06/07/2025") == (Day(2025, 7, 6), Day(2025, 6, 7))
    assert days_of("06.07.2025") == (Day(2025, 7, 6),)  # with dots the day comes first


@pytest.mark.parametrize(
    "text",
    ["2024.1.2", "1.2.2025.3", "31.02.2025", "2025-13-01", "24 June", "June 2025", "Room 24, 2025"],
)
def test_versions_rooms_and_days_that_do_not_exist_are_no_dates(text: str):
    assert days_of(text) == ()
    assert [*dates_in(f"See {text} there")] == []


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize("asked", ["2025-06-24", "24.06.2025", "24/06/2025"])
def test_a_date_asked_for_in_one_form_is_held_in_another(asked: str, text: str):
    assert contains(f"The meeting of {text} was short.", asked)
    assert not contains(f"The meeting of {text} was short.", asked.replace("24", "25"))


def test_a_query_without_a_date_asks_for_nothing_more():
    assert parse("june meeting").kept == ()
    assert parse("meeting in 2025").kept == ()
    assert parse("step 3 may fail").kept == ()


@pytest.mark.parametrize("written", ["24 June", "24th of June", "June 24th", "Jun 24", "24. Juni", "24 juin"])
def test_a_day_without_a_year_is_that_of_any(written: str):
    assert [one.days for one in yearless_in(f"errors on {written}?")] == [(Day(None, 6, 24),)]


@pytest.mark.parametrize("text", ["24 June 2025", "June 24, 2025", "Mars 2 probe", "32 May"])
def test_a_year_that_follows_a_planet_and_a_day_that_no_month_has_are_no_such_days(text: str):
    assert [*yearless_in(text)] == []


def test_a_day_before_a_time_is_one_of_a_text():
    assert [one.days for one in dates_in("at 2025-06-24T10:00:03Z,")] == [(Day(2025, 6, 24),)]
    assert [*dates_in("2025-06-24Thursday")] == []


@pytest.mark.parametrize("asked", ["2025-06-24", "24.06.2025", "6/24/2025"])
def test_a_day_is_held_before_a_time(asked: str):
    assert contains("2025-06-24T10:00:03Z ERROR lost", asked)
    assert not contains("2025-06-24th of them", asked)
    assert not contains("2025-06-23T24:00:03Z ERROR lost", asked)


LOGS = {
    "Day before": "2025-06-23T10:00:03Z ERROR replica lost",
    "Day": "2025-06-24T10:00:03Z ERROR replica lost",
    "Trip": "On 6/26/2024 the replica was moved; an error.",
    "Plain": "An error of the replica has its day, of June or another month: page 24, 26 or 27.",
    **{
        f"Number {n}": f"The {n}. error of June: the replica was slow for 24 s, then 26 s." for n in range(40)
    },
}


@pytest.mark.parametrize(
    ("asked", "title"),
    [
        ("replica error 24 June 2025", "Day"),
        ("replica error 2025-06-24", "Day"),
        ("replica error 23.06.2025", "Day before"),
        ("replica error on 24 June", "Day"),
        ("replica error on June 26th", "Trip"),
    ],
)
def test_a_search_for_a_day_finds_times_of_it_and_any_year(asked: str, title: str):
    answer = search(Request(asked, mode="fts5"), tools(library(LOGS), SURE))
    assert titles(answer)[0] == title


MEETINGS = {
    "Minutes": "On 3 May 2025 we met and spoke of the harbour.",
    "Iso": "On 2025-06-24 we met, and spoke of ropes.",
    "German": "On 25. Juni 2025 we met, wegen der Seile.",
    "American": "On June 26th, 2025 we met, and spoke of anchors.",
    "Dots": "On 27.06.2025 we met, and spoke of buoys.",
    "Parted": "In 2025 we met often; on June 29 it was about sails.",
    **{f"Number {n}": f"The {n}. of the slow answers of June 2025, on page 24 to 30." for n in range(40)},
}
ALWAYS = Logistic(("cosine",), (0.0,), 3.0, (0.0,), (1.0,))
SURE = replace(fitted(answerable=0.6), hit=ALWAYS)


@pytest.mark.parametrize(
    ("day", "title"), [(24, "Iso"), (25, "German"), (26, "American"), (27, "Dots"), (29, "Parted")]
)
@pytest.mark.parametrize("form", ["2025-06-{}", "{}.06.2025", "6/{}/2025", "June {}, 2025", "{}. Juni 2025"])
def test_a_search_for_a_day_finds_it_in_another_form(form: str, day: int, title: str):
    answer = search(Request("met " + form.format(day)), tools(library(MEETINGS), SURE))
    assert (answer.answerable, answer.note) == (True, None)
    assert title == "Parted" or title in titles(answer)[:2]


@pytest.mark.parametrize("form", ["2025-06-{}", "{}.06.2025", "6/{}/2025", "June {}, 2025", "{}. Juni 2025"])
def test_a_day_that_nothing_holds_in_any_form_is_not_answered_by_another(form: str):
    asked = form.format(28)
    answer = search(Request("met " + asked), tools(library(MEETINGS), SURE))
    assert (answer.answerable, answer.note) == (False, f"nothing holds {asked}")


def test_of_many_days_that_nothing_holds_a_note_names_the_first():
    days = [f"2031-06-{day}" for day in range(10, 30)]
    answer = search(Request("met " + " ".join(days)), tools(library(MEETINGS), SURE))
    assert answer.note == f"nothing holds {', '.join(days[:8])} and 12 more"


def test_a_day_before_a_time_is_held():
    notes = {**MEETINGS, "Log": "2025-06-28T10:00:01Z we met the harbour master"}
    answer = search(Request("met 28 June 2025 harbour master"), tools(library(notes), SURE))
    assert (answer.answerable, answer.note) == (True, None)
