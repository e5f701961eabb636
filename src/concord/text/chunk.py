"""From a document's text to its chunks: read its structure, join what is small, cut what is long.

Neighbouring sections are joined up to the target, because a chunk of ten words matches everything and says
nothing. On 291 pages of Kubernetes' documentation (260 queries, bundled model) nDCG@10 was 0.845 without
joining, 0.849 up to half the target and 0.855 up to the target. Sections under different top-level headings
stay apart, so that no chunk speaks of two things: joining them as well added nothing (0.856).

Scraps of pages are the exception. On many pages all headings are top-level (Name, Synopsis, See Also), or the
title is in the front matter. For 13 of 17 commands of PostgreSQL, asked for by name, a scrap came first, and
for 4 where scraps are joined; of 285 link texts of Markdown pages, asked as queries, for 28 and 8 (nDCG@10
0.724 and 0.729), and of 300 of Kubernetes' for 46 and 36 (0.698 and 0.694).

In code all neighbours may be joined, but the head of a class stays with its first method. The first chunk of
a table begins with the names of its columns; every other one carries them as its heading, in Markdown below
that of its section, and is shorter by their length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from concord.text.citations import OF_LINES
from concord.text.code import read_code
from concord.text.cuts import ChunkSize, Range, Tokens, cut_ranges, measured
from concord.text.headings import MARKDOWN_TYPES, release_of, shared
from concord.text.links import with_links
from concord.text.markdown import column_names, read_markdown
from concord.text.plain import read_plain
from concord.text.records import names_line, read_json, read_records, read_table
from concord.types import Extracted, Heading, Piece, Section

__all__ = ["ChunkSize", "chunk", "outlined"]

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_SPACES = re.compile(r"[^\S\n]*+")
_BLANK = re.compile(r"[^\S\n]*+$", re.MULTILINE)  # up to the end of the line, or of what is looked at

# A day of a journal or a changelog: 2025-06-24, 24.6.2025, June 24th, 2025, 24 de junio de 2025.
_DAY = re.compile(
    r"(?<![\w./-])(?:[12]\d{3}(?:([-/])\d{1,2}\1\d{1,2}|\.\d\d\.\d\d)|\d{1,2}([-/.])\d{1,2}\2[12]\d{3}"
    r"|\d{1,2}(?:st|nd|rd|th|er|\.)?[ -](?:of |de )?[^\W\d_]{3,10}\.?,?[ -](?:del? )?[12]\d{3}"
    r"|[^\W\d_]{3,10}\.?[ -]\d{1,2}(?:st|nd|rd|th)?,?[ -][12]\d{3})(?!(?!T\d)\w|[./-]\d)"
)

_PAGES = ("html", "markdown", "notebook")  # documents that are about one thing, whatever their headings
_SCRAP = 4  # a section shorter than the target divided by this says too little by itself
_DEFAULT = ChunkSize()


def chunk(
    extracted: Extracted, token_starts: Callable[[str], Sequence[int]], size: ChunkSize = _DEFAULT
) -> list[Piece]:
    """Return the chunks of a document, in order; none when it holds nothing but white space.

    The text is tokenised once, by one call of `token_starts`; its structure is read unless it comes with it.
    """
    text = extracted.text
    if not text or text.isspace():
        return []
    if extracted.sections is None:
        extracted = outlined(extracted)
    chunker = _Chunker(extracted, measured(token_starts(text), len(text)), size)
    return with_links(extracted, list(_pieces(extracted, chunker.ranges())))


def outlined(extracted: Extracted) -> Extracted:
    """Return a document with its sections, which its extractor may have found."""
    return replace(extracted, sections=_sections(extracted)) if extracted.sections is None else extracted


def _sections(extracted: Extracted) -> list[Section]:
    text, language = extracted.text, extracted.language
    if extracted.type == "code":
        return read_code(text, language)
    if extracted.type == "data":
        return {"csv": read_table, "json": read_json}.get(language or "", read_records)(text)
    if extracted.type in MARKDOWN_TYPES:
        return read_markdown(text, extracted.body_start)
    return read_plain(text, language)


class _Chunker:
    """A document, its tokens and how long its chunks are."""

    def __init__(self, extracted: Extracted, tokens: Tokens, size: ChunkSize) -> None:
        self.extracted, self.tokens, self.size = extracted, tokens, size
        self.is_code = extracted.type == "code"
        self.is_json = extracted.type == "data" and extracted.language == "json"
        self.is_table = extracted.type == "data" and extracted.language == "csv"

    def ranges(self) -> Iterator[tuple[Heading, Range]]:
        """Yield what becomes a chunk, with its heading."""
        for run in self.runs(self.extracted.sections or read_records(self.extracted.text)):
            for group in self.groups(run):
                for reach in self.cut(group):
                    yield self.heading_of(group, reach), reach

    def length(self, first: Section, last: Section | None = None) -> int:
        """Return the tokens of a section, or of all from one to another."""
        return self.tokens.between(first.start, (last or first).end)

    def runs(self, sections: list[Section]) -> list[list[Section]]:
        """Return runs of sections within which neighbours may be joined; long front matter is a run of one.

        Short front matter, or that of a short document, begins the first section. By itself it would be found
        before the page: of npm's 91 pages, such five lines came first for 16 of 30 queries.
        """
        body_start, target = self.extracted.body_start, self.size.target
        if not body_start or len(sections) == 1:
            return [sections]
        front, first, *rest = sections
        is_long = self.tokens.before(body_start) > target // 4
        if is_long and self.tokens.before(sections[-1].end) > target:
            return [[front], [first, *rest]]
        return [[Section(first.heading, front.blocks + first.blocks), *rest]]

    def groups(self, sections: Sequence[Section]) -> Iterable[list[Section]]:
        """Return runs of neighbouring sections, each of which is cut by itself."""
        # So short that it is about one thing, whatever its headings.
        is_short = self.tokens.before(len(self.extracted.text)) <= self.size.target // 2
        groups = self.joined(sections, across_headings=self.is_code or self.is_json or is_short)
        if self.extracted.type not in _PAGES:
            return groups
        return self.without_scraps(self.without_scraps(groups, scrap=0), scrap=1)

    def joined(self, sections: Sequence[Section], *, across_headings: bool) -> Iterator[list[Section]]:
        """Yield neighbouring sections that make one chunk, or one section, which may be cut later."""
        group: list[Section] = []
        length = 0
        for section in sections:
            own = self.length(section)
            before = group[-1].heading if group else ()
            # Under one top-level heading, or the first before any heading.
            is_near = before[:1] == section.heading[:1] and _are_of_one_thing(before, section.heading)
            related = across_headings or not before or is_near
            if group and not (related and length + own <= self.size.target):
                heads = _heads(group, section) if self.is_code or self.is_json else []
                if rest := group[: len(group) - len(heads)]:
                    yield rest
                group, length = heads, sum(map(self.length, heads))
                if length + own > self.size.target:  # together they are cut, as one section
                    blocks = [block for part in (*heads, section) for block in part.blocks]
                    section, group = Section(section.heading, blocks), []
            group.append(section)
            length += own
        yield group

    def without_scraps(self, groups: Iterable[list[Section]], scrap: Literal[0, 1]) -> list[list[Section]]:
        """Return the groups, with two chapters joined if the first (0) or second (1) of them is a scrap."""
        kept: list[list[Section]] = []
        for group in groups:
            before = kept[-1] if kept else []
            if before and self.are_joined(before, group, (before, group)[scrap]):
                kept[-1] = [*before, *group]
            else:
                kept.append(group)
        return kept

    def are_joined(self, before: list[Section], group: list[Section], scrap: list[Section]) -> bool:
        first, second = before[-1].heading, group[0].heading
        is_scrap = self.length(scrap[0], scrap[-1]) < self.size.target // _SCRAP
        fits = self.length(before[0], group[-1]) <= self.size.maximum
        return is_scrap and fits and first[:1] != second[:1] and _are_of_one_thing(first, second)

    def heading_of(self, group: Sequence[Section], reach: Range) -> Heading:
        """Return the heading of a range: what the headings of its sections share.

        Later rows of a table have the names of its columns as a heading; the first chunk begins with them.
        """
        if self.is_table and not reach[0]:
            return ()
        if self.is_json:
            return shared([section.heading for section in group])
        heading = shared([section.heading for section in group if section.heading])
        is_markdown = self.extracted.type in MARKDOWN_TYPES
        return (*heading, *_names_above(self.extracted.text, group[0], *reach)) if is_markdown else heading

    def cut(self, group: Sequence[Section]) -> list[Range]:
        text, (section, *others) = self.extracted.text, group
        if others:
            return [(section.start, others[-1].end)]
        size = self.size
        if self.is_table and section.heading and self.length(section) > size.maximum:
            names = self.tokens.between(section.start, section.blocks[0].end)  # which have to fit in as well
            taken = min(names, size.target // 4)
            size = ChunkSize(size.target - taken, size.maximum - taken, size.overlap)
        return cut_ranges(text, section.blocks, self.tokens, size, self.extracted.page_starts)


def _names_above(text: str, section: Section, start: int, end: int) -> Heading:
    """Return the names of a Markdown table's columns, if later rows of the table make up most of a range."""
    table = section.blocks[bisect_right(section.blocks, start, key=attrgetter("start")) - 1]
    if not table.start < start < table.end or 2 * (min(end, table.end) - start) < end - start:
        return ()
    names = column_names(text, table.start) if table.kind == "solid" else []
    return (names_line(names),) if names else ()


