"""How is a long document read? By its outline, to choose before reading, and in pages.

A page holds whole chunks, and the white space before the next page, so that all pages together are the text;
a single chunk longer than a page is cut. The cursor names the document, its content and where to go on: it
needs no session and notices when the text has changed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from msgspec import Struct
from msgspec.structs import replace

from concord.core.errors import BadValue, NotFound
from concord.core.reports import DocumentSlice
from concord.reading.budget import cut_to_bytes, tokens, utf8_length
from concord.reading.locate import Located, gap, joined, locate, slice_of
from concord.store.contract import Catalog
from concord.text.citations import citation_of, reach_of
from concord.text.document import split_front_matter
from concord.text.headings import MARKDOWN_TYPES
from concord.text.markdown import read_markdown
from concord.types import Chunk, Document, Heading, Level

MOST_TOKENS = 500  # of an outline that is read as a text: to choose must cost less than to read


class Page(Struct, frozen=True):
    """Part of what is read, and the cursor of the next part; None where it ends."""

    slice: DocumentSlice
    next_cursor: str | None


def first_page(
    reference: str, catalog: Catalog, *, max_bytes: int, context: int = 0, level: Level | None = None
) -> Page:
    """Return the beginning of what a reference stands for; of what is before, as much as leaves it there."""
    located = locate(reference, catalog, context=context, level=level)
    if level == "outline":
        return Page(outline_slice(located), None)
    if context or level == "section":
        located = located._replace(first=_first_in_sight(located, locate(reference, catalog), max_bytes))
    return _page(located, 0, max_bytes)


def next_page(cursor: str, catalog: Catalog, *, max_bytes: int) -> Page:
    """Return the page that a cursor leads to."""
    document_id, content, chunk, offset, last = _parsed(cursor)
    located = locate(document_id, catalog)
    if located.document.content_hash[: len(content)] != content:
        changed = f"{located.document.path} has changed since the cursor was given"
        raise NotFound(changed, hint="read it from the beginning")
    if not 0 <= chunk <= last < len(located.chunks):
        raise BadValue("the cursor points past the document", hint="read it from the beginning")
    return _page(located._replace(first=chunk, last=last), offset, max_bytes)


def _parsed(cursor: str) -> tuple[str, str, int, int, int]:
    """Return a document id, the beginning of its content hash, a chunk, an offset in it, the last chunk."""
    try:
        document_id, content, *numbers = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        chunk, offset, last = (int(number) for number in numbers)
        return str(document_id), str(content), chunk, max(0, offset), last
    except (binascii.Error, ValueError, TypeError, RecursionError) as fault:
        said = "this is not a cursor that was given here"
        raise BadValue(said, hint="pass next_cursor of the last page as it is") from fault


def _page(located: Located, offset: int, max_bytes: int) -> Page:
    """Take as many chunks as there is room for, at least one, which is cut when it is too long."""
    end = _last_that_fits(located, offset, max_bytes)
    read = slice_of(located._replace(last=end))
    rest, seam = read.text[offset:], _seam(located, end, max_bytes)
    text = _cut(rest, max_bytes - len(seam)) if end == located.first else rest
    if len(text) < len(rest):
        return Page(_shown(read, offset, text), _cursor(located, located.first, offset + len(text)))
    if end == located.last:
        return Page(_shown(read, offset, text), None)
    reached = max(chunk.end for chunk in located.chunks[: end + 1])  # the next begins within what was read
    following = _cursor(located, end + 1, max(0, reached - located.chunks[end + 1].start))
    return Page(_shown(read, offset, text + seam), following)


def _first_in_sight(wide: Located, meant: Located, max_bytes: int) -> int:
    """Return with which chunk to begin, so that what is meant is on the page, with as much on either side."""
    for begin in range(wide.first, meant.first):
        end = min(wide.last, meant.last + meant.first - begin)
        if utf8_length(joined(meant.chunks[begin : end + 1])) <= max_bytes:
            return begin
    return meant.first


def _shown(read: DocumentSlice, offset: int, text: str) -> DocumentSlice:
    """Return what is on a page, cited by its own lines and columns where they can be counted."""
    whole = read.text
    if read.pages or read.end_line - read.start_line != whole.count("\n"):
        return replace(read, text=text)
    begin, end = offset + len(text) - len(text.lstrip("\n")), offset + len(text.rstrip("\n"))
    lines, inside = reach_of(whole, begin, min(end, len(whole)), read.start_line, read.start_column)
    columns = (None, None) if read.start_column is None else inside
    return replace(
        read,
        text=text,
        citation=citation_of(read.document.path, None, lines, columns),
        start_line=lines[0],
        end_line=lines[1],
        start_column=columns[0],
        end_column=columns[1],
    )


def _seam(located: Located, end: int, max_bytes: int) -> str:
    """Return what lies between a page that ends with this chunk and the next page."""
    if end == located.last:
        return ""
    furthest = max(located.chunks[: end + 1], key=lambda chunk: chunk.end)
    return gap(furthest, located.chunks[end + 1])[: max_bytes // 2]  # of a thousand blank lines, some


def _cut(text: str, max_bytes: int) -> str:
    """Return the beginning of a text, up to the end of a line or a word where there is one in sight."""
    cut = cut_to_bytes(text, max_bytes)
    if cut == text:
        return text
    half = len(cut) // 2
    end = cut.rfind("\n", half) + 1 or cut.rfind(" ", half) + 1
    return cut[:end] or cut


def _last_that_fits(located: Located, offset: int, max_bytes: int) -> int:
    first, end = located.first, located.first
    while end < located.last:
        text = joined(located.chunks[first : end + 2])[offset:] + _seam(located, end + 1, max_bytes)
        if utf8_length(text) > max_bytes:
            break
        end += 1
    return end


def _cursor(located: Located, chunk: int, offset: int) -> str:
    place = [located.document.id, located.document.content_hash[:8], chunk, offset, located.last]
    return base64.urlsafe_b64encode(json.dumps(place, separators=(",", ":")).encode()).decode("ascii")


class OutlineSection(Struct, frozen=True):
    """A part of a document under one heading, without what stands under headings below it."""

    heading: Heading  # from the top down; empty before the first
    citation: str
    start_line: int
    end_line: int
    page: int | None
    tokens: int

    @property
    def level(self) -> int:
        """How deep its heading is; 0 where there is none."""
        return len(self.heading)


class Outline(Struct, frozen=True):
    """A document's sections, in order."""

    document: Document
    start_line: int
    end_line: int
    tokens: int
    sections: Sequence[OutlineSection]


