"""A snippet shows where the words are, and cuts nothing that it need not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.settings import TABLE
from concord.text.snippet import ELLIPSIS, excerpt

FILLER = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore "
PROSE = st.lists(
    st.text("abcdefgh", min_size=1, max_size=12) | st.sampled_from(["needle", "Needles", "thread", "北京在"]),
    max_size=200,
).map(" ".join)
WIDTH = int(TABLE["search.snippet_width"].default)
WORDS = st.lists(st.sampled_from(["needle", "thread", "a", "missing", "北京", "", "-"]), max_size=4)


def snippet(text: str, words: Sequence[str], width: int = WIDTH) -> str:
    return excerpt(text, words, width).text


def between(before: int, text: str, after: int) -> str:
    return FILLER * before + text + " " + FILLER * after


@pytest.mark.promise("002.snippet")
def test_a_long_text_is_cut_to_240_characters_around_the_match_with_ellipses():
    found = snippet(between(20, "the needle is here", 20), ["needle"])
    assert found.startswith(ELLIPSIS)
    assert found.endswith(ELLIPSIS)
    assert 200 <= len(found) <= 242
    assert 20 < found.index("needle") < 70


def test_more_is_shown_of_what_follows_the_words_than_of_what_precedes_them():
    found = snippet(
        between(20, "the price of a needle", 1) + f"is 300 euro {FILLER * 9}", ["price", "needle"]
    )
    assert "is 300 euro" in found
    assert found.index("the price") > 20


def test_of_places_with_as_many_words_the_one_with_the_rarest_is_shown():
    text = between(0, "The default value is three.", 9) + between(0, "backlog is 100 by default.", 9)
    words = ["default", "value", "backlog"]
    rare = {"default": 1.1, "value": 1.2, "backlog": 6.0}
    assert "value is three" in snippet(text, words)
    assert "backlog is 100" in excerpt(text, words, WIDTH, rare).text


ABOUT_COOKIES = (
    "# Session cookies instead of tokens in the browser\n\n"
    + between(0, "Status: accepted.", 4)
    + "\n\n## Decision\n\n"
    + between(0, "The page keeps a cookie.", 4)
    + "\n\n## Why no tokens\n\nA stolen one stays valid.\n\n## Costs\n\n"
    + between(0, "None, but for tokens of phones.", 4)
)


def test_a_section_whose_heading_has_words_is_shown_rather_than_the_title_above_it():
    words = ["tokens", "browser"]
    assert "instead of tokens" in excerpt(ABOUT_COOKIES, words, WIDTH).text  # not known to have headings
    shown = excerpt(ABOUT_COOKIES, words, WIDTH, has_headings=True)
    assert "A stolen one stays valid" in shown.text
    assert ABOUT_COOKIES[shown.at :].startswith("tokens\n\nA stolen")


def test_what_follows_a_heading_with_the_words_is_shown_where_no_other_heading_has_them():
    shown = excerpt(ABOUT_COOKIES, ["session", "browser", "phones"], WIDTH, has_headings=True).text
    assert shown.startswith("# Session cookies")
    listing = f"# Tokens in the browser\n\n{FILLER * 4}\n\n```\n# tokens\n```\n"
    assert excerpt(listing, ["tokens"], WIDTH, has_headings=True).text.startswith("# Tokens in")


def test_more_words_are_shown_rather_than_a_rarer_one():
    text = between(0, "The default value is three.", 9) + between(0, "backlog is 100.", 9)
    rare = {"default": 1.1, "value": 1.2, "backlog": 6.0}
    assert "value is three" in excerpt(text, [*rare], WIDTH, rare).text


@pytest.mark.parametrize("before", [0, 3, 400])
def test_the_line_that_was_asked_for_is_shown_and_most_of_what_follows(before: int):
    above, line = "pool.acquire(pool, acquire)\n" * before, "    def acquire(self):\n"
    text = f"{above}{line}        return self.first\n{'        pool.acquire()' * 40}"
    shown = excerpt(text, ["pool", "acquire"], WIDTH, line=len(above))
    assert "def acquire(self): return self.first pool.acquire()" in shown.text
    assert len(shown.text) <= WIDTH + 2
    assert shown.at == len(above)


def test_a_line_that_was_asked_for_may_be_longer_than_a_snippet():
    text = f"first\n{'word ' * 200}\nlast"
    assert excerpt(text, ["last"], WIDTH, line=6).text.startswith(("word", "…word"))


def test_of_a_table_the_row_is_shown_and_not_the_names_of_its_columns():
    stores = "store,city,manager\n" + "".join(f"ST{n},Town{n},Name{n}\n" for n in range(40))
    words = ["store", "manager", "Town30"]
    assert "Town30,Name30" in excerpt(stores, words, WIDTH, is_table=True).text
    assert excerpt(stores, ["manager"], WIDTH, is_table=True).text.startswith("store,city,manager ST0")


def test_a_table_without_names_is_shown_from_its_first_row_on():
    towns = "".join(f"{n},Town{n},Name{n} of the old town\n" for n in range(40))
    assert excerpt(towns, ["Town0", "old"], WIDTH, is_table=True).text.startswith("0,Town0,Name0")


ROWS = "| Setting | Default | Unit |\n|:--|---|--:|\n" + "".join(
    f"| needle{n} | {n}00 | seconds and {FILLER[:30]} |\n" for n in range(40)
)


def test_a_row_of_a_markdown_table_is_shown_from_its_beginning_after_the_names_of_its_columns():
    text = f"# Settings\n\n{FILLER * 9}\n\n{ROWS}\n{FILLER * 9}"
    found = snippet(text, ["needle7"])
    assert found.startswith("| Setting | Default | Unit | … | needle7 | 700 | seconds")
    assert 200 <= len(found) <= 242
    assert snippet(text, ["700", "seconds"]).startswith("| Setting | Default | Unit | … | needle7 | 700 ")


def test_a_row_of_dashes_is_not_taken_for_the_rule_below_the_names():
    rows = f"| rope | 1 | {FILLER} |\n" * 9
    table = f"| Name | Count | Note |\n|---|---|---|\n{rows}| lamp | - | none |\n| - | - | - |\n{rows}"
    assert snippet(f"{table}| needle | 7 | m |", ["needle"]).startswith("| Name | Count | Note | … ")
    assert "lamp" not in snippet(f"| lamp | a |\n{rows}| lamp | b |\n| - | - |\n{rows}| needle |", ["needle"])


def test_the_names_of_columns_are_shown_once_where_their_row_is_near():
    found = snippet(f"{FILLER * 9}\n\n{ROWS}", ["needle0"])
    assert found.count("Setting") == 1
    assert "|:--|---|--:| | needle0 | 000 |" in found


def test_of_a_row_that_is_longer_than_a_snippet_what_is_around_the_words_is_shown_after_the_names():
    row = f"| lamp | {FILLER * 9} a needle in the hay {FILLER * 9} |"
    found = snippet(f"| Name | What it is |\n|---|---|\n| rope | {FILLER * 9} |\n{row}", ["needle"])
    assert found.startswith("| Name | What it is | … ")
    assert "a needle in the hay" in found
    assert len(found) <= 242


@pytest.mark.parametrize(
    "above",
    [
        "",
        "| 1 | 2.5 |\n|---|---|\n",
        f"| {FILLER * 9} | unit |\n|---|---|\n",
        f"| Name | Unit |\n|---|---|\n| rope | m |\n\n{FILLER}\n\n",
    ],
    ids=["no names", "values", "names as long as a snippet", "names of another table"],
)
def test_without_names_of_its_own_columns_a_row_is_shown_as_any_text(above: str):
    filler = f"| rope | {FILLER} |\n" * 9
    found = snippet(f"{above}{filler}| needle | 700 |\n{filler}", ["needle"])
    assert found.startswith(ELLIPSIS)
    assert "| needle | 700 |" in found


FRONT = "---\ntags: [heating, house]\ncreated: 2025-01-07\n---\n"


@pytest.mark.parametrize("front", [FRONT, FRONT.replace("---", "+++").replace(":", " =")])
@pytest.mark.parametrize("word", ["boiler", "heating", "missing"])
def test_front_matter_is_left_out_where_the_text_below_it_has_the_words_as_well(front: str, word: str):
    found = snippet(f"{front}\n# Heating\n\nThe boiler {FILLER * 9}", [word])
    assert found.startswith(f"{ELLIPSIS}# Heating The boiler lorem")
    assert len(found) > 200


def test_front_matter_is_shown_where_it_alone_has_the_words():
    found = snippet(f"{FRONT}\n# Heating\n\nThe boiler {FILLER * 9}", ["created"])
    assert found.startswith("--- tags: [heating, house] created")
    assert snippet(FRONT, ["created"]) == " ".join(FRONT.split())


def test_what_stands_between_two_rules_is_no_front_matter():
    assert snippet(f"---\nA boiler for sale.\n---\n{FILLER * 9}", ["missing"]).startswith("--- A boiler")


@pytest.mark.promise("002.snippet")
def test_only_the_side_that_was_cut_has_an_ellipsis():
    at_start = snippet("needle " + FILLER * 20, ["needle"])
    at_end = snippet(FILLER * 20 + "needle", ["needle"])
    assert at_start.startswith("needle")
    assert at_start.endswith(ELLIPSIS)
    assert at_end.startswith(ELLIPSIS)
    assert at_end.endswith("needle")


def test_a_short_text_is_shown_whole_with_its_white_space_collapsed():
    assert snippet("  two\n\n\twords  here ", ["words"]) == "two words here"
    assert snippet("", ["words"]) == ""


def test_without_a_match_the_beginning_is_shown():
    found = snippet(FILLER * 20, ["missing"])
    assert found.startswith("lorem ipsum")
    assert found.endswith(ELLIPSIS)
    assert snippet(FILLER * 20, []) == found


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("install", "Installation"),
        ("INSTALLING", "installs"),
        ("cafe", "Café"),
        ("naïve", "naive"),
        ("user", "getUserName"),
        ("getUserName", "get_user_name"),
        ("386", "386DX33"),
        ("don't", "don’t"),
        ("C++", "C++17"),
        ("foo-bar", "foo/bar"),
        ("Strasse", "Straße"),
        ("Straße", "STRASSE"),
        ("straße", "Straße"),
        ("oeufs", "Œufs"),
        ("authent", "authentication"),  # a prefix, when nothing matches better
        ("京大", "北京大学"),
        ("猫", "我喜欢猫"),
        ("ดี", "อากาศดีมาก"),
        ("한국", "한국어를"),
    ],
)
def test_the_match_is_found_however_it_is_written(word: str, written: str):
    assert written in snippet(between(20, written, 20), [word])


@pytest.mark.parametrize("word", ["art", "eli", "am", "or"])
def test_letters_inside_another_word_are_no_match(word: str):
    text = FILLER * 10 + f"here is {word} at last " + FILLER * 10
    assert f"here is {word} at last" in snippet(text, [word])


def test_the_place_with_most_different_words_wins():
    text = between(10, "needle needle needle", 10) + between(0, "a needle and some thread", 10)
    assert "needle and some thread" in snippet(text, ["needle", "thread"])


def test_of_equal_places_the_first_wins():
    text = between(10, "first needle", 10) + between(0, "second needle", 10)
    assert "first needle" in snippet(text, ["needle"])


def test_of_places_with_the_same_words_the_one_that_has_them_closest_together_wins():
    far = "count: stop reading a file after NUM lines that are selected or matching"
    text = between(10, far, 10) + between(0, "print a count of matching lines for each file", 10)
    assert "print a count of matching lines" in snippet(text, ["count", "matching", "lines"])


@pytest.mark.parametrize(
    ("first", "second"), [("installation", "install"), ("thread needle", "needle thread")]
)
def test_neither_the_form_of_a_word_nor_the_order_of_two_makes_a_place_narrower(first: str, second: str):
    text = between(10, f"here {first}", 10) + between(0, f"there {second}", 10)
    assert f"here {first}" in snippet(text, second.split())


def test_words_further_apart_than_the_width_are_not_joined():
    found = snippet(between(5, "needle", 10) + between(5, "thread", 5), ["needle", "thread"], 80)
    assert "needle" in found
    assert "thread" not in found


def test_words_are_shown_whole_at_the_edges():
    words = set(FILLER.split()) | {"needle"}
    for shift in range(40):
        found = snippet("x" * shift + " " + between(9, "needle", 9), ["needle"], 100)
        assert set(found.strip(ELLIPSIS).split()) <= words


def test_a_word_longer_than_the_window_is_cut_rather_than_left_out():
    found = snippet("x" * 5000, ["y"], 100)
    assert found == "x" * 100 + ELLIPSIS


def test_unspaced_text_fills_the_window():
    text = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏" * 30
    found = snippet(text + "机器学习" + text, ["机器学习"], 60)
    assert "机器学习" in found
    assert len(found) == 62


def test_an_accent_is_never_parted_from_its_letter():
    text = "e\u0323\u0302" * 400
    for width in range(50, 60):
        assert not snippet(text, ["zzz"], width).rstrip(ELLIPSIS).endswith("e")


@given(PROSE | st.text(max_size=600), WORDS | st.lists(st.text(max_size=6), max_size=3), st.integers(1, 300))
@settings(max_examples=300)
def test_any_snippet_is_a_piece_of_the_text_of_the_size_allowed(text: str, words: list[str], width: int):
    found = snippet(text, words, width)
    flat = " ".join(text.split())
    assert len(found) <= width + 2 * len(ELLIPSIS)
    assert found == flat or found.removeprefix(ELLIPSIS).removesuffix(ELLIPSIS) in flat
    assert len(flat) > width or found == flat


@given(PROSE)
@settings(max_examples=100)
def test_a_word_that_is_there_is_shown(text: str):
    found = snippet(f"{text} needle {text}", ["needle"], 60)
    assert "needle" in found.lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a" * 60_000,
        "a " * 30_000,
        "aA" * 30_000,
        "A" * 60_000,
        "中" * 60_000,
        "e\u0301" * 30_000,
        " " * 60_000,
    ],
    ids=["one word", "short words", "humps", "capitals", "unspaced", "marks", "blank"],
)
def test_a_huge_text_is_searched_in_one_pass(text: str):
    found = snippet(text, ["a", "aa", "中中", "e"], 240)
    assert len(found) <= 242
