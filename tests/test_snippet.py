"""A snippet shows where the words are, keeps the lines, and cuts nothing that it need not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.core.settings import TABLE
from concord.text.snippet import ELLIPSIS, snippet

FILLER = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore "
HINDI = "यहाँ और बातें लिखी हैं जो किसी ने नहीं पूछीं। " * 12
PROSE = st.lists(
    st.text("abcdefgh", min_size=1, max_size=12) | st.sampled_from(["needle", "thread", "北京在", "\n\n"]),
    max_size=200,
).map(" ".join)
WIDTH = int(TABLE["search.snippet_width"].default)
WORDS = st.lists(st.sampled_from(["needle", "thread", "a", "missing", "北京", "", "-"]), max_size=4)


def shown(text: str, *words: str, width: int = WIDTH) -> str:
    return snippet(text, words, width).text


def between(before: int, text: str, after: int) -> str:
    return FILLER * before + text + " " + FILLER * after


def lines_of(text: str) -> str:
    """Return a text as snippets show it: without empty lines, one blank between words."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


@pytest.mark.promise("002.snippet")
def test_a_long_text_is_cut_to_240_characters_around_the_match_with_ellipses():
    found = shown(between(20, "the needle is here", 20), "needle")
    assert found.startswith(ELLIPSIS)
    assert found.endswith(ELLIPSIS)
    assert 200 <= len(found) <= 242
    assert 20 < found.index("needle") < 70  # more is shown of what follows
    assert shown("needle " + FILLER * 20, "needle").startswith("needle")
    assert shown(FILLER * 20 + "needle", "needle").endswith("needle")


def test_lines_stay_lines_and_empty_ones_are_left_out():
    assert shown("  two\n\n\twords  here \n\n- and\r\n- more\n", "words") == "two\nwords here\n- and\n- more"
    assert shown("", "words") == ""
    assert len(shown("    deep = in_code(1)\n\n" * 40, "deep")) > 200
    code = "import os\n\ndef main() -> None:\n    run(os.environ)\n"
    assert "def main() -> None:\nrun(os.environ)\n" in shown(code + FILLER * 9, "main")


def test_without_a_match_the_beginning_is_shown():
    found = snippet(FILLER * 20, ["missing"], WIDTH)
    assert found.text.startswith("lorem ipsum")
    assert found.text.endswith(ELLIPSIS)
    assert found.at is None


def test_of_places_with_as_many_words_the_one_with_the_rarest_is_shown():
    text = between(0, "The default value is three.", 9) + between(0, "backlog is 100 by default.", 9)
    rare = {"default": 1.1, "value": 1.2, "backlog": 6.0}
    assert "value is three" in shown(text, *rare)
    found = snippet(text, [*rare], WIDTH, rare)
    assert "backlog is 100" in found.text
    assert text[found.at :].startswith("backlog")
    more = between(0, "The default value is three.", 9) + between(0, "backlog is 100.", 9)
    assert "value is three" in snippet(more, [*rare], WIDTH, rare).text


def test_the_place_with_most_different_words_closest_together_wins_and_then_the_first():
    text = between(10, "needle needle needle", 10) + between(0, "a needle and some thread", 10)
    assert "needle and some thread" in shown(text, "needle", "thread")
    far = "count: stop reading a file after NUM lines that are selected or matching"
    text = between(10, far, 10) + between(0, "print a count of matching lines for each file", 10)
    assert "print a count of matching lines" in shown(text, "count", "matching", "lines")
    assert "first installation" in shown(between(9, "first installation", 9) + "then install", "install")
    apart = shown(between(5, "needle", 10) + between(5, "thread", 5), "needle", "thread", width=80)
    assert "needle" in apart
    assert "thread" not in apart


@pytest.mark.parametrize("before", [0, 3, 400])
def test_the_line_that_was_asked_for_is_shown_and_most_of_what_follows(before: int):
    above, line = "pool.acquire(pool, acquire)\n" * before, "    def acquire(self):\n"
    text = f"{above}{line}        return self.first\n{'        pool.acquire()' * 40}"
    found = snippet(text, ["pool", "acquire"], WIDTH, line=len(above))
    assert "def acquire(self):\nreturn self.first\npool.acquire()" in found.text
    assert len(found.text) <= WIDTH + 2
    assert found.at == len(above)


FRONT = "---\ntags: [heating, house]\ncreated: 2025-01-07\n---\n"


@pytest.mark.parametrize("front", [FRONT, FRONT.replace("---", "+++").replace(":", " =")])
@pytest.mark.parametrize("word", ["boiler", "heating", "missing"])
def test_front_matter_is_left_out_where_the_text_below_it_has_the_words_as_well(front: str, word: str):
    found = shown(f"{front}\n# Heating\n\nThe boiler {FILLER * 9}", word)
    assert found.startswith(f"{ELLIPSIS}# Heating\nThe boiler lorem")
    assert len(found) > 200


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("INSTALLING", "installs"),
        ("user", "getUserName"),
        ("386", "386DX33"),
        ("C++", "C++17"),
        ("Strasse", "Straße"),
        ("oeufs", "Œufs"),
        ("京大", "北京大学"),
        ("한국", "한국어를"),
    ],
)
def test_the_match_is_found_however_it_is_written(word: str, written: str):
    assert written in shown(between(20, written, 20), word)


def test_letters_inside_another_word_are_no_match():
    for word in ("art", "eli", "am", "or"):
        assert f"here is {word} at last" in shown(between(10, f"here is {word} at last", 10), word)
    assert "मेरी बिल्ली है" in shown(f"बल लाल {HINDI} यह मेरी बिल्ली है {HINDI}", "बिल्ली")


def test_edges_fall_between_words_unless_a_word_is_longer_than_the_window():
    words = set(FILLER.split()) | {"needle"}
    for shift in range(40):
        found = shown("x" * shift + " " + between(9, "needle", 9), "needle", width=100)
        assert set(found.strip(ELLIPSIS).split()) <= words
    assert shown("x" * 5000, "y", width=100) == "x" * 100 + ELLIPSIS
    unspaced = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏" * 30
    assert len(shown(unspaced + "机器学习" + unspaced, "机器学习", width=60)) == 62
    marked = "e\u0323\u0302" * 400
    assert not any(shown(marked, "zzz", width=n).rstrip(ELLIPSIS).endswith("e") for n in range(50, 60))


@given(PROSE | st.text(max_size=600), WORDS | st.lists(st.text(max_size=6), max_size=3), st.integers(1, 300))
@settings(max_examples=300)
def test_any_snippet_is_a_piece_of_the_text_of_the_size_allowed(text: str, words: list[str], width: int):
    found = shown(text, *words, width=width)
    assert len(found) <= width + 2 * len(ELLIPSIS)
    assert lines_of(found.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS)) in lines_of(text)
    assert len(text) > width or lines_of(found) == lines_of(text)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["a", "a ", "aA", "A", "中", "e\u0301", " ", "a_b "])
def test_a_huge_text_has_a_snippet(unit: str):
    assert len(shown(unit * 60_000, "a", "aa", "中中", "e")) <= 242
