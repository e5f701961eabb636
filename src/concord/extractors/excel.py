"""Excel workbooks as Markdown: each sheet a heading and a table of what its cells show, without formulas.

Sheets have no lines, so citations count those of the Markdown, which is what `kb get` shows.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from concord.extractors.markdown_lines import MAX_COLUMNS, MarkdownLines
from concord.extractors.office_package import Attributes, Elements, Package, checked, opened
from concord.extractors.plain import MAX_TITLE
from concord.text.clean import clean
from concord.types import Extracted

_COLUMN = re.compile(r"[A-Z]{1,3}")
_EPOCH = datetime(1899, 12, 30)  # so that day 60 is the 29th of February 1900, which Excel believes in
_EPOCH_OF_MACS = datetime(1904, 1, 1)
_BUILT_IN_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_NOT_A_CODE = re.compile(r'"[^"]*+"|\\.|\[[^\]]*+\]')
_DATE_CODE = re.compile(r"[dmyhs]", re.IGNORECASE)


class ExcelExtractor:
    """Reads .xlsx."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text of all sheets.

        Raises:
            Encrypted: it needs a password.
            Damaged: it is no workbook.
            TooLarge: it unfolds beyond the limits.
        """
        with opened(data, "Excel workbook") as package:
            main = package.main_part
            workbook = _Workbook()
            package.read(main, workbook)
            parts = package.targets(main)
            shown = _Shown(package, main, workbook.epoch)
            page = MarkdownLines()
            for sheet, part in ((name, parts[key]) for name, key in workbook.sheets if key in parts):
                page.heading(sheet)
                page.begin_table()
                package.read(part, _Sheet(page, shown))
            title, details = package.properties()
        text = checked(clean(page.markdown()))
        return Extracted(text, "office", title=(title or "")[:MAX_TITLE] or None, details=details)


class _Workbook(Elements):
    """The sheets of a workbook, by name and id, in their order."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.epoch = _EPOCH

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get("id", "")))
        elif name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            self.epoch = _EPOCH_OF_MACS


class _Strings(Elements):
    """The strings that cells refer to by number."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._parts: list[str] = []
        self._is_text = False
        self._is_spoken = False  # how to pronounce what was written

    def start(self, name: str, attributes: Attributes) -> None:
        self._is_spoken = self._is_spoken or name == "rPh"
        self._is_text = name == "t" and not self._is_spoken

    def end(self, name: str) -> None:
        self._is_text = False
        if name == "rPh":
            self._is_spoken = False
        elif name == "si":
            self.strings.append("".join(self._parts))
            self._parts.clear()

    def text(self, text: str) -> None:
        if self._is_text:
            self._parts.append(text)


class _DateStyles(Elements):
    """The numbers of the styles in which a cell's number is shown as a date."""

    def __init__(self) -> None:
        self.dates: set[int] = set()
        self._formats = {str(number) for number in _BUILT_IN_DATES}
        self._styles = 0
        self._is_cells = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "numFmt" and _DATE_CODE.search(_NOT_A_CODE.sub("", attributes.get("formatCode", ""))):
            self._formats.add(attributes.get("numFmtId", ""))
        elif name == "cellXfs":
            self._is_cells = True
        elif name == "xf" and self._is_cells:
            if attributes.get("numFmtId") in self._formats:
                self.dates.add(self._styles)
            self._styles += 1

    def end(self, name: str) -> None:
        self._is_cells = self._is_cells and name != "cellXfs"


class _Shown:
    """What a cell shows, by its type, its style and the value that is kept."""

    def __init__(self, package: Package, main: str, epoch: datetime) -> None:
        strings, styles = _Strings(), _DateStyles()
        for name, elements in (("sharedStrings.xml", strings), ("styles.xml", styles)):
            if (part := posixpath.join(posixpath.dirname(main), name)) in package:
                package.read(part, elements)
        self._strings: Sequence[str] = strings.strings
        self._dates = styles.dates
        self._epoch = epoch

    def text(self, kind: str, style: str, value: str) -> str:
        """Return a cell's text; a value that makes no sense is shown as it is."""
        try:
            return _SHOWN.get(kind, _as_it_is)(self, style, value)
        except (ValueError, IndexError, OverflowError):
            return value

    def string(self, _: str, value: str) -> str:
        return self._strings[int(value)]

    def number(self, style: str, value: str) -> str:
        if style.isdecimal() and int(style) in self._dates:
            moment = self._epoch + timedelta(days=float(value))
            return moment.isoformat(" ", "minutes").removesuffix(" 00:00")
        return f"{float(value):.15g}" if value else ""

    def truth(self, _: str, value: str) -> str:
        return "TRUE" if value == "1" else "FALSE"


def _as_it_is(_: _Shown, __: str, value: str) -> str:
    return value


_SHOWN: Mapping[str, Callable[[_Shown, str, str], str]] = {
    "s": _Shown.string,
    "n": _Shown.number,
    "b": _Shown.truth,
}


class _Sheet(Elements):
    """Writes the rows of a sheet."""

    def __init__(self, page: MarkdownLines, shown: _Shown) -> None:
        self._page = page
        self._shown = shown
        self._row: list[str] = []
        self._cell: Attributes = {}
        self._value: list[str] = []
        self._is_value = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "row":
            self._row = []
        elif name == "c":
            self._cell = attributes
            self._value = []
        self._is_value = name in ("v", "t")

    def text(self, text: str) -> None:
        if self._is_value:
            self._value.append(text)

    def end(self, name: str) -> None:
        self._is_value = False
        if name == "c":
            self._end_cell()
        elif name == "row" and self._row:
            self._page.row(self._row)

    def _end_cell(self) -> None:
        value = "".join(self._value)
        if not value.strip():
            return
        gap = min(_column(self._cell.get("r", "")), MAX_COLUMNS) - len(self._row)
        self._row += [""] * gap
        self._row.append(self._shown.text(self._cell.get("t", "n"), self._cell.get("s", ""), value))


def _column(reference: str) -> int:
    """Return the number of the column of a cell such as C5, from 0."""
    found = _COLUMN.match(reference)
    number = 0
    for letter in found[0] if found else "":
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
