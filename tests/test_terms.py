"""Words are the same to us as to FTS5, and what FTS5 cannot see is found all the same."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.characters import aligned
from concord.text.stopwords import is_stop_word, shows_english, significant
from concord.text.terms import exclusion_match, index_terms, loose_words, phrase_match, word_match
from concord.text.tokens import beyond_ascii, latin_share, tokenize
from concord.types import AllOf, AnyOf, Match, Phrase, Without, Word

SCRIPTS = (
    "abcxyzABCXYZ019 -_'.,+#*()äöüßÄÖÜéèçœÀñıİğŞłŻąßſ"  # Latin, with German, French, Spanish, Turkish, Polish
    "αβγάώςΣΩЖжйёЇїабв"  # Greek, Cyrillic
    "אבגשלוםابتثمحمد"  # Hebrew, Arabic
    "कखिीन्दअ"  # Devanagari
    "中文使用北京大学漢々かなカナーﾊﾟ한국어학교ㄱ"  # Han, kana, Hangul
    "ไทยที่ดีສະບາຍខ្មែរမြန်"  # Thai, Lao, Khmer, Myanmar
    "\u0301\u0308\u0323\u200d\ufe0f👍🤖🦊😀²½№ＡＢ１"  # marks, joiners, emoji, compatibility forms
)
WILD = st.text(st.one_of(st.sampled_from(SCRIPTS), st.characters(codec="utf-8")), max_size=60)


@pytest.fixture(scope="module")
def fts5():
    """A function from a text to the tokens that FTS5 makes of it."""
    tokenizer = apsw.Connection(":memory:").fts5_tokenizer("porter", ["unicode61"])
    plainly = {"include_offsets": False, "include_colocated": False}
    return lambda text: tokenizer(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, **plainly)


class Shelf:
    """One chunk in a real FTS5 table, and whether a match finds it."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(
            "CREATE VIRTUAL TABLE f USING fts5(content, terms, tokenize='porter unicode61')"
        )

    def finds(self, match: Match | None, text: str) -> bool:
        if match is None:
            return False
        self.connection.execute("DELETE FROM f")
        self.connection.execute("INSERT INTO f VALUES (?, ?)", (text, index_terms(text)))
        return bool(self.connection.execute("SELECT count(*) FROM f WHERE f MATCH ?", (said(match),)).get)


def said(match: Match) -> str:
    """A match in FTS5's grammar."""
    if isinstance(match, Word | Phrase):
        quoted = '"' + match.text.replace('"', '""') + '"'
        return quoted + "*" if isinstance(match, Word) and match.prefix else quoted
    if isinstance(match, Without):
        return f"({said(match.keep)} NOT {said(match.drop)})"
    return "(" + (" AND " if isinstance(match, AllOf) else " OR ").join(map(said, match.parts)) + ")"


def leaves(match: Match) -> list[Word | Phrase]:
    if isinstance(match, Word | Phrase):
        return [match]
    parts = (match.keep, match.drop) if isinstance(match, Without) else match.parts
    return [leaf for part in parts for leaf in leaves(part)]


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return Shelf()


@pytest.mark.promise("001.fts.tokenizer")
@given(WILD)
@settings(max_examples=300)
def test_any_text_has_the_tokens_that_fts5_gives_it(fts5, text: str):
    assert tokenize(text) == fts5(text)


def test_every_character_separates_folds_or_stays_as_in_fts5(fts5):
    planes = (range(0xD800), range(0xE000, 0x20100), range(0x2A600, 0x2A800), range(0xE0000, 0xE0200))
    text = " ".join(f"1{chr(code)}1" for plane in planes for code in plane)
    assert tokenize(text) == fts5(text)


@given(st.text(max_size=80))
def test_folding_in_place_keeps_every_character_where_it_is(text: str):
    assert len(aligned(text)) == len(text)


