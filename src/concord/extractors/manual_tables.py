"""Tables of manuals as tbl(1) has them, between .TS and .TE: rows of cells, without their formats."""

from __future__ import annotations

import re
from collections.abc import Sequence

from concord.extractors.roff_escapes import JOINED, Escapes
from concord.extractors.roff_lines import RoffLine, split_arguments

_SEPARATOR = re.compile(r"\btab[ \t]*\((.)\)", re.IGNORECASE)
_RULE = re.compile(r"[ \t]*[_=]?[ \t]*$|\\_|\\\^")

_MAX_CELLS = 100

Row = tuple[list[str], int]


def read_table(lines: Sequence[RoffLine], escapes: Escapes) -> list[Row]:
    """Return the rows of a table, each with its line, from the lines between .TS and .TE."""
    separator, body = _split_head(lines)
    rows: list[Row] = []
    inside: list[str] | None = None  # a cell that goes over several lines
    in_format = False
    for line in body:
        if line.name == "T&":
            in_format = True
        elif in_format:
            in_format = not line.rest.rstrip().endswith(".")
        elif inside is not None and not line.name and line.rest.startswith("T}"):
            rows[-1][0].append(" ".join(inside))
            inside = _take(line.rest[2:].removeprefix(separator), separator, rows, escapes, goes_on=True)
        elif inside is not None:
            inside.append(_text(line, escapes))
        elif not line.name and not _RULE.fullmatch(line.rest):
            rows.append(([], line.number))
            inside = _take(line.rest, separator, rows, escapes)
    if inside:
        rows[-1][0].append(" ".join(inside))
    return [row for row in rows if any(row[0])]


def _split_head(lines: Sequence[RoffLine]) -> tuple[str, Sequence[RoffLine]]:
    """Return what parts the cells of a row, and the lines that follow the format."""
    separator = "\t"
    for at, line in enumerate(lines):
        if not at and line.rest.rstrip().endswith(";"):
            found = _SEPARATOR.search(line.rest)
            separator = found[1] if found else separator
        elif not line.name and line.rest.rstrip().endswith("."):
            return separator, lines[at + 1 :]
    return separator, ()


def _take(
    text: str, separator: str, rows: Sequence[Row], escapes: Escapes, *, goes_on: bool = False
) -> list[str] | None:
    """Add the cells of a line to the last row; return the start of one that the next lines go on with."""
    if goes_on and not text:
        return None
    *cells, last = text.split(separator, _MAX_CELLS)
    rows[-1][0].extend(_shown(cell, escapes) for cell in cells)
    if last.rstrip() == "T{":
        return []
    rows[-1][0].append(_shown(last, escapes))
    return None


def _shown(cell: str, escapes: Escapes) -> str:
    return "" if _RULE.fullmatch(cell) else " ".join(escapes.shown(cell).replace(JOINED, "").split())


def _text(line: RoffLine, escapes: Escapes) -> str:
    if not line.name:
        return _shown(line.rest, escapes)
    words = split_arguments(line.rest) if line.name.isupper() and len(line.name) <= 2 else ()
    return _shown(("" if len(line.name) == 2 else " ").join(words), escapes)
