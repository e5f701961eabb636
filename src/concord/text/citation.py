"""Citations: the one spelling of "this passage of that document", written and read.

`docs/auth.md:12-31` are lines, `report.pdf:p3` is a page, `report.pdf:p3-4` two of them, and `docs/auth.md`
a whole document. Others write the lines in other forms (`auth.md#L12-L31`), which are only read.
"""

from __future__ import annotations

import re

from msgspec import Struct

from concord.text.tokens import pattern
from concord.types import Chunk, Document

_LINES = pattern(r"^(?P<path>.+):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?$", re.DOTALL)
# client.py#L12-L31, as links to code are written, and client.py:12:8, as compilers print places
_PLACE = pattern(
    r"^(?P<path>.+?)(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?(?::\d{1,9})?:?$", re.DOTALL
)
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


def parse_place(text: str) -> Citation | None:
    """Take apart a place as others write it, in links to code and in messages of compilers; None if none."""
    found = _PLACE.match(text.strip())
    return Citation(found["path"], lines=_span(found)) if found else None


def _span(found: re.Match[str]) -> tuple[int, int]:
    return int(found["first"]), int(found["last"] or found["first"])