def _are_of_one_thing(before: Heading, heading: Heading) -> bool:
    """Whether two neighbours belong neither to two releases nor to two entries of a list.

    A query is about one entry of a list, of questions or of a journal. With 80 queries about a list of 160
    short questions, the bundled model had the answer first for all 80 if no entries were joined, for 54 if
    scraps were joined, and for 38 if all were joined up to the target.
    """
    release = release_of(before)
    if release is not None and release not in heading:
        return False
    outer = len(shared([before, heading]))
    titles = ["".join(path[outer : outer + 1]) for path in (before, heading)]
    # A question, or a day.
    return not all(title.rstrip().endswith(("?", "？", "؟")) or _DAY.search(title) for title in titles)


def _heads(group: Sequence[Section], section: Section) -> list[Section]:
    """Return the last sections of a group that begin what a section is in: the head of its class."""

    def contains(outer: Heading) -> bool:
        return 0 < len(outer) < len(section.heading) and section.heading[: len(outer)] == outer

    return [*takewhile(lambda head: contains(head.heading), reversed(group))][::-1]


def _pieces(extracted: Extracted, ranges: Iterable[tuple[Heading, Range]]) -> Iterator[Piece]:
    text, line, line_start, counted, last_end = extracted.text, 1, 0, 0, 0
    for heading, reach in ranges:
        start, body = _trimmed(text, *reach)
        if not body:
            continue
        line += text.count("\n", counted, start)
        line_start = text.rfind("\n", counted, start) + 1 or line_start
        counted, end = start, start + len(body)
        start_column, end_column = _columns(extracted, line_start, start, end)
        own_start = max(start, last_end)  # after the overlap
        blank = end - own_start - len(text[own_start:end].lstrip())
        yield Piece(
            text=body,
            start=start,
            end=end,
            start_line=_file_line(extracted, line),
            end_line=_file_line(extracted, line + body.count("\n")),
            page=_page_of(extracted, own_start + blank),
            heading=heading,
            last_page=_page_of(extracted, end - 1),
            start_column=start_column,
            end_column=end_column,
        )
        last_end = end


