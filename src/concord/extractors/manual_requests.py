"""What pages in man(7) and mdoc(7) have in common: requests of roff itself, text and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from concord.extractors.manual_tables import read_table
from concord.extractors.manual_text import ManualText
from concord.extractors.roff_escapes import Escapes
from concord.extractors.roff_lines import RoffLine, RoffLines, split_arguments
from concord.text.word_lists import listed

_SKIPPED = {"EQ": "EN", "PS": "PE", "GS": "GE", "cf": "", "trf": ""}  # formulas and drawings → what ends them
_LITERAL = listed("nf EX Vb DS")
_FILLED = listed("fi EE Ve DE")
_BREAKS = listed("br in ti ce INDENT bp")
_PARAGRAPHS = listed("sp Sp UNINDENT")
_MAX_TABLE_LINES = 20_000


class Requests:
    """Reads a page into a `ManualText`; what a dialect adds is in its table of macros."""

    macros: Mapping[str, Callable[..., None]] = {}

    def __init__(self, source: str) -> None:
        self.page = ManualText()
        self.escapes = Escapes()
        self.names: tuple[str, str] = ("", "")  # the page's name and section: ls, 1
        self._lines: Iterator[RoffLine] = iter(RoffLines(source, self.escapes))

    def read(self) -> None:
        """Take all lines."""
        for line in self._lines:
            self.take(line)
        self.page.end_code()
        self.page.end_line()

    def take(self, line: RoffLine) -> None:
        """Take one line: a macro of the dialect, a request, or text."""
        if not line.name:
            self.take_text(line)
        elif action := self.macros.get(line.name):
            action(self, line)
        elif line.name in _SKIPPED:
            self._skip(_SKIPPED[line.name])
        elif line.name == "TS":
            self.page.table(read_table(self._until("TE"), self.escapes))
        elif line.name in _LITERAL:
            self.page.begin_code(line.number)
        elif line.name in _FILLED:
            self.page.end_code()
        elif line.name in _BREAKS:
            self.page.end_line()
        elif line.name in _PARAGRAPHS:
            self.page.paragraph()

    def take_text(self, line: RoffLine) -> None:
        """Take a line of text: a blank one ends a paragraph, and an indented one begins a new line."""
        if not line.rest or line.rest.isspace():
            self.page.paragraph()
            return
        text = self.escapes.shown(line.rest)
        if line.rest[0] in " \t":
            self.page.end_line()
        self.put(text, line.number)

    def put(self, text: str, number: int, *, joins: bool = False, joins_next: bool = False) -> None:
        """Take what a line shows."""
        self.page.text(text, number, joins=joins, joins_next=joins_next)

    def arguments(self, line: RoffLine) -> list[str]:
        """Return what the arguments of a macro show."""
        return [self.escapes.shown(one) for one in split_arguments(line.rest)]

    def _skip(self, end: str) -> None:
        if end:
            next((line for line in self._lines if line.name == end), None)

    def _until(self, end: str) -> list[RoffLine]:
        taken: list[RoffLine] = []
        for line in self._lines:
            if line.name == end:
                break
            if len(taken) < _MAX_TABLE_LINES:
                taken.append(line)
        return taken
