"""What a pasted message has in quotes are values, of which no text knows; other quotations stay."""

from __future__ import annotations

import pytest

from concord.ranking.messages import literal_parts, with_bare_values, without_modules
from support.small_library import library, titles, understood

BOOKS = {
    "Faults": 'FATAL: database "testdb" does not exist. The database has the name of the user.',
    "Shops": "The shop is open on all days of the week, and does exist in every town.",
    "Rope": "Error handling is hard, and the connection is reset.",
}


@pytest.mark.parametrize(
    ("message", "bare"),
    [
        ('FATAL: database "shop" does not exist', "FATAL: database shop does not exist"),
        ("ERROR: could not open “a b” for reading", "ERROR: could not open a b for reading"),
        ('main.c:12:5: unknown type name "size"', "main.c:12:5: unknown type name size"),
        ('ValueError: invalid literal for int: "x"', "ValueError: invalid literal for int: x"),
        ('Exception in thread "main" java.lang.Error', "Exception in thread main java.lang.Error"),
        ('no entry for host "a", user "b" [ERROR]', "no entry for host a, user b [ERROR]"),
    ],
)
def test_the_values_of_a_message_are_words(message: str, bare: str):
    assert with_bare_values(message) == bare


@pytest.mark.parametrize(
    "query",
    [
        'error "connection reset"',
        'what does error: "connection reset by peer" mean',  # as many words within
        'who has said that "error handling is hard"',
        'which exception has "no such file" as its text',
        'KeyError: "the config of the lamp is missing"',
        'ERROR: all that is broken -"shop"',
        'a warning: the 5" disk is full today',
        "FATAL: database shop does not exist",
    ],
)
def test_other_queries_keep_their_quotations(query: str):
    assert with_bare_values(query) == query


def test_a_message_is_found_and_vouched_for_whatever_its_values_are():
    with library(BOOKS) as kb:
        query = understood(kb, 'FATAL: database "shop" does not exist')
        answer = kb.search('FATAL: database "shop" does not exist')
        assert (query.phrases, query.kind == "exact_quote") == ((), False)
        assert (titles(answer)[0], answer.note) == ("Faults", None)
        assert understood(kb, 'error "connection reset"').phrases == ("connection reset",)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("paramiko.ssh_exception.SSHException: No session", "SSHException: No session"),
        ("java.lang.IllegalStateException: closed", "IllegalStateException: closed"),
        (
            "at 10:00 django.db.utils.OperationalError: no such table",
            "at 10:00 OperationalError: no such table",
        ),
        ("ValueError: bad value", "ValueError: bad value"),
        ("what is os.path.join: a function", "what is os.path.join: a function"),
        ("django.db.utils.OperationalError", "django.db.utils.OperationalError"),
    ],
)
def test_the_exception_of_a_message_is_called_as_where_it_is_raised(typed: str, read: str):
    assert without_modules(typed) == read


def test_a_message_with_the_module_of_its_exception_finds_what_raises_it():
    shelf = library(
        {
            "channel": 'if closed:\n    raise SSHException("No existing session")',
            "ssh_exception": "class SSHException of paramiko.ssh_exception: paramiko, ssh, exception.",
        }
    )
    answer = shelf.search("paramiko.ssh_exception.SSHException: No existing session", mode="fts5")
    assert titles(answer)[0] == "channel"


def test_a_list_of_many_releases_is_no_question_about_one_of_them():
    pasted = " ".join(f"release 3.{n}.7" for n in range(2000))
    assert library(BOOKS).search(pasted, mode="fts5").hits == ()


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("Received unregistered task of type 'shop.pay'.", ["Received unregistered task of type"]),
        ("NotSupported: Response content isn't text", ["Response content isn't text"]),
        ("limit of size 5 overflow 10 reached", ["limit of size", "overflow", "reached"]),
        ("[worker-1] ERROR: no lock /run/a/b.pid was found", ["no lock", "was found"]),
        ("Parent <User at 0x7f> is not bound to `s`", ["Parent", "is not bound to"]),
        ("is not bound to anything", []),
        ("timed out after 30.00", []),
        ("how do I retry a failed task?", []),
    ],
)
def test_a_message_is_what_it_says_around_its_values(message: str, parts: list[str]):
    assert literal_parts(message) == tuple(parts)


def test_what_says_a_message_but_for_its_values_comes_first_and_is_no_guess():
    log = f"It told: received unregistered order of kind %s. {'Hats are sold. ' * 40}"
    order = "Shop order {}: registered, once unregistered. Its kind was received by each shop.order here."
    with library({"Log": log, **{f"Order {at}": order.format(at) for at in range(6)}}) as kb:
        answer = kb.search("Received unregistered order of kind 'shop.order.registered'")
        assert titles(answer)[0] == "Log"
        assert answer.hits[0].confidence != "low"
