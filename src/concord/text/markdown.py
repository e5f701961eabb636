"""The block structure of Markdown: headings, paragraphs, list items, tables, listings, quotes, HTML.

Not a renderer: only what decides where a text may be cut and under which headings a passage stands. Lists are
read flat, one block an item, because a cut between two items is a fair one however deep the list is nested.
Every reader looks at a line once, so the whole is linear, whatever the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from concord.text.cuts import append_block, open_section
from concord.text.headings import heading_words, line_words
from concord.text.records import are_names
from concord.text.tokens import pattern
from concord.types import Block, BlockKind, Section

# How reluctantly a text is cut before a block, in the prices of cuts.py.
_AFTER_COLON = 0.4  # "as follows:" and what follows
_ITEM = 0.15
_WITHIN_ITEM = 0.25

_LONGEST_SETEXT = 2  # lines: more of them above dashes are a paragraph above a rule

_BLOCK_TAGS = (
    "address article aside base blockquote body center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form frame h[1-6] head header hr html iframe legend li link main menu nav ol optgroup "
    "option p param picture pre script search section style summary table tbody td textarea tfoot th thead "
    "title tr track ul video"
).replace(" ", "|")
_OPENING = pattern(
    rf"""
      (?P<heading>\#{{1,6}}(?:[ \t]|$))
    | (?P<fence>`{{3,}}[^`]*$|~{{3,}})
    | (?P<rule>(?:-[ \t]*+){{3,}}$|(?:\*[ \t]*+){{3,}}$|(?:_[ \t]*+){{3,}}$)
    | (?P<item>(?:[-*+]|\d{{1,9}}[.)])(?:[ \t]|$))
    | (?P<quote>>)
    | (?P<html><(?:!|\?|/?(?:{_BLOCK_TAGS})(?:[\s/>]|$)))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MAY_OPEN = frozenset("#`~-*_+>< \t0123456789=")  # a line that begins otherwise goes on with the paragraph
