"""Rich Text: what is read of it, in any code page, and that nothing in it stops the reader."""

from __future__ import annotations

from concord.extract.open_document import RichTextExtractor
from concord.types import Extracted

HEAD = (
    r"{\rtf1\ansi\ansicpg1252"
    r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial;}{\f2\fcharset128 Mincho;}}"
)


def read(body: str) -> Extracted:
    return RichTextExtractor().extract(f"{HEAD}{body}}}".encode("latin-1"), "a.rtf")


def test_paragraphs_lists_and_rows_are_read_and_the_title_is_known():
    extracted = read(
        r"{\stylesheet{\s1\fs32 heading 1;}}{\info{\title Walrus \'e9tude}{\author Ann}}"
        "\n"
        r"\pard\s1 The Handbook\par\pard Plain.\line Next.\par\pard{\listtext\'95\tab}one\par"
        r"\pard\intbl food\cell kg\cell\row\pard\intbl clams\cell 20\cell\row # 7\par"
    )
    assert extracted.text == ("The Handbook\n\nPlain.\n\nNext.\n\n• one\n\nfood | kg\n\nclams | 20\n\n\\# 7")
    assert (extracted.title, extracted.details) == ("Walrus étude", {"author": "Ann"})


def test_what_is_no_text_is_left_out():
    extracted = read(
        r"{\colortbl;\red0;}{\header Page}{\*\generator Word;}{\pict\bin4 }}}}}{\pict 89504e47}"
        r"{\field{\*\fldinst HYPERLINK x}{\fldrslt a link}} and \{braces\}\par"
    )
    assert extracted.text == "a link and {braces}"


def test_letters_are_read_in_the_code_page_of_their_font_and_in_unicode():
    extracted = read(
        r"caf\'e9 \f1\'cf\'f0\'e8\'e2\'e5\'f2 \f2\'83\'65 \f0\u8364?5 \uc2\u252\'c3\'bc."
        r" \uc1\u-10179?\u-8704? \ldblquote quoted\rdblquote\~\emdash"
    )
    assert extracted.text == "café Привет テ €5 ü. 😀 “quoted” —"


def test_footnotes_are_read_where_they_are_called():
    note = r"Clams{\super\chftn{\footnote\pard\plain\chftn Raw.}} are food."
    assert read(note).text == "Clams Raw. are food."
