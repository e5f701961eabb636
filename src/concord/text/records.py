"""Where the records of data begin: the rows of a table, the values of JSON, the lines of anything else.

A record that fits into a chunk is never cut. The rows of a table say little without the names of its columns,
so the row of names is the heading of all other rows. Values of JSON stand under the keys that lead to them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

from concord.text.tokens import pattern
from concord.types import Block, Heading, JsonValue, Section

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
_AFTER_BRACKET = 1.0  # a bracket stays with the first value in it, and with the last
_DEEPER = 0.05  # for each level: the outer of two borders is the better place to cut
_DEEPEST = 6
# What stands right before a bracket, if it is a key: quoted, or as JSON5 has it.
_KEY = pattern(r"""(?:"([^"\n]*+)"|'([^'\n]*+)'|([\w$.-]++))\s*+:\s*+\Z""")
_LONGEST_KEY = 100  # characters; a longer one is data
_FITS_ANYWHERE = 16  # bytes, and so tokens at most: as long as the shortest chunk that can be asked for


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


def json_values(text: str) -> list[JsonValue]:
    """Return the objects and arrays of JSON or JSON lines, outer before inner; the first is the whole text.

    Values that are short enough for any chunk are left out, with what is in them.
    """
    values = [JsonValue(0, 0, -1, "", 0, [], 0)]
    opened = [0]  # places in `values` of those whose end is still ahead
    start = last_mark = 0
    for mark in _JSON_MARKS.finditer(text):
        sign = mark[0]
        if sign in "[{":
            key, begin = _key(text, start, mark.start()), start
            start = _after(text, mark.end())
            opened.append(len(values))
            values.append(JsonValue(begin, 0, opened[-2], key, start, [], 0))
        is_closed = sign in "]}" and len(opened) > 1
        if is_closed:
            _close(values, opened.pop(), text, last_mark, mark)
        if sign == "," or is_closed and len(opened) == 1:  # of JSON lines the next
            start = _after(text, mark.end())
            values[opened[-1]].starts.append(start)
        last_mark = mark.end()
    return values


def _close(values: list[JsonValue], place: int, text: str, last_mark: int, bracket: re.Match[str]) -> None:
    """Write down where a value ends, or forget it if it fits into any chunk."""
    start, end = values[place].start, bracket.end()
    if end - start <= _FITS_ANYWHERE and len(text[start:end].encode(errors="replace")) <= _FITS_ANYWHERE:
        del values[place:]
        return
    line = text.rfind("\n", last_mark, bracket.start()) + 1
    is_first = line and not text[line : bracket.start()].strip()
    values[place] = values[place]._replace(end=end, closes_at=line if is_first else bracket.start())


def read_json(text: str, values: Sequence[JsonValue], fits: Callable[[int, int], bool]) -> list[Section]:
    """Return the values of JSON or JSON lines, each a block: the outermost that fit into a chunk.

    Those of an object or array that does not fit are a section, under the keys that lead to it.
    """
    borders = _distinct(_borders(values, fits), len(text))
    paths = _paths(borders)
    ends = [*(border.at for border in borders[1:]), len(text)]
    blocks = [Block(border.at, end, "solid", border.price) for border, end in zip(borders, ends, strict=True)]
    groups = groupby(zip(paths, blocks, strict=True), key=itemgetter(0))
    return [Section(path, [block for _, block in group]) for path, group in groups]


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


class _Border(NamedTuple):
    """A place between two values."""

    at: int
    price: float  # the reluctance to cut there
    path: Heading  # of what follows
    bracket: Literal["", "opens", "closes"] = ""  # what stands before it, or follows


def _borders(values: Sequence[JsonValue], fits: Callable[[int, int], bool]) -> list[_Border]:
    """Return where values begin, without those inside a value that fits."""
    borders: list[_Border] = []
    inside: list[tuple[Heading, int] | None] = []  # keys that lead to each value, and its depth
    for value in values:
        outer = inside[value.parent] if value.parent >= 0 else ((), -1)
        if outer is None or value.end and fits(value.start, value.end):
            inside.append(None)
            continue
        path, depth = (*outer[0], *([value.key] if value.key else ()))[:_DEEPEST], outer[1] + 1
        inside.append((path, depth))
        if depth:
            borders.append(_Border(value.opens_at, _AFTER_BRACKET, path, "opens"))
        price = _DEEPER * min(depth, _DEEPEST)
        borders += [_Border(start, price, path) for start in value.starts]
        if value.end:
            borders.append(_Border(value.closes_at, _AFTER_BRACKET, path, "closes"))
    borders.sort(key=attrgetter("at"))
    return borders


def _key(text: str, start: int, end: int) -> str:
    """Return the key of a value whose bracket stands at a place; nothing for a value of an array."""
    key = _KEY.search(text, max(start, end - _LONGEST_KEY), end)
    return next(filter(None, key.groups()), "") if key else ""


def _distinct(borders: Iterable[_Border], end: int) -> list[_Border]:
    """Return the borders inside a text, the first at its beginning, each place once."""
    places: dict[int, _Border] = {}
    for border in borders:
        if border.at < end:
            places.setdefault(border.at, border)
    first = places.pop(0, _Border(0, 0.0, ()))
    return [first._replace(price=0.0), *places.values()]


def _paths(borders: Sequence[_Border]) -> list[Heading]:
    """Return the keys that lead to what follows each border.

    An opening bracket stands under the path of its first value, a closing one under that of its last.
    """
    paths = [border.path for border in borders]
    for at in range(1, len(paths)):
        if borders[at].bracket == "closes":
            paths[at] = paths[at - 1]
    for at in reversed(range(len(paths) - 1)):
        if borders[at + 1].bracket == "opens":
            paths[at] = paths[at + 1]
    return paths


def _after(text: str, at: int) -> int:
    """Return where the next value begins: with its indentation, if it stands on a line of its own."""
    gap = _JSON_GAP.match(text, at)
    return gap.end() if gap else at
