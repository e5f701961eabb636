"""Pages in mdoc(7), as the BSDs, OpenSSH and mandoc write them: their blocks."""

from __future__ import annotations

from typing import NamedTuple

from concord.extractors.manual_requests import Requests
from concord.extractors.mdoc_words import MdocWords
from concord.extractors.roff_lines import RoffLine, split_arguments
from concord.text.word_lists import listed

_ITEMS = {"-bullet": "•", "-dash": "-", "-hyphen": "-", "-enum": "1."}
_TAGS = listed("-tag -hang -ohang -inset -diag")
_LITERAL = frozenset(("-literal", "-unfilled"))
_NEW_LINE_IN_SYNOPSIS = listed("Nm Ft Fn Fo In Vt Fd Cd")
_PARTS_OF_REFERENCES = frozenset(f"%{letter}" for letter in "ABCDIJNOPQRTUV")
_MAX_NESTING = 100
_MAX_CELLS = 100
_MAX_HEAD = 1_000  # words in the head of an item, however many lines it goes over


class _List(NamedTuple):
    kind: str
    items: list[int]  # the file's line for each item so far


class MdocPage(Requests):
    """Reads a page in mdoc(7)."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._words = MdocWords(self.escapes)
        self._section = ""
        self._lists: list[_List] = []
        self._head: list[str] | None = None  # words of an item's head that goes over several lines
        self._head_number = 0
        self._reference: list[str] | None = None
        self._rows: list[tuple[list[str], int]] = []

    def take(self, line: RoffLine) -> None:
        """Take one line: macros that are not listed are words within a line, or not known at all."""
        if not line.name or line.name in self.macros or not _is_inline(line.name):
            super().take(line)
        elif self._reference is not None and line.name in _PARTS_OF_REFERENCES:
            self._reference.append(" ".join(self.arguments(line)))
        else:
            self._take_words(line)

    def put(self, text: str, number: int, *, joins: bool = False, joins_next: bool = False) -> None:
        """Take what a line shows, in the head of an item or in a cell where one is open."""
        if self._head is not None:
            self._head.append(text if joins or not self._head else f" {text}")
            if len(self._head) > _MAX_HEAD:
                self._end_head()
        elif self._rows and self._lists and self._lists[-1].kind == "-column":
            cells = self._rows[-1][0]
            cells[-1] = f"{cells[-1]} {text}".strip() if len(cells[-1]) < _MAX_HEAD else cells[-1]
        else:
            super().put(text, number, joins=joins, joins_next=joins_next)

    def _take_words(self, line: RoffLine) -> None:
        if self._section == "SYNOPSIS" and line.name in _NEW_LINE_IN_SYNOPSIS and self._head is None:
            self.page.end_line()
        shown = self._words.shown(line.name, line.rest)
        if shown.text:
            text = (
                f"#include {shown.text}" if line.name == "In" and self._section == "SYNOPSIS" else shown.text
            )
            self.put(text, line.number, joins=shown.joins, joins_next=shown.joins_next)
        if line.name == "Xc" and self._head is not None:
            self._end_head()

    def _title(self, line: RoffLine) -> None:
        name, section, *_ = [*self.arguments(line), "", ""]
        self.names = (name, section)

    def _heading(self, line: RoffLine) -> None:
        self._end_lists()
        words = " ".join(split_arguments(line.rest))
        text = self._words.shown("No", words).text
        self._section = text.upper() if line.name == "Sh" else self._section
        self.page.heading(2 if line.name == "Sh" else 3, text, line.number)

    def _paragraph(self, _: RoffLine) -> None:
        self.page.paragraph(indented=bool(self._lists))

    def _begin_list(self, line: RoffLine) -> None:
        kinds = [
            one for one in split_arguments(line.rest) if one in _ITEMS or one in _TAGS or one == "-column"
        ]
        self.page.end_line()
        self._end_rows()
        if len(self._lists) < _MAX_NESTING:
            self._lists.append(_List(kinds[0] if kinds else "-item", []))

    def _end_list(self, _: RoffLine) -> None:
        self._end_head()
        self._end_rows()
        if self._lists:
            self._lists.pop()
        self.page.paragraph(indented=bool(self._lists))

    def _item(self, line: RoffLine) -> None:
        self._end_head()
        kind, items = self._lists[-1] if self._lists else _List("-item", [])
        items.append(line.number)
        if kind == "-column":
            self._rows.append((_cells(line.rest, self._words), line.number))
        elif kind in _ITEMS:
            self.page.item(f"{len(items)}." if kind == "-enum" else _ITEMS[kind])
        elif kind in _TAGS:
            shown = self._words.shown("No", line.rest)
            if "Xo" in split_arguments(line.rest):
                self._head, self._head_number = [shown.text], line.number
            else:
                self.page.entry(shown.text, line.number)
        else:
            self.page.paragraph(indented=True)

    def _begin_display(self, line: RoffLine) -> None:
        if _LITERAL.intersection(split_arguments(line.rest)):
            self.page.begin_code(line.number)
        else:
            self.page.end_line()

    def _end_display(self, _: RoffLine) -> None:
        self.page.end_code()
        self.page.paragraph()

    def _displayed_line(self, line: RoffLine) -> None:
        self.page.begin_code(line.number)
        self.page.text(self._words.shown("No", line.rest).text, line.number)
        self.page.end_code()

    def _begin_function(self, line: RoffLine) -> None:
        self.page.end_line()
        self.put("".join(self.arguments(line)[:1]) + "(", line.number, joins_next=True)

    def _end_function(self, line: RoffLine) -> None:
        self.put(")", line.number, joins=True)

    def _begin_reference(self, _: RoffLine) -> None:
        self._reference = []

    def _end_reference(self, line: RoffLine) -> None:
        if self._reference:
            self.put(", ".join(self._reference) + ".", line.number)
        self._reference = None

    def _nothing(self, _: RoffLine) -> None:
        pass

    def _end_head(self) -> None:
        head, self._head = self._head, None
        if head:
            self.page.entry("".join(head), self._head_number)

    def _end_rows(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self.page.table(rows)

    def _end_lists(self) -> None:
        self._end_head()
        self._end_rows()
        self._lists.clear()

    def read(self) -> None:
        """Take all lines."""
        super().read()
        self._end_lists()
        self.page.end_line()

    macros = {
        "Dt": _title,
        **dict.fromkeys(("Sh", "Ss"), _heading),
        **dict.fromkeys(("Pp", "Lp", "PP"), _paragraph),
        "Bl": _begin_list,
        "El": _end_list,
        "It": _item,
        "Bd": _begin_display,
        "Ed": _end_display,
        **dict.fromkeys(("D1", "Dl"), _displayed_line),
        "Fo": _begin_function,
        "Fc": _end_function,
        "Rs": _begin_reference,
        "Re": _end_reference,
        **dict.fromkeys(("Dd", "Os", "Bk", "Ek", "Bf", "Ef", "Db", "Tg"), _nothing),
    }


def _is_inline(name: str) -> bool:
    """Whether a name is that of a macro within lines: two or three letters, as mdoc has them, or %A."""
    return 2 <= len(name) <= 3 and (name[0].isupper() and name[1:].islower() or name in _PARTS_OF_REFERENCES)


def _cells(rest: str, words: MdocWords) -> list[str]:
    """Return the cells of a row, which are parted by Ta or by tabs."""
    cells: list[list[str]] = [[]]
    for part in rest.split("\t", _MAX_CELLS):
        for word in part.split(" "):
            if word == "Ta":
                cells.append([])
            else:
                cells[-1].append(word)
        cells.append([])
    return [words.shown("No", " ".join(cell)).text for cell in cells[:-1]]
