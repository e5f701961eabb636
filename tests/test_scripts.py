"""Words with vowel signs are words: found as a whole, and never by the letters that FTS5 makes of them."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.held import contains
from concord.text.query_language import parse
from concord.text.terms import index_terms, loose_words, phrase_match, word_match
from concord.types import Match
from support.fts5 import finds
from support.small_library import library, titles

# Consonants and the signs that may follow them, of each script that is most used.
SIGNED = {
    "कखगघचजटडतदनपबमयरलवसह": " ा ि ी ु े ो ं ् ़ा",  # Devanagari
    "কখগঘচজটডতদনপবমযরলসহ": " া ি ী ু ে ং ্",  # Bengali
    "ਕਖਗਘਚਜਟਡਤਦਨਪਬਮਰਲ": " ਾ ਿ ੀ ੁ ੇ ੰ ੱ",  # Gurmukhi
    "કખગઘચજટડતદનપબમરલ": " ા િ ી ુ ે ં ્",  # Gujarati
    "கஙசஞடணதநபமயரலவ": " ா ி ீ ு ெ ை ்",  # Tamil
    "కఖగఘచజటడతదనపబమరల": " ా ి ీ ు ె ై ్",  # Telugu
    "කඛගඝචජටඩතදනපබමරල": " ා ැ ි ු ෙ ්",  # Sinhala
    "ཀཁགངཅཆཇཉཏཐདནཔཕབམ": " ི ུ ེ ོ ྐ ྱ ྲ",  # Tibetan
}
POINTED = {
    "אבגדהוזחטיכלמנסעפצקרשת": " ָ ַ ִ ֵ ּ ׁ ְ",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي": " َ ِ ُ ْ ّ ً",
}


def words_of(scripts: dict[str, str]) -> st.SearchStrategy[list[str]]:
    """Words of one of the scripts, as lists of syllables."""

    def words(script: tuple[str, str]) -> st.SearchStrategy[list[str]]:
        letters, signs = script
        syllable = st.tuples(st.sampled_from(letters), st.sampled_from(signs.split(" "))).map("".join)
        return st.lists(syllable.map(lambda text: normalize("NFC", text)), min_size=2, max_size=6)

    return st.sampled_from(list(scripts.items())).flatmap(words)


def found_everywhere(match: Match | None, term: str, text: str) -> bool:
    """Whether a term finds a text, on which FTS5 and `contains` must agree."""
    assert match is not None
    known = finds(match, text)
    assert known == contains(text, term)
    return known


def found(word: str, text: str) -> bool:
    return found_everywhere(word_match(word), word, text)


@settings(max_examples=150)
@given(words_of(SIGNED), words_of(SIGNED))
def test_a_word_with_signs_finds_texts_that_hold_it_and_no_others(word: list[str], other: list[str]):
    whole, another = "".join(word), "".join(other)
    assert found(whole, f"xx {another} {whole}, yy")
    assert found(whole, another) == (whole == another)
    letters = [syllable[0] for syllable in word]
    for text in (" ".join(letters), whole + letters[0], letters[-1] + whole, "".join(letters) + word[0]):
        assert not found(whole, text)


@settings(max_examples=100)
@given(words_of(POINTED))
def test_pointed_and_plain_spelling_find_each_other(word: list[str]):
    pointed, plain = "".join(word), "".join(syllable[0] for syllable in word)
    assert all(found(asked, f"xx {text} yy") for asked in (pointed, plain) for text in (pointed, plain))


@pytest.mark.parametrize(
    ("word", "texts", "others"),
    [
        ("बिल्ली", ["मेरी बिल्ली सो रही है।"], ["बल और लाल", "बिल्लियाँ"]),
        ("बल", ["उसका बल।"], ["बिल्ली", "बली"]),
        ("क्ष", ["क्‍ष"], []),  # a joiner says how to draw it
        ("फ़िल्म", [normalize("NFD", "फ़िल्म")], []),
        ("PC", ["PCमें"], []),
        ("PCमें", ["PCमें देखो"], ["में"]),
        ("বাংলা", ["আমি বাংলা বলি"], []),
        ("தமிழ்", ["தமிழ் மொழி"], ["தமழ"]),
        ("בְּרֵאשִׁית", ["בראשית ברא"], []),
        ("בראשית", ["בְּרֵאשִׁית בָּרָא"], []),
        ("شكرا", ["شكرًا جزيلا"], []),
        ("سلام", ["ســـلام"], []),
        ("خواهم", ["می‌خواهم"], []),  # Persian joins nothing there
        ("ดี", ["อากาศดีมาก"], []),
        ("tiếng", [normalize("NFD", "tiếng Việt")], []),
    ],
)
def test_scripts_with_marks_are_searched_by_words(word: str, texts: list[str], others: list[str]):
    asked = parse(word).terms[0]
    assert [text for text in (*texts, *others) if found(asked, normalize("NFC", text))] == texts


@pytest.mark.parametrize(
    ("phrase", "text", "is_found"),
    [
        ("काली बिल्ली", "एक काली बिल्ली थी", True),
        ("काली बिल्ली", "काली एक बिल्ली", False),
        ("Python में लिखा", "यह Python में लिखा है", True),
        ("Python में लिखा", "यह Python में नहीं लिखा है", False),
        ("شكرًا جزيلا", "شكرا جزيلا", True),
        ("شكرًا جزيلا", "جزيلا شكرا", False),
        ("בָּרָא אֱלֹהִים", "בראשית ברא אלהים", True),
    ],
)
def test_a_phrase_is_found_where_its_words_follow_each_other(phrase: str, text: str, is_found: bool):
    assert found_everywhere(phrase_match(phrase), phrase, text) is is_found


@pytest.mark.parametrize("unit", ["कि", "क ि", "aक", "بِ", "क\u200d"])
def test_monstrous_words_ask_for_little(unit: str):
    text = unit * (20_000 // len(unit))  # what costs its square takes seconds
    assert len(loose_words(text)) <= 64
    assert word_match(text) is not None
    assert len(index_terms(text)) < 4 * len(text)


def test_a_search_in_hindi_finds_speaks_and_explains_in_words():
    kb = library({"बिल्ली": "मेरी बिल्ली दूध पीती है।", "बल": "बल से लाल हुआ, बाल लंबे हैं।"})
    answer = kb.search("बिल्ली", mode="fts5")
    assert titles(answer) == ["बिल्ली"]
    assert titles(kb.search("दूध -बिल्ली", mode="fts5")) == []
    assert titles(kb.search("बिल्लीी", mode="fts5")) == ["बिल्ली"]
    known = kb.explain("बिल्ली", answer.hits[0].citation)
    assert [word["text"] for word in known.words] == ["बिल्ली"]