@pytest.mark.promise("B.lexical.identifiers", "B.lexical.unspaced")
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("plain words, nothing else; the end.", ""),
        ("Sentence Case And ALL CAPS", ""),
        ("snake_case kebab-case a.b.c", ""),
        ("getUserName", "get user name"),
        ("HTTPServer2", "http server 2"),
        ("XMLHttpRequest", "xml http request"),
        ("386DX33", "386 dx 33"),
        ("foo-bar_v2.1", "v 2 1"),
        ("python3.11", "python 3 11"),
        ("versions 3.11 and 2.0.1", ""),
        ("URLs, IDs and userIDs", "user ids"),
        ("utf8 and x86_64", "utf 8 x 86"),
        ("getÜberName", "get über name"),
        ("имяПользователя", "имя пользователя"),
        ("sha deadbeef12a3f9c0d2e1 9f86d081884c7d659a2feaa0c55ad015", ""),
        ("a" * 50 + "B" * 50, ""),
        ("C++ vs C# vs F# (not a#b, C+, C+++)", "cplusplus csharp fsharp"),
        ("C++17", "cplusplus"),
        ("# Heading with ## marks", ""),
        ("北京", "京"),
        ("猫", ""),
        ("北京大学", "北京 京大 大学 学"),
        ("我喜欢猫。", "我喜 喜欢 欢猫 猫"),
        ("使用Python编程", "使用 用 python 编程 程"),
        ("Python的API", "python 的 api"),
        ("食べる", "食べ べる る"),
        ("データ", "デー ータ タ"),
        ("학교에서", "학교 교에 에서 서"),
        ("ไทย", "ไท ทย ย"),
        ("ＡＰＩ", "api"),
        ("great🤖", "great"),
        ("great 👍", ""),
        ("", ""),
    ],
)
def test_the_terms_column_has_what_fts5_does_not_see_and_nothing_more(text: str, terms: str):
    assert index_terms(text) == terms


@given(WILD)
@settings(max_examples=200)
def test_every_further_term_is_a_token_to_fts5(text: str):
    assert all(tokenize(term) for term in index_terms(text).split())


@pytest.mark.promise("001.fts.escaped")
@pytest.mark.parametrize(
    ("word", "match"),
    [
        ("word", Word("word")),
        ("getUserName", AnyOf((Word("getUserName"), Phrase("get user name")))),
        ("HTTP2Server", AnyOf((Word("HTTP2Server"), Phrase("http 2 server"), Phrase("http2 server")))),
        ("386", Word("386")),
        ("386DX33", AnyOf((Word("386DX33"), Phrase("386 dx 33"), Phrase("386 dx33")))),
        ("foo-bar", Phrase("foo bar")),
        ("snake_case", Phrase("snake case")),
        ("v2.1", AnyOf((Phrase("v2 1"), Phrase("v 2 1"), Phrase("2 1")))),
        ("don't", Phrase("don t")),
        ("C++", AnyOf((Word("C"), Word("cplusplus")))),
        ("C#", AnyOf((Word("C"), Word("csharp")))),
        (".NET", Word("NET")),
        ('"', None),
        ("+++", None),
        ("-", None),
        ("*", None),
        ("", None),
        ("👍", None),
        ("🤖", None),
        ("\ud800", None),
        ("\0", None),
        ("猫", Word("猫", prefix=True)),
        ("北京", Word("北京")),
        ("北京大学", Phrase("北京 京大 大学")),
        ("使用Python编程", AllOf((Word("使用"), Word("Python"), Word("编程")))),
        ("한국어", Phrase("한국 국어")),
        ("ＡＰＩ", AnyOf((Word("API"), Word("ＡＰＩ")))),
        ("great🤖", AnyOf((Word("great🤖"), Word("great")))),
    ],
)
def test_a_typed_word_is_asked_for_in_every_form_it_may_have(word: str, match: Match | None):
    assert word_match(word) == match


@pytest.mark.promise("B.lexical.identifiers", "B.lexical.unspaced")
@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("386", "an old 386DX33 board"),
        ("386dx", "an old 386DX33 board"),
        ("386DX33", "an old 386 DX 33 board"),
        ("user", "call getUserName()"),
        ("getUserName", "get_user_name(x)"),
        ("get_user_name", "getUserName(x)"),
        ("GetUserName", "the get user name call"),
        ("HTTP2Server", "http2_server.py"),
        ("http2_server", "class HTTP2Server"),
        ("2.1", "release-v2.1"),
        ("3.11", "needs Python3.11"),
        ("servers", "HTTPServer"),
        ("C++", "written in C++17"),
        ("don't", "we don’t know"),
        ("naïve", "a naive idea"),
        ("STRASSE", "strasse"),
        ("installing", "installation of git"),
        ("京", "我住在北京"),
        ("京大", "北京大学"),
        ("学习", "机器学习模型"),
        ("python", "我用Python写程序"),
        ("カナ", "ひらがなとカタカナ"),
        ("학교", "나는 학교에서 공부한다"),
        ("ดี", "วันนี้อากาศดีมาก"),
        ("อังกฤษ", "ภาษาอังกฤษ"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("API", "仕様はＡＰＩで"),
        ("ガイド", "ｶﾞｲﾄﾞ"),
        ("हिन्दी", "यह हिन्दी है"),
        ("great", "great🤖news"),
    ],
)
def test_a_word_finds_a_text_that_writes_it_differently(shelf: Shelf, word: str, text: str):
    assert shelf.finds(word_match(word), text)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("京大", "北京，大学"),
        ("大北", "北京大学"),
        ("ดู", "วันนี้อากาศดีมาก"),
        ("user name", "name of the user"),
        ("getUserName", "the user has a name to get"),
        ("foo-bar", "bar foo"),
        ("386", "3 86 38 6"),
    ],
)
def test_a_word_does_not_find_a_text_without_it(shelf: Shelf, word: str, text: str):
    assert not shelf.finds(word_match(word), text)


