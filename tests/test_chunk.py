"""Chunks: exact offsets, whole structure, bounded size, for every kind of text but code."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from importlib.metadata import distributions
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.chunk import ChunkSize, chunk
from concord.text.cuts import sentence_starts
from concord.text.document import MAX_HEADER_BYTES, embeddable_text
from concord.types import DocumentType, Extracted, Piece

SMALL = ChunkSize(target=20, maximum=30, overlap=6)
WORDS = re.compile(r"\w{1,6}|[^\w\s]")


def token_starts(text: str) -> list[int]:
    return [word.start() for word in WORDS.finditer(text)]


def tokens_in(piece: Piece, starts: Sequence[int]) -> int:
    return bisect_left(starts, piece.end) - bisect_left(starts, piece.start)


def assert_valid(extracted: Extracted, size: ChunkSize = SMALL) -> list[Piece]:
    """Cut a text and check everything that holds for any text."""
    text, starts = extracted.text, token_starts(extracted.text)
    pieces = chunk(extracted, lambda _: starts, size)
    begin = covered = -1
    for piece in pieces:
        assert piece.text == text[piece.start : piece.end]
        assert piece.text.strip()
        assert piece.start > begin
        assert piece.end > covered
        assert not text[max(covered, 0) : piece.start].strip()
        assert tokens_in(piece, starts) <= size.maximum
        if not extracted.file_lines:
            assert piece.start_line == text.count("\n", 0, piece.start) + 1
            assert piece.end_line == text.count("\n", 0, piece.end) + 1
        if extracted.file_lines or extracted.page_starts or extracted.type in ("html", "office", "pdf"):
            assert piece.start_column is piece.end_column is None
        else:
            assert cited(text, piece).strip() == piece.text.strip()
        begin, covered = piece.start, piece.end
    assert not text[max(covered, 0) :].strip()
    return pieces


def cited(text: str, piece: Piece) -> str:
    """Return what lies between the lines and columns of a piece."""
    lines = text.split("\n")[piece.start_line - 1 : piece.end_line]
    lines[-1] = lines[-1][: piece.end_column]
    lines[0] = lines[0][(piece.start_column or 1) - 1 :]
    return "\n".join(lines)


FRONT = "---\nticket: ZQX-991\n# by whom\napprover: Wilhelmina\n---\n"


def with_front_matter(front: str, body: str) -> list[Piece]:
    return assert_valid(Extracted(front + body, "markdown", body_start=len(front)), ChunkSize(60, 84, 6))


def markdown(text: str, size: ChunkSize = SMALL) -> list[Piece]:
    return assert_valid(Extracted(text, "markdown"), size)


def sentences(count: int, word: str = "word") -> str:
    return " ".join(f"Sentence number {n} has a {word} in it." for n in range(count))


LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three",
        "Title",
        "=====",
        "-----",
        "",
        "",
        "```",
        "~~~",
        "    indented",
        "- item",
    ]
    + ["  - nested item", "1. first", "| a | b |", "|---|---|", "> quoted", "<div>", "<!-- open", "-->", "\t"]
    + ["Some words of prose, and more. And again some! Is it?", "12. not a list", "。完了。次の文。", "***"]
)


@given(st.lists(LINES, max_size=60).map("\n".join), st.sampled_from(get_args(DocumentType)))
@settings(max_examples=300)
def test_any_lines_in_any_order_are_covered_exactly_and_in_order(text: str, kind: DocumentType):
    assert_valid(Extracted(text, kind))


@given(st.text(max_size=400), st.sampled_from(get_args(DocumentType)))
@settings(max_examples=300)
def test_any_characters_are_covered_exactly_and_in_order(text: str, kind: DocumentType):
    assert_valid(Extracted(text, kind), ChunkSize(target=8, maximum=10, overlap=3))


@given(st.text(alphabet="ab. \n#-|`\t", max_size=600))
@settings(max_examples=200)
def test_many_small_tokens_never_exceed_the_maximum(text: str):
    markdown(text, ChunkSize(target=4, maximum=5, overlap=2))


DATA_LINES = st.sampled_from(
    [
        '[{"a": 1},',
        '{"b": [1, 2,',
        "3]},",
        "]",
        "}}",
        '"open',
        "it's // all",
        "/* x",
        '"a, ""b""\n',
        'x,"two',
        'lines",y',
    ]
    + ["name,colour", "# made by hand", "a;b", "1\t2", "", "{}", "  ,", '"k": {"v": "\\""}']
)


@given(st.lists(DATA_LINES, max_size=60).map("\n".join), st.sampled_from(["csv", "json"]))
@settings(max_examples=300)
def test_any_lines_of_tables_and_json_are_covered_exactly_and_in_order(text: str, language: str):
    assert_valid(Extracted(text, "data", language=language))


@given(st.lists(LINES, max_size=20).map("\n".join), st.lists(LINES, max_size=40).map("\n".join))
@settings(max_examples=200)
def test_any_front_matter_and_what_follows_it_are_covered_exactly_and_in_order(front: str, body: str):
    with_front_matter(f"---\n{front}\n---\n", body)
    with_front_matter(f"---\n{front}\n---", "")


def test_front_matter_of_a_few_lines_goes_with_the_first_section_and_is_no_heading():
    few = "---\nowner: Wilhelmina\n# or her deputy\n---\n"
    first, *others = with_front_matter(few, f"\n# Courier\n\n{sentences(4)}\n\n# Other\n\n{sentences(4)}")
    assert (first.start_line, first.heading) == (1, ("Courier",))
    assert first.text.startswith(few)
    assert [piece.heading for piece in others] == [("Other",)]


def test_front_matter_that_says_much_is_a_chunk_of_its_own():
    first, second = with_front_matter(FRONT, f"\n# Courier\n\n{sentences(5)}")
    assert (first.text, first.heading) == (FRONT.rstrip(), ())
    assert (first.start_line, first.end_line, second.start_line) == (1, 5, 7)
    assert second.heading == ("Courier",)


def test_front_matter_of_a_short_document_goes_with_it():
    (piece,) = with_front_matter(FRONT, "\n# Courier\n\nParcels go with Hermes.")
    assert (piece.start_line, piece.end_line, piece.heading) == (1, 9, ("Courier",))


def test_front_matter_is_all_that_some_documents_have():
    (piece,) = with_front_matter(FRONT, "")
    assert (piece.text, piece.heading) == (FRONT.rstrip(), ())


def test_front_matter_that_is_longer_than_a_chunk_is_cut_between_its_lines():
    front = "---\n" + "".join(f"field{n}: value number {n}\n" for n in range(40)) + "---\n"
    pieces = with_front_matter(front, f"\n{sentences(5)}")
    assert len(pieces) > 3
    assert all(line in front.split("\n") for piece in pieces[:-1] for line in piece.text.split("\n"))


@pytest.mark.promise("000.flow.chunking")
def test_chunks_follow_headings_and_carry_their_path():
    titles = ("# Guide", "## Install", "### Linux", "## Use")
    text = "\n\n".join(f"{title}\n\n{sentences(2)}" for title in titles)
    headings = [piece.heading for piece in markdown(text)]
    assert headings == [("Guide",), ("Guide", "Install"), ("Guide", "Install", "Linux"), ("Guide", "Use")]


def test_setext_headings_open_sections():
    text = f"Guide\n=====\n\n{sentences(2)}\n\nInstall\n-------\n\n{sentences(2)}"
    assert [piece.heading for piece in markdown(text)] == [("Guide",), ("Guide", "Install")]


def test_a_rule_below_a_long_paragraph_is_no_heading():
    text = "# Top\n\none line\nand another\nand a third\n---\n\nmore"
    assert {piece.heading for piece in markdown(text)} == {("Top",)}


def test_a_hash_inside_a_fence_is_not_a_heading():
    text = "# Setup\n\n```sh\n# install it\nmake\n```\n\n- step\n\n  ```sh\n  # again\n  make\n  ```\n\ndone"
    assert {piece.heading for piece in markdown(text)} == {("Setup",)}


def test_a_hash_inside_an_html_comment_is_not_a_heading():
    assert {piece.heading for piece in markdown("# Real\n\n<!--\n\n# Not\n\n-->\n\ntext")} == {("Real",)}


def test_headings_lose_their_markup():
    (piece,) = markdown("# Using `kb` with [the *API*](https://example.org) {#api}\n\ntext")
    assert piece.heading == ("Using kb with the API",)


def test_closing_hashes_are_not_part_of_a_heading():
    assert markdown("## C# ##\n\ntext")[0].heading == ("C#",)


def test_a_heading_directly_above_a_deeper_one_goes_with_it():
    text = f"# Guide\n\n## Install\n\n{sentences(2)}"
    (piece,) = markdown(text)
    assert piece.heading == ("Guide", "Install")
    assert piece.text.startswith("# Guide")


def test_a_listing_of_hugo_that_is_never_ended_does_not_swallow_the_headings_below():
    pieces = markdown(f"# One\n\n{{{{< highlight >}}}}\n\n{sentences(6)}\n\n# Two\n\n{sentences(6)}")
    assert {piece.heading for piece in pieces} == {("One",), ("Two",)}


def test_a_fence_stays_whole_while_it_fits():
    fence = "```python\n" + "\n".join(f"call{n}(x)" for n in range(4)) + "\n```"
    pieces = markdown(f"# Code\n\n{sentences(3)}\n\n{fence}\n\n{sentences(3)}")
    assert sum(fence in piece.text for piece in pieces) == 1


def test_a_fence_that_is_too_long_is_cut_between_lines():
    fence = "```\n" + "\n".join(f"line {n}" for n in range(60)) + "\n```"
    pieces = markdown(fence)
    assert len(pieces) > 1
    assert all(re.fullmatch(r"(```|line \d+)(\n(```|line \d+))*", piece.text) for piece in pieces)


def test_a_table_row_is_never_cut():
    rows = [f"| row {n} | some cell of it |" for n in range(30)]
    pieces = markdown("| a | b |\n|---|---|\n" + "\n".join(rows))
    assert len(pieces) > 1
    assert all(
        line in {*rows, "| a | b |", "|---|---|"} for piece in pieces for line in piece.text.split("\n")
    )


def test_a_short_table_is_not_cut_at_all():
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    pieces = markdown(f"{sentences(4)}\n\n{table}\n\n{sentences(4)}")
    assert sum(table in piece.text for piece in pieces) == 1


def test_list_items_stay_whole():
    items = [f"- item {n} with some words" for n in range(20)]
    pieces = markdown("\n".join(items))
    assert len(pieces) > 1
    assert all(line in items for piece in pieces for line in piece.text.split("\n"))


def test_an_introduction_stays_with_what_it_introduces():
    pieces = markdown(f"{sentences(2)}\n\n{sentences(1)} As follows:\n\n```\nmake all\n```\n\n{sentences(2)}")
    assert [piece for piece in pieces if "As follows:" in piece.text and "make all" in piece.text]


def test_a_heading_is_not_left_alone():
    pieces = markdown(f"# Top\n\n{sentences(20)}")
    assert pieces[0].text.startswith("# Top\n\nSentence")


def test_small_sections_of_one_chapter_are_joined_under_what_their_headings_share():
    text = "# Guide\n\n## A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree"
    (piece,) = markdown(text)
    assert piece.heading == ("Guide",)


def test_sections_that_share_no_heading_are_joined_under_none():
    (piece,) = markdown("# A\n\none\n\n# B\n\ntwo")
    assert piece.heading == ()


def test_what_stands_above_its_parts_keeps_its_own_heading():
    (piece,) = markdown("# Guide\n\n## Use\n\nsome\n\n### A\n\none\n\n### B\n\ntwo")
    assert piece.heading == ("Guide", "Use")


def test_scraps_of_a_page_whose_headings_are_all_top_level_are_joined_with_a_neighbour():
    words = "one two three four five six seven eight nine ten eleven twelve"
    parts = ["## vac\n\ncleans", f"## How\n\n{words}", f"## Why\n\n{words}", "## See\n\nother"]
    joined = ["\n\n".join(parts[:2]), "\n\n".join(parts[2:])]
    for page in (Extracted("\n\n".join(parts), "html"), Extracted("\n\n".join(parts), "markdown")):
        assert [piece.text for piece in assert_valid(page)] == joined


@pytest.mark.parametrize("title", ["How do {} ropes hold?", "2026-01-{}", "Monday, {} January 2026"])
def test_questions_and_days_stay_apart_however_short(title: str):
    parts = [f"## {title.format(n)}\n\nwell" for n in range(10, 20)]
    page = Extracted("\n\n".join(parts), "markdown")
    assert [piece.text for piece in assert_valid(page, ChunkSize(60, 80, 8))] == parts


def test_a_scrap_stays_alone_where_no_neighbour_has_room_for_it():
    words = "one two three four five six seven eight nine ten eleven twelve " * 2
    parts = ["## vac\n\ncleans", f"## How\n\n{words}".strip()]
    pieces = assert_valid(Extracted("\n\n".join(parts), "html"))
    assert [piece.text for piece in pieces] == parts


def test_sections_under_different_top_level_headings_are_not_joined():
    text = "\n\n".join(f"# Part {n}\n\nabout the subject of part {n}" for n in range(4))
    assert [piece.heading for piece in markdown(text)] == [(f"Part {n}",) for n in range(4)]


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n", "\u3000\n"])
def test_white_space_has_no_chunks(text: str):
    assert chunk(Extracted(text, "text"), token_starts, SMALL) == []


def test_the_usual_chunk_is_up_to_two_fifths_longer_than_wished():
    assert ChunkSize.for_target(320, overlap=32) == ChunkSize()
    assert ChunkSize.for_target(45, overlap=0).maximum == 63


def test_long_prose_is_cut_between_sentences_and_overlaps_a_little():
    size = ChunkSize.for_target(40, overlap=12)
    pieces = assert_valid(Extracted(sentences(30), "text"), size)
    assert len(pieces) > 3
    for before, after in zip(pieces, pieces[1:], strict=False):
        assert after.text.startswith("Sentence number")
        assert before.text.endswith("in it.")
        assert 0 < before.end - after.start <= len(sentences(2))


def test_chunks_of_different_sections_do_not_overlap():
    pieces = markdown(f"# A\n\n{sentences(9)}\n\n# B\n\n{sentences(9)}")
    border = next(n for n, piece in enumerate(pieces) if piece.heading == ("B",))
    assert pieces[border - 1].end <= pieces[border].start


def test_no_overlap_is_made_when_none_is_wanted():
    pieces = assert_valid(Extracted(sentences(30), "text"), ChunkSize.for_target(40, overlap=0))
    assert all(a.end <= b.start for a, b in zip(pieces, pieces[1:], strict=False))


def test_pieces_of_a_long_text_are_about_equal():
    size = ChunkSize.for_target(40, overlap=0)
    pieces = assert_valid(Extracted(sentences(100), "text"), size)
    lengths = [tokens_in(piece, token_starts(sentences(100))) for piece in pieces]
    assert min(lengths) >= size.target // 2


@pytest.mark.parametrize("kind", ["text", "markdown", "data"])
def test_a_megabyte_without_spaces_comes_out_in_pieces(kind: DocumentType):
    text = "x" * 1_000_000
    pieces = chunk(Extracted(text, kind), lambda t: range(0, len(t), 4), ChunkSize())
    assert "".join(piece.text for piece in pieces) == text
    assert max(len(piece.text) for piece in pieces) <= 448 * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "#",
        "`",
        "-",
        "- ",
        ".",
        ". ",
        "|",
        "|-",
        "<",
        "<!--\n",
        "```\n",
        "- ```x\n",
        "> a\n",
        "a\n===\n",
        "[a](",
    ]
    + ["\t", "x\n \n", "A. ", "漢字。", "\n"],
)
@pytest.mark.parametrize("kind", ["text", "markdown", "data", "code"])
def test_crafted_texts_cost_no_more_than_others(text: str, kind: DocumentType):
    """What costs its square in an expression or a loop takes minutes here."""
    assert chunk(Extracted(text * (100_000 // len(text)) + "x", kind), token_starts, ChunkSize())


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "]",
        "{[",
        '"',
        '"\\"',
        "'",
        "/*",
        "//",
        ",",
        ',"',
        '\n"',
        ',"x',
        '""',
        '"""',
        "[,",
        '{"a":',
        "[]\n",
    ],
)
@pytest.mark.parametrize("language", ["csv", "json"])
def test_crafted_data_cost_no_more_than_others(text: str, language: str):
    data = Extracted(text * (100_000 // len(text)) + "x", "data", language=language)
    assert chunk(data, token_starts, ChunkSize())


def test_a_tokenizer_that_sees_one_unknown_word_does_not_make_one_chunk_of_it():
    pieces = chunk(Extracted("x" * 200_000, "text"), lambda _: [0], ChunkSize())
    assert len(pieces) > 1
    assert "".join(piece.text for piece in pieces) == "x" * 200_000


def test_characters_of_many_tokens_still_make_progress():
    pieces = chunk(
        Extracted("🙂🙃" * 9, "text"), lambda t: [n // 7 for n in range(7 * len(t))], ChunkSize(4, 5, 0)
    )
    assert "".join(piece.text for piece in pieces) == "🙂🙃" * 9


def test_the_text_is_tokenised_once():
    seen: list[str] = []

    def counting(text: str) -> list[int]:
        seen.append(text)
        return token_starts(text)

    chunk(Extracted(f"# A\n\n{sentences(50)}", "markdown"), counting, SMALL)
    assert len(seen) == 1


def test_lines_are_those_of_the_file_when_the_extractor_gives_them():
    text = f"{sentences(3)}\n\n{sentences(3)}"
    pieces = assert_valid(Extracted(text, "html", file_lines=(10, 10, 42)), ChunkSize(30, 40, 0))
    assert (pieces[0].start_line, pieces[-1].end_line) == (10, 42)


def test_a_piece_has_the_page_on_which_it_begins_and_pages_are_preferred_borders():
    pages = [f"On page {n} there is much. {sentences(3)}" for n in range(1, 5)]
    text = "\n\n".join(pages)
    starts = tuple(text.index(page) for page in pages)
    size = ChunkSize.for_target(40, overlap=0)
    pieces = assert_valid(Extracted(text, "pdf", page_starts=starts), size)
    assert [(piece.page, piece.last_page) for piece in pieces] == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_a_piece_that_goes_over_to_another_page_ends_there():
    text = "A sentence begins on one page and ends on the next one."
    (piece,) = assert_valid(Extracted(text, "pdf", page_starts=(0, text.index("and"))))
    assert (piece.page, piece.last_page) == (1, 2)


def test_an_empty_page_does_not_shift_the_numbers():
    (piece,) = assert_valid(Extracted("third page", "pdf", page_starts=(0, 0, 0)))
    assert piece.page == 3


def test_underlined_headings_of_plain_text_give_the_path():
    text = (
        f"===\nTop\n===\n\n{sentences(2)}\n\nInstall\n-------\n{sentences(2)}\n\nUse\n---\n\n{sentences(2)}"
    )
    pieces = assert_valid(Extracted(text, "text"), ChunkSize(target=36, maximum=44, overlap=0))
    assert [piece.heading for piece in pieces] == [("Top",), ("Top", "Install"), ("Top", "Use")]


def test_nested_data_is_cut_where_outer_records_begin():
    record = "- name: x{0}\n  values:\n    - a{0}\n    - b{0}\n"
    pieces = assert_valid(
        Extracted("".join(record.format(n) for n in range(60)), "data"), ChunkSize.for_target(80, overlap=0)
    )
    assert all(piece.text.startswith("- name") for piece in pieces)


def table(text: str, size: ChunkSize = SMALL) -> list[Piece]:
    return assert_valid(Extracted(text, "data", language="csv"), size)


def values(text: str, size: ChunkSize = SMALL) -> list[Piece]:
    return assert_valid(Extracted(text, "data", language="json"), size)


def test_a_long_table_in_markdown_has_the_names_of_its_columns_in_every_chunk():
    rows = "".join(f"| row{n} | some words of {n} | {n} |\n" for n in range(80))
    first, *others = markdown(f"# Parts\n\n| Name | What \\| why | Count |\n|:--|---|--:|\n{rows}")
    assert first.heading == ("Parts",)
    assert len(others) > 3
    assert {piece.heading for piece in others} == {("Parts", "Name, What \\| why, Count")}


def test_what_follows_a_table_in_markdown_does_not_stand_under_the_names_of_its_columns():
    rows = "".join(f"| row{n} | some words of {n} | {n} |\n" for n in range(80))
    *_, last = markdown(f"# Parts\n\n| Name | What | Count |\n|---|---|---|\n{rows}\n{sentences(40)}")
    assert last.heading == ("Parts",)
    listing = "```\n" + "a line of a listing\n" * 80 + "```\n"
    assert {piece.heading for piece in markdown(f"# Parts\n\n{listing}")} == {("Parts",)}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_chunk_of_a_table_after_the_first_carries_the_names_of_its_columns(separator: str):
    rows = [["sku", "price_eur", "stock"], *([f"SK-{n}", f"{n}.5", str(7 * n)] for n in range(30))]
    first, *others = table("\n".join(map(separator.join, rows)))
    assert len(others) > 3
    assert (first.heading, first.text.split("\n")[0]) == ((), separator.join(rows[0]))
    assert {piece.heading for piece in others} == {("sku, price_eur, stock",)}


def test_what_stands_above_the_names_of_columns_is_none_of_them():
    text = "Parts in stock\n# by hand\n\nsku,price\n" + "".join(f"SK-{n},{n}\n" for n in range(40))
    assert table(text)[-1].heading == ("sku, price",)


def test_years_name_columns_too():
    text = "country,2019,2020\n" + "".join(f"place {n},{n},{n + 1}\n" for n in range(40))
    assert table(text)[-1].heading == ("country, 2019, 2020",)


@pytest.mark.parametrize("row", ["OF-101,Oslo,25", "pear,pear,green", "one field", "2012-01-15,opened"])
def test_a_first_row_of_values_names_no_columns(row: str):
    assert {piece.heading for piece in table("\n".join([row] * 40))} == {()}


def test_a_table_of_many_columns_has_a_heading_that_can_be_read():
    names = [f"column_{n}" for n in range(500)]
    (heading,) = table(",".join(names) + "\n" + "x,y,z\n" * 40, ChunkSize())[-1].heading
    assert heading.startswith("column_0, column_1, ")
    assert heading.endswith(" …")
    assert len(heading) <= 402


def test_chunks_of_a_table_leave_room_for_the_names_of_its_columns():
    text = "sku,price,stock\n" + "".join(f"SK{n},{n},{n}\n" for n in range(40))
    starts = token_starts(text)
    assert max(tokens_in(piece, starts) for piece in table(text)[1:]) <= SMALL.maximum - 5


def test_a_row_with_a_field_of_several_lines_is_never_cut():
    rows = [f'{n},"said on day {n}:\n""so\nbe it"", and left",yes\n' for n in range(12)]
    pieces = table("number,words,done\n" + "".join(rows))
    assert len(pieces) > 3
    assert all(sum(row.strip() in piece.text for piece in pieces) == 1 for row in rows)


def test_a_quote_that_nothing_closes_does_not_make_one_row_of_the_rest():
    text = "part,size\n" + "".join(f'pipe {n},"{n} inch\n' for n in range(41))
    assert all(line.startswith(("part", "pipe")) for piece in table(text) for line in piece.text.split("\n"))


RECORD = {"code": "KE", "name": "Kenya", "calling": ["+254", {"left": True}]}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_record_of_json_that_fits_is_never_cut(indent: int | None, is_named: bool):
    records = [RECORD | {"code": f"K{n}"} for n in range(30)]
    text = json.dumps({"type": "all", "countries": records} if is_named else records, indent=indent)
    pieces = values(text, ChunkSize(40, 56, 0))
    assert len(pieces) > 10
    whole = re.compile(r'"code": "K\d+",[^}]*true[^}]*}')
    assert sum(len(whole.findall(piece.text)) for piece in pieces) == 30


def test_lines_of_json_are_cut_between_them_and_one_that_is_too_long_between_its_values():
    lines = [json.dumps(RECORD | {"note": "so, {it} goes [on"}) for _ in range(8)]
    lines[3] = json.dumps({"many": [{"number": n, "text": f"value {n}"} for n in range(20)]})
    pieces = values("\n".join(lines), ChunkSize(50, 70, 0))
    whole = [piece for piece in pieces if "Kenya" in piece.text]
    assert all(line in lines for piece in whole for line in piece.text.split("\n") if "Kenya" in line)
    long = [piece.text for piece in pieces if '"number"' in piece.text]
    assert len(long) > 2
    assert all(one.count("{") - one.count("}") in (-1, 0, 1) for one in long)
    assert all(one.rstrip("}],").endswith('"') for one in long)


REGIONS = {
    region: {"name": f"the {region}", "limits": [RECORD | {"code": f"{region}{n}"} for n in range(20)]}
    for region in ("east", "west")
}


@pytest.mark.parametrize("indent", [None, 2])
def test_values_of_json_stand_under_the_keys_that_lead_to_them(indent: int | None):
    pieces = values(
        json.dumps({"version": 1, "all": REGIONS, "end": True}, indent=indent), ChunkSize(40, 56, 0)
    )
    for piece in pieces:
        regions = {region for region in REGIONS if f'"code": "{region}' in piece.text}
        assert len(regions) < 2
        begins = any(f'"{region}": {{' in piece.text for region in regions)
        assert begins or not regions or piece.heading == ("all", *regions, "limits")
    assert pieces[0].heading == ()
    assert sum(len(piece.heading) == 3 for piece in pieces) > 10


def test_keys_are_those_of_objects_and_arrays_that_do_not_fit():
    text = json.dumps([REGIONS["east"], {"small": [1, 2]}])
    assert {piece.heading for piece in values(text, ChunkSize(40, 56, 0))} == {(), ("limits",)}
    assert {piece.heading for piece in values(text, ChunkSize(4000, 5000, 0))} == {()}


def test_keys_without_quotes_lead_to_values_too():
    text = "{ /* as JSON5 has it */\n  limits: [" + "{size: 3, of: 'rope'}, " * 40 + "]}"
    assert values(text, ChunkSize(40, 56, 0))[-1].heading == ("limits",)


def test_deep_nesting_has_the_outermost_keys():
    text = '{"a": ' * 200 + '"x"' + "}" * 200
    assert max(len(piece.heading) for piece in values(text, ChunkSize(40, 56, 0))) <= 6


def test_a_bracket_stays_with_what_it_holds():
    pieces = values(json.dumps([RECORD] * 20, indent=2), ChunkSize(40, 56, 0))
    assert all(any(map(str.isalnum, piece.text)) for piece in pieces)


def test_indentation_at_the_start_of_a_chunk_is_kept():
    text = "\n".join(f"    step {n} of the listing" for n in range(40))
    assert all(piece.text.startswith("    step") for piece in markdown(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("Dr. Who met J. R. Smith, e.g. on Fri. afternoon. He left.", None),
        ("It costs 3.14 euro. Or 2.71.", ["It costs 3.14 euro. ", "Or 2.71."]),
        ("He said “no.” Then he left.", ["He said “no.” ", "Then he left."]),
        ("これは文です。次の文です！終わり", ["これは文です。", "次の文です！", "終わり"]),
        ("version 2.\nlower case goes on. New one.", ["version 2.\nlower case goes on. ", "New one."]),
        ("1. First point\n2. Second point", ["1. First point\n2. Second point"]),
        ("It was 1999. Then came 2000.", ["It was 1999. ", "Then came 2000."]),
        ("यह है। वह है।", ["यह है। ", "वह है।"]),
    ],
)
def test_sentences_begin_where_people_say_they_do(text: str, expected: list[str] | None):
    expected = expected or ["Dr. Who met J. R. Smith, e.g. on Fri. afternoon. ", "He left."]
    borders = [0, *sentence_starts(text, 0, len(text)), len(text)]
    assert [text[a:b] for a, b in zip(borders, borders[1:], strict=False)] == expected


def test_embeddable_text_says_where_the_chunk_stands():
    assert embeddable_text("Guide", ("Guide", "Install", "Linux"), "Run it.") == (
        "Guide > Install > Linux\n\nRun it."
    )


@pytest.mark.parametrize("text", ["## Linux\n\nRun it.", "def linux(self):\n    run()"])
def test_a_heading_that_the_text_begins_with_is_not_said_twice(text: str):
    assert embeddable_text("Guide", ("Install", "Linux"), text) == f"Guide > Install\n\n{text}"


def test_embeddable_text_without_title_and_heading_is_the_text():
    assert embeddable_text("", (), "Run it.") == "Run it."


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=6))
def test_a_header_is_short_whatever_the_headings(title: str, heading: list[str]):
    header = embeddable_text(title, heading, "\0").removesuffix("\0").strip()
    assert len(header.encode(errors="surrogatepass")) <= MAX_HEADER_BYTES
    assert "\n" not in header


def test_a_long_path_keeps_its_title_and_its_last_heading():
    path = tuple(f"level {n} " + "x" * 50 for n in range(5))
    header = embeddable_text("Title", path, "").strip()
    assert header.startswith("Title > ")
    assert path[-1] in header


def test_the_documents_of_installed_packages_all_give_valid_chunks():
    """Descriptions of packages are Markdown and reStructuredText as people write it."""
    checked = 0
    for package in distributions():
        text = package.metadata.json.get("description")
        if isinstance(text, str) and len(text) < 100_000:
            assert_valid(Extracted(text, "markdown"), ChunkSize())
            assert_valid(Extracted(text, "text"), SMALL)
            checked += 1
    assert checked > 5


def test_questions_and_days_below_a_title_are_not_joined_however_short():
    for entries in (["Why?", "When?", "Who?"], ["2026-05-01", "2 May 2026", "Friday, 2026-05-08"]):
        text = "# List\n\n" + "\n\n".join(f"## {entry}\n\n{sentences(2)}" for entry in entries)
        found = [piece.heading[1:] for piece in markdown(text)]
        assert found == [(entry,) for entry in entries]


def columns(piece: Piece) -> slice:
    assert piece.start_column is not None
    return slice(piece.start_column - 1, piece.end_column)


def test_pieces_within_a_line_have_the_columns_of_their_first_and_last_character():
    line = sentences(9)
    pieces = assert_valid(Extracted(f"{line}\n", "text"))
    assert len(pieces) > 1
    assert [line[columns(piece)] for piece in pieces] == [piece.text for piece in pieces]


def test_pieces_of_whole_lines_have_no_columns():
    text = "  \n\n".join(sentences(2, word) for word in ("pear", "plum", "fig"))
    pieces = assert_valid(Extracted(text, "text"))
    assert len(pieces) == 3
    assert {(piece.start_column, piece.end_column) for piece in pieces} == {(None, None)}


def test_columns_of_a_line_of_a_million_characters_are_right():
    data = json.dumps([{"name": f"pear {n}", "text": sentences(3)} for n in range(3000)])
    pieces = chunk(Extracted(data, "data", language="json"), token_starts)
    assert {piece.start_line for piece in pieces} == {1}
    assert [data[columns(piece)] for piece in pieces] == [piece.text for piece in pieces]
