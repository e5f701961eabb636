"""Text as it is: plain text, data, light markup, Markdown, notebooks and source code, each with its title.

Front matter of Markdown stays in the text where it says more than a title and tags; where it does not, its
lines are blank, so that the lines of the text are always those of the file. Code goes by the name of its
file, because people look for files by it, and by what it says of itself in its first comment, which tells
what every chunk is about and stands in none but the first. Of notebooks, pictures and widgets are left out,
and citations count the lines of the Markdown that is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import HEAD_BYTES, decode, with_plain_newlines
from concord.extract.formats import TEXT, Format, detect, extension
from concord.extract.markdown_writer import fence_around
from concord.text.clean import clean, without_encoded
from concord.text.document import split_front_matter, status_of
from concord.text.headings import heading_words, is_title, line_words
from concord.text.plain import MARKED, headings_of
from concord.types import Extracted

# What names a whole document apart from its headings.
_NAMED = {"org": re.compile(r"^#\+title:[ \t]+(\S.*)$", re.MULTILINE | re.IGNORECASE)}
_UNDERLINED = ("rst", "rest")  # extensions of files whose titles are underlined
_SEARCHED_CHARACTERS = 8_192
MAX_TITLE = 200  # characters; what is longer is a paragraph


class PlainExtractor(Extractor):
    """Reads whatever is text and nothing in particular."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        text = clean(readable(data))
        found = detect(name, data[:HEAD_BYTES])
        form = found if isinstance(found, Format) and found.extractor == TEXT.extractor else TEXT
        return Extracted(
            text, form.type, _title(text, form.language, extension(name)), language=form.language
        )


def readable(data: bytes) -> str:
    """Return what can be read in a file: its lines, without pictures that are written in letters."""
    return without_encoded(with_plain_newlines(decode(data)))


def _title(text: str, markup: str | None, kind: str) -> str | None:
    """Return the title of a text in a light markup: what names it, else its first heading."""
    head = text[:_SEARCHED_CHARACTERS]
    if found := markup in _NAMED and _NAMED[markup].search(head):
        return " ".join(found[1].split())[:MAX_TITLE]
    if markup not in MARKED and kind not in _UNDERLINED:
        return None
    first = next((heading.words for heading in headings_of(head, markup)), "")[:MAX_TITLE]
    return first if first and is_title(first, (h.words for h in headings_of(text, markup))) else None


# A heading: after marks, in HTML, or a line that is no item, row or quote, with a line of dashes below it.
_HEADING = re.compile(
    r"^(?: {0,3}(#{1,6}[ \t]+\S[^\n]*)|[ \t]*<h1\b[^>\n]*>([^\n]+?)</h1>"
    r"|[ \t]*(?![-+>|<#]|\*(?!\*{0,2}\w)|\d+[.)])(\S[^\n]*)\n {0,3}(?:=+|-{2,})[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_SEARCHED_LINES = 200  # a document without a heading up there has no title of its own
_SEARCHED_WIDTH = 1_000  # no title is longer, with the addresses of its links


class MarkdownExtractor(Extractor):
    """Reads .md and its kin."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        head = split_front_matter(readable(data))
        block = clean(head.block) if head.details else ""
        body = clean(head.text)
        said = status_of(body)
        status = {"status": said} if said and "status" not in map(str.casefold, head.details) else {}
        return Extracted(
            text=block + body[block.count("\n") :],
            type="markdown",
            title=head.title or first_heading(body),
            tags=head.tags,
            details={**head.details, **status},
            body_start=len(block),
        )


def first_heading(text: str) -> str | None:
    """Return the first heading of a Markdown text, without its marks; none if that is one of its releases."""
    head = "\n".join(line[:_SEARCHED_WIDTH] for line in text.split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES])
    first = next(_headings(head), None)
    return first if first and is_title(first, _headings(text)) else None


def _headings(text: str) -> Iterator[str]:
    found = _HEADING.finditer(_FENCED.sub("", text))
    return filter(None, (line_words(h[1]) if h[1] else heading_words(h[2] or h[3]) for h in found))


MAX_SUMMARY = 120  # characters: about a line of a comment
_SUMMARY_WITHIN = 4_096

_DOCSTRING = re.compile(r'(?:[ \t]*(?:#[^\n]*)?\n)*+[rRuU]?("""|\'\'\')\s*([^\n]+)')
_PREAMBLE = re.compile(r"(?:\s+|#![^\n]*|<\?php|package [\w.]+;?|[\"']use strict[\"'];?)*")


