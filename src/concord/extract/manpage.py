"""Manual pages in man(7) or mdoc(7) as Markdown: sections, entries of options, listings and text.

One table of macros serves both; a macro that is not in it shows its arguments. Tables lose their columns.
mandoc(1) would show more of a page, but not from which line of the file each of its lines comes, which is
what citations name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile

from concord.core.protocols import Extractor, override
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped, fence_around
from concord.extract.mdoc import MDOC_WORDS, mdoc_text
from concord.extract.roff import JOINED, Line, Roff, arguments_of
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.text.word_lists import listed
from concord.types import Extracted

_FILLED = 40  # characters: once a line has as many, the next line of the file begins a new one
_BODY = "  "
_BEGINS_A_LINE = re.compile(r"(?!\d+[.)](?:\s|$))[\w(\"“‘'\[<$/.]")
_UNDERLINE = re.compile(r"(?:=+|-+)$")  # would make a heading of the line above it
_BULLET = re.compile(r"[•·∙○*+o-]|\(?\d{1,4}[.)]")
_DRAWN_BULLET = re.compile(rf"[ \t]*(•|\d{{1,4}}\.)[ \t]*{JOINED}")  # DocBook's: its text is on the next line
_TABLE_RULE = re.compile(r"[\s_=]*|\\_|\\\^")
_SUMMARY = re.compile(r"(\S[^\n]*?)[ \t]+[-–—][ \t]+(\S[^\n]*)")


class ManualExtractor(Extractor):
    """Reads manual pages."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        reader = _Reader(with_plain_newlines(decode(data)))
        lines, numbers = reader.read()
        if not lines:
            return Extracted("", "markdown")
        title = _title(reader.names, lines)
        if title:
            lines[:0], numbers[:0] = [f"# {title}", ""], [numbers[0]] * 2
        text = clean(without_encoded("\n".join(lines)))
        return Extracted(text, "markdown", title or None, file_lines=tuple(numbers))


def _title(names: tuple[str, str], lines: Sequence[str]) -> str:
    """Return `logrotate(8) - rotates logs`; the name is spelt as the page's first section does."""
    name, section = (" ".join(part.split()) for part in names)
    heading = next((at for at, line in enumerate(lines[:200]) if line.startswith("#")), 200)
    paragraph = takewhile(bool, lines[heading + 2 : heading + 200])  # a blank line parts it from its heading
    found = _SUMMARY.match(" ".join(paragraph).replace("```", "").strip()[:2_000])
    called, summary = (found[1], " ".join(found[2].split())) if found else ("", "")
    spellings = [part.strip() for part in called.split(",")]
    same = next((part for part in spellings if part.casefold() == name.casefold()), None)
    spelt = same or (name.lower() if name.isupper() else name) or spellings[0]
    numbered = f"{spelt}({section.lower()})" if section and spelt else spelt
    return " - ".join(filter(None, (numbered, summary)))[:MAX_TITLE].rstrip()


class _Page:
    """The Markdown so far: an entry is a line with its term, flush left, and what is said of it, indented.

    Lines are filled as a formatter would, but none begins with what would be taken for the term of an entry.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []  # the file's line for each
        self.number = 1  # the file's line that is being read
        self._open: list[str] = []  # pieces of the line that is being filled
        self._begun = 1  # the file's line where it began
        self._length = 0
        self._indent = ""
        self._marker = ""  # the bullet of a list item that has no text yet
        self._after_entry = False
        self._code_from: int | None = None  # where in `lines` the open listing begins

    @property
    def in_code(self) -> bool:
        return self._code_from is not None

    def text(self, text: str) -> None:
        piece = " ".join(text.split())
        if self.in_code:
            self._write(self._indent + text.replace(JOINED, "").rstrip(), self.number)
        elif piece:
            joins = piece.startswith(JOINED) or self._open[-1:] and self._open[-1].endswith(JOINED)
            if self._length >= _FILLED and not joins and _BEGINS_A_LINE.match(piece):
                self.end_line()
            self._begun = self._begun if self._open else self.number
            self._open.append(piece)
            self._length += len(_joined(piece)) + 1
            self._after_entry = False

    def end_line(self) -> None:
        line = _joined(" ".join(self._open))
        self._open.clear()
        self._length = 0
        if line:
            shown = "\\" + line if _UNDERLINE.match(line) else escaped(line)
            self._write((self._marker or self._indent) + shown, self._begun)
            self._marker = ""

    def paragraph(self, *, indented: bool | None = None) -> None:
        """Begin a paragraph: of an entry's body or not, or as the one before."""
        self.end_line()
        if self.in_code or self.lines and self.lines[-1]:
            self._write("", self.number)
        if indented is not None and not self.in_code:
            self._indent, self._marker = _BODY if indented else "", ""

    def heading(self, level: int, text: str) -> None:
        self.end_code()
        self.paragraph(indented=False)
        if words := _joined(text):
            self._write(f"{'#' * level} {words}", self.number)
            self.paragraph()

    def entry(self, term: str) -> None:
        """Begin an entry, or an item of a list where the term is a bullet or a number."""
        words = _joined(term)
        if _BULLET.fullmatch(words):
            self.paragraph(indented=True)
            self._marker = f"{words.strip('(.)')}. " if words[-2:-1].isdigit() else "- "
        elif self.in_code:
            self.text(words)
        else:
            if not self._after_entry:
                self.paragraph()
            self._indent = self._marker = ""
            self.text(words)
            self.begin_body()
            self._after_entry = True

    def begin_body(self) -> None:
        """Go on with what is said of the line before, which may be a term."""
        self.end_line()
        self._indent = self._indent if self.in_code else _BODY

    def begin_code(self) -> None:
        self.end_line()
        self._code_from = len(self.lines) if self._code_from is None else self._code_from

    def end_code(self) -> None:
        """Put fences around the lines since `begin_code`."""
        start, self._code_from = self._code_from, None
        if start is None:
            return
        while len(self.lines) > start and not self.lines[-1].strip():
            del self.lines[-1], self.numbers[-1]
        while len(self.lines) > start and not self.lines[start].strip():
            start += 1
        if len(self.lines) > start:
            fence = self._indent + fence_around("\n".join(self.lines[start:]))
            self.lines[start:start], self.numbers[start:start] = [fence], [self.numbers[start]]
            self._write(fence, self.numbers[-1])

    def _write(self, line: str, number: int) -> None:
        self.lines.append(line)
        self.numbers.append(number)
        self._after_entry = False


