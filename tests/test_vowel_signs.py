"""Words with vowel signs are words: found as a whole, and never by the letters that FTS5 makes of them."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord import KnowledgeBase, Note
from concord.backends.columns import WEIGHTS, columns_of
from concord.backends.memory.bm25 import InvertedIndex
from concord.cli.hits import Dress, _highlighter
from concord.ranking.duplicates import word_set
from concord.text.held import contains
from concord.text.query_language import parse
from concord.text.scripts import has_marks
from concord.text.snippet import excerpt
from concord.text.terms import index_terms, loose_words, phrase_match, word_match, written
from concord.text.tokens import tokenize
from concord.types import Match, Word
from support.small_library import library, titles
from test_terms import Shelf

FILLER = "यहाँ और बातें लिखी हैं जो किसी ने नहीं पूछीं। " * 12
# A consonant and the signs that may follow it, of each script that is most used.
SYLLABLES = {
    "Devanagari": ("कखगघचजटडतदनपबमयरलवसह", ("", "ा", "ि", "ी", "ु", "े", "ो", "ं", "्", "़ा")),
    "Bengali": ("কখগঘচজটডতদনপবমযরলসহ", ("", "া", "ি", "ী", "ু", "ে", "ং", "্")),
    "Gurmukhi": ("ਕਖਗਘਚਜਟਡਤਦਨਪਬਮਰਲ", ("", "ਾ", "ਿ", "ੀ", "ੁ", "ੇ", "ੰ", "ੱ")),
    "Gujarati": ("કખગઘચજટડતદનપબમરલ", ("", "ા", "િ", "ી", "ુ", "ે", "ં", "્")),
    "Oriya": ("କଖଗଘଚଜଟଡତଦନପବମରଲ", ("", "ା", "ି", "ୀ", "ୁ", "େ", "୍")),
    "Tamil": ("கஙசஞடணதநபமயரலவ", ("", "ா", "ி", "ீ", "ு", "ெ", "ை", "்")),
    "Telugu": ("కఖగఘచజటడతదనపబమరల", ("", "ా", "ి", "ీ", "ు", "ె", "ై", "్")),
    "Kannada": ("ಕಖಗಘಚಜಟಡತದನಪಬಮರಲ", ("", "ಾ", "ಿ", "ೀ", "ು", "ೆ", "ೈ", "್")),
    "Malayalam": ("കഖഗഘചജടഡതദനപബമരല", ("", "ാ", "ി", "ീ", "ു", "െ", "ൈ", "്")),
    "Sinhala": ("කඛගඝචජටඩතදනපබමරල", ("", "ා", "ැ", "ි", "ු", "ෙ", "්")),
    "Tibetan": ("ཀཁགངཅཆཇཉཏཐདནཔཕབམ", ("", "ི", "ུ", "ེ", "ོ", "ྐ", "ྱ", "ྲ")),
    "Thaana": ("ހށނރބޅކއވމފދތލގސ", ("ަ", "ާ", "ި", "ީ", "ު", "ެ", "ް")),
}
POINTED = {
    "Hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", ("", "ָ", "ַ", "ִ", "ֵ", "ּ", "ׁ", "ְ")),
    "Arabic": ("ابتثجحخدذرزسشصضطظعغفقكلمنهوي", ("", "َ", "ِ", "ُ", "ْ", "ّ", "ً")),
}


@pytest.fixture(scope="module")
def table() -> Shelf:
    return Shelf()


def words_of(letters: str, signs: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    """Words as lists of syllables."""
    syllable = st.tuples(st.sampled_from(letters), st.sampled_from(signs)).map("".join)
    return st.lists(syllable, min_size=2, max_size=6).map(lambda found: [normalize("NFC", s) for s in found])


SIGNED_WORDS = st.sampled_from(list(SYLLABLES.values())).flatmap(lambda script: words_of(*script))
POINTED_WORDS = st.sampled_from(list(POINTED.values())).flatmap(lambda script: words_of(*script))


def remembered(match: Match, text: str) -> bool:
    """Whether a store without an engine finds a text."""
    index = InvertedIndex()
    index.add(1, columns_of("", (), (), text))
    return bool(index.scores(match, WEIGHTS))


def found_everywhere(table: Shelf, word: str, text: str) -> bool:
    """Whether a word finds a text, on which FTS5, our own index and `contains` must agree."""
    match = word_match(word)
    assert match is not None
    known = table.finds(match, text)
    assert known == remembered(match, text) == contains(text, word)
    return known


@settings(max_examples=150)
@given(SIGNED_WORDS, SIGNED_WORDS)
def test_a_word_with_signs_finds_texts_that_hold_it_and_no_others(
    table: Shelf,
    word: list[str],
    other: list[str],
):
    whole, another = "".join(word), "".join(other)
    assert found_everywhere(table, whole, f"xx {another} {whole}, yy")
    assert found_everywhere(table, whole, another) == (whole == another)
    letters = [syllable[0] for syllable in word]
    for text in (" ".join(letters), whole + letters[0], letters[-1] + whole, "".join(letters) + word[0]):
        assert not found_everywhere(table, whole, text)


@settings(max_examples=100)
@given(POINTED_WORDS)
def test_pointed_and_plain_spelling_find_each_other(table: Shelf, word: list[str]):
    pointed, plain = "".join(word), "".join(syllable[0] for syllable in word)
    for asked in (pointed, plain):
        assert found_everywhere(table, asked, f"xx {pointed} yy")
        assert found_everywhere(table, asked, f"xx {plain} yy")
    assert not found_everywhere(table, pointed, " ".join(word))


@settings(max_examples=100)
@given(SIGNED_WORDS)
def test_a_form_is_one_token_that_stays_as_it_is_and_reads_as_the_word(word: list[str]):
    whole = "".join(word)
    (form,) = loose_words(whole)
    assert tokenize(form) == [form]
    assert loose_words(form) == [form]
    assert word_match(form) == word_match(whole) == Word(form)
    assert written(form) == whole


@pytest.mark.parametrize(
    ("word", "text", "is_found"),
    [
        ("बिल्ली", "मेरी बिल्ली सो रही है।", True),
        ("बिल्ली", "बल और लाल", False),
        ("बिल्ली", "बिल्लियाँ", False),
        ("बल", "बिल्ली", False),
        ("बल", "बली", False),
        ("बल", "उसका बल।", True),
        ("क्ष", "क्‍ष", True),  # a joiner says how to draw it
        ("क्‍ष", "क्ष", True),
        ("फ़िल्म", normalize("NFD", "फ़िल्म"), True),
        ("में", "PCमें", True),
        ("PC", "PCमें", True),
        ("PCमें", "PCमें देखो", True),
        ("PCमें", "में", False),
        ("বাংলা", "আমি বাংলা বলি", True),
        ("தமிழ்", "தமிழ் மொழி", True),
        ("தமிழ்", "தமழ", False),
        ("בְּרֵאשִׁית", "בראשית ברא", True),
        ("בראשית", "בְּרֵאשִׁית בָּרָא", True),
        ("شكرا", "شكرًا جزيلا", True),
        ("شُكْرًا", "شكرا", True),
        ("سلام", "ســـلام", True),
        ("خواهم", "می‌خواهم", True),  # Persian joins nothing there
        ("ไทย", "ภาษาไทย", True),
        ("ดี", "อากาศดีมาก", True),
        ("한국", normalize("NFC", normalize("NFD", "한국어")), True),
        ("tiếng", normalize("NFD", "tiếng Việt"), True),
    ],
)
def test_scripts_with_marks_are_searched_by_words(
    table: Shelf,
    word: str,
    text: str,
    is_found: bool,
):
    asked = parse(word).terms[0]
    assert found_everywhere(table, asked, normalize("NFC", text)) is is_found


@pytest.mark.parametrize(
    ("phrase", "text", "is_found"),
    [
        ("काली बिल्ली", "एक काली बिल्ली थी", True),
        ("काली बिल्ली", "बिल्ली काली थी", False),
        ("काली बिल्ली", "काली एक बिल्ली", False),
        ("काली एक बिल्ली", "काली एक बिल्ली", True),
        ("Python में लिखा", "यह Python में लिखा है", True),
        ("Python में लिखा", "यह Python में नहीं लिखा है", False),
        ("شكرا جزيلا يا صديقي", "قال: شكرًا جزيلا يا صديقي.", True),
        ("شكرًا جزيلا", "شكرا جزيلا", True),
        ("شكرًا جزيلا", "جزيلا شكرا", False),
        ("בָּרָא אֱלֹהִים", "בראשית ברא אלהים", True),
    ],
)
def test_a_phrase_is_found_where_its_words_follow_each_other(
    table: Shelf,
    phrase: str,
    text: str,
    is_found: bool,
):
    match = phrase_match(phrase)
    assert match is not None
    assert table.finds(match, text) == remembered(match, text) == contains(text, phrase) == is_found


@pytest.mark.parametrize("begun", ["बिल्", "बिल"])
def test_a_prefix_begins_words_and_is_not_their_middle(table: Shelf, begun: str):
    assert table.finds(word_match(begun, prefix=True), "बिल्ली")
    assert not table.finds(word_match(begun, prefix=True), "काबिल्")


@pytest.mark.parametrize("nothing", ["ि", "।", "ّ", "ـ", "\u200d", "❤️", "ा।ि"])
def test_marks_alone_ask_for_no_word_of_anything(table: Shelf, nothing: str):
    match = word_match(nothing)
    assert match is None or not table.finds(match, "बिल्ली שלום شكرا word")


@pytest.mark.parametrize("text", ["plain – “text”, naïve", "Ελληνικά, русский", "中文", "שלום", "سلام", "👍"])
def test_a_text_that_fts5_understands_gets_no_further_terms(text: str):
    assert not has_marks(text)
    assert "\uf7ff" not in index_terms(text)


def test_monstrous_words_take_no_time_and_ask_for_little():
    for unit in ("कि", "क ि", "aक", "بِ", "क\u200d"):
        text = unit * (100_000 // len(unit))
        assert len(loose_words(text)) <= 64
        assert word_match(text) is not None
        assert len(index_terms(text)) < 4 * len(text)


def test_a_snippet_shows_the_word_and_not_its_letters():
    text = f"बल लाल {FILLER} यह मेरी बिल्ली है {FILLER}"
    assert "मेरी बिल्ली है" in excerpt(text, ["बिल्ली"], 240).text
    pointed = f"{FILLER} בְּרֵאשִׁית {FILLER}"
    assert "בְּרֵאשִׁית" in excerpt(pointed, ["בראשית"], 240).text


def test_the_terminal_lights_up_the_word_and_not_its_letters():
    dress = Dress(strong=str, faint=str, match=lambda word: f"<{word}>", width=None)
    light_up = _highlighter("बिल्ली שלום", dress, ())
    assert light_up("बल बिल्ली लाल, שָׁלוֹם") == "बल <बिल्ली> लाल, <שָׁלוֹם>"


def test_texts_are_compared_by_words_and_not_by_consonants():
    assert word_set("काली बिल्ली।") == {"काली", "बिल्ली"}


@pytest.fixture
def shelves() -> KnowledgeBase:
    return library({"बिल्ली": "मेरी बिल्ली दूध पीती है।", "बल": "बल से लाल हुआ, बाल लंबे हैं।"})


def test_a_search_in_hindi_finds_its_word_alone(shelves: KnowledgeBase):
    assert titles(shelves.search("बिल्ली", mode="fts5")) == ["बिल्ली"]
    assert titles(shelves.search("दूध -बिल्ली", mode="fts5")) == []


def test_looser_rungs_and_suggestions_speak_in_words(shelves: KnowledgeBase):
    answer = shelves.search("बिल्लीी", mode="fts5")
    assert titles(answer) == ["बिल्ली"]
    shelves.note(Note("चिड़ियाघर में हाथी है", title="घर"))
    assert titles(shelves.search("चिड़िया", mode="fts5")) == ["घर"]
    assert "बिल्ली" in shelves.search("बिल्लो", mode="fts5").suggestions


def test_what_is_explained_is_written_as_people_write(shelves: KnowledgeBase):
    hit = shelves.search("बिल्ली", mode="fts5").hits[0]
    explained = shelves.explain("बिल्ली", hit.citation)
    assert [word.text for word in explained.known.words] == ["बिल्ली"]
