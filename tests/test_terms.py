"""What FTS5's tokenizer cannot see is found all the same, and function words are left out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.terms import index_terms, phrase_match, word_match
from concord.text.tokens import tokenize
from concord.text.word_lists import shows_english, significant
from concord.types import Word
from support.fts5 import finds, leaves

SCRIPTS = (
    "abcxyzABCXYZ019 -_'.,+#*()äöüßÄÖÜéèçœÀñıİğŞłŻąßſαβγάώςΣΩЖжйёЇїабвאבגשלוםابتثمحمدकखिीन्दअ"
    "中文使用北京大学漢々かなカナーﾊﾟ한국어학교ㄱไทยที่ดีສະບາຍខ្មែរမြန်\u0301\u0308\u0323\u200d\ufe0f👍🤖🦊😀²½№ＡＢ１"
)


WILD = st.text(st.one_of(st.sampled_from(SCRIPTS), st.characters(codec="utf-8")), max_size=60)


@pytest.mark.promise("B.lexical.identifiers", "B.lexical.unspaced")
@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("plain words, ALL CAPS; snake_case kebab-case a.b.c, versions 3.11 and 2.0.1", ""),
        ("386DX33", "386 dx 33"),
        ("URLs, IDs and userIDs", "user ids"),
        ("sha deadbeef12a3f9c0d2e1 9f86d081884c7d659a2feaa0c55ad015", ""),
        ("C++17 vs C# vs F# (not a#b, C+, C+++)", "cplusplus csharp fsharp"),
        ("# Heading with ## marks", ""),
        ("猫", ""),
        ("データ", "デー ータ タ"),
        ("ＡＰＩ", "api"),
        ("Straße", "strasse strasse"),
    ],
)
def test_the_terms_column_has_what_fts5_does_not_see_and_nothing_more(text: str, terms: str):
    assert index_terms(text) == terms


@pytest.mark.promise("B.lexical.identifiers", "B.lexical.unspaced")
@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("386dx", "an old 386DX33 board"),
        ("user", "call getUserName()"),
        ("get_user_name", "getUserName(x)"),
        ("2.1", "release-v2.1"),
        ("C++", "written in C++17"),
        ("naïve", "a naive idea"),
        ("学习", "机器学习模型"),
        ("학교", "나는 학교에서 공부한다"),
        ("ខ្មែរ", "ភាសាខ្មែរ"),
        ("great", "great🤖news"),
    ],
)
def test_a_word_finds_a_text_that_writes_it_differently(word: str, text: str):
    assert finds(word_match(word), text)


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("京大", "北京，大学"),
        ("ดู", "วันนี้อากาศดีมาก"),
        ("getUserName", "the user has a name to get"),
        ("foo-bar", "bar foo"),
        ("386", "3 86 38 6"),
    ],
)
def test_a_word_does_not_find_a_text_without_it(word: str, text: str):
    assert not finds(word_match(word), text)


@given(WILD, st.booleans())
@settings(max_examples=300)
def test_any_word_of_a_text_finds_it_by_single_tokens_and_phrases(text: str, prefix: bool):
    text = text.replace("\0", " ")
    assert all(tokenize(term) for term in index_terms(text).split())
    for word in text.split():
        match = word_match(word, prefix=prefix)
        assert prefix or match is None or finds(match, text)
        for leaf in leaves(match):
            assert (len(tokenize(leaf.text)) == 1) == isinstance(leaf, Word)


@pytest.mark.parametrize(
    ("begun", "texts", "others"),
    [
        ("authenticat", ["authentication"], ["author"]),
        ("planni", ["planning"], ["plant"]),
        ("foo-ba", ["foo bar"], ["foo qux"]),
        ("北", ["北京"], ["京"]),
    ],
)
def test_a_prefix_finds_the_words_that_begin_so_however_they_are_stemmed(
    begun: str, texts: list[str], others: list[str]
):
    assert [text for text in (*texts, *others) if finds(word_match(begun, prefix=True), text)] == texts


@pytest.mark.promise("000.lexical.phrase")
@pytest.mark.parametrize(
    ("phrase", "text", "is_found"),
    [
        ("Oak Ridge", "the Oak Ridge laboratory", True),
        ("Oak Ridge", "a ridge of oak", False),
        ("to be or not to be", "To be, or not to be: that", True),
        ("机器学习", "关于机器学习的书", True),
        ("机器学习", "学习机器", False),
        ("使用 Python", "我们使用Python", True),
        ("👍 - …", "anything", False),
    ],
)
def test_a_phrase_is_these_words_in_this_order(phrase: str, text: str, is_found: bool):
    assert finds(phrase_match(phrase), text) is is_found


@pytest.mark.parametrize("text", ["a-" * 50_000, "a中" * 50_000, "中" * 100_000, "x" * 100_000])
def test_a_monstrous_word_asks_for_a_bounded_number_of_tokens(text: str):
    for match in (word_match(text), word_match(text, prefix=True), phrase_match(text)):
        assert 0 < len(leaves(match)) <= 130
        assert max(len(tokenize(leaf.text)) for leaf in leaves(match)) <= 64


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("how does authentication work?", "authentication work?"),
        ("WHO guidelines for the US", "WHO guidelines US"),
        ("die hard in a war", "die hard war"),
        ("was ist die Hauptstadt von Frankreich", "Hauptstadt Frankreich"),
        ("où est la gare", "gare"),
        ("какая погода в Москве", "погода Москве"),
        ("ताजमहल कहाँ है", "ताजमहल"),
        ("", ""),
    ],
)
def test_a_query_loses_the_function_words_of_its_own_language_only(query: str, left: str):
    assert significant(query.split()) == left.split()


@pytest.mark.promise("B.lexical.pruning")
@given(st.lists(st.text(max_size=8) | st.sampled_from(["the", "der", "und"]), max_size=12))
def test_dropping_stop_words_never_leaves_nothing(words: list[str]):
    assert bool(significant(words)) == bool(words)
    assert set(significant(words)) <= set(words)


@pytest.mark.parametrize(
    ("query", "is_english"),
    [
        ("how do I configure Kubernetes ingress", True),
        ("Kubernetes ingress", False),  # no function word
        ("the Großglockner ist der höchste Berg", False),
        ("cine are acces la server", False),
    ],
)
def test_english_is_told_by_function_words_that_no_other_language_has(query: str, is_english: bool):
    assert shows_english(query.split()) is is_english