class _Reader:
    """Reads a page of either kind."""

    def __init__(self, source: str) -> None:
        self.names = ("", "")  # the page's name and section: ls, 1
        self.page = _Page()
        self.wanted: Callable[[str], None] | None = None  # takes the next text as a heading or a term
        self._roff = Roff(source)
        self._head: list[str] | None = None  # parts of a term that goes over several lines, from Xo to Xc
        self._address = ""  # of the open link
        self._name = ""  # what a page in mdoc calls itself
        self._section = ""
        self._lists: list[str] = []
        self._items = 0

    def read(self) -> tuple[list[str], list[int]]:
        """Return the lines of Markdown, and the file's line for each."""
        lines = iter(self._roff)
        for line in lines:
            self.page.number = line.number
            if not line.request:
                self._take_text(line.rest)
            elif line.request == "TS":
                self._take_table(lines)
            elif line.request in MDOC_WORDS:
                self._take_words(line.request, line.rest)
            elif line.request in _MACROS or line.request[0].isupper():
                arguments = [self._roff.shown(word) for word in arguments_of(line.rest)]
                _MACROS.get(line.request, _Reader.spaced)(self, arguments)
        self.page.end_code()
        self.page.end_line()
        written = len(self.page.lines)
        while written and not self.page.lines[written - 1]:
            written -= 1
        return self.page.lines[:written], self.page.numbers[:written]

    def put(self, text: str) -> None:
        """Take what a line shows, as a heading or a term where one is awaited."""
        if self._head is not None:
            self._head.append(text)
        elif self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            wanted(text)
        elif (drawn := _DRAWN_BULLET.match(text)) and not self.page.in_code:
            self.page.entry(drawn[1])
        else:
            self.page.text(text)

    def _take_text(self, text: str) -> None:
        """Take a line of text: a blank one ends a paragraph, and an indented one begins a new line."""
        if not text or text.isspace():
            self.page.paragraph()
            return
        if text[0] in " \t":
            self.page.end_line()
        self.put(self._roff.shown(text))

    def _take_table(self, lines: Iterator[Line]) -> None:
        """Take the rows of a table as lines, after its format, which a full stop ends."""
        in_format, in_cell, separator = True, False, "\t"
        self.page.paragraph()
        for number, request, text in takewhile(lambda line: line.request != "TE", lines):
            self.page.number = number
            if in_format:
                separator = text.partition("tab(")[2][:1] or separator
                in_format = not text.rstrip().endswith(".")
            elif request:
                in_format = request == "T&"
                self.page.text(self._roff.shown(text))
            elif not _TABLE_RULE.fullmatch(text):
                cells = text.replace("T{", "").replace("T}", "").split(separator)
                self.page.text(" | ".join(map(self._roff.shown, cells)))
                in_cell = text.endswith("T{") or (in_cell and "T}" not in text)
                if not in_cell:
                    self.page.end_line()
        self.page.paragraph()

    def spaced(self, arguments: Sequence[str]) -> None:
        """Take arguments as words."""
        if arguments:
            self.put(" ".join(arguments))

    def close(self, arguments: Sequence[str]) -> None:
        """Take arguments as parts of one word, in different fonts."""
        if arguments:
            self.put("".join(arguments))

    def title(self, arguments: Sequence[str]) -> None:
        name, section, *_ = [*arguments, "", ""]
        self.names = self.names if self.names[0] else (name, section)

    def heading(self, level: int, arguments: Sequence[str]) -> None:
        self.wanted = self._head = None
        self._lists.clear()
        self._section = " ".join(arguments).upper() if level == 2 else self._section
        if arguments:
            self.page.heading(level, " ".join(arguments))
        else:
            self.wanted = lambda text: self.page.heading(level, text)

    def paragraph(self, _: Sequence[str]) -> None:
        self.wanted = None
        self.page.paragraph(indented=bool(self._lists))

    def tagged(self, _: Sequence[str]) -> None:
        self.wanted = self.page.entry

    def indented(self, arguments: Sequence[str]) -> None:
        self.wanted = None
        if arguments and arguments[0].strip():
            self.page.entry(arguments[0])
        else:
            self.page.paragraph(indented=True)

    def begin_body(self, _: Sequence[str]) -> None:
        self.wanted = None
        self.page.begin_body()

    def begin_link(self, arguments: Sequence[str]) -> None:
        self._address = "".join(arguments[:1])

    def end_link(self, arguments: Sequence[str]) -> None:
        self.put(f"<{self._address}>{''.join(arguments[:1])}")

    def begin_display(self, arguments: Sequence[str]) -> None:
        self.page.end_line()
        if not {"-literal", "-unfilled"}.isdisjoint(arguments):
            self.page.begin_code()

    def end_display(self, _: Sequence[str]) -> None:
        self.page.end_code()
        self.page.paragraph()

    def begin_list(self, arguments: Sequence[str]) -> None:
        self.page.end_line()
        self._items = 0
        self._lists.append(next((word for word in arguments if word in _BULLETS or word in _TAGS), ""))

    def end_list(self, _: Sequence[str]) -> None:
        del self._lists[-1:]
        self.page.paragraph(indented=bool(self._lists))

    def _take_words(self, macro: str, rest: str) -> None:
        """Take a line of mdoc's words."""
        if self._section == "SYNOPSIS" and macro in ("Nm", "Ft", "Fn", "In") and self._head is None:
            self.page.end_line()
        words = [self._roff.shown(word) for word in arguments_of(rest)]
        if macro == "Nm":
            self._name = self._name or "".join(words[:1])
        text = mdoc_text(macro, words, self._name)
        if macro == "It":
            self._item(text, is_open="Xo" in rest.split())
        elif macro == "Dl":
            self.page.begin_code()
            self.page.text(_joined(text))
            self.page.end_code()
        else:
            self.put(text)
        if macro == "Xc" and self._head is not None:
            head, self._head = self._head, None
            self.page.entry(" ".join(head))

    def _item(self, text: str, *, is_open: bool) -> None:
        kind = "".join(self._lists[-1:])
        self._items += 1
        if kind in _BULLETS:
            self.page.entry(f"{self._items}." if kind == "-enum" else "-")
        elif kind not in _TAGS:
            self.page.paragraph(indented=True)
            self.page.text(text)
        elif is_open:
            self._head = [text]
        else:
            self.page.entry(text)


