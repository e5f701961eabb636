"""Chunks: exact offsets, whole structure, bounded size, for every kind of text but code."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.text.chunk import ChunkSize, chunk
from concord.text.citations import OF_LINES
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
        if extracted.file_lines or extracted.page_starts or extracted.type not in OF_LINES:
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
        "# One", "## Two", "### Three", "Title", "=====", "-----", "", "", "```", "~~~", "    indented",
        "- item", "  - nested item", "1. first", "| a | b |", "|---|---|", "> quoted", "<div>", "<!-- open",
        "-->", "\t", "Some words of prose, and more. And again some! Is it?", "12. not a list",
        "。完了。次の文。", "***",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=60).map("\n".join), st.sampled_from(get_args(DocumentType)))
@settings(max_examples=300)
def test_any_lines_in_any_order_are_covered_exactly_and_in_order(text: str, kind: DocumentType):
    assert_valid(Extracted(text, kind))


@given(st.text(max_size=400), st.sampled_from(get_args(DocumentType)))
@settings(max_examples=300)
def test_any_characters_are_covered_exactly_and_in_order(text: str, kind: DocumentType):
    assert_valid(Extracted(text, kind), ChunkSize(target=8, maximum=10, overlap=3))


DATA_LINES = st.sampled_from(
    [
        '[{"a": 1},', '{"b": [1, 2,', "3]},", "]", "}}", '"open', "it's // all", "/* x", '"a, ""b""\n',
        'x,"two', 'lines",y',
        "name,colour", "# made by hand", "a;b", "1\t2", "", "{}", "  ,", '"k": {"v": "\\""}',
    ]
)  # fmt: skip


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


def test_a_hash_inside_a_fence_is_not_a_heading():
    text = "# Setup\n\n```sh\n# install it\nmake\n```\n\n- step\n\n  ```sh\n  # again\n  make\n  ```\n\ndone"
    assert {piece.heading for piece in markdown(text)} == {("Setup",)}


def test_headings_lose_their_markup():
    (piece,) = markdown("# Using `kb` with [the *API*](https://example.org) {#api}\n\ntext")
    assert piece.heading == ("Using kb with the API",)


def test_a_heading_directly_above_a_deeper_one_goes_with_it():
    text = f"# Guide\n\n## Install\n\n{sentences(2)}"
    (piece,) = markdown(text)
    assert piece.heading == ("Guide", "Install")
    assert piece.text.startswith("# Guide")


def test_a_fence_stays_whole_while_it_fits():
    fence = "```python\n" + "\n".join(f"call{n}(x)" for n in range(4)) + "\n```"
    pieces = markdown(f"# Code\n\n{sentences(3)}\n\n{fence}\n\n{sentences(3)}")
    assert sum(fence in piece.text for piece in pieces) == 1


def test_a_table_row_is_never_cut():
    rows = [f"| row {n} | some cell of it |" for n in range(30)]
    pieces = markdown("| a | b |\n|---|---|\n" + "\n".join(rows))
    assert len(pieces) > 1
    assert all(
        line in {*rows, "| a | b |", "|---|---|"} for piece in pieces for line in piece.text.split("\n")
    )


def test_an_introduction_stays_with_what_it_introduces():
    pieces = markdown(f"{sentences(2)}\n\n{sentences(1)} As follows:\n\n```\nmake all\n```\n\n{sentences(2)}")
    assert [piece for piece in pieces if "As follows:" in piece.text and "make all" in piece.text]


def test_small_sections_of_one_chapter_are_joined_under_what_their_headings_share():
    text = "# Guide\n\n## A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree"
    (piece,) = markdown(text)
    assert piece.heading == ("Guide",)


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


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\n", "\u3000\n"])
def test_white_space_has_no_chunks(text: str):
    assert chunk(Extracted(text, "text"), token_starts, SMALL) == []


def test_long_prose_is_cut_between_sentences_and_overlaps_a_little():
    size = ChunkSize.for_target(40, overlap=12)
    pieces = assert_valid(Extracted(sentences(30), "text"), size)
    assert len(pieces) > 3
    for before, after in zip(pieces, pieces[1:], strict=False):
        assert after.text.startswith("Sentence number")
        assert before.text.endswith("in it.")
        assert 0 < before.end - after.start <= len(sentences(2))


@pytest.mark.parametrize("kind", ["text", "markdown", "data"])
def test_a_megabyte_without_spaces_comes_out_in_pieces(kind: DocumentType):
    text = "x" * 1_000_000
    pieces = chunk(Extracted(text, kind), lambda t: range(0, len(t), 4), ChunkSize())
    assert "".join(piece.text for piece in pieces) == text
    assert max(len(piece.text) for piece in pieces) <= 448 * 4


CRAFTED = [
    "#", "`", "-", "- ", ".", ". ", "|", "|-", "<", "<!--\n", "```\n", "- ```x\n", "> a\n", "a\n===\n",
    "[a](",
    "\t", "x\n \n", "A. ", "漢字。", "\n",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", CRAFTED)
@pytest.mark.parametrize("kind", ["text", "markdown", "data", "code"])
def test_crafted_texts_cost_no_more_than_others(text: str, kind: DocumentType):
    """What costs its square in an expression or a loop takes half a minute here."""
    assert chunk(Extracted(text * (40_000 // len(text)) + "x", kind), token_starts, ChunkSize())


CRAFTED_DATA = [
    "[", "]", "{[", '"', '"\\"', "'", "/*", "//", ",", ',"', '\n"', ',"x', '""', '"""', "[,", '{"a":',
    "[]\n",
]  # fmt: skip


@pytest.mark.parametrize("text", CRAFTED_DATA)
@pytest.mark.parametrize("language", ["csv", "json"])
def test_crafted_data_cost_no_more_than_others(text: str, language: str):
    data = Extracted(text * (40_000 // len(text)) + "x", "data", language=language)
    assert chunk(data, token_starts, ChunkSize())


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


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_every_chunk_of_a_table_after_the_first_carries_the_names_of_its_columns(separator: str):
    rows = [["sku", "price_eur", "stock"], *([f"SK-{n}", f"{n}.5", str(7 * n)] for n in range(30))]
    first, *others = table("\n".join(map(separator.join, rows)))
    assert len(others) > 3
    assert (first.heading, first.text.split("\n")[0]) == ((), separator.join(rows[0]))
    assert {piece.heading for piece in others} == {("sku, price_eur, stock",)}


def test_a_row_with_a_field_of_several_lines_is_never_cut():
    rows = [f'{n},"said on day {n}:\n""so\nbe it"", and left",yes\n' for n in range(12)]
    pieces = table("number,words,done\n" + "".join(rows))
    assert len(pieces) > 3
    assert all(sum(row.strip() in piece.text for piece in pieces) == 1 for row in rows)


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


def columns(piece: Piece) -> slice:
    assert piece.start_column is not None
    return slice(piece.start_column - 1, piece.end_column)


def test_pieces_within_a_line_have_the_columns_of_their_first_and_last_character():
    line = sentences(9)
    pieces = assert_valid(Extracted(f"{line}\n", "text"))
    assert len(pieces) > 1
    assert [line[columns(piece)] for piece in pieces] == [piece.text for piece in pieces]
