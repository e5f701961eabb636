"""However a query goes on, each further word of it costs about as much as those before."""

from __future__ import annotations

from time import process_time

import pytest

from concord import KnowledgeBase
from support.small_library import library

FEW, MANY = 1000, 4000  # characters
# By so much may the work grow with four times the length: it would grow 16 times, if each part of a query was
# compared with every other. Below the least time, most of it does not depend on the length.
AT_MOST, LEAST_S = 10, 0.05
BEGINNINGS = (
    "where is {} set",
    "ERROR: no lock {} was found",
    "default {}",
    '"{}',
    "{}",
    "what does -{} mean?",
    "thread 'main' panicked at src/main.rs:4:5: {}x",
    "thread 'main' panicked at '{}', src/main.rs:4:5",
    "where is the {} class defined in celery",
    "ADR {}",
)
REPEATED = [
    *("a.", "a::", "A1.", "1 ", "10 the ", "May 10 ", "v1.2 ", "release 3 ", "2024-", "Q1 ", "x.py:", "--a "),
    *(
        "-a ",
        "a=",
        "_",
        "a_",
        "aB",
        '"',
        '"a" ',
        "'",
        "`a` ",
        "(",
        "a(",
        "[a] ",
        "{",
        "<",
        "*",
        "a* ",
        "AND ",
    ),
    *(
        "NOT a ",
        "a OR ",
        "/a",
        "\\",
        "|",
        " ",
        "\n",
        "?",
        "é",
        "ß",
        "漢",
        "かな",
        "ก",
        "का ",
        "가 ",
        "а",
        "\xad",
    ),
    *("a\u0301", "error: ", "File ", "line 3, ", "the ", "http://a/"),
]


@pytest.fixture(scope="module")
def kb() -> KnowledgeBase:
    texts = {
        f"Lock {n}.0": f"PostgreSQL {n} has release {n}.0 of May {n}: lock_{n} = {n}, `-a`, a.b."
        for n in range(1, 20)
    }
    return library(texts)


def work(kb: KnowledgeBase, query: str) -> float:
    began = process_time()
    kb.search(query, mode="fts5")
    return process_time() - began


def grows_too_much(kb: KnowledgeBase, beginning: str, repeated: str) -> bool:
    few, many = (beginning.format(repeated * (length // len(repeated))) for length in (FEW, MANY))
    work(kb, few)  # what is loaded or compiled at first use
    return work(kb, many) > max(LEAST_S, AT_MOST * work(kb, few))


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_query_four_times_as_long_takes_some_four_times_as_long(kb: KnowledgeBase, beginning: str):
    suspects = [one for one in REPEATED if grows_too_much(kb, beginning, one)]
    # On a busy machine a single measurement may be anything.
    assert [one for one in suspects if all(grows_too_much(kb, beginning, one) for _ in range(3))] == []
