"""From a document's text to its chunks: read its structure, join what is small, cut what is long.

Neighbouring sections are joined up to the target, because a chunk of ten words matches everything and says
nothing. On 291 pages of Kubernetes' documentation (260 queries, bundled model) nDCG@10 was 0.845 without
joining, 0.849 up to half the target and 0.855 up to the target. Sections under different top-level headings
stay apart, so that no chunk speaks of two things: joining them as well added nothing (0.856).

Scraps of pages are the exception. On many pages all headings are top-level (Name, Synopsis, See Also), or the
title is in the front matter. For 13 of 17 commands of PostgreSQL, asked for by name, a scrap came first, and
for 4 where scraps are joined. Of 285 link texts of Markdown pages, asked as queries, 28 had a first hit of at
most 20 words, and 8 have one now (nDCG@10 0.724 and 0.729); of 300 of Kubernetes', 46 and 36 (0.698 and
0.694).

In code all neighbours may be joined, because they share a file; but the head of a class stays with its first
method.

A section that is too long is cut by `cuts`, which knows the price of a cut at any place. The first chunk of a
table begins with the names of its columns; every other one carries them as its heading, and is shorter by
their length. In Markdown, where a table may be part of a section, they come below the section's heading.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal

from concord.text.code import read_code
from concord.text.cuts import ChunkSize, Tokens, cut_ranges, measured
from concord.text.dates import dates_in
from concord.text.headings import MARKDOWN_TYPES, shared
from concord.text.markdown import read_markdown
from concord.text.outline import Heading, Section
from concord.text.pipe_tables import column_names
from concord.text.plain import read_plain
from concord.text.records import names_line, read_json, read_records, read_table
from concord.text.releases import release_of
from concord.types import Extracted, Piece

__all__ = ["ChunkSize", "chunk"]

_BLANK_LINES = re.compile(r"(?:[^\S\n]*+\n)*+")
_SPACES = re.compile(r"[^\S\n]*+")
_BLANK = re.compile(r"[^\S\n]*+$", re.MULTILINE)  # up to the end of the line, or of what is looked at

_PAGES = ("html", "markdown")  # documents that are about one thing, whatever their headings
_OF_LINES = ("code", "data", "markdown", "note", "text")  # whose lines are a file's, unless it is paged
_SCRAP = 4  # a section shorter than the target divided by this says too little by itself

Range = tuple[int, int]
DEFAULT = ChunkSize()


def chunk(
    extracted: Extracted, token_starts: Callable[[str], Sequence[int]], size: ChunkSize = DEFAULT
) -> list[Piece]:
    """Return the chunks of a document, in order; none when it holds nothing but white space.

    The text is tokenised once, by one call of `token_starts`.
    """
    text = extracted.text
    if not text or text.isspace():
        return []
    tokens = measured(token_starts(text), len(text))
    ranges = [
        (_heading_of(extracted, group, reach), reach)
        for run in _runs(_sections(extracted, tokens, size), extracted.body_start, tokens, size)
        for group in _groups(extracted, run, tokens, size)
        for reach in _ranges(extracted, group, tokens, size)
    ]
    return list(_pieces(extracted, ranges))


def _sections(extracted: Extracted, tokens: Tokens, size: ChunkSize) -> list[Section]:
    if extracted.type == "code":
        return read_code(extracted.text, extracted.language)
    if extracted.type == "data":
        return _records(extracted, tokens, size)
    if extracted.type in MARKDOWN_TYPES:
        return read_markdown(extracted.text, extracted.body_start)
    return read_plain(extracted.text, extracted.language)


def _records(extracted: Extracted, tokens: Tokens, size: ChunkSize) -> list[Section]:
    if _is_table(extracted):
        return read_table(extracted.text)
    if _is_json(extracted):
        return read_json(extracted.text, lambda start, end: tokens.between(start, end) <= size.maximum)
    return read_records(extracted.text)


def _runs(sections: list[Section], body_start: int, tokens: Tokens, size: ChunkSize) -> list[list[Section]]:
    """Return runs of sections within which neighbours may be joined; long front matter is a run of its own.

    Short front matter, or that of a short document, begins the first section. By itself it would be found
    before the page: of npm's 91 pages, such five lines came first for 16 of 30 queries.
    """
    if not body_start or len(sections) == 1:
        return [sections]
    front, first, *rest = sections
    if tokens.before(body_start) > size.target // 4 and tokens.before(sections[-1].end) > size.target:
        return [[front], [first, *rest]]
    return [[Section(first.heading, front.blocks + first.blocks), *rest]]


def _groups(
    extracted: Extracted, sections: Sequence[Section], tokens: Tokens, size: ChunkSize
) -> Iterable[list[Section]]:
    """Return runs of neighbouring sections, each of which is cut by itself."""
    if _is_json(extracted):
        return _json_groups(sections, tokens, size)
    across = extracted.type == "code" or _is_short(extracted, tokens, size)
    groups = _joined(sections, tokens, size, is_code=extracted.type == "code", across_headings=across)
    is_page = extracted.type in _PAGES and extracted.language != "cards"  # no two people or events are one
    return _without_scraps(groups, tokens, size) if is_page else groups


def _is_short(extracted: Extracted, tokens: Tokens, size: ChunkSize) -> bool:
    """Whether a document is so short that it is about one thing, whatever its headings; mailboxes are not."""
    return extracted.language != "mbox" and tokens.before(len(extracted.text)) <= size.target // 2


def _json_groups(sections: Sequence[Section], tokens: Tokens, size: ChunkSize) -> Iterator[list[Section]]:
    """Yield the sections of JSON in groups: a short one goes with those that follow it."""
    group: list[Section] = []
    for section in sections:
        group.append(section)
        if tokens.between(group[0].start, section.end) >= size.target // 2:
            if tokens.between(section.end, sections[-1].end) < size.target // 16:
                continue  # the last brackets, and hardly more
            yield group
            group = []
    if group:
        yield group


def _joined(
    sections: Sequence[Section], tokens: Tokens, size: ChunkSize, *, is_code: bool, across_headings: bool
) -> Iterator[list[Section]]:
    """Yield neighbouring sections that make one chunk together, or one section, which may be cut later."""
    group: list[Section] = []
    length = 0
    for section in sections:
        own = tokens.between(section.start, section.end)
        related = across_headings or not group or _are_related(group[-1].heading, section.heading)
        if group and not (related and length + own <= size.target):
            heads = _heads(group, section) if is_code else []
            if rest := group[: len(group) - len(heads)]:
                yield rest
            group, length = heads, sum(tokens.between(head.start, head.end) for head in heads)
            if length + own > size.target:  # together they are cut, as one section
                section = Section(
                    section.heading, [block for one in (*heads, section) for block in one.blocks]
                )
                group = []
        group.append(section)
        length += own
    yield group


def _without_scraps(groups: Iterable[list[Section]], tokens: Tokens, size: ChunkSize) -> list[list[Section]]:
    """Return the groups, with each scrap joined to the next group, or to the one before, where it fits."""
    return _absorbed(_absorbed(groups, tokens, size, scrap=0), tokens, size, scrap=1)


def _absorbed(
    groups: Iterable[list[Section]], tokens: Tokens, size: ChunkSize, scrap: Literal[0, 1]
) -> list[list[Section]]:
    """Return the groups; two chapters side by side are joined if the first (0) or second (1) is a scrap."""
    kept: list[list[Section]] = []
    for group in groups:
        pair = (kept[-1], group) if kept else (group, group)
        before, heading = pair[0][-1].heading, group[0].heading
        is_scrap = tokens.between(pair[scrap][0].start, pair[scrap][-1].end) < size.target // _SCRAP
        fits = tokens.between(pair[0][0].start, group[-1].end) <= size.maximum
        if kept and is_scrap and fits and _are_chapters(before, heading):
            kept[-1] = [*kept[-1], *group]
        else:
            kept.append(group)
    return kept


def _are_chapters(before: Heading, heading: Heading) -> bool:
    """Whether two neighbours are chapters of one page, and not entries of a list."""
    is_same = before[:1] == heading[:1]
    return not is_same and _are_of_one_release(before, heading) and not _are_entries(before, heading)


def _are_entries(before: Heading, heading: Heading) -> bool:
    """Whether two neighbours belong to two entries of a list: of questions, or of a journal.

    A query is about one entry of the list. With 80 queries about a list of 160 short questions, the bundled
    model had the answer first for all 80 if no entries were joined, for 54 if scraps were joined, and for 38
    if all were joined up to the target.
    """
    outer = len(shared([before, heading]))
    return all(any(map(_is_entry, path[outer : outer + 1])) for path in (before, heading))


def _is_entry(title: str) -> bool:
    """Whether a title is a question, or a day."""
    return title.rstrip().endswith(("?", "？", "؟")) or any(dates_in(title))


def _heads(group: Sequence[Section], section: Section) -> list[Section]:
    """Return the last sections of a group that begin what a section is in: the head of its class."""
    heads: list[Section] = []
    for before in reversed(group):
        depth = len(before.heading)
        if not 0 < depth < len(section.heading) or section.heading[:depth] != before.heading:
            break
        heads.insert(0, before)
    return heads


def _are_related(before: Heading, heading: Heading) -> bool:
    """Whether two neighbours stand under one top-level heading, or the first before any heading.

    Two releases are not related, nor are two entries of a list.
    """
    is_same = before[:1] == heading[:1]
    return (
        not before or is_same and _are_of_one_release(before, heading) and not _are_entries(before, heading)
    )


def _are_of_one_release(before: Heading, heading: Heading) -> bool:
    """Whether two neighbours belong to the same release, or the first to none."""
    release = release_of(before)
    return release is None or release in heading


def _heading_of(extracted: Extracted, group: Sequence[Section], reach: Range) -> Heading:
    """Return the heading of a range: what the headings of its sections share.

    Later rows of a table have the names of its columns as their heading; the first chunk begins with them.
    """
    if _is_table(extracted) and not reach[0]:
        return ()
    if _is_json(extracted):
        return shared([one.heading for one in group if one.start < reach[1] and reach[0] < one.end])
    heading = shared([section.heading for section in group if section.heading])
    return (*heading, *_names_above(extracted, group, reach)) if extracted.type in MARKDOWN_TYPES else heading


def _names_above(extracted: Extracted, group: Sequence[Section], reach: Range) -> Heading:
    """Return the names of a Markdown table's columns, if later rows of the table make up most of a range."""
    start, end = reach
    blocks = group[0].blocks
    table = blocks[bisect_right(blocks, start, key=attrgetter("start")) - 1]
    if not table.start < start < table.end or 2 * (min(end, table.end) - start) < end - start:
        return ()
    names = column_names(extracted.text, table.start) if table.kind == "solid" else []
    return (names_line(names),) if names else ()