def _columns(extracted: Extracted, line: int, start: int, end: int) -> tuple[int | None, int | None]:
    """Return the columns of a range if it begins or ends inside a line of the file, white space aside.

    `line` is where the line begins that the range begins in.
    """
    text = extracted.text
    if extracted.file_lines or extracted.page_starts or extracted.type not in OF_LINES:
        return None, None
    if _BLANK.match(text, line, start) and _BLANK.match(text, end):
        return None, None
    last_line = text.rfind("\n", start, end) + 1 or line
    return start - line + 1, end - last_line


def _page_of(extracted: Extracted, offset: int) -> int | None:
    return (bisect_right(extracted.page_starts, offset) or 1) if extracted.page_starts else None


def _trimmed(text: str, start: int, end: int) -> tuple[int, str]:
    """Drop white space around a range, but no indentation: code without it would read wrong."""
    blank = _BLANK_LINES.match(text, start, end)
    begin = blank.end() if blank else start
    if begin and text[begin - 1] != "\n":
        blank = _SPACES.match(text, begin, end)
        begin = blank.end() if blank else begin
    return begin, text[begin:end].rstrip()


def _file_line(extracted: Extracted, line: int) -> int:
    lines = extracted.file_lines
    return lines[min(line, len(lines)) - 1] if lines else line
