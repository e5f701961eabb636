"""Citations: the one spelling of "this passage of that document", written and read.

`docs/auth.md:12-31` are lines, `report.pdf:p3` is a page, `report.pdf:p3-4` two of them, and `docs/auth.md`
a whole document.
"""

from __future__ import annotations

import re

from msgspec import Struct

from concord.text.pattern import pattern
from concord.types import Chunk, Document

_LINES = pattern(r"^(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?$", re.DOTALL)
_PAGES = pattern(r"^(?P<path>.+):p(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?$", re.DOTALL)


class Citation(Struct, frozen=True):
    """A citation taken apart; it has lines, pages or neither, first and last included."""

    path: str
    lines: tuple[int, int] | None = None
    pages: tuple[int, int] | None = None


def cite(document: Document, chunk: Chunk) -> str:
    """Return the citation of a chunk: its pages where the document has any, else its lines."""
    if chunk.pages:
        return f"{document.path}:{page_span(*chunk.pages)}"
    return f"{document.path}:{chunk.start_line}-{chunk.end_line}"


def page_span(first: int, last: int) -> str:
    """Return how a citation writes these pages."""
    return f"p{first}" if first == last else f"p{first}-{last}"


def parse_citation(text: str) -> Citation:
    """Take a citation apart; text that names neither lines nor a page is a path."""
    text = text.strip()
    if found := _PAGES.match(text):
        return Citation(found["path"], pages=_span(found))
    if found := _LINES.match(text):
        return Citation(found["path"], lines=_span(found))
    return Citation(text)


def _span(found: re.Match[str]) -> tuple[int, int]:
    return int(found["first"]), int(found["last"] or found["first"])