def _is_json(extracted: Extracted) -> bool:
    return extracted.type == "data" and extracted.language == "json"


def _is_table(extracted: Extracted) -> bool:
    return extracted.type == "data" and extracted.language == "csv"


def _ranges(extracted: Extracted, group: Sequence[Section], tokens: Tokens, size: ChunkSize) -> list[Range]:
    if _is_json(extracted):
        blocks = [block for section in group for block in section.blocks]
        return cut_ranges(extracted.text, blocks, tokens, size)
    if len(group) > 1:
        return [(group[0].start, group[-1].end)]
    (section,) = group
    if _is_table(extracted) and tokens.between(section.start, section.end) > size.maximum:
        size = _below_names(section, tokens, size)
    return cut_ranges(extracted.text, section.blocks, tokens, size, extracted.page_starts)


def _below_names(table: Section, tokens: Tokens, size: ChunkSize) -> ChunkSize:
    """Return how long chunks of a table may be if the names of its columns have to fit in as well."""
    names = tokens.between(table.start, table.blocks[0].end) if table.heading else 0
    taken = min(names, size.target // 4)
    return ChunkSize(size.target - taken, size.maximum - taken, size.overlap)


def _pieces(extracted: Extracted, ranges: Sequence[tuple[Heading, Range]]) -> Iterator[Piece]:
    text, line, line_start, counted, last_end = extracted.text, 1, 0, 0, 0
    for heading, reach in ranges:
        start, body = _trimmed(text, *reach)
        if not body:
            continue
        line += text.count("\n", counted, start)
        line_start = text.rfind("\n", counted, start) + 1 or line_start
        counted = start
        start_column, end_column = _columns(extracted, line_start, start, start + len(body))
        yield Piece(
            text=body,
            start=start,
            end=start + len(body),
            start_line=_file_line(extracted, line),
            end_line=_file_line(extracted, line + body.count("\n")),
            page=_page(extracted, max(start, last_end), start + len(body)),  # after the overlap
            heading=heading,
            last_page=_page_of(extracted, start + len(body) - 1),
            start_column=start_column,
            end_column=end_column,
        )
        last_end = start + len(body)


def _columns(extracted: Extracted, line: int, start: int, end: int) -> tuple[int | None, int | None]:
    """Return the columns of a range if it begins or ends inside a line of the file, white space aside.

    `line` is where the line begins that the range begins in.
    """
    text = extracted.text
    if extracted.file_lines or extracted.page_starts or extracted.type not in _OF_LINES:
        return None, None
    if _BLANK.match(text, line, start) and _BLANK.match(text, end):
        return None, None
    last_line = text.rfind("\n", start, end) + 1 or line
    return start - line + 1, end - last_line


def _page(extracted: Extracted, start: int, end: int) -> int | None:
    """Return the page of the first character between two offsets that is no white space."""
    blank = end - start - len(extracted.text[start:end].lstrip())
    return _page_of(extracted, start + blank)


def _page_of(extracted: Extracted, offset: int) -> int | None:
    return (bisect_right(extracted.page_starts, offset) or 1) if extracted.page_starts else None


def _trimmed(text: str, start: int, end: int) -> tuple[int, str]:
    """Drop white space around a range, but no indentation: code without it would read wrong."""
    found = _BLANK_LINES.match(text, start, end)
    begin = found.end() if found else start
    if begin and text[begin - 1] != "\n":
        found = _SPACES.match(text, begin, end)
        begin = found.end() if found else begin
    return begin, text[begin:end].rstrip()


def _file_line(extracted: Extracted, line: int) -> int:
    lines = extracted.file_lines
    return lines[min(line, len(lines)) - 1] if lines else line
