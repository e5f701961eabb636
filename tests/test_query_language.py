"""What is typed becomes an exact and a loose question, and no text is an error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.query_language import MAX_TERMS, parse, prune
from concord.text.terms import searched
from concord.text.tokens import tokenize
from support.fts5 import finds, leaves, shown

_PIECES = """
    the cat dogs "big dogs" AND OR NOT and ( ) (( )) -cat -"a b" - -- cat* * " “ ” “q w” C++ don't foo-bar
    getUserName 猫 北京大学 使用Python 👍 🤖 -(a f(x) :) ... a\u0301 ｆｕｌｌ
"""
PIECES = st.sampled_from([*_PIECES.split(), "\0", "\ud800", "\u0301", "\t", "\n"])
WILD = st.one_of(
    st.text(max_size=80),
    st.binary(max_size=80).map(lambda data: data.decode("utf-8", "surrogateescape")),
    st.lists(PIECES, max_size=14).map(" ".join),
    st.lists(PIECES, max_size=14).map("".join),
)
WORDS = """
cats                            cats                          cats
how does authentication work?   (authentication & work)       (authentication | work)
the who                         (the & who)                   (the | who)
cats cats Cats                  (cats & Cats)                 (cats | Cats)
"exact phrase"                  "exact phrase"                ("exact phrase" | exact | phrase)
"to be or not to be"            "to be or not to be"          "to be or not to be"
“curly quotes” cats             (cats & "curly quotes")       ("curly quotes" | cats | curly | quotes)
key="some value"                (key & "some value")          ("some value" | key | value)
„Model C“-Schulen               (Schulen & "Model C")         ("Model C" | Schulen | Model | C)
C# .NET                         ((C | csharp) & NET)          (C | csharp | NET)
don't panic                     panic                         panic
state-of-the-art                "state of the art"            (state | art)
getUserName                     (getUserName | "get user name")  (getUserName | get | user | name)
2.1                             "2 1"                         ("2 1" | 2 | 1)
**bold** text                   (bold & text)                 (bold | text)
北京大学                        "北京 京大 大学"              (北京 | 京大 | 大学)
使用Python编程                  (使用 & Python & 编程)        (使用 | Python | 编程)
--verbose flag                  (verbose & flag)              (verbose | flag)
cafe\u0301                      café                          café
foo\0bar\ud800baz               (foo & bar & baz)             (foo | bar | baz)
"""
OPERATORS = """
cats AND dogs               (cats & dogs)                 (cats | dogs)
cats OR dogs                (cats | dogs)                 (cats | dogs)
cats NOT dogs               (cats − dogs)                 (cats − dogs)            dogs
cats AND NOT dogs           (cats − dogs)                 (cats − dogs)            dogs
cats -dogs                  (cats − dogs)                 (cats − dogs)            dogs
cats AND -dogs              (cats − dogs)                 (cats − dogs)            dogs
cats -“big dogs”            (cats − "big dogs")           (cats − "big dogs")      big dogs
cats -dogs -birds           (cats − (dogs | birds))       (cats − (dogs | birds))  dogs,birds
cats -(dogs OR birds)       (cats − (dogs | birds))       (cats − (dogs | birds))  dogs,birds
cats NOT (dogs AND birds)   (cats − (dogs & birds))       (cats − (dogs & birds))
cats -dog*                  (cats − dog*)                 (cats − dog*)            dog*
cat* food                   (cat* & food)                 (cat* | food)
cats dogs OR birds          ((cats & dogs) | birds)       (cats | dogs | birds)
(cats OR dogs) AND food     ((cats | dogs) & food)        (cats | dogs | food)
(cats -dogs) food           ((cats − dogs) & food)        ((cats | food) − dogs)   dogs
(cats -dogs) OR birds       ((cats − dogs) | birds)       (cats | birds)
the AND cat                 cat                           cat
how to feed cats -dogs      ((feed & cats) − dogs)        ((feed | cats) − dogs)   dogs
in OR out                   (in | out)                    (in | out)
C++ -C#                     ((C | cplusplus) − csharp)    ((C | cplusplus) − csharp)  C#
f(x) -yes                   ("f x" − yes)                 ((f | x) − yes)          yes
猫 NOT 狗                   (猫* − 狗*)                   (猫* − 狗*)              狗
"""
NO_EXPRESSIONS = """
cats AND                            cats
AND cats                            cats
OR                                  OR
cats AND AND dogs                   (cats & dogs)
cats AND (dogs                      (cats & dogs)
cats) AND dogs                      (cats & dogs)
cats AND ()                         cats
"unbalanced cats                    (unbalanced & cats)
5" pipe                             (5 & pipe)
-cats                               cats
NOT cats                            cats
cats OR -dogs                       (cats & dogs)
cats NOT NOT dogs                   (cats & dogs)
FILE NOT FOUND                      (FILE & FOUND)
create table IF NOT EXISTS          (create & table & IF & EXISTS)
what is AND and OR ?                (what & is & AND & and & OR)
git commit -m                       (git & commit & m)
exit code -1                        (exit & code & 1)
below -3.5 degrees                  ("3 5" & degrees)
"""


def rows(table: str) -> list[list[str]]:
    """Return the cells of a table, which stand two spaces apart."""
    return [[cell.strip() for cell in row.split("  ") if cell] for row in table.strip().split("\n")]


@pytest.mark.parametrize(("query", "exact", "loose"), rows(WORDS))
def test_words_and_phrases_are_all_wanted_or_any(query: str, exact: str, loose: str):
    parsed = parse(query)
    assert (shown(parsed.exact), shown(parsed.loose)) == (exact, loose)


@pytest.mark.promise("000.lexical.boolean")
@pytest.mark.parametrize("row", rows(OPERATORS), ids=lambda row: row[0])
def test_operators_make_an_expression(row: list[str]):
    query, exact, loose, *excluded = row
    parsed = parse(query)
    assert (shown(parsed.exact), shown(parsed.loose)) == (exact, loose)
    assert parsed.excluded == tuple(text for cell in excluded for text in cell.split(","))


@pytest.mark.parametrize(
    ("query", "exact"), [*rows(NO_EXPRESSIONS), ("(" * 40 + "cats OR dogs" + ")" * 40, "(cats & dogs)")]
)
def test_an_expression_that_does_not_parse_is_read_as_words(query: str, exact: str):
    parsed = parse(query)
    assert (shown(parsed.exact), parsed.excluded) == (exact, ())


@pytest.mark.parametrize("query", ["", " ", "-", "(((", "!?", '""', '"..."', "👍", "\0", "\ud800", "() ()"])
def test_a_query_without_letter_or_digit_asks_for_nothing(query: str):
    parsed = parse(query)
    assert (parsed.exact, parsed.loose, parsed.terms, parsed.phrases) == (None, None, (), ())
    assert prune(parsed, lambda _: True) is None


def test_a_query_that_only_excludes_says_so():
    only = ["-cats", "NOT cats", '-"big cats" -dogs', "-(cats OR dogs)", "birds OR -cats"]
    others = ["birds -cats", "cats AND", "--cats", "-c", "NOT"]
    assert [parse(query).nothing_wanted for query in (*only, *others)] == [True] * 5 + [False] * 5


def test_terms_are_as_typed_without_stop_words_operators_and_punctuation():
    parsed = parse('What is the "Big Bang" in C++, .NET (or foo-bar)? -telescope gala*')
    assert parsed.terms == ("C++", ".NET", "foo-bar", "gala")
    assert (parsed.phrases, parsed.excluded) == (("Big Bang",), ("telescope",))


@pytest.mark.promise("001.fts.escaped", "B.lexical.pruning")
@given(WILD, st.sets(st.sampled_from(["cat", "dogs", "foo", "猫", "C"])))
@settings(max_examples=400)
def test_any_text_is_a_query_that_fts5_can_run(text: str, kept: set[str]):
    parsed = parse(text)
    pruned = prune(parsed, kept.__contains__)
    is_empty = not parsed.terms and not parsed.phrases
    assert (parsed.exact is None) == (parsed.loose is None) == (pruned is None) == is_empty
    assert set(leaves(pruned)) <= set(leaves(parsed.loose))
    assert not any(finds(match, "") for match in (parsed.exact, parsed.loose, pruned))
    assert all(len(tokenize(word)) == 1 for word in parsed.words)


@pytest.mark.parametrize(
    "text",
    [
        "word " * 20_000,
        "a" + "\u0301\u0323" * 50_000,
        "-" * 100_000,
        "getUserName" * 10_000,
        "“" * 50_000 + "”" * 50_000,
    ],
    ids=lambda text: text[:8],
)
def test_a_huge_query_asks_for_a_bounded_number_of_things(text: str):
    parsed = parse(text)
    assert max(len(parsed.terms), len(parsed.words)) <= MAX_TERMS
    assert max(len(leaves(parsed.exact)), len(leaves(parsed.loose))) <= 4 * MAX_TERMS


@pytest.mark.promise("B.lexical.pruning")
@pytest.mark.parametrize(
    ("query", "frequent", "pruned"),
    [
        ('common rare "common phrase" -dogs', {"common"}, '(("common phrase" | rare | phrase) − dogs)'),
        ("common frequent", {"common", "frequent"}, "(common | frequent)"),
        ('"to be" auth* rare', {"rare"}, '("to be" | auth*)'),
    ],
)
def test_frequent_words_are_pruned_from_the_loose_match_unless_nothing_is_left(
    query: str, frequent: set[str], pruned: str
):
    parsed = parse(query)
    assert shown(prune(parsed, lambda word: word not in frequent)) == pruned
    assert frequent <= {word for leaf in leaves(parsed.exact) for word in leaf.text.split()}


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("changes in coreutils v8.32", ["v8 32", "v 8 32", "8 32"]),
        ("add_bytes|put_int(x) from __main__ with getName", ["add bytes", "put int"]),
        ("is crdb-a1, or us-east-1b, down? LH-2188", ["crdb a1", "us east 1b", "LH 2188"]),
        ("a twenty-year plan, 20-year, log-, -3 and a--3", []),
        ("keep state-of-the-art e.g. node.js and/or PostgreSQL up to date", []),
    ],
)
def test_versions_and_names_are_looked_for_as_a_whole_besides_their_parts(query: str, whole: list[str]):
    parsed = parse(query)
    assert [text for match in parsed.kept for text in searched(match)] == whole
    assert {word for text in whole[-1:] for word in text.split()} <= set(parsed.words)
