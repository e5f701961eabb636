"""Markdown: front matter is read, and stays in the text where it says more than a title and tags.

Where it does not, its lines are blank: the lines of the text are always the lines of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from concord.extract.plain import readable
from concord.text.clean import clean
from concord.text.document import split_front_matter, status_of
from concord.text.headings import heading_words, is_title, line_words
from concord.types import Extracted, Json

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_UNDERLINE = re.compile(r" {0,3}(?:=++|-{2,}+)[ \t]*+$")
# What a line of dashes underlines to no heading.
_NOT_A_PARAGRAPH = re.compile(r"\s*(?:[-+>|<]|\*(?!\*{0,2}\w)|\d+[.)]|$)")
_HTML_HEADING = re.compile(r"\s*<h1\b[^>]*>(.+?)</h1>", re.IGNORECASE)
_SEARCHED_LINES = 200  # a document without a heading up there has no title of its own
_SEARCHED_WIDTH = 1_000  # no title is longer, with the addresses of its links


class MarkdownExtractor:
    """Reads .md and its kin."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text; the title is the front matter's, else the first heading."""
        head = split_front_matter(readable(data))
        block = clean(head.block) if head.details else ""
        body = clean(head.text)
        return Extracted(
            text=block + body[block.count("\n") :],
            type="markdown",
            title=head.title or first_heading(body),
            tags=head.tags,
            details=_with_status(head.details, body),
            body_start=len(block),
        )


def _with_status(details: Mapping[str, Json], body: str) -> Mapping[str, Json]:
    """Return what the head says of a file, and a status in its text by which another has replaced it."""
    if any(key.casefold() == "status" for key in details) or (status := status_of(body)) is None:
        return details
    return {**details, "status": status}


def first_heading(text: str) -> str | None:
    """Return the first heading of a Markdown text, without its marks; none if that is one of its releases."""
    first = next(_headings(text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]), None)
    return first if first and is_title(first, _headings(text.split("\n"))) else None


def _headings(lines: Iterable[str]) -> Iterator[str]:
    fence = ""
    before = ""
    for line in lines:
        line = line[:_SEARCHED_WIDTH]
        if mark := _FENCE.match(line):
            fence = _toggle(fence, mark[1])
        elif not fence and (heading := _heading(line, before)):
            yield heading
        before = "" if fence else line


def _toggle(fence: str, mark: str) -> str:
    """Return which fence is open after such a line: one of its kind, as long or longer, closes it."""
    if not fence:
        return mark
    return "" if mark.startswith(fence) else fence


def _heading(line: str, before: str) -> str:
    if _HEADING.match(line):
        return line_words(line)
    if found := _HTML_HEADING.match(line):
        return heading_words(found[1])
    if _UNDERLINE.match(line) and not _NOT_A_PARAGRAPH.match(before):
        return heading_words(before)
    return ""