_FIRST_ITEM = pattern(r"[-*+]|1[.)]")  # another number at the start of a line may be the end of a sentence
_SETEXT = pattern(r" {0,3}(?:=+|-+)[ \t]*$")
_DELIMITER_ROW = pattern(r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?$")
_FENCE = pattern(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(`{3,}|~{3,})")
_RAW_HTML = pattern(r"<(?:(?P<comment>!--)|(?P<tag>pre|script|style|textarea)\b)", re.IGNORECASE)
_BETWEEN_CELLS = pattern(r"(?<!\\)\|")
_DELIMITER_MARKS = frozenset("|:- \t")


class _Lines(NamedTuple):
    """A block in lines, before it has offsets."""

    first: int
    after: int
    kind: BlockKind = "solid"
    reluctance: float = 0.0
    level: int = 0  # of a heading


def read_markdown(text: str, body_start: int = 0) -> list[Section]:
    """Return the sections of a Markdown text; the front matter before its body is a section of its own."""
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    offsets[-1] = len(text)
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    blocks = list(_blocks(lines, bisect_left(offsets, body_start)))
    for index, block in enumerate(blocks):
        end = offsets[blocks[index + 1].first] if index + 1 < len(blocks) else len(text)
        if block.level:
            title = _title(lines[block.first : block.after])
            path = [*(outer for outer in path if outer[0] < block.level), (block.level, title)]
            open_section(sections, tuple(words for _, words in path), text)
        elif not sections:
            sections.append(Section((), []))
        reluctance = _reluctance(lines, blocks[index - 1], block) if index else 0.0
        append_block(sections[-1], offsets[block.first], end, block.kind, reluctance)
    return [Section((), [Block(0, body_start, "solid")]), *sections] if body_start else sections


def _reluctance(lines: Sequence[str], before: _Lines, block: _Lines) -> float:
    is_announced = before.kind == "prose" and (block.kind == "solid" or block.reluctance)
    if is_announced and lines[before.after - 1].rstrip().endswith((":", "：")):
        return _AFTER_COLON
    return block.reluctance


def _title(lines: Sequence[str]) -> str:
    """Return a heading's words without its marks."""
    return line_words(lines[0]) if len(lines) == 1 else heading_words(" ".join(lines[:-1]))


def _blocks(lines: Sequence[str], index: int) -> Iterator[_Lines]:
    in_list = False
    while index < len(lines):
        line = lines[index]
        body = line.lstrip()
        if not body:
            index += 1
            continue
        indent = len(line) - len(body)
        opening = _opening(lines, index, body, indent, in_list)
        in_list = opening == "item" or (in_list and indent > 0)
        block = _block(opening, lines, index, in_list)
        if in_list and indent and not block.reluctance:
            block = block._replace(reluctance=_WITHIN_ITEM)
        yield block
        index = block.after


def _opening(lines: Sequence[str], index: int, body: str, indent: int, in_list: bool) -> str:
    """Return what a line begins."""
    if not in_list and (indent > 3 or lines[index].startswith("\t")):
        return "indented"
    if body[0] in _MAY_OPEN and (mark := _OPENING.match(body)):
        kind = mark.lastgroup or "prose"
        return "prose" if kind == "heading" and indent > 3 else kind
    return "table" if "|" in body and _begins_table(lines, index) else "prose"


def _begins_table(lines: Sequence[str], index: int) -> bool:
    if index + 1 >= len(lines):
        return False
    below = lines[index + 1]
    return "|" in below and "-" in below and _DELIMITER_ROW.match(below.strip()) is not None


def _block(opening: str, lines: Sequence[str], index: int, in_list: bool) -> _Lines:
    if opening == "prose":
        return _prose(lines, index, in_list)
    body = lines[index].lstrip()
    if opening == "heading":
        return _Lines(index, index + 1, "heading", level=len(body) - len(body.lstrip("#")))
    if opening == "item":
        block = _block("fence" if _FENCE.match(body) else "prose", lines, index, True)
        is_inner = len(lines[index]) - len(body) > 1
        return block._replace(reluctance=_WITHIN_ITEM if is_inner else _ITEM)
    return _Lines(index, _ENDS[opening](lines, index, in_list))


def _prose(lines: Sequence[str], index: int, in_list: bool) -> _Lines:
    after = index + 1
    while after < len(lines):
        line = lines[after]
        if not line or (line[0] in _MAY_OPEN and _ends_prose(lines, after, in_list)):
            break
        if "|" in line and _begins_table(lines, after):
            break
        after += 1
    may_be_title = not in_list and after < len(lines) and after - index <= _LONGEST_SETEXT
    if may_be_title and _SETEXT.match(lines[after]):
        return _Lines(index, after + 1, "heading", level=1 if "=" in lines[after] else 2)
    return _Lines(index, after, "prose")


def _ends_prose(lines: Sequence[str], index: int, in_list: bool) -> bool:
    """Whether a line cannot go on with a paragraph that stands right above it."""
    line = lines[index]
    body = line.lstrip()
    if not body or _SETEXT.match(line):
        return True
    if len(line) - len(body) > 3 and not in_list:
        return False
    mark = _OPENING.match(body)
    if not mark:
        return False
    return mark.lastgroup != "item" or in_list or _FIRST_ITEM.match(body) is not None


def _first(lines: Sequence[str], index: int, ends: Callable[[str], object]) -> int:
    """Return the first line from one on that ends a block, or the number of lines."""
    return next((at for at in range(index, len(lines)) if ends(lines[at])), len(lines))


def _fence_end(lines: Sequence[str], index: int, _in_list: bool) -> int:
    opening = _FENCE.match(lines[index].lstrip())
    mark = opening[1] if opening else "```"
    closing = _first(lines, index + 1, lambda line: mark in line and not line.strip().strip(mark[0]))
    return min(closing + 1, len(lines))


def _quote_end(lines: Sequence[str], index: int, in_list: bool) -> int:
    after = index + 1
    while after < len(lines) and (lines[after].lstrip()[:1] == ">" or not _ends_prose(lines, after, in_list)):
        after += 1
    return after


def _table_end(lines: Sequence[str], index: int, in_list: bool) -> int:
    after = index + 2  # the row of dashes looks like the end of a paragraph
    while after < len(lines) and not _ends_prose(lines, after, in_list):
        after += 1
    return after


def _html_end(lines: Sequence[str], index: int, _in_list: bool) -> int:
    opening = _RAW_HTML.match(lines[index].lstrip())
    if not opening:
        return _first(lines, index + 1, lambda line: not line.strip())
    closing = "-->" if opening["comment"] else f"</{opening['tag'].lower()}"
    return min(_first(lines, index, lambda line: closing in line.lower()) + 1, len(lines))


def _indented_end(lines: Sequence[str], index: int, _in_list: bool) -> int:
    return _first(lines, index + 1, lambda line: line.strip() and not line.startswith(("    ", "\t")))


_ENDS: dict[str, Callable[[Sequence[str], int, bool], int]] = {
    "fence": _fence_end,
    "rule": lambda _lines, index, _in_list: index + 1,
    "quote": _quote_end,
    "html": _html_end,
    "indented": _indented_end,
    "table": _table_end,
}


def column_names(text: str, start: int) -> list[str]:
    """Return the names of the columns of a table that begins at a place; none if that is no table."""
    names = line_at(text, start)
    return _names(names) if _is_delimiter(line_at(text, start + len(names) + 1)) else []


def line_at(text: str, start: int) -> str:
    """Return the rest of a line."""
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def _is_delimiter(line: str) -> bool:
    return "|" in line and "-" in line and _DELIMITER_MARKS.issuperset(line)


def _names(row: str) -> list[str]:
    """Return the cells of a row, if they name columns."""
    cells = [cell.strip() for cell in _BETWEEN_CELLS.split(row.strip().strip("|"))]
    named = [cell for cell in cells if cell]
    return named if len(cells) > 1 and are_names(named) else []
