"""Where the records of data begin: the rows of a table, the values of JSON, the lines of anything else.

The rows of a table say little without the names of its columns, so the row of names is the heading of all
other rows. Values of JSON stand under the keys that lead to them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from concord.text.tokens import pattern
from concord.types import Block, Heading, Section

_SEPARATORS = ",;\t|"  # of the fields of a row
_SEARCHED_ROWS = 10  # for the names of the columns: a title or a comment may stand above them
_MAX_NAMES = 400  # characters of a heading: more would hide what a short row says
# A quote that nothing closes reads on to the end, once: after it only pairs of quotes are left.
_ROW_ENDS = {sign: pattern(rf'(?:(?<=[\n{sign}])|\A)"[^"]*+(?:""[^"]*+)*+"|\n') for sign in _SEPARATORS}
_NUMBER = pattern(r"[-+(]?[$€£]?\d[\d.,:/ -]*+[%)]?(?:[eE][-+]?\d+)?")
_YEAR = pattern(r"(?:1[5-9]|20)\d\d")

# The second and third are strings; what is not closed ends with its line, or crafted texts would be read
# again from each of their quotes. JSON has no comments, but JSON5 and the settings of many tools do.
_JSON_MARKS = pattern(
    r"""[\[\]{},]|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+""",
)
_JSON_GAP = pattern(r"[^\S\n]*+\n?")
_DEEPER = 0.05  # for each level: the outer of two borders is the better place to cut
_DEEPEST = 6  # levels that count, and keys that lead to a value
_RECORD = 600  # characters: a value that is no longer is never cut; about two thirds of a chunk
# What stands right before a bracket, if it is a key: quoted, or as JSON5 has it.
_KEY = pattern(r"""(?:"([^"\n]*+)"|'([^'\n]*+)'|([\w$.-]++))\s*+:\s*+\Z""")
_LONGEST_KEY = 100  # characters; a longer one is data


def read_records(text: str) -> list[Section]:
    """Return data as one block that may be cut between any two lines."""
    return [Section((), [Block(0, len(text), "records")])]


def read_table(text: str) -> list[Section]:
    """Return the rows of a table, each a block; the names of its columns are the heading."""
    separator = _separator(text)
    blocks = [
        Block(start, end, "solid") for start, end in pairwise([*_row_starts(text, separator), len(text)])
    ]
    names = _names((text[row.start : row.end] for row in blocks[:_SEARCHED_ROWS]), separator)
    return [Section((names_line(names),) if names else (), blocks)]


class _Open(NamedTuple):
    """An object or array of JSON whose end is still ahead."""

    begin: int  # with its key; its first value begins there as well
    path: Heading
    starts: list[int]  # of its other values


def read_json(text: str) -> list[Section]:
    """Return the values of JSON or JSON lines, each a block, under the keys that lead to them.

    Those of an object or array that is no longer than a record are one block. Brackets stay with the first
    and the last value that they hold.
    """
    borders: dict[int, tuple[int, Heading]] = {}  # where a value begins: its depth, the keys that lead to it
    opened = [_Open(0, (), [])]
    start = 0
    for mark in _JSON_MARKS.finditer(text):
        sign = mark[0]
        if sign in "[{":
            key = _KEY.search(text, max(start, mark.start() - _LONGEST_KEY), mark.start())
            keys = [*filter(None, key.groups())][:1] if key else []
            opened.append(_Open(start, (*opened[-1].path, *keys)[:_DEEPEST], []))
        is_closed = sign in "]}" and len(opened) > 1
        if is_closed:
            _close(opened.pop(), mark.end(), len(opened), borders)
        if sign == "," or is_closed and len(opened) == 1:  # of JSON lines the next
            gap = _JSON_GAP.match(text, mark.end())  # with its indentation, if it has a line of its own
            start = gap.end() if gap else mark.end()
            opened[-1].starts.append(start)
    while opened:
        _close(opened.pop(), len(text), len(opened), borders)
    borders[0] = (0, borders[0][1] if borders else ())  # before all there is nothing to be cut off
    starts = sorted(start for start in borders if start < len(text))
    blocks = (
        Block(begin, end, "solid", _DEEPER * min(borders[begin][0], _DEEPEST))
        for begin, end in pairwise([*starts, len(text)])
    )
    groups = groupby(blocks, key=lambda block: borders[block.start][1])
    return [Section(path, list(group)) for path, group in groups]


def _close(value: _Open, end: int, depth: int, borders: dict[int, tuple[int, Heading]]) -> None:
    """Write down where the values begin that an object or array holds, if it is longer than a record.

    Where two begin at one place, the keys are those of the inner and the depth is that of the outer.
    """
    if end - value.begin > _RECORD:
        for start in (value.begin, *value.starts):
            borders[start] = (depth, borders[start][1] if start in borders else value.path)


def _separator(text: str) -> str:
    """Return the separator that most of the first lines have; among equals, the most frequent one."""
    lines = text[: 200 * _SEARCHED_ROWS].split("\n", _SEARCHED_ROWS)[:_SEARCHED_ROWS]
    return max(_SEPARATORS, key=lambda sign: (sum(sign in line for line in lines), text.count(sign, 0, 2000)))


def _row_starts(text: str, separator: str) -> Iterator[int]:
    """Yield where rows begin: after a newline that is in no quoted field; blank lines begin none."""
    yield 0
    for mark in _ROW_ENDS[separator].finditer(text):
        at = mark.end()
        if mark[0] == "\n" and at < len(text) and text[at] != "\n":
            yield at


def _names(rows: Iterable[str], separator: str) -> list[str]:
    """Return the names of the columns, from the first row with several fields; none if it holds values."""
    read = (_fields(row, separator) for row in rows if not row.startswith("#"))
    fields = next((fields for fields in read if len(fields) > 1), [])
    return [field for field in fields if field] if are_names_in_data(fields) else []


def _fields(row: str, separator: str) -> list[str]:
    try:
        read = next(csv.reader(row.strip("\n").split("\n"), delimiter=separator), [])
    except csv.Error:  # a field of more than 128 kB
        return []
    return [" ".join(field.split()) for field in read]


def are_names(cells: Sequence[str]) -> bool:
    """Whether the cells of a row that stands apart name columns: numbers are values, but years are names."""
    return all(map(_YEAR.fullmatch, _numbers(cells)))


def are_names_in_data(cells: Sequence[str]) -> bool:
    """Whether the first row of data names columns: each another, at most one missing, of years several."""
    numbers = _numbers(cells)
    is_series = not numbers or (len(numbers) > 1 and numbers == sorted(numbers))
    return are_names(cells) and is_series and len({*cells}) == len(cells)


def _numbers(cells: Sequence[str]) -> list[str]:
    return [cell for cell in cells if _NUMBER.fullmatch(cell)]


def names_line(names: Sequence[str]) -> str:
    """Return names in one line, as many as a heading may have."""
    line = ", ".join(names)
    return line if len(line) <= _MAX_NAMES else line[:_MAX_NAMES].rpartition(",")[0] + " …"
