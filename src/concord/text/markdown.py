"""The block structure of Markdown: headings, paragraphs, list items, tables, listings, quotes, HTML.

Of what markdown-it reads only what decides where a text may be cut and under which headings a passage stands.
Lists are flat, one block an item, because a cut between two items is a fair one however deep the list is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from concord.text.cuts import append_block, open_section
from concord.text.headings import heading_words, line_words
from concord.text.records import are_names
from concord.text.tokens import pattern
from concord.types import Block, BlockKind, Section

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# How reluctantly a text is cut before a block, in the prices of cuts.py.
_AFTER_COLON = 0.4  # "as follows:" and what follows
_ITEM = 0.15
_WITHIN_ITEM = 0.25

_LONGEST_UNDERLINED = 3  # lines with the underline: more of them above dashes are a paragraph above a rule
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
    lines = text[body_start:].split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=body_start))
    offsets[-1] = len(text)
    sections: list[Section] = []
    path: list[tuple[int, str]] = []
    blocks = list(_blocks(text[body_start:])) or [_Lines(0, len(lines), "prose")]
    for index, block in enumerate(blocks):
        start = offsets[block.first] if index else body_start  # an empty item above a heading is no block
        end = offsets[blocks[index + 1].first] if index + 1 < len(blocks) else len(text)
        if block.level:
            head = lines[block.first : block.after]
            title = line_words(head[0]) if len(head) == 1 else heading_words(" ".join(head[:-1]))
            path = [*(outer for outer in path if outer[0] < block.level), (block.level, title)]
            open_section(sections, tuple(words for _, words in path))
        elif not sections:
            sections.append(Section((), []))
        reluctance = _reluctance(lines, blocks[index - 1], block) if index else 0.0
        append_block(sections[-1], start, end, block.kind, reluctance)
    return [Section((), [Block(0, body_start, "solid")]), *sections] if body_start else sections


def _reluctance(lines: Sequence[str], before: _Lines, block: _Lines) -> float:
    is_announced = before.kind == "prose" and (block.kind == "solid" or block.reluctance)
    if is_announced and "".join(lines[before.first : before.after]).rstrip().endswith((":", "：")):
        return _AFTER_COLON
    return block.reluctance


def _blocks(text: str) -> Iterator[_Lines]:
    """Yield the blocks of a text, of nested ones the innermost; quotes and tables are whole."""
    depth = 0  # of lists
    is_first = False  # of an item
    after = 0  # what is before this line has been yielded
    for token in _parser().parse(text):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif token.type == "list_item_open":
            is_first = True
        elif token.map and token.type != "inline" and token.map[0] >= after:
            first, after = token.map
            reluctance = 0.0 if not depth else _ITEM if is_first and depth == 1 else _WITHIN_ITEM
            is_first = False
            if token.type == "paragraph_open":
                yield _Lines(first, after, "prose", reluctance)
            elif (
                token.type == "heading_open"
                and not depth
                and (token.markup[0] == "#" or after - first <= _LONGEST_UNDERLINED)
            ):
                yield _Lines(first, after, "heading", level=int(token.tag[1]))
            else:
                yield _Lines(first, after, "prose" if token.tag[:1] == "h" else "solid", reluctance)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: most processes read no Markdown

    parser = MarkdownIt("commonmark").enable("table").disable("reference")  # which is text as any other
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def column_names(text: str, start: int) -> list[str]:
    """Return the names of the columns of a table that begins at a place; none if that is no table."""
    after = text.find("\n", start) + 1 or len(text)
    row, below = text[start:after], text[after : text.find("\n", after) + 1 or len(text)].rstrip("\n")
    if "|" not in below or "-" not in below or not _DELIMITER_MARKS.issuperset(below):
        return []
    cells = [cell.strip() for cell in _BETWEEN_CELLS.split(row.strip().strip("|"))]
    named = [cell for cell in cells if cell]
    return named if len(cells) > 1 and are_names(named) else []