def _joined(text: str) -> str:
    words = " ".join(text.split())
    return re.sub(f" ?{JOINED} ?", "", words) if JOINED in words else words


def _each(names: str, action: Callable[[_Reader, Sequence[str]], None]) -> dict[str, Callable[..., None]]:
    return dict.fromkeys(names.split(), action)


_MACROS: Mapping[str, Callable[[_Reader, Sequence[str]], None]] = {
    **_each("TH Dt", _Reader.title),
    **_each("SH Sh", lambda reader, arguments: reader.heading(2, arguments)),
    **_each("SS Ss", lambda reader, arguments: reader.heading(3, arguments)),
    **_each("PP P LP HP Pp Lp", _Reader.paragraph),
    **_each("sp Sp UNINDENT", lambda reader, _: reader.page.paragraph()),
    **_each("br in ti ce INDENT YS", lambda reader, _: reader.page.end_line()),
    **_each("TP TQ", _Reader.tagged),
    **_each("IP", _Reader.indented),
    **_each("RS", _Reader.begin_body),
    **_each("RE", lambda reader, _: reader.page.paragraph(indented=False)),
    **_each("BI BR IB IR RB RI", _Reader.close),
    **_each("UR MT", _Reader.begin_link),
    **_each("UE ME", _Reader.end_link),
    **_each(
        "URL MTO",
        lambda reader, arguments: reader.spaced([*arguments[1:2], *map("<{}>".format, arguments[:1])]),
    ),
    **_each("MR", lambda reader, arguments: reader.spaced([mdoc_text("Xr", [*arguments], "")])),
    **_each("nf EX Vb DS", lambda reader, _: reader.page.begin_code()),
    **_each("fi EE Ve DE", lambda reader, _: reader.page.end_code()),
    **_each("Bd", _Reader.begin_display),
    **_each("Ed", _Reader.end_display),
    **_each("Bl", _Reader.begin_list),
    **_each("El", _Reader.end_list),
    **_each("IX PD DT UC AT Dd Os Bk Ek Bf Ef Sm Tg Rs Re EQ EN LINKSTYLE", lambda *_: None),
}
_BULLETS = listed("-bullet -dash -hyphen -enum")
_TAGS = listed("-tag -hang -ohang -inset -diag")