# Of any language: each has its own marks, and no other begins a file with them. #include is no comment.
_COMMENT = re.compile(
    r"(?:[ \t]*(?://|#(?![\w!])|--|;|%|!(?=[ !]))[^\n]*(?:\n|\Z))+"
    r"|/\*.*?\*/|<!--.*?-->|\{-.*?-\}|\(\*.*?\*\)",
    re.DOTALL,
)
_COMMENT_MARKS = "/*#-;%!<>(){} \t="
# Comments that say nothing of what the code does.
_NOT_A_SUMMARY = re.compile(
    r"copyright|licen[cs]e|spdx|all rights reserved|\(c\)|generated|"
    r"coding[:=]|-\*-|eslint|prettier|@ts-|@flow|pylint",
    re.IGNORECASE,
)


class CodeExtractor(Extractor):
    """Reads source code."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        form = detect(name, data[:HEAD_BYTES])
        language = form.language if isinstance(form, Format) else None
        text = clean(readable(data))
        names = (name.rpartition("/")[2], _summary(text[:_SUMMARY_WITHIN], language))
        return Extracted(text, "code", ": ".join(filter(None, names)), language=language)


def _summary(head: str, language: str | None) -> str:
    """Return the first sentence that a file says of itself; nothing when it begins with code or a licence."""
    if language == "python":
        found = _DOCSTRING.match(head)
        return _sentence(found[2].partition(found[1])[0]) if found else ""
    position = 0
    while (before := _PREAMBLE.match(head, position)) and (block := _COMMENT.match(head, before.end())):
        lines = (_sentence(line) for line in block[0].split("\n"))
        summary = next((line for line in lines if line), "")
        if summary and not _NOT_A_SUMMARY.search(block[0]):
            return summary
        position = block.end()
    return ""


def _sentence(line: str) -> str:
    text = line.strip().strip(_COMMENT_MARKS)
    if not any(map(str.isalpha, text)) or text.startswith("@"):
        return ""
    return text if len(text) <= MAX_SUMMARY else text[:MAX_SUMMARY].rpartition(" ")[0] + " …"


_LANGUAGE = re.compile(r"[\w+#-]{1,30}")


class NotebookExtractor(Extractor):
    """Reads .ipynb: cells as Markdown, and as code with what it printed; what is no notebook is data."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        try:
            notebook = _mapping(json.loads(decode(data), strict=False))
        except (ValueError, RecursionError):
            notebook = {}
        if not isinstance(notebook.get("cells"), list):
            return Extracted(clean(readable(data)), "data")
        metadata = _mapping(notebook.get("metadata"))
        kernel, info = (_mapping(metadata.get(part)) for part in ("kernelspec", "language_info"))
        names = (kernel.get("language"), info.get("name"))
        language = next((n for n in names if isinstance(n, str) and _LANGUAGE.fullmatch(n)), "")
        blocks = (block for cell in notebook["cells"] for block in _blocks(_mapping(cell), language))
        text = clean(without_encoded("\n\n".join(filter(None, blocks))))
        title = str(metadata.get("title") or "")[:MAX_TITLE] or first_heading(text)
        return Extracted(text, "notebook", title)


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    """Yield what a cell says, and then what it printed."""
    source = _shown(cell.get("source"))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield _fenced(source, language)
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        yield _fenced(_printed(_mapping(output)))


def _printed(output: dict[str, Any]) -> str:
    """Return the text of an output; what stands in for a picture is none."""
    if "ename" in output:
        return "\n".join(filter(None, (_shown(output["ename"]), _shown(output.get("evalue")))))
    data = _mapping(output.get("data"))
    if any(kind.startswith("image/") for kind in data):
        return ""
    return _shown(data.get("text/plain") or output.get("text"))


def _shown(value: Any) -> str:
    """Return a text, which notebooks keep as one string or as a list of its parts, as a terminal shows it.

    What follows a carriage return replaces what was written on the line before it.
    """
    parts = value if isinstance(value, list) else [value]
    text = "".join(part for part in parts if isinstance(part, str)).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return "\n".join(lines).strip("\n").rstrip()


def _fenced(code: str, language: str = "") -> str:
    fence = fence_around(code)
    return f"{fence}{language}\n{code}\n{fence}" if code.strip() else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
