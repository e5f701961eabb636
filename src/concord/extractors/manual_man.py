"""Pages in man(7), also as DocBook, pod2man and docutils write it: their macros."""

from __future__ import annotations

import re
from collections.abc import Callable

from concord.extractors.manual_requests import Requests
from concord.extractors.roff_lines import RoffLine

_DRAWN_BULLET = re.compile(r"[ \t]*(•|\d{1,4}\.)[ \t]")


class ManPage(Requests):
    """Reads a page in man(7)."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._wanted: Callable[[str, int], None] | None = None  # writes the next line as a heading or a term
        self._address = ""

    def put(self, text: str, number: int, *, joins: bool = False, joins_next: bool = False) -> None:
        """Take what a line shows, as a heading or a term where one is awaited."""
        if self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            wanted(text, number)
        elif (drawn := _DRAWN_BULLET.match(text)) and not self.page.in_code and "\x1d" in text:
            self.page.item(drawn[1])  # as DocBook draws it, before the text that follows on the next line
        else:
            super().put(text, number, joins=joins, joins_next=joins_next)

    def _title(self, line: RoffLine) -> None:
        name, section, *_ = [*self.arguments(line), "", ""]
        self.names = self.names if self.names[0] else (name, section)

    def _section(self, line: RoffLine) -> None:
        self._heading(2 if line.name == "SH" else 3, line)

    def _heading(self, level: int, line: RoffLine) -> None:
        self._wanted = None
        if words := " ".join(self.arguments(line)):
            self.page.heading(level, words, line.number)
        else:
            self._wanted = lambda text, number: self.page.heading(level, text.replace("\x1d", ""), number)

    def _paragraph(self, _: RoffLine) -> None:
        self._wanted = None
        self.page.paragraph(indented=False)

    def _tagged(self, _: RoffLine) -> None:
        if self.page.in_code:
            self.page.paragraph()
        else:
            self._wanted = self.page.entry

    def _indented(self, line: RoffLine) -> None:
        self._wanted = None
        tag = self.arguments(line)[:1]
        if tag and tag[0].strip():
            self.page.entry(tag[0], line.number)
        else:
            self.page.paragraph(indented=True)

    def _begin_body(self, _: RoffLine) -> None:
        self._wanted = None
        if not self.page.in_code:
            self.page.body()

    def _end_body(self, _: RoffLine) -> None:
        self.page.paragraph(indented=False)

    def _font(self, line: RoffLine) -> None:
        if words := self.arguments(line):
            self.put(" ".join(words), line.number)

    def _fonts(self, line: RoffLine) -> None:
        if words := self.arguments(line):
            self.put("".join(words), line.number)

    def _begin_link(self, line: RoffLine) -> None:
        self._address = " ".join(self.arguments(line)[:1])

    def _end_link(self, line: RoffLine) -> None:
        after = "".join(self.arguments(line)[:1])
        if self._address:
            self.put(f"<{self._address}>{after}", line.number)
        self._address = ""

    def _reference(self, line: RoffLine) -> None:
        name, section, after, *_ = [*self.arguments(line), "", "", ""]
        self.put(f"{name}({section}){after}", line.number)

    def _synopsis(self, line: RoffLine) -> None:
        self.page.end_line()
        self._font(line)

    def _option(self, line: RoffLine) -> None:
        self.put(f"[{' '.join(self.arguments(line))}]", line.number)

    def _line_end(self, _: RoffLine) -> None:
        self.page.end_line()

    macros = {
        "TH": _title,
        "SH": _section,
        "SS": _section,
        **dict.fromkeys(("PP", "P", "LP", "HP"), _paragraph),
        **dict.fromkeys(("TP", "TQ"), _tagged),
        "IP": _indented,
        "RS": _begin_body,
        "RE": _end_body,
        **dict.fromkeys(("B", "I", "R", "SM", "SB", "CW", "L"), _font),
        **dict.fromkeys(("BI", "BR", "IB", "IR", "RB", "RI", "FN"), _fonts),
        **dict.fromkeys(("UR", "MT"), _begin_link),
        **dict.fromkeys(("UE", "ME"), _end_link),
        "MR": _reference,
        "SY": _synopsis,
        "YS": _line_end,
        "OP": _option,
    }
