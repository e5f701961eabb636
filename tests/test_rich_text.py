"""Rich Text: what is read of it, in any code page, and that nothing in it stops the reader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concord.extractors.rich_text import RichTextExtractor
from concord.types import Extracted

HEAD = (
    r"{\rtf1\ansi\ansicpg1252"
    r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset128 Mincho;}}"
)


def read(body: str) -> Extracted:
    return RichTextExtractor().extract(f"{HEAD}{body}}}".encode("latin-1"), "a.rtf")


def test_headings_are_known_by_their_level_or_by_their_style():
    extracted = read(
        r"{\stylesheet{\s1\fs32 heading 1;}{\s2\outlinelevel1 Chapter;}{\*\cs3 Title;}}"
        r"{\info{\title Walrus \'e9tude}{\author Ann}}"
        "\n"
        r"\pard\s1 The Handbook\par\pard\s2 Rules\par\pard\outlinelevel2 Deep\par\pard Plain.\line Next.\par"
    )
    assert extracted.text == "# The Handbook\n\n## Rules\n\n### Deep\n\nPlain.\nNext."
    assert (extracted.title, extracted.details) == ("Walrus étude", {"author": "Ann"})


def test_lists_tables_and_footnotes_are_read():
    extracted = read(
        r"\pard{\listtext\f2\'b7\tab}one\par\pard\ilvl1{\listtext\'b7\tab}two\par"
        r"\pard\intbl food\cell kg\cell\row\pard\intbl clams\par{\b raw}\cell 20\cell\row"
        r"\pard Clams{\footnote\pard\plain  Raw ones.} are food.\par"
    )
    assert extracted.text == (
        "- one\n  - two\n\n| food | kg |\n| --- | --- |\n| clams raw | 20 |\n\nClams (Raw ones.) are food."
    )


def test_what_is_no_text_is_left_out():
    extracted = read(
        r"{\colortbl;\red0;}{\header Page}{\*\generator Word;}{\pict\bin4 }}}}}{\pict 89504e47}"
        r"{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}} and {\v hidden}{\deleted gone}\{braces\}\par"
    )
    assert extracted.text == "a link and {braces}"


def test_letters_are_read_in_the_code_page_of_their_font_and_in_unicode():
    extracted = read(
        r"caf\'e9 \f1\'cf\'f0\'e8\'e2\'e5\'f2 \f2\'83\'65 \f0\u8364?5 \uc2\u252\'c3\'bc. \u-10179??\u-8704??"
        r" \ldblquote quoted\rdblquote\~\emdash"
    )
    assert extracted.text == "café Привет テ €5 ü. 😀 “quoted” —"


@given(st.text(alphabet="\\{}*'ab \n\r019-;u", max_size=60))
def test_no_sequence_of_marks_and_braces_stops_the_reader(body: str):
    read(body + r"}}}\par after")
