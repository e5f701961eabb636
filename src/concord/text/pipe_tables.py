"""The names of the columns of a table in Markdown, for the whole of it and for one row.

Read from the lines of a text alone, because a snippet has nothing else to go by.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from concord.text.column_names import are_names
from concord.text.tokens import pattern

_BETWEEN_CELLS = pattern(r"(?<!\\)\|")
_RULE_MARKS = frozenset("|:- \t")


class Row(NamedTuple):
    """A row of a table, and the row that names its columns."""

    start: int
    names: str


def row_at(text: str, at: int) -> Row | None:
    """Return the row that a place stands in, if its columns have names above it."""
    start = text.rfind("\n", 0, at) + 1
    above = [*takewhile(lambda line: "|" in line, reversed(text[:start].split("\n")[:-1]))]
    if len(above) < 2 or not _is_rule(above[-2]) or not _names(above[-1]):
        return None  # further down, what looks like a rule is a row of dashes
    return Row(start, " ".join(above[-1].split()))


def column_names(text: str, start: int) -> list[str]:
    """Return the names of the columns of a table that begins at a place; none if that is no table."""
    names = line_at(text, start)
    return _names(names) if _is_rule(line_at(text, start + len(names) + 1)) else []


def line_at(text: str, start: int) -> str:
    """Return the rest of a line."""
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def _is_rule(line: str) -> bool:
    return "|" in line and "-" in line and _RULE_MARKS.issuperset(line)


def _names(row: str) -> list[str]:
    """Return the cells of a row, if they name columns."""
    cells = [cell.strip() for cell in _BETWEEN_CELLS.split(row.strip().strip("|"))]
    named = [cell for cell in cells if cell]
    return named if len(cells) > 1 and are_names(named) else []
