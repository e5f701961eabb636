"""Queries and the type of each, trap by trap, and the names found in them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.search.blend import WEIGHTS
from concord.search.classify import READ_CHARS, classify, entities, is_sure_name
from concord.types import QueryType

TYPES: dict[QueryType, str] = {
    "exact_quote": """
        "not a conventional company" · "error: connection refused" nginx · find "exact phrase" here
        „deutsche Anführungszeichen“ suchen · « liberté, égalité, fraternité » devise
        「吾輩は猫である」の作者
        『哈利波特』作者 · "Oak Ridge" history · how does "graceful shutdown" work · "one" and "two"
        ("in parentheses") · print("hello") · "don't panic" · what is “质” in Chinese
    """,
    "entity": """
        386DX33 · 386 · Oak Ridge · a.b.c · .gitignore · J.R.R. Tolkien books · Oak Ridge laboratories
        the Manhattan Project · Ada Lovelace biography · What did Newcastle University win
        Jean-Paul Sartre · Dr. Strangelove ending · IBM Watson · REST API Design · GitHub Actions cache
        New York · New York City · New Zealand · New Orleans jazz festival · Best Buy return policy
        Top Gun · Good Morning America · Ørsted Łódź · Wann wurde Albert Einstein geboren · 42 · 3.14
        1,024 · intel 386 · how to fix error 404 · HTTP 500 · PEP 8 · #1234 · Windows 11 upgrade
        Boeing 747 · what is CVE-2024-1234 · JIRA-1234 · 0x80070057
        550e8400-e29b-41d4-a716-446655440000 · 127.0.0.1:8080 · MAX_RETRIES · _private_field
        how does get_user_name work · how does getUserName work · parseHTMLPage · HTTPServer timeout
        numpy.array shape · std::vector · print() · @dataclass · --no-embed · .env.local
        README.md badge · src/concord/types.py · /etc/hosts · C:\\Windows\\System32
        https://example.com/a?b=c · someone@example.com · v2.1 · 1.2.3 · 2.0-beta · foo-bar_v2.1
        python 3.11.10 · mp3 player · COVID-19 symptoms · s3 bucket policy · vitamin B12 deficiency
    """,
    "conceptual": """
        how does auth work · how does authentication work · HOW TO RESET PASSWORD · how-to guides
        what's new · What is Python · what is .NET · when does the course begin · Where are the logs
        who maintains this · whose responsibility is it · is it possible to roll back
        does the cache expire · qué es kubernetes · Wie funktioniert die Anmeldung
        Pourquoi le serveur ne démarre pas · Como funciona a autenticação · Как работает аутентификация
        认证是如何工作的 · 認証はどのように動作しますか · 인증은 어떻게 작동합니까
        كيف تعمل المصادقة · Explain Docker
        please describe the deployment · understanding closures · concept of ownership
        differences between threads and processes · Compare Rust and Go
        comparison of sorting algorithms · docker versus podman · Unterschied zwischen Docker und Podman
        différence entre TCP et UDP · how do 1000 threads affect memory · what happened in 1984
        how many of the 300 employees left · "how does it work
    """,
    "factual": """
        revenue 2024 · Revenue 2024 · price of bitcoin · cost per request · salary bands
        population of France · world cup 1998 · music of the 90s · meeting notes 2024-01-15 · 2024-01-15
        01/15/2024 · January 15, 2024 · Q3 2024 · FY24 plan · 2020-2024 roadmap · latest version
        version 2.1 · release notes · 5 GB memory · 10kg dumbbell · 100ms budget · 20% discount
        $100 gift · 565 °C · 3.5 inch floppy · growth of 3.5 percent · 5 years experience · 2024年收入
        苹果公司的价格 · prix du billet
    """,
    "exploratory": """
        machine learning · authentication · kubernetes networking · Python · C++ templates · C# generics
        .NET · macOS shortcuts · miRNAs in plants · 'single quotes' · it's complicated
        unbalanced quote" · 5" disk and 3" disk · " " · OAK RIDGE · NASA · NASA budgeting · The server
        Install the Docker daemon · The Art of Computer Programming · Introduction to python
        I like Rust. Python too · Die API · NEW YORK · Das Passwort zurücksetzen · inicio de sesión
        機械学習 · 哪吒 · whatsapp groups · whoever wins · misunderstanding · vscode · Will Docker help
        Best practices for Python · comment syntax in yaml · foo-bar · TCP/IP · e.g. caching
        Ph.D. thesis · Chapter 3 summary · 3rd party webhook · 5G network · APIs · rate limiting · a · ?
    """,
}
ROWS = [
    (query.strip(), type)
    for type, block in TYPES.items()
    for line in block.strip().splitlines()
    for query in line.split(" · ")
]


@pytest.mark.promise("003.classify.types", "000.classify.patterns", "B.classify.table")
@pytest.mark.parametrize(("query", "type"), ROWS)
def test_a_query_is_of_its_type(query: str, type: str):
    assert classify(query) == type


@pytest.mark.promise("B.classify.table")
def test_the_table_of_types_is_long_and_says_each_query_once():
    assert len(ROWS) >= 150
    assert len({query for query, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\x00", "\ufeff", "\u200b", "…"])
def test_a_query_of_nothing_is_exploratory_and_holds_no_name(query: str):
    assert classify(query) == "exploratory"
    assert entities(query) == ()


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Oak Ridge laboratories", ("Oak Ridge",)),
        ("What sea bordered Genghis Khan's empire", ("Genghis Khan",)),
        ('"Oak Ridge" history', ("Oak Ridge",)),
        ("machine learning", ()),
        ("New York City", ("New York City",)),
        ("What Will Change", ()),
        ("New features in New York", ("New York",)),
        ("386", ("386",)),
    ],
)
@pytest.mark.promise("003.classify.entities")
def test_names_are_taken_out_of_a_query(query: str, names: tuple[str, ...]):
    assert entities(query) == names


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_text_is_of_some_type_and_no_entity_in_it_is_empty(text: str):
    assert classify(text) in WEIGHTS
    assert all(name for name in entities(text))


@settings(max_examples=100)
@given(st.text(alphabet="aA1_.-\"'“«/ ?(:@#中", max_size=40))
def test_a_query_with_a_name_is_of_type_entity_unless_it_is_quoted(text: str):
    assert (classify(text) in {"entity", "exact_quote"}) or entities(text) == ()


UNITS = [
    "a", "A", "1", "_", ".", '"', "“", "«", "a.", "a-", "a_", "Aa ", "/a", "A-1", "@a", "a::", "什么",
    "AB-11",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_a_hundred_kilobytes_are_judged_by_their_beginning(unit: str):
    text = unit * (100_000 // len(unit))
    assert classify(text) == classify(text[:READ_CHARS])
    assert entities(text) == entities(text[:READ_CHARS])


@pytest.mark.parametrize("unit", UNITS)
def test_no_pattern_explodes_on_one_word_of_a_hundred_kilobytes(unit: str):
    word = unit.strip() * (100_000 // len(unit))
    assert is_sure_name(word) in {True, False}  # a quadratic pattern would keep us here for minutes
