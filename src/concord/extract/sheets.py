"""Workbooks of Excel and LibreOffice as Markdown: each sheet a heading and a table of its values.

Sheets have no lines, so citations count those of the Markdown, which is what `kb get` shows.
"""

from __future__ import annotations

from datetime import date, datetime, time
from io import BytesIO

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from concord.errors import Damaged, Encrypted
from concord.extract.formats import extension
from concord.extract.markdown_writer import MAX_COLUMNS, MarkdownLines
from concord.extract.package import checked, opened
from concord.extract.plain import MAX_TITLE
from concord.text.clean import clean
from concord.types import Extracted, Json


class SheetExtractor:
    """Reads .xlsx, .xlsb, .xls and .ods."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text of all sheets that hold any.

        Raises:
            Encrypted: it needs a password.
            Damaged: it is no workbook.
            TooLarge: there is too much of it.
        """
        page = MarkdownLines()
        title, details = _properties(data, name)
        try:
            workbook = CalamineWorkbook.from_filelike(BytesIO(data))
            for sheet in workbook.sheet_names:
                _write(page, sheet, workbook)
        except PasswordError as fault:
            raise Encrypted("is locked with a password", hint="save a copy without a password") from fault
        except CalamineError as fault:
            raise Damaged(
                "is not a readable workbook: cut off, damaged, locked or something else",
                hint="open it in its own program, save it without a password, or fetch it again",
            ) from fault
        text = checked(clean(page.markdown()))
        return Extracted(text, "office", title=(title or "")[:MAX_TITLE] or None, details=details)


def _properties(data: bytes, name: str) -> tuple[str | None, dict[str, Json]]:
    if extension(name) == "xls":  # no archive: it keeps its title where no library of ours looks
        return None, {}
    with opened(data, "workbook") as package:
        return package.properties("meta.xml" if "meta.xml" in package else "docProps/core.xml")


def _write(page: MarkdownLines, sheet: str, workbook: CalamineWorkbook) -> None:
    is_begun = False
    for values in workbook.get_sheet_by_name(sheet).iter_rows():
        cells = [_shown(value) for value in values]
        while cells and not cells[-1]:
            cells.pop()
        if cells and not is_begun:
            page.heading(sheet)
            page.begin_table()
            is_begun = True
        if cells:
            page.row([*cells[:MAX_COLUMNS], *filter(None, cells[MAX_COLUMNS:])])


def _shown(value: object) -> str:
    """Return a cell's value as text: numbers without noise, days and times as ISO 8601 has them."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime):
        return value.isoformat(" ", "minutes").removesuffix(" 00:00")
    if isinstance(value, date):
        return value.isoformat()
    return value.isoformat("minutes") if isinstance(value, time) else str(value).strip()
