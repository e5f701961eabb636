"""Writes a manual page as Markdown: sections, entries, listings, tables, each line with that of the file.

An entry is a line that begins with its term, flush left, and what is said of it, indented. Lines are filled
as a formatter would, but no line begins with what would be taken for the term of an entry.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from concord.extractors.markdown_lines import MAX_ROW, fence_around
from concord.extractors.roff_escapes import JOINED

_FILLED = 40  # characters: once a line has as many, the next line of the file begins a new one
_BEGINS_A_LINE = re.compile(r"(?!\d+[.)](?:\s|$))[\w(\"“‘'\[<$/.]")
# What a reader of Markdown would take for a heading, a fence, a table, or the line below a heading.
_READS_AS_MARKUP = re.compile(r"#{1,6}(?:\s|$)|```|~~~|\||(?:=+|-+)[ \t]*$")
_BULLET = re.compile(r"[•·∙○*+o-]|\(?\d{1,4}[.)]")
_BODY = "  "


class ManualText:
    """Takes a page's parts in order; `lines` is the Markdown so far, `numbers` the lines of the file."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self._open: list[str] = []  # pieces of the line that is being filled
        self._length = 0
        self._number = 1
        self._joins = False  # whether the next piece follows without a space
        self._indent = ""
        self._marker = ""  # the bullet of a list item that has no text yet
        self._after_entry = False
        self._code: list[tuple[str, int]] | None = None

    @property
    def in_code(self) -> bool:
        """Whether lines are kept as they are."""
        return self._code is not None

    def heading(self, level: int, text: str, number: int) -> None:
        """Begin a section."""
        self.end_code()
        self.paragraph(indented=False)
        if words := " ".join(text.split()):
            self._write(f"{'#' * level} {words}", number)
            self._blank()

    def text(self, text: str, number: int, *, joins: bool = False, joins_next: bool = False) -> None:
        """Take a line's text; what `joins` follows the piece before it without a space."""
        if self._code is not None:
            self._take_code(text, number, joins)
            self._joins = joins_next or JOINED in text
            return
        goes_on = JOINED in text
        piece = " ".join((text.replace(JOINED, "") if goes_on else text).split())
        if piece:
            self._fill(piece, number, joins=joins or self._joins)
        self._joins = joins_next or (goes_on and text.rstrip().endswith(JOINED))

    def end_line(self) -> None:
        """End the line that is being filled."""
        if not self._open:
            return
        line = "".join(self._open)
        self._open.clear()
        escaped = "\\" + line if _READS_AS_MARKUP.match(line) else line
        self._write((self._marker or self._indent) + escaped, self._number)
        self._marker = ""

    def paragraph(self, *, indented: bool | None = None) -> None:
        """Begin a paragraph: of an entry's body or not, or as the one before."""
        if self._code is not None:
            self._code.append(("", self._code[-1][1] if self._code else self._number))
            return
        self.end_line()
        self._blank()
        self._joins = False
        if indented is not None:
            self._indent = _BODY if indented else ""
            self._marker = ""

    def body(self) -> None:
        """Go on with what is said of the line before, which may be a term."""
        self.end_line()
        self._indent = _BODY

    def entry(self, term: str, number: int) -> None:
        """Begin an entry, or an item of a list where the term is a bullet or a number."""
        words = " ".join(term.replace(JOINED, "").split())
        if self._code is not None:
            self._code.append((words, number))
            return
        follows_entry = self._after_entry and not self._open
        self.end_line()
        if _BULLET.fullmatch(words):
            self.item(words)
            return
        if not follows_entry:
            self._blank()
        self._indent = self._marker = ""
        self._joins = False
        if words:
            self._fill(words, number, joins=False)
            self.end_line()
            self._after_entry = True
        self._indent = _BODY

    def item(self, bullet: str) -> None:
        """Begin an item of a list."""
        self.paragraph(indented=True)
        digits = bullet.strip("(.)")
        self._marker = f"{digits}. " if digits.isdigit() else "- "

    def begin_code(self, number: int) -> None:
        """Keep lines as they are from here on."""
        if self._code is None:
            self.end_line()
            self._number = number
            self._joins = False
            self._code = []

    def end_code(self) -> None:
        """Write the lines that were kept."""
        code, self._code = self._code, None
        while code and not code[-1][0].strip():
            code.pop()
        first = next((at for at, (line, _) in enumerate(code or ()) if line.strip()), 0)
        code = (code or [])[first:]
        self._joins = False
        if not code:
            return
        fence = fence_around("\n".join(line for line, _ in code))
        for line, number in ((fence, code[0][1]), *code, (fence, code[-1][1])):
            self._write(self._indent + line if line else line, number)

    def table(self, rows: Sequence[tuple[list[str], int]]) -> None:
        """Write a table; the first row names the columns, because Markdown knows no table without."""
        self.end_code()
        self.paragraph()
        is_grid = all(sum(map(len, cells)) <= MAX_ROW for cells, _ in rows) and any(
            len(r) > 1 for r, _ in rows
        )
        width = max((len(cells) for cells, _ in rows), default=0)
        for at, (cells, number) in enumerate(rows):
            if is_grid:
                self._write("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", number)
            else:
                for cell in filter(None, cells):
                    self.text(cell, number)
                self.paragraph()
            if is_grid and not at:
                self._write("|" + " --- |" * width, number)
        self.paragraph()

    def _fill(self, piece: str, number: int, *, joins: bool) -> None:
        if self._open and not joins and self._length >= _FILLED and _BEGINS_A_LINE.match(piece):
            self.end_line()
        if not self._open:
            self._number, self._length = number, 0
        elif not joins:
            self._open.append(" ")
        self._open.append(piece)
        self._length += len(piece) + 1
        self._after_entry = False

    def _take_code(self, text: str, number: int, joins: bool) -> None:
        assert self._code is not None
        line = text.replace(JOINED, "").rstrip()
        if (joins or self._joins) and self._code and len(self._code[-1][0]) < MAX_ROW:
            before, at = self._code.pop()
            self._code.append((before + line, at))
        else:
            self._code.append((line, number))

    def _blank(self) -> None:
        if self.lines and self.lines[-1]:
            self._write("", self.numbers[-1])

    def _write(self, line: str, number: int) -> None:
        self.lines.append(line)
        self.numbers.append(number)
        self._after_entry = False
