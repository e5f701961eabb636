"""Jupyter notebooks: cells as Markdown and code with what they printed, each line with its line of the file.

Pictures, widgets and HTML that a cell showed are left out; a file that is no notebook after all is data. In a
file of a single line every citation would be that line, so the lines of the Markdown are counted instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

from concord.extract.decode import decode
from concord.extract.markdown_writer import fence_around
from concord.extract.text import MAX_TITLE, first_heading, readable
from concord.text.clean import clean, without_encoded
from concord.types import Extracted

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LANGUAGE = re.compile(r"[\w+#-]{1,30}")


class _String(str):
    """A string of a JSON file, and the line of the file on which it stands."""

    line: int

    def __new__(cls, text: str, line: int) -> Self:
        """Make a string that knows its line."""
        made = super().__new__(cls, text)
        made.line = line
        return made


class _Line(NamedTuple):
    text: str
    number: int  # of the line of the file that it comes from


class NotebookExtractor:
    """Reads .ipynb."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the notebook as Markdown; the title is its metadata's, else its first heading."""
        file = decode(data)
        notebook = _parsed(file)
        cells = _cells(notebook)
        if cells is None:
            return Extracted(clean(readable(data)), "data")
        metadata = _mapping(notebook.get("metadata"))
        lines = _joined([block for cell in cells for block in _blocks(cell, _language(metadata))])
        text = clean(without_encoded("\n".join(line.text for line in lines)))
        return Extracted(
            text=text,
            type="markdown",
            title=str(metadata.get("title") or "")[:MAX_TITLE] or first_heading(text),
            file_lines=tuple(line.number for line in lines) if "\n" in file.strip() else (),
        )


def _parsed(text: str) -> Any:
    """Return what a JSON file holds, its strings with their lines; None where it is not JSON."""
    try:
        return _located(json.loads(text, strict=False, object_pairs_hook=_Pairs), _string_lines(text))
    except (ValueError, RecursionError):
        return None


class _Pairs(list[tuple[str, Any]]):
    """The names and values of a JSON object, in the order of the file, also where a name comes twice."""


def _string_lines(text: str) -> Iterator[int]:
    """Yield the line of each string of a JSON file."""
    line, counted = 1, 0
    for string in _STRING.finditer(text):
        line, counted = line + text.count("\n", counted, string.start()), string.start()
        yield line


def _located(value: Any, lines: Iterator[int]) -> Any:
    if isinstance(value, _Pairs):
        return {name: _located(inner, lines) for name, inner in value if next(lines)}  # that is the name's
    if isinstance(value, list):
        return [_located(inner, lines) for inner in value]
    return _String(value, next(lines)) if isinstance(value, str) else value


def _cells(notebook: Any) -> list[Any] | None:
    """Return the cells of a notebook, of version 3 too; None if it is none."""
    if not isinstance(notebook, dict):
        return None
    if isinstance(cells := notebook.get("cells"), list):
        return cells
    if isinstance(sheets := notebook.get("worksheets"), list):
        return [cell for sheet in sheets for cell in _sequence(_mapping(sheet).get("cells"))]
    return None


def _language(metadata: dict[str, Any]) -> str:
    """Return what the code is written in, as a fence names it."""
    kernel, info = (_mapping(metadata.get(part)) for part in ("kernelspec", "language_info"))
    told = (kernel.get("language"), info.get("name"))
    return next((name for name in told if isinstance(name, str) and _LANGUAGE.fullmatch(name)), "")


def _blocks(cell: Any, language: str) -> Iterator[list[_Line]]:
    """Yield what a cell says, and then what it printed."""
    cell = _mapping(cell)
    source = _lines(cell.get("source", cell.get("input")))
    if cell.get("cell_type") == "code":
        yield _fenced(source, language)
        yield from (_fenced(_printed(_mapping(output))) for output in _sequence(cell.get("outputs")))
    elif source and cell.get("cell_type") == "heading":  # of version 3
        level = cell.get("level")
        yield [source[0]._replace(text=f"{'#' * (level if level in range(1, 7) else 1)} {source[0].text}")]
    else:
        yield source


def _printed(output: dict[str, Any]) -> list[_Line]:
    """Return the text of an output; what stands in for a picture is none."""
    if "ename" in output:
        return [*_lines(output["ename"]), *_lines(output.get("evalue"))]
    shown = _mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in shown):
        return []
    return _lines(shown.get("text/plain") or output.get("text"))


def _lines(value: Any) -> list[_Line]:
    """Return the lines of a text, which notebooks keep as one string or as a list of its parts."""
    lines: list[_Line] = []
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, _String):
            continue
        first, *rest = (_Line(text, part.line) for text in part.replace("\r\n", "\n").split("\n"))
        if lines and (begun := lines.pop()).text:  # the part before did not end its line
            first = _Line(begun.text + first.text, begun.number)
        lines += [first, *rest]
    return _without_blank_ends([line._replace(text=_as_shown(line.text)) for line in lines])


def _as_shown(line: str) -> str:
    """Return what a terminal shows of a line: what follows a carriage return replaces what it had written."""
    return line.rstrip("\r").rpartition("\r")[2]


def _without_blank_ends(lines: list[_Line]) -> list[_Line]:
    said = [index for index, line in enumerate(lines) if line.text.strip()]
    return lines[said[0] : said[-1] + 1] if said else []


def _fenced(lines: list[_Line], language: str = "") -> list[_Line]:
    if not lines:
        return []
    fence = fence_around("\n".join(line.text for line in lines))
    return [_Line(fence + language, lines[0].number), *lines, _Line(fence, lines[-1].number)]


def _joined(blocks: Sequence[list[_Line]]) -> list[_Line]:
    """Return the blocks with a blank line between them."""
    lines: list[_Line] = []
    for block in filter(None, blocks):
        if lines:
            lines.append(_Line("", lines[-1].number))
        lines += block
    return lines


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
