"""Words that may be names and stand nowhere: which they are, and what they take from an answer."""

from __future__ import annotations

import pytest

from concord.ranking.absent_names import absent_names
from concord.search import search
from concord.text.query_language import parse
from concord.types import Filter, Query, Request
from support.small_library import fitted, library, titles, tools

TEXT = "The mills of Berlin grind. A dictionary of knots hangs by the open door, and the working day ends."
ORDINARY = {"customers", "ascribed", "paris", "besides", "jumping", "mysql", "semantic", "what", "is"}

NOTES = {
    "Customers in Berlin": "Our customers in Berlin are bakeries and hotels. They order before six.",
    "Reset the router": "To reset the Zyxel router hold its button for ten seconds, then set a password.",
    "PostgreSQL upgrade plan": "The upgrade plan for PostgreSQL: back up, upgrade the replica, switch over.",
    "Coffee": "The coffee machine is descaled each month. Tablets are in the drawer.",
    "Holiday": "Employees have thirty days of holiday. Requests go to the team lead.",
    "Printer": "The printer on the second floor prints on both sides. Toner is ordered at the desk.",
    "Backup": "Backups run every night and are kept for a month. A restore is tested each quarter.",
    "Travel": "Trains are booked in second class. Receipts are handed in within a month.",
    "Onboarding": "On the first day new colleagues get a laptop, a badge and an account.",
    "Cache": "Product pages are cached for ten minutes. Each write makes them anew.",
}


def asked(text: str, *known: str) -> Query:
    """Return a query of which the index holds some words."""
    read = parse(text)
    held = {word: int(word.casefold() in known) for word in read.words}
    return Query(
        text,
        read.terms,
        read.phrases,
        read.excluded,
        read.exact,
        read.loose,
        limit=10,
        candidates=40,
        filter=Filter(),
        words=read.words,
        frequencies=held,
        chunks=100,
    )


def found(text: str, *known: str) -> list[str]:
    return absent_names(asked(text, *known), [TEXT], ORDINARY.__contains__)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("which mills are in Paris", "Paris"),
        ("which mills use kowalczyk stones", "kowalczyk"),
        ("MySQL for mills", "MySQL"),
        ("mills with OpenWorking", "OpenWorking"),  # though open and working are there
    ],
)
def test_a_word_that_may_be_a_name_and_stands_nowhere_is_told(query: str, word: str):
    assert word in found(query, "mills", "which", "stones", "use")


@pytest.mark.parametrize(
    "query",
    [
        "which mills are in Berlin",  # which is there
        "which mills are ascribed to knots",  # just another word
        "Besides mills, which knots",  # with the capital of a sentence
        "Mills Paris Knots",  # where capitals tell nothing
        "dictionnary of mills",  # mistyped
        "the workingday of mills",  # two words
        "the mills of Ber-lin",  # spelt otherwise
    ],
)
def test_no_word_is_told_that_is_ordinary_or_stands_there_in_another_spelling(query: str):
    assert found(query, "mills", "which", "berlin", "knots", "dictionary", "day", "ber", "lin") == []


@pytest.mark.model
@pytest.mark.parametrize(
    ("there", "nowhere"),
    [
        ("customers in Berlin", "customers in Paris"),
        ("reset the router", "reset the Fritzbox"),
        ("upgrade plan for PostgreSQL", "upgrade plan for MongoDB"),
    ],
)
def test_a_name_in_the_place_of_another_is_not_answered_by_that_other(there: str, nowhere: str):
    with library(NOTES, embed__provider="bundled") as kb:
        held, absent = kb.search(there), kb.search(nowhere)
    assert titles(held)[0] == titles(absent)[0]
    assert (held.answerable, absent.answerable) == (True, False)
    assert absent.hits[0].score < 0.75 * held.hits[0].score


@pytest.mark.model
def test_where_the_model_reads_every_language_no_word_is_told():
    with library(NOTES, embed__provider="bundled") as kb:
        every = fitted(answerable=0.4)
        english = search(Request("customers in Paris"), tools(kb, every))
    assert english.answerable
