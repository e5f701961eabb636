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

from concord.text.heading_words import heading_words, line_words
from concord.text.labels import labels_of
from concord.text.outline import Block, Kind, Section, open_section
from concord.text.releases import Rank, heading_ranks

# How reluctantly a text is cut before a block, in the prices of cuts.py.
_AFTER_HEADING = 1.0
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
_HIGHLIGHT = re.compile(r"\{(?:\{[<%]|%)[ \t]*highlight\b", re.IGNORECASE)
_OPENING = re.compile(
    rf"""
      (?P<heading>\#{{1,6}}(?:[ \t]|$))
    | (?P<fence>`{{3,}}[^`]*$|~{{3,}})
    | (?P<rule>(?:-[ \t]*+){{3,}}$|(?:\*[ \t]*+){{3,}}$|(?:_[ \t]*+){{3,}}$)
    | (?P<item>(?:[-*+]|\d{{1,9}}[.)])(?:[ \t]|$))
    | (?P<quote>>)
    | (?P<highlight>{_HIGHLIGHT.pattern})
    | (?P<html><(?:!|\?|/?(?:{_BLOCK_TAGS})(?:[\s/>]|$)))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MAY_OPEN = frozenset("#`~-*_+><{ \t0123456789=")  # a line that begins otherwise goes on with the paragraph
_FIRST_ITEM = re.compile(r"[-*+]|1[.)]")  # another number at the start of a line may be the end of a sentence
_SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_DELIMITER_ROW = re.compile(r"\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?$")
_HIGHLIGHT_END = re.compile(r"\{(?:\{[<%][ \t]*/[ \t]*|%[ \t]*end)highlight\b", re.IGNORECASE)
_FENCE = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)?(`{3,}|~{3,})")
_RAW_HTML = re.compile(r"<(?:(?P<comment>!--)|(?P<tag>pre|script|style|textarea)\b)", re.IGNORECASE)


class _Lines(NamedTuple):
    """A block in lines, before it has offsets."""

    first: int
    after: int
    kind: Kind
    reluctance: float = 0.0
    level: int = 0  # of a heading


def read_markdown(text: str, body_start: int = 0) -> list[Section]:
    """Return the sections of a Markdown text; the front matter before its body is a section of its own."""
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    offsets[-1] = len(text)
    sections: list[Section] = []
    path: list[tuple[Rank, str]] = []
    found = list(_blocks(lines, bisect_left(offsets, body_start)))
    titles = [(block.level, _title(lines[block.first : block.after])) for block in found if block.level]
    headings = zip(heading_ranks(titles), titles, strict=True)
    for index, block in enumerate(found):
        end = offsets[found[index + 1].first] if index + 1 < len(found) else len(text)
        if block.level:
            rank, (_, title) = next(headings)
            path = [*(outer for outer in path if outer[0] < rank), (rank, title)]
            open_section(sections, tuple(words for _, words in path), labels_of(text, title))
        elif not sections:
            sections.append(Section((), []))
        blocks = sections[-1].blocks
        before = found[index - 1] if index else None
        after_heading = blocks and blocks[-1].kind == "heading"
        reluctance = _AFTER_HEADING if after_heading else _reluctance(lines, before, block)
        blocks.append(Block(offsets[block.first], end, block.kind, reluctance))
    return [Section((), [Block(0, body_start, "solid")]), *sections] if body_start else sections


def _reluctance(lines: Sequence[str], before: _Lines | None, block: _Lines) -> float:
    if before is None:
        return 0.0
    if before.kind == "prose" and (block.kind == "solid" or block.reluctance):
        last = lines[before.after - 1].rstrip()
        return _AFTER_COLON if last.endswith((":", "：")) else block.reluctance
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
        block = _READERS[opening](lines, index, in_list)
        if in_list and indent and not block.reluctance:
            block = block._replace(reluctance=_WITHIN_ITEM)
        yield block
        index = block.after


def _opening(lines: Sequence[str], index: int, body: str, indent: int, in_list: bool) -> str:
    """Return what a line begins, by the name of its reader."""
    if not in_list and (indent > 3 or lines[index].startswith("\t")):
        return "indented"
    if body[0] in _MAY_OPEN and (found := _OPENING.match(body)):
        kind = found.lastgroup or "prose"
        return "prose" if kind == "heading" and indent > 3 else kind
    return "table" if "|" in body and _begins_table(lines, index) else "prose"


def _begins_table(lines: Sequence[str], index: int) -> bool:
    if index + 1 >= len(lines):
        return False
    below = lines[index + 1]
    return "|" in below and "-" in below and _DELIMITER_ROW.match(below.strip()) is not None


def _prose(lines: Sequence[str], index: int, in_list: bool) -> _Lines:
    after = index + 1
    while after < len(lines):
        line = lines[after]
        if not line or (line[0] in _MAY_OPEN and _ends_prose(lines, after, in_list)):
            break
        if "|" in line and _begins_table(lines, after):
            break
        after += 1
    if (
        after < len(lines)
        and after - index <= _LONGEST_SETEXT
        and not in_list
        and _SETEXT.match(lines[after])
    ):
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
    found = _OPENING.match(body)
    if not found:
        return False
    return found.lastgroup != "item" or in_list or _FIRST_ITEM.match(body) is not None


def _heading(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    body = lines[index].lstrip()
    return _Lines(index, index + 1, "heading", level=len(body) - len(body.lstrip("#")))


def _item(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    body = lines[index].lstrip()
    reluctance = _WITHIN_ITEM if len(lines[index]) - len(body) > 1 else _ITEM
    read = _fence if _FENCE.match(body) else _prose
    return read(lines, index, True)._replace(reluctance=reluctance)


def _fence(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    found = _FENCE.match(lines[index].lstrip())
    mark = found[1] if found else "```"
    after = index + 1
    while after < len(lines):
        line = lines[after]
        after += 1
        if mark in line and not line.strip().strip(mark[0]):
            break
    return _Lines(index, after, "solid")


def _highlight(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    """Read a listing as Hugo and Jekyll write it; one that is not ended before the next is only a line."""
    for at in range(index, len(lines)):
        if _HIGHLIGHT_END.search(lines[at]):
            return _Lines(index, at + 1, "solid")
        if at > index and _HIGHLIGHT.match(lines[at].lstrip()):
            break
    return _Lines(index, index + 1, "solid")


def _rule(_lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    return _Lines(index, index + 1, "solid")


def _quote(lines: Sequence[str], index: int, in_list: bool) -> _Lines:
    after = index + 1
    while after < len(lines) and (lines[after].lstrip()[:1] == ">" or not _ends_prose(lines, after, in_list)):
        after += 1
    return _Lines(index, after, "solid")


def _table(lines: Sequence[str], index: int, in_list: bool) -> _Lines:
    after = index + 2  # the row of dashes looks like the end of a paragraph
    while after < len(lines) and not _ends_prose(lines, after, in_list):
        after += 1
    return _Lines(index, after, "solid")


def _html(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    found = _RAW_HTML.match(lines[index].lstrip())
    after = index
    if found:
        closing = "-->" if found["comment"] else f"</{found['tag'].lower()}"
        while after < len(lines) - 1 and closing not in lines[after].lower():
            after += 1
    else:
        while after < len(lines) - 1 and lines[after + 1].strip():
            after += 1
    return _Lines(index, after + 1, "solid")


def _indented(lines: Sequence[str], index: int, _in_list: bool) -> _Lines:
    after = index + 1
    while after < len(lines) and (not lines[after].strip() or lines[after].startswith(("    ", "\t"))):
        after += 1
    return _Lines(index, after, "solid")


_READERS: dict[str, Callable[[Sequence[str], int, bool], _Lines]] = {
    "heading": _heading,
    "fence": _fence,
    "highlight": _highlight,
    "rule": _rule,
    "item": _item,
    "quote": _quote,
    "html": _html,
    "indented": _indented,
    "table": _table,
    "prose": _prose,
}
