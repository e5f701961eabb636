"""What a pasted message has in quotes are values, of which no text knows; other quotations stay."""

from __future__ import annotations

from time import perf_counter

import pytest

from concord.ranking.messages import literal_parts, own_values, saying, with_bare_values, without_modules
from support.small_library import library, titles, understood

BOOKS = {
    "Faults": 'FATAL: database "testdb" does not exist. The database has the name of the user.',
    "Shops": "The shop is open on all days of the week, and does exist in every town.",
    "Rope": "Error handling is hard, and the connection is reset.",
}


@pytest.mark.parametrize(
    ("message", "bare"),
    [
        ('FATAL: database "shop" does not exist', "FATAL: database 'shop' does not exist"),
        ("ERROR: could not open “a b” for reading", "ERROR: could not open 'a b' for reading"),
        ('main.c:12:5: unknown type name "size"', "main.c:12:5: unknown type name 'size'"),
        ('ValueError: invalid literal for int: "x"', "ValueError: invalid literal for int: 'x'"),
        ('Exception in thread "main" java.lang.Error', "Exception in thread 'main' java.lang.Error"),
        ('ERROR: no lock "it\'s" was found', "ERROR: no lock it's was found"),
        ('no entry for host "a", user "b" [ERROR]', "no entry for host 'a', user 'b' [ERROR]"),
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


def test_a_message_that_a_terminal_has_coloured_is_read_as_it_was_shown():
    shown = "FATAL: database does not exist"
    with library(BOOKS) as kb:
        query = understood(kb, "\x1b[1;31mFATAL\x1b[0m: data\x08base does \x1b[4mnot\x1b[24m exist\x07")
        assert query == understood(kb, shown)


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
        ("cannot access ‘hat’: no such file", ["cannot access", "no such file"]),
        ('relation "hats" does not exist', ["relation", "does not exist"]),
        ("thread 'main' panicked at 'no entry found for key', src/main.rs:4:5", ["no entry found for key"]),
        (
            "thread 'tokio-1' (712) panicked at src/main.rs:4:5:\nno entry found for key\nnote: run with "
            "`RUST_BACKTRACE=1`",
            ["no entry found for key"],
        ),
        ("Exception in thread 'main' IOException: no lock was found", ["no lock was found"]),
        ("Uncaught (in promise) TypeError: hats is not a function", ["hats is not a function"]),
        ("is not bound to anything", []),
        ("timed out after 30.00", []),
        ("how do I retry a failed task?", []),
        ("the 'hat' of 'ann' and 'bob' in `shop`", []),
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


@pytest.mark.parametrize(
    ("message", "text", "is_said"),
    [
        (
            "Waited 45 seconds for 'orders' to end",
            'f"Waited {limit} seconds for {self.table!r} to end"',
            True,
        ),
        ("Waited 45 seconds for the lock", '"Waited {0} seconds "\n    "for the lock"', True),
        ("Waited 45 seconds for the lock", "Waited %1 seconds for the lock", True),
        ("Waited 45 seconds for the lock", "Waited 45 seconds for the lock", True),
        ("Waited 45 seconds for the lock", "Waited 30 seconds for the lock", False),
        ("How many hats were sold in 2024?", "How many hats were sold in 2021?", False),
        ("How many hats were sold in 2024?", "In 2024 we asked: how many hats were sold in {year}?", True),
        ('relation "hats" does not exist', 'ERROR: relation "shoes" does not exist.', True),
        ('relation "hats" does not exist', 'printf("relation %s does not exist")', True),
        ('the "thread pool" size affects latency', "The connection pool size affects latency.", False),
        ("5012 is the code of no lock", "5011 is the code of no lock", False),
        ("port 80 on host 'a' for user 5", "For user a the port is taken by a process on host b.", False),
    ],
)
def test_a_text_says_a_message_in_its_order_and_with_no_other_numbers(message: str, text: str, is_said: bool):
    says = saying(message)
    assert says is not None
    assert says(text) is is_said


def test_what_is_told_of_another_number_is_no_exact_match():
    texts = {"Start": "Error code 5011 when starting the server: its port is taken.", **BOOKS}
    with library(texts) as kb:
        asked = "error code {} when starting the server"
        told, other = (kb.search(asked.format(code)).hits[0] for code in (5011, 5012))
        assert (told.confidence, told.document.title) == ("very_high", "Start")
        assert (other.confidence, other.document.title) == ("high", "Start")


@pytest.mark.parametrize("head", ["", "ERROR: "])
def test_a_message_with_a_value_in_double_quotes_finds_what_says_it_of_another(head: str):
    texts = {
        "Paths": 'relation "shoes" does not exist: the search_path is wrong.',
        "Hats": "Hats of all hats: a hat is related to hats. Hats exist, hats do not.",
        **{f"Order {at}": f"Order {at} does not have a table: it does exist elsewhere." for at in range(6)},
    }
    with library(texts) as kb:
        assert titles(kb.search(f'{head}relation "hats" does not exist'))[0] == "Paths"


def test_what_a_question_quotes_is_found_before_what_says_the_rest_of_something_else_in_quotes():
    texts = {
        "Retries": "How to set the 'retries' of the server. Every client counts 'retries' of the server.",
        "Timeout": "The request timeout of the server is set in its file; thirty seconds are usual.",
    }
    with library(texts) as kb:
        assert titles(kb.search('how to set the "request timeout" of the server'))[0] == "Timeout"


def test_what_a_user_quotes_is_found_before_what_says_the_rest_around_another_word():
    texts = {
        "Connections": "How does connection pool size affect latency? Not at all.",
        "Threads": "The size of a thread pool can affect the latency of all requests.",
    }
    with library(texts) as kb:
        assert titles(kb.search('how does "thread pool" size affect latency'))[0] == "Threads"


@pytest.mark.parametrize("ruler", ["=", "'", "`", '"', "“", "()", "1,", "a 1 ", "-"])
def test_a_message_with_a_long_ruler_takes_no_longer_than_another(ruler: str):
    began = perf_counter()
    with_bare_values(f"ERROR: no lock 5 was found {ruler * 9000}")
    says = saying(f"no lock 5 was found {ruler * 9000}")
    assert not (says and says(ruler * 9000))
    assert perf_counter() - began < 2.0


UUID = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Error: listen EADDRINUSE: address already in use 0.0.0.0:3000", {"0.0.0.0:3000"}),
        ("ssh: connect to host 10.1.2.3 port 22: Connection refused", {"10.1.2.3"}),
        (f"ERROR: job {UUID}: the queue is closed already.", {UUID}),
        ("ERROR: no route from 10.1.2.3 to 10.1.2.4.", {"10.1.2.3", "10.1.2.4"}),
        ("10.1.2.3", set()),
        ("which host has the address 10.1.2.3", set()),
        ("error: 10.1.2.3", set()),  # hardly a word beside it
        ("why ERROR: cannot connect to host 10.1.2.3?", set()),  # asked about
        ("ERROR: curl 8.11.1.2.3 is not the release of the store", set()),
    ],
)
def test_addresses_and_ids_in_a_message_are_of_whoever_met_it(text: str, own: set[str]):
    assert own_values(text) == own


def test_a_message_is_not_said_to_be_missing_for_the_address_in_it():
    hosts = {"Hosts": "The gateway is 10.1.2.3, the printer 10.1.2.4.", "In use": "address already in use"}
    shelf = library(hosts)
    assert shelf.search("10.9.9.9", mode="fts5").note == "nothing holds 10.9.9.9"
    answer = shelf.search("Error: listen EADDRINUSE: address already in use 10.9.9.9:80", mode="fts5")
    assert titles(answer)[0] == "In use"
    assert "nothing holds" not in (answer.note or "")