@given(WILD)
@settings(max_examples=300)
def test_any_word_of_a_text_finds_that_text(shelf: Shelf, text: str):
    text = text.replace("\0", " ")
    for word in text.split():
        match = word_match(word)
        assert match is None or shelf.finds(match, text)


@given(WILD, st.booleans())
@settings(max_examples=200)
def test_a_word_is_one_token_and_a_phrase_is_several(text: str, prefix: bool):
    match = word_match(text, prefix=prefix)
    for leaf in leaves(match) if match else ():
        assert len(tokenize(leaf.text)) == 1 if isinstance(leaf, Word) else len(tokenize(leaf.text)) > 1


@pytest.mark.parametrize(
    ("begun", "text"),
    [
        ("auth", "authentication"),
        ("authenticat", "authentication"),
        ("computat", "computational"),
        ("nationa", "national"),
        ("planni", "planning"),
        ("news", "newspaper"),
        ("news", "the news"),
        ("happy", "happy"),
        ("getUser", "getUserName"),
        ("foo-ba", "foo bar"),
        ("北", "北京"),
    ],
)
def test_a_prefix_finds_the_words_that_begin_so_however_they_are_stemmed(shelf: Shelf, begun: str, text: str):
    assert shelf.finds(word_match(begun, prefix=True), text)


@pytest.mark.parametrize(
    ("begun", "text"),
    [("news", "newton"), ("bus", "button"), ("commi", "example com"), ("foo-ba", "foo qux")],
)
def test_a_prefix_does_not_find_words_that_begin_otherwise(shelf: Shelf, begun: str, text: str):
    assert not shelf.finds(word_match(begun, prefix=True), text)


@pytest.mark.promise("000.lexical.phrase")
@pytest.mark.parametrize(
    ("phrase", "text", "is_found"),
    [
        ("Oak Ridge", "the Oak Ridge laboratory", True),
        ("Oak Ridge", "a ridge of oak", False),
        ("to be or not to be", "To be, or not to be: that", True),
        ("don't panic", "DON'T PANIC!", True),
        ("机器学习", "关于机器学习的书", True),
        ("机器学习", "学习机器", False),
        ("使用 Python", "我们使用Python", True),
        ("word", "words", True),
    ],
)
def test_a_phrase_is_these_words_in_this_order(shelf: Shelf, phrase: str, text: str, is_found: bool):
    assert shelf.finds(phrase_match(phrase), text) is is_found


@pytest.mark.parametrize("nothing", ["", "...", "\0", "👍 👍", " - "])
def test_a_phrase_without_letter_or_digit_asks_for_nothing(nothing: str):
    assert phrase_match(nothing) is None


def test_excluding_c_sharp_does_not_exclude_every_c():
    assert exclusion_match("C#") == Word("csharp")
    assert exclusion_match("word") == Word("word")


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("word", ["word"]),
        ("foo-bar", ["foo", "bar"]),
        ("getUserName", ["getUserName", "get", "user", "name"]),
        ("C++", ["C", "cplusplus"]),
        ("v3.2", ["3", "2"]),
        ("v3", ["v3", "v", "3"]),
        ("北京大学", ["北京", "京大", "大学"]),
        ("猫", ["猫"]),
        ("用Python3", ["用", "Python3", "python", "3"]),
        ("👍", []),
    ],
)
def test_loose_words_are_single_tokens(word: str, tokens: list[str]):
    assert loose_words(word) == tokens