def outline_of(located: Located) -> Outline:
    """Return the outline of a document, as it was indexed."""
    document, chunks = located.document, located.chunks
    text, first = joined(chunks), chunks[0].start_line
    last = max(chunk.end_line for chunk in chunks)
    # Lines can be counted where the text is the file's own; what was taken out of HTML has others.
    has_own_lines = last - first == text.count("\n")
    by_heading = document.type in MARKDOWN_TYPES and has_own_lines and chunks[0].page is None
    sections = _of_markdown(document, text, first) if by_heading else _of_chunks(document, chunks)
    return Outline(document, first, last, tokens(text), list(sections))


def outline_slice(located: Located) -> DocumentSlice:
    """Return a document's outline in place of its text: a line a heading, of a long one the upper levels."""
    outline = outline_of(located)
    deepest = max((section.level for section in outline.sections), default=0)
    for depth in range(deepest, -1, -1):
        told = [*_at_depth(outline.sections, depth)]
        if tokens("\n".join(told)) <= MOST_TOKENS:
            break
    while tokens("\n".join(told)) > MOST_TOKENS:
        told = [*told[: len(told) * 2 // 3], "…"]
    whole = slice_of(located)
    return replace(whole, text="\n".join(told), citation=outline.document.path, heading=())


def _at_depth(sections: Sequence[OutlineSection], depth: int) -> Iterator[str]:
    """Yield a line a section, with all that stands under deeper headings as a part of it."""
    for heading, group in groupby(sections, key=lambda section: section.heading[:depth]):
        part = list(group)
        last, length = max(section.end_line for section in part), sum(section.tokens for section in part)
        page = "" if part[0].page is None else f"p{part[0].page}, "
        title = heading[-1] if heading else "(without a heading)"
        indent = "  " * max(1, len(heading))
        yield f"{page}{part[0].start_line}-{last}{indent}{title} ({length} tokens)"


def _of_markdown(document: Document, text: str, first: int) -> Iterator[OutlineSection]:
    front = len(split_front_matter(text).block)
    starts = [(section.heading, section.start) for section in read_markdown(text, front)]
    line, counted = first, 0
    for (heading, start), (_, end) in pairwise([*starts, ((), len(text))]):
        line, counted = line + text.count("\n", counted, start), start
        part = text[start:end]
        lines = (line, line + part.rstrip("\n").count("\n"))
        yield OutlineSection(heading, citation_of(document.path, None, lines), *lines, None, tokens(part))


def _of_chunks(document: Document, chunks: Sequence[Chunk]) -> Iterator[OutlineSection]:
    for heading, group in groupby(chunks, key=lambda chunk: chunk.heading):
        part = list(group)
        lines = part[0].start_line, max(chunk.end_line for chunk in part)
        pages = [chunk.pages for chunk in part if chunk.pages]
        reach = (pages[0][0], pages[-1][1]) if pages else None
        yield OutlineSection(
            heading,
            citation_of(document.path, reach, lines),
            *lines,
            reach and reach[0],
            sum(tokens(chunk.text) for chunk in part),
        )
