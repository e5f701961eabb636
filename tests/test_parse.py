"""What is typed becomes an exact and a loose question, and no text is an error."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.backends.sqlite.match import to_match
from concord.text.held import contains
from concord.text.query_language import MAX_NAMES, MAX_TERMS, dashed, parse, prune
from concord.text.terms import index_terms, phrase_match, sought, word_match
from concord.text.tokens import tokenize
from concord.types import AllOf, AnyOf, Match, Phrase, Without, Word

_PIECES = """
    the cat dogs "big dogs" AND OR NOT and ( ) (( )) -cat -"a b" - -- cat* * " “ ” “q w” C++ don't foo-bar
    getUserName 猫 北京大学 使用Python 👍 🤖 -(a f(x) :) ... a\u0301 ｆｕｌｌ
"""
PIECES = st.sampled_from([*_PIECES.split(), "\0", "\ud800", "\u0301", "\t", "\n"])
WILD = st.one_of(
    st.text(max_size=80),
    st.lists(PIECES, max_size=14).map(" ".join),
    st.lists(PIECES, max_size=14).map("".join),
)


def shown(match: Match | None) -> str:
    """A match as people write it: & for all, | for any, − for without."""
    if match is None:
        return ""
    if isinstance(match, Word):
        return match.text + "*" * match.prefix
    if isinstance(match, Phrase):
        return f'"{match.text}"'
    if isinstance(match, Without):
        return f"({shown(match.keep)} − {shown(match.drop)})"
    return "(" + (" & " if isinstance(match, AllOf) else " | ").join(map(shown, match.parts)) + ")"


def words_in(match: Match | None) -> set[str]:
    if match is None:
        return set()
    if isinstance(match, Word | Phrase):
        return {match.text}
    parts = (match.keep,) if isinstance(match, Without) else match.parts
    return set().union(*map(words_in, parts))


def size(match: Match | None) -> int:
    if match is None or isinstance(match, Word | Phrase):
        return 1
    parts = (match.keep, match.drop) if isinstance(match, Without) else match.parts
    return 1 + sum(map(size, parts))


@pytest.mark.parametrize(
    ("query", "exact", "loose"),
    [
        ("cats", "cats", "cats"),
        ("how does authentication work?", "(authentication & work)", "(authentication | work)"),
        ("the who", "(the & who)", "(the | who)"),
        ("to be", "(to & be)", "(to | be)"),
        ("cats cats Cats", "(cats & Cats)", "(cats | Cats)"),
        ('"exact phrase"', '"exact phrase"', '("exact phrase" | exact | phrase)'),
        ('"to be or not to be"', '"to be or not to be"', '"to be or not to be"'),
        ("“curly quotes” cats", '(cats & "curly quotes")', '("curly quotes" | cats | curly | quotes)'),
        ("„deutsche Anführung“", '"deutsche Anführung"', '("deutsche Anführung" | deutsche | Anführung)'),
        ('"word"', "word", "word"),
        ('key="some value"', '(key & "some value")', '("some value" | key | value)'),
        ("C++", "(C | cplusplus)", "(C | cplusplus)"),
        ("C# .NET", "((C | csharp) & NET)", "(C | csharp | NET)"),
        ("don't panic", "panic", "panic"),
        ("rock'n'roll", '"rock n roll"', "(rock | n | roll)"),
        ("foo-bar", '"foo bar"', "(foo | bar)"),
        ("state-of-the-art", '"state of the art"', "(state | art)"),
        ("getUserName", '(getUserName | "get user name")', "(getUserName | get | user | name)"),
        ("print(x)", '"print x"', "(print | x)"),
        ("2.1", '"2 1"', '("2 1" | 2 | 1)'),
        ("**bold** text", "(bold & text)", "(bold | text)"),
        ("北京大学", '"北京 京大 大学"', "(北京 | 京大 | 大学)"),
        ("猫", "猫*", "猫*"),
        ("使用Python编程", "(使用 & Python & 编程)", "(使用 | Python | 编程)"),
        ("--verbose flag", "(verbose & flag)", "(verbose | flag)"),
        ("great 👍", "great", "great"),
        ("cafe\u0301", "café", "café"),
        ("foo\0bar\ud800baz", "(foo & bar & baz)", "(foo | bar | baz)"),
    ],
)
def test_words_and_phrases_are_all_wanted_or_any(query: str, exact: str, loose: str):
    parsed = parse(query)
    assert (shown(parsed.exact), shown(parsed.loose)) == (exact, loose)


@pytest.mark.promise("000.lexical.boolean")
@pytest.mark.parametrize(
    ("query", "exact", "loose", "excluded"),
    [
        ("cats AND dogs", "(cats & dogs)", "(cats | dogs)", ""),
        ("cats OR dogs", "(cats | dogs)", "(cats | dogs)", ""),
        ("cats NOT dogs", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ("cats AND NOT dogs", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ("NOT dogs cats", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ("cats -dogs", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ("cats AND -dogs", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ('cats -"big dogs"', '(cats − "big dogs")', '(cats − "big dogs")', "big dogs"),
        ("cats -“big dogs”", '(cats − "big dogs")', '(cats − "big dogs")', "big dogs"),
        ("cats -dogs -birds", "(cats − (dogs | birds))", "(cats − (dogs | birds))", "dogs,birds"),
        ("cats -(dogs OR birds)", "(cats − (dogs | birds))", "(cats − (dogs | birds))", "dogs,birds"),
        ("cats NOT (dogs AND birds)", "(cats − (dogs & birds))", "(cats − (dogs & birds))", ""),
        ("cat* food", "(cat* & food)", "(cat* | food)", ""),
        ("cats -dog*", "(cats − dog*)", "(cats − dog*)", "dog*"),
        ("cats dogs OR birds", "((cats & dogs) | birds)", "(cats | dogs | birds)", ""),
        ("cats AND (dogs OR birds)", "(cats & (dogs | birds))", "(cats | dogs | birds)", ""),
        ("(cats OR dogs) AND food", "((cats | dogs) & food)", "(cats | dogs | food)", ""),
        ("((cats)) -dogs", "(cats − dogs)", "(cats − dogs)", "dogs"),
        ("(cats -dogs) food", "((cats − dogs) & food)", "((cats | food) − dogs)", "dogs"),
        ("(cats -dogs) OR birds", "((cats − dogs) | birds)", "(cats | birds)", ""),
        ('"big cats" OR dogs', '("big cats" | dogs)', '("big cats" | dogs | big | cats)', ""),
        ("the AND cat", "(the & cat)", "cat", ""),
        ("how to feed cats -dogs", "((feed & cats) − dogs)", "((feed | cats) − dogs)", "dogs"),
        ("in OR out", "(in | out)", "(in | out)", ""),
        ("C++ -C#", "((C | cplusplus) − csharp)", "((C | cplusplus) − csharp)", "C#"),
        ("f(x) -yes", '("f x" − yes)', "((f | x) − yes)", "yes"),
        ("猫 NOT 狗", "(猫* − 狗*)", "(猫* − 狗*)", "狗"),
        ("FILE AND FOLDER", "(FILE & FOLDER)", "(FILE | FOLDER)", ""),
    ],
)
def test_operators_make_an_expression(query: str, exact: str, loose: str, excluded: str):
    parsed = parse(query)
    assert (shown(parsed.exact), shown(parsed.loose)) == (exact, loose)
    assert parsed.excluded == tuple(filter(None, excluded.split(",")))


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("cats AND", "cats"),
        ("AND cats", "cats"),
        ("OR", "OR"),
        ("cats AND AND dogs", "(cats & dogs)"),
        ("cats OR OR dogs", "(cats & dogs)"),
        ("cats AND (dogs", "(cats & dogs)"),
        ("cats) AND dogs", "(cats & dogs)"),
        ("cats AND ()", "cats"),
        ('"unbalanced cats', "(unbalanced & cats)"),
        ('5" pipe', "(5 & pipe)"),
        ('"a cat" AND "dog', "(cat & dog)"),
        ("“unbalanced", "unbalanced"),
        ("-cats", "cats"),
        ("NOT cats", "cats"),
        ("-cats -dogs", "(cats & dogs)"),
        ("cats OR -dogs", "(cats & dogs)"),
        ("cats NOT NOT dogs", "(cats & dogs)"),
        ("cats AND !!! AND", "cats"),
        ("FILE NOT FOUND", "(FILE & FOUND)"),
        ("sqlite columns that are NOT NULL", "(sqlite & columns & NULL)"),
        ("create table IF NOT EXISTS", "(create & table & IF & EXISTS)"),
        ("what is AND and OR ?", "(what & is & AND & and & OR)"),
        ("(" * 40 + "cats OR dogs" + ")" * 40, "(cats & dogs)"),
        ("git commit -m", "(git & commit & m)"),
        ("Audioaufnahme und -bearbeitung", "(Audioaufnahme & und & bearbeitung)"),
        ("input or -output devices", "(input & output & devices)"),
        ("„Model C“-Schulen", '(Schulen & "Model C")'),
        ("exit code -1", "(exit & code & 1)"),
        ("error -110.", "(error & 110)"),
        ("below -3.5 degrees", '("3 5" & degrees)'),
    ],
)
def test_an_expression_that_does_not_parse_is_read_as_words(query: str, exact: str):
    parsed = parse(query)
    assert shown(parsed.exact) == exact
    assert parsed.excluded == ()


@pytest.mark.parametrize(
    "query", ["", " ", "-", "- ", "*", "(((", ")", "!?", '""', '"..."', "👍", "\0", "\ud800", "--", "() ()"]
)
def test_a_query_without_letter_or_digit_asks_for_nothing(query: str):
    parsed = parse(query)
    assert (parsed.exact, parsed.loose, parsed.terms, parsed.phrases) == (None, None, (), ())
    assert prune(parsed, lambda _: True) is None


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("-cats", True),
        ("NOT cats", True),
        ('-"big cats" -dogs', True),
        ("-(cats OR dogs)", True),
        ("birds OR -cats", True),
        ("birds -cats", False),
        ("cats AND", False),
        ("--cats", False),
        ("-c", False),
        ("NOT", False),
    ],
)
def test_a_query_that_only_excludes_says_so(query: str, said: bool):
    assert parse(query).nothing_wanted is said


def test_an_option_alone_excludes_nothing():
    parsed = parse("-cats", ["cats"])
    assert (shown(parsed.exact), parsed.nothing_wanted) == ("cats", False)


def test_a_word_is_not_excluded_by_the_dash_of_an_option():
    assert dashed("how do I use tar -xzf, rm -rf or -v") == [("tar", "xzf"), ("rm", "rf")]
    assert dashed("find -mtime -newer") == [("find", "mtime"), ("find", "newer")]
    assert dashed('"find" -mtime') == [("", "mtime")]
    parsed = parse("tar -xzf file -zip", ["xzf"])
    assert (shown(parsed.exact), parsed.excluded) == ("((tar & xzf & file) − zip)", ("zip",))


def test_terms_are_as_typed_without_stop_words_operators_and_punctuation():
    parsed = parse('What is the "Big Bang" in C++, .NET (or foo-bar)? -telescope gala*')
    assert parsed.terms == ("C++", ".NET", "foo-bar", "gala")
    assert parsed.phrases == ("Big Bang",)
    assert parsed.excluded == ("telescope",)


@pytest.mark.promise("001.fts.escaped")
@given(WILD)
@settings(max_examples=400)
def test_no_text_is_an_error(text: str):
    parsed = parse(text)
    assert (parsed.exact is None) == (parsed.loose is None)
    assert (parsed.exact is None) == (not parsed.terms and not parsed.phrases)
    prune(parsed, lambda _: False)


@given(WILD)
@settings(max_examples=200)
def test_fts5_can_run_whatever_was_parsed(text: str):
    parsed = parse(text)
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(text, tokenize='porter unicode61')")
    for match in (parsed.exact, parsed.loose):
        if match is not None:
            assert connection.execute("SELECT count(*) FROM f(?)", (to_match(match),)).get == 0


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(data: bytes):
    parse(data.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    "text",
    [
        "word " * 20_000,
        " ".join(f"word{number}" for number in range(10_000)),
        "x" * 100_000,
        "a\u0301\u0323" * 30_000,
        "a" + "\u0301\u0323" * 50_000,
        "(" * 100_000,
        '"' * 100_001,
        "-" * 100_000,
        "a AND " * 20_000 + "b",
        '"a b" ' * 20_000,
        "中" * 100_000,
        "a中" * 50_000,
        "getUserName" * 10_000,
        "a.b-c_d" * 10_000,
        "*" * 100_000 + "a*",
        "“" * 50_000 + "”" * 50_000,
    ],
    ids=lambda text: text[:8].replace("\n", " "),
)
def test_a_huge_query_asks_for_a_bounded_number_of_things(text: str):
    parsed = parse(text)
    assert len(parsed.terms) <= MAX_TERMS
    assert len(parsed.words) <= MAX_TERMS
    assert size(parsed.exact) <= 5 * MAX_TERMS
    assert size(parsed.loose) <= 5 * MAX_TERMS


def test_of_too_many_terms_the_longest_are_used_in_their_order():
    short = [f"w{number}" for number in range(1000)]
    long = [f"longword{number}" for number in range(MAX_TERMS)]
    mixed = [*short[:500], *long, *short[500:], "x" * 5000]
    assert parse(" ".join(mixed)).terms == tuple(long)


@pytest.mark.promise("B.lexical.pruning")
def test_frequent_words_are_pruned_from_the_loose_match_only():
    parsed = parse('common rare "common phrase" -dogs')
    pruned = prune(parsed, lambda word: word != "common")
    assert shown(pruned) == '(("common phrase" | rare | phrase) − dogs)'
    assert "common" in words_in(parsed.exact)


@pytest.mark.promise("B.lexical.pruning")
def test_pruning_every_word_keeps_them_all():
    parsed = parse("common frequent")
    assert prune(parsed, lambda _: False) == parsed.loose


def test_phrases_and_prefixes_are_never_pruned():
    assert shown(prune(parse('"to be" auth* rare'), lambda _: False)) == '("to be" | auth*)'


@pytest.mark.promise("B.lexical.pruning")
@given(WILD, st.sets(st.sampled_from(["cat", "dogs", "foo", "猫", "C"])))
def test_pruning_never_leaves_nothing_and_never_adds(text: str, kept: set[str]):
    parsed = parse(text)
    pruned = prune(parsed, kept.__contains__)
    assert (pruned is None) == (parsed.loose is None)
    assert words_in(pruned) <= words_in(parsed.loose)


def test_the_words_whose_frequency_counts_are_single_tokens():
    words = parse("foo-bar getUserName 北京大学 don't C++ running").words
    assert all(len(tokenize(word)) == 1 for word in words)


@pytest.mark.parametrize(
    ("text", "term", "is_there"),
    [
        ("Installing git is easy", "install", True),
        ("Installing git is easy", "installation", True),
        ("Installing git is easy", "stall", False),
        ("Installing git is easy", "is easy", True),
        ("Installing git is easy", "easy git", False),
        ("Installing git is easy", "inst*", True),
        ("Installing git is easy", "gitt*", False),
        ("the newton scale", "news*", False),
        ("call getUserName", "user", True),
        ("call getUserName", "username", False),
        ("call getUserName", "getusername", True),
        ("C and C++", "C++", True),
        ("only C here", "C++", False),
        ("we don’t know", "don't", True),
        ("the Café", "cafe", True),
        ("我住在北京大学", "北京", True),
        ("我住在北京大学", "京北", False),
        ("我住在北京大学", "学", True),
        ("anything", "", False),
        ("anything", "!", False),
        ("", "word", False),
    ],
)
def test_a_text_contains_a_term_by_its_tokens_and_stems(text: str, term: str, is_there: bool):
    assert contains(text, term) is is_there


@given(
    st.text("abcy GETsed-ing.中文 é2", max_size=40),
    st.text("abcy GETsed-ing.中文 é2", max_size=8),
)
@settings(max_examples=300)
def test_containing_a_term_is_being_found_by_it(text: str, term: str):
    match = phrase_match(term) if " " in term else word_match(term)
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(text, terms, tokenize='porter unicode61')")
    connection.execute("INSERT INTO f VALUES (?, ?)", (text, index_terms(text)))
    found = match is not None and connection.execute("SELECT count(*) FROM f(?)", (to_match(match),)).get == 1
    assert contains(text, term) == found


@pytest.mark.parametrize("version", ["8.32", "v8.32"])
def test_a_version_is_looked_for_as_a_whole_besides_its_numbers(version: str):
    parsed = parse(f"changes in coreutils {version}")
    assert parsed.words == ("changes", "coreutils", "8", "32")
    assert [one for match in parsed.kept for one in sought(match)][-1] == "8 32"


def test_names_of_several_parts_are_looked_for_as_a_whole_besides_their_parts():
    parsed = parse("where is add_bytes|put_int(x) called from __main__ with MAX_TRY_COUNT and getName")
    assert {"add", "bytes", "put", "int"} <= set(parsed.words)
    assert [one for match in parsed.kept for one in sought(match)] == [
        "add bytes",
        "put int",
        "MAX TRY COUNT",
    ]
    assert prune(parsed, lambda word: False) == AnyOf(
        (Phrase("add bytes"), Phrase("put int"), Phrase("MAX TRY COUNT"))
    )


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("who owns log-3", ["log 3"]),
        ("is crdb-a1, or us-east-1b, down?", ["crdb a1", "us east 1b"]),
        ("state of LH-2188 (IL-6)", ["LH 2188", "IL 6"]),
        ("a twenty-year plan, 20-year, log-, -3 and a--3", []),
    ],
)
def test_names_with_a_number_behind_a_hyphen_are_looked_for_as_a_whole(query: str, whole: list[str]):
    assert [one for match in parse(query).kept for one in sought(match)] == whole


def test_words_of_prose_are_looked_for_apart_alone():
    assert parse("how do I keep state-of-the-art e.g. node.js and/or PostgreSQL up to date").kept == ()


def test_of_many_names_only_some_are_looked_for_as_a_whole():
    assert len(parse(" ".join(f"a_{n}" for n in range(60))).kept) == MAX_NAMES