@pytest.mark.parametrize(
    ("text", "longest"),
    [("a-" * 50_000, 64), ("a中" * 50_000, 64), ("中" * 100_000, 64), ("x" * 100_000, 1)],
    ids=["punctuated", "mixed", "unspaced", "one word"],
)
def test_a_monstrous_word_asks_for_a_bounded_number_of_tokens(text: str, longest: int):
    for match in (word_match(text), word_match(text, prefix=True), phrase_match(text)):
        assert match is not None
        assert max(len(tokenize(leaf.text)) for leaf in leaves(match)) <= longest
        assert len(leaves(match)) <= 2 * longest + 2


@pytest.mark.parametrize("word", ["the", "The", "what's", "what’s", "don't", "(of)", "is?"])
def test_function_words_are_stop_words_however_they_are_written(word: str):
    assert is_stop_word(word)


@pytest.mark.parametrize("word", ["die", "war", "son", "fin", "hat", "man", "get", "C", "content", "may", ""])
def test_words_with_content_in_english_are_no_stop_words(word: str):
    assert not is_stop_word(word)


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("how does authentication work?", "authentication work?"),
        ("to be or not to be", "to be or not to be"),
        ("the who", "the who"),
        ("WHO guidelines for the US", "WHO guidelines US"),
        ("WHAT IS THE CAPITAL", "CAPITAL"),
        ("die hard in a war", "die hard war"),
        ("son of man", "son man"),
        ("los angeles crime", "los angeles crime"),
        ("de novo synthesis in plants", "de novo synthesis plants"),
        ("van der Waals forces in liquids", "van der Waals forces liquids"),
        ("was ist die Hauptstadt von Frankreich", "Hauptstadt Frankreich"),
        ("wie hat der Krieg begonnen", "Krieg begonnen"),
        ("où est la gare", "gare"),
        ("cuántos habitantes tiene la ciudad", "habitantes ciudad"),
        ("perché il cielo è blu", "cielo blu"),
        ("qual é a capital do Brasil", "capital Brasil"),
        ("hoe werkt het geheugen van een computer", "werkt geheugen computer"),
        ("какая погода в Москве", "погода Москве"),
        ("Η συνταγή για το μουσακά", "συνταγή μουσακά"),
        ("ताजमहल कहाँ है", "ताजमहल"),
        ("где find в bash", "find bash"),
        ("", ""),
    ],
)
def test_a_query_loses_the_function_words_of_its_own_language_only(query: str, left: str):
    assert significant(query.split()) == left.split()


@pytest.mark.promise("B.lexical.pruning")
@given(st.lists(st.text(max_size=8), max_size=12))
def test_dropping_stop_words_never_leaves_nothing(words: list[str]):
    assert bool(significant(words)) == bool(words)
    assert set(significant(words)) <= set(words)


@pytest.mark.parametrize(
    ("query", "is_english"),
    [
        ("how do I configure Kubernetes ingress", True),
        ("Albendazole used against lymphatic filariasis with ivermectin", True),
        ("The vacuum of vanadium", True),
        ("Kubernetes ingress", False),  # no function word
        ("wie konfiguriere ich Kubernetes", False),
        ("the Großglockner ist der höchste Berg", False),
        ("czy to jest możliwe do zrobienia", False),
        ("hvordan får jeg adgang til at skrive", False),
        ("cine are acces la server", False),
        ("kuka on he ja missä", False),
    ],
)
def test_english_is_told_by_function_words_that_no_other_language_has(query: str, is_english: bool):
    assert shows_english(query.split()) is is_english


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=())))
def test_what_is_beyond_ascii_is_found_in_order_even_half_a_character(text: str):
    assert beyond_ascii(text) == "".join(character for character in text if not character.isascii())


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 1.0), ("naïve café", 1.0), ("404 !?", 1.0), ("кот", 0.0), ("Qt кот", 2 / 5), ("GIT ツリー", 0.5)],
)
def test_the_latin_share_counts_letters_alone(text: str, share: float):
    assert latin_share(text) == pytest.approx(share)


def test_a_text_of_many_alphabets_has_the_tokens_of_its_words():
    words = [chr(code) * 2 for code in range(0xC0, 0x530) if chr(code).isalpha()]
    assert tokenize(" ".join(words)) == [token for word in words for token in tokenize(word)]
