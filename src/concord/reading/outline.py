"""What is in a document? Its headings with where each begins and how long it is, to choose before reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from msgspec import Struct
from msgspec.structs import replace

from concord.core.reports import DocumentSlice
from concord.reading.budget import tokens
from concord.reading.locate import Located, joined, slice_of
from concord.text.citations import citation_of
from concord.text.document import split_front_matter
from concord.text.headings import MARKDOWN_TYPES
from concord.text.markdown import read_markdown
from concord.types import Chunk, Document

MOST_TOKENS = 500  # of an outline that is read as a text: to choose must cost less than to read

Heading = tuple[str, ...]


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
        told = [*map(_line, _at_depth(outline.sections, depth))]
        if tokens("\n".join(told)) <= MOST_TOKENS:
            break
    while tokens("\n".join(told)) > MOST_TOKENS:
        told = [*told[: len(told) * 2 // 3], "…"]
    whole = slice_of(located)
    return replace(whole, text="\n".join(told), citation=outline.document.path, heading=())


def _at_depth(sections: Sequence[OutlineSection], depth: int) -> Iterator[OutlineSection]:
    """Yield sections with all that stands under deeper headings as a part of them."""
    for heading, group in groupby(sections, key=lambda section: section.heading[:depth]):
        part = list(group)
        last, length = max(section.end_line for section in part), sum(section.tokens for section in part)
        yield replace(part[0], heading=heading, end_line=last, tokens=length)


def _line(section: OutlineSection) -> str:
    page = "" if section.page is None else f"p{section.page}, "
    title = section.heading[-1] if section.heading else "(without a heading)"
    indent = "  " * max(1, section.level)
    return f"{page}{section.start_line}-{section.end_line}{indent}{title} ({section.tokens} tokens)"


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
