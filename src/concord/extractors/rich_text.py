"""Rich Text (.rtf) as Markdown: headings, lists, tables and notes, in whatever code pages its fonts have.

It has lines, but programs break them where they like: citations count those of the Markdown, which is what
`kb get` shows.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import NamedTuple

from concord.extractors.markdown import first_heading
from concord.extractors.markdown_lines import LOWEST_HEADING, MarkdownLines
from concord.extractors.office_package import checked
from concord.extractors.plain import MAX_TITLE
from concord.text.clean import clean
from concord.text.word_lists import listed
from concord.types import Extracted, Json

# A word with its number, a byte in hex, a symbol, a brace, or text. Line ends mean nothing.
_TOKEN = re.compile(
    rb"\\(?:([a-zA-Z]{1,32})(-?[0-9]{1,10})?[ ]?|'([0-9a-fA-F]{2})|([^a-zA-Z]))"
    rb"|([{}])|([^\\{}\r\n]++)|[\r\n]++|\\"
)
# Groups whose text is not text of the document.
_LEFT_OUT = listed(
    "colortbl pict objdata objclass objname objalias objsect header headerl headerr headerf footer footerl "
    "footerr footerf fldinst themedata datastore latentstyles xmlnstbl filetbl revtbl listtable "
    "listoverridetable rsidtbl generator nonshppict sp xe tc tcn private pnseclvl ud atnid atnauthor"
)
_SHOWN = frozenset({"shpinst", "shptxt"})  # read, though marked as optional: they hold text in shapes
_CHARACTERS = {
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "tab": " ",
    "nestcell": " ",
    "nestrow": " ",
}
_SYMBOLS = {b"~": " ", b"_": "-", b"\\": "\\", b"{": "{", b"}": "}"}
_CHARSETS = {  # Windows' number for the character set of a font → its encoding
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    134: "gbk",
    136: "big5",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}
_HEADING_STYLE = re.compile(r"(?:title|heading ([1-9]));", re.IGNORECASE)
_DEEPEST = 8  # level of lists
_BREAK = "\n"  # ends a line inside a paragraph


class RichTextExtractor:
    """Reads .rtf."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the document's text.

        Raises:
            TooLarge: it holds more text than is worth indexing.
        """
        document = _Document()
        document.read(data)
        text = checked(clean(document.markdown()))
        title = document.told.pop("title", "")[:MAX_TITLE] or first_heading(text)
        details: dict[str, Json] = {key: said for key, said in document.told.items() if said}
        return Extracted(text, "office", title=title, details=details)


class _Group(NamedTuple):
    """What holds inside a pair of braces."""

    part: str = ""  # which of `_PARTS` this is in; empty in the text itself
    is_left_out: bool = False
    is_hidden: bool = False  # hidden or deleted text
    encoding: str = ""  # of the font; empty for the document's own
    fallbacks: int = 1  # characters to pass over after each \u, written for programs without Unicode
    heading: int = 0  # level of the paragraph as a heading; 0 if it is none
    depth: int = 0  # level of the paragraph in nested lists
    is_in_table: bool = False


class _Document:
    """Takes the tokens of a file in order."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self._page = MarkdownLines()
        self._group = _Group()
        self._outer: list[tuple[_Group, int]] = []  # groups around this one, each with its len(self._texts)
        self._encoding = "cp1252"
        self._bytes = bytearray()  # text that is not decoded yet
        self._texts: list[list[str]] = [[]]  # the text of the open paragraph, then of the parts open in it
        self._to_pass = 0  # characters to pass over, see `_Group.fallbacks`
        self._is_optional = False  # after \*: a group with an unknown word is left out
        self._is_item = False
        self._cells: list[str] = []
        self._is_after_row = False
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._headings: dict[int, int] = {}  # number of a style → its level as a heading
        self._style = 0

    def read(self, data: bytes) -> None:
        """Take a whole file."""
        at = 0
        while found := _TOKEN.match(data, at):
            at = found.end()
            word, number, code, symbol, brace, text = found.groups()
            if word == b"bin":
                at += max(0, int(number or 0))
            elif word:
                self._word(word.decode(), int(number) if number else None)
            elif code or text:
                self._take(text or bytes.fromhex(code.decode()))
            elif brace:
                self._brace(brace)
            elif symbol:
                self._symbol(symbol)

    def markdown(self) -> str:
        """Return what was written."""
        del self._texts[1:]
        self._group = _Group()
        self._decode()
        self.end_row()
        self.end_paragraph()
        return self._page.markdown()

    def _brace(self, brace: bytes) -> None:
        self._decode()
        self._is_optional = False
        if brace == b"{":
            self._outer.append((self._group, len(self._texts)))
        else:
            self._end_group()

    def _symbol(self, symbol: bytes) -> None:
        self._decode()
        self._is_optional = symbol == b"*"
        if symbol in b"\r\n":
            self.end_paragraph()
        else:
            self._say(_SYMBOLS.get(symbol, ""))

    def _word(self, word: str, number: int | None) -> None:
        self._decode()
        is_optional, self._is_optional = self._is_optional, False
        if action := _WORDS.get(word):
            action(self, number)
        elif word in _CHARACTERS:
            self._say(_CHARACTERS[word])
        elif word in _PARTS:
            self._group = self._group._replace(part=word)
            self._texts.append([])
        elif word in _LEFT_OUT or (is_optional and word not in _SHOWN):
            self._group = self._group._replace(is_left_out=True)

    def _end_group(self) -> None:
        if not self._outer:
            return
        ended = self._group
        self._group, texts = self._outer.pop()
        self._to_pass = 0
        if ended.part == "stylesheet":
            self._end_style()
        if len(self._texts) > texts:
            said = " ".join("".join(chain.from_iterable(self._texts[texts:])).split())
            del self._texts[texts:]
            if action := _PARTS[ended.part]:
                action(self, said)

    def _end_style(self) -> None:
        found = _HEADING_STYLE.match("".join(self._texts[-1]).strip())
        self._texts[-1].clear()
        if found:
            self._headings.setdefault(self._style, min(int(found[1] or 1), LOWEST_HEADING))

    def _take(self, data: bytes) -> None:
        self._is_optional = False
        passed = min(self._to_pass, len(data))
        self._to_pass -= passed
        self._bytes += data[passed:]

    def _decode(self) -> None:
        if self._bytes:
            self._say(self._bytes.decode(self._group.encoding or self._encoding, "replace"))
            self._bytes.clear()

    def _say(self, text: str) -> None:
        if not self._group.is_left_out and not self._group.is_hidden:
            self._texts[-1].append(text)

    def _said(self) -> str:
        """Return the text of the paragraph; characters beyond 16 bits came as surrogate pairs."""
        text = "".join(self._texts[0])
        self._texts[0].clear()
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def end_paragraph(self, _: int | None = None) -> None:
        if self._group.part or self._group.is_in_table:
            self._say(" ")
            return
        if said := self._said().strip():
            self._write(said)
            self._is_after_row = False
        self._is_item = False

    def _write(self, said: str) -> None:
        group = self._group
        tags = [f"h{group.heading}"] if group.heading else [*["ul"] * (group.depth + 1), "li"] * self._is_item
        for tag in tags or ["p"]:
            self._page.open(tag, {})
        for number, line in enumerate(said.split(_BREAK)):
            if number:
                self._page.open("br", {})
            self._page.text(line)
        for tag in reversed(tags or ["p"]):
            self._page.close(tag)

    def line_break(self, _: int | None) -> None:
        self._say(" " if self._group.part or self._group.heading else _BREAK)

    def end_cell(self, _: int | None) -> None:
        if not self._group.part:
            self._cells.append(self._said())

    def end_row(self, _: int | None = None) -> None:
        if self._cells and not self._group.part:
            if not self._is_after_row:
                self._page.begin_table()
            self._page.row(self._cells)
            self._cells, self._is_after_row = [], True

    def begin_paragraph(self, _: int | None) -> None:
        self._group = self._group._replace(heading=0, depth=0, is_in_table=False)

    def take_table(self, _: int | None) -> None:
        self._group = self._group._replace(is_in_table=True)

    def take_outline(self, level: int | None) -> None:
        heading = min((level or 0) + 1, LOWEST_HEADING) if 0 <= (level or 0) < 9 else 0
        if self._group.part == "stylesheet":
            self._headings[self._style] = heading
        else:
            self._group = self._group._replace(heading=heading)

    def take_style(self, number: int | None) -> None:
        self._style = number or 0
        self._group = self._group._replace(heading=self._headings.get(self._style, 0))

    def take_depth(self, level: int | None) -> None:
        self._group = self._group._replace(depth=min(max(level or 0, 0), _DEEPEST))

    def take_font(self, number: int | None) -> None:
        self._font = number or 0
        self._group = self._group._replace(encoding=self._fonts.get(self._font, ""))

    def take_charset(self, number: int | None) -> None:
        if encoding := _CHARSETS.get(number or 0):
            self._fonts[self._font] = encoding

    def take_code_page(self, number: int | None) -> None:
        try:
            self._encoding = codecs.lookup(f"cp{number}").name
        except LookupError:
            self._encoding = "cp1252"

    def take_mac(self, _: int | None) -> None:
        self._encoding = "mac_roman"

    def take_plain(self, _: int | None) -> None:
        self._group = self._group._replace(is_hidden=False, encoding="")

    def take_hidden(self, number: int | None) -> None:
        self._group = self._group._replace(is_hidden=number != 0)

    def take_fallbacks(self, number: int | None) -> None:
        self._group = self._group._replace(fallbacks=max(number or 0, 0))

    def take_character(self, number: int | None) -> None:
        self._say(chr((number or 0) & 0xFFFF))
        self._to_pass = self._group.fallbacks

    def take_title(self, said: str) -> None:
        self.told["title"] = said

    def take_author(self, said: str) -> None:
        self.told["author"] = said

    def take_subject(self, said: str) -> None:
        self.told["subject"] = said

    def take_note(self, said: str) -> None:
        self._say(f" ({said}) ")

    def take_bullet(self, _: str) -> None:
        self._is_item = True


_WORDS: Mapping[str, Callable[[_Document, int | None], None]] = {
    **dict.fromkeys(("par", "sect", "page"), _Document.end_paragraph),
    "line": _Document.line_break,
    "cell": _Document.end_cell,
    "row": _Document.end_row,
    "pard": _Document.begin_paragraph,
    "intbl": _Document.take_table,
    "outlinelevel": _Document.take_outline,
    "s": _Document.take_style,
    "ilvl": _Document.take_depth,
    "f": _Document.take_font,
    "fcharset": _Document.take_charset,
    "ansicpg": _Document.take_code_page,
    "mac": _Document.take_mac,
    "plain": _Document.take_plain,
    **dict.fromkeys(("v", "deleted"), _Document.take_hidden),
    "uc": _Document.take_fallbacks,
    "u": _Document.take_character,
}
# Parts whose text is not the document's, and what is done with it.
_PARTS: Mapping[str, Callable[[_Document, str], None] | None] = {
    **dict.fromkeys(("fonttbl", "stylesheet", "info")),
    "title": _Document.take_title,
    "author": _Document.take_author,
    "subject": _Document.take_subject,
    "footnote": _Document.take_note,
    **dict.fromkeys(("listtext", "pntext"), _Document.take_bullet),
}
