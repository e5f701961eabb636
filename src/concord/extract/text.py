"""Text as it is: plain text, data, light markup, Markdown and source code, each with its title.

Front matter of Markdown stays in the text where it says more than a title and tags; where it does not, its
lines are blank, so that the lines of the text are always those of the file. Code goes by the name of its
file, because people look for files by it, and by what it says of itself in its first comment, which tells
what every chunk is about and stands in none but the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import HEAD_BYTES, decode, with_plain_newlines
from concord.extract.formats import TEXT, Format, detect, extension
from concord.text.clean import clean, without_encoded
from concord.text.document import split_front_matter, status_of
from concord.text.headings import heading_words, is_title, line_words
from concord.text.plain import without_roles
from concord.types import Extracted, Json

# A line of one repeated punctuation mark; it underlines the line before it when it is as long.
_RST_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_ASCIIDOC_TITLE = re.compile(r"^=[ \t]+(\S.*)$", re.MULTILINE)
_LATEX_TITLE = re.compile(r"^[ \t]*\\title\{((?:[^{}\n]|\n(?![ \t]*\n)){1,400})\}", re.MULTILINE)
_ORG_TITLE = re.compile(r"^(?:#\+title:|\*)[ \t]+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_SEARCHED_CHARACTERS = 8_192
MAX_TITLE = 200  # characters; what is longer is a paragraph


class PlainExtractor(Extractor):
    """Reads whatever is text and nothing in particular."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        text = clean(readable(data))
        found = detect(name, data[:HEAD_BYTES])
        form = found if isinstance(found, Format) and found.extractor == TEXT.extractor else TEXT
        return Extracted(text, form.type, _title(text, extension(name)), language=form.language)


def readable(data: bytes) -> str:
    """Return what can be read in a file: its lines, without pictures that are written in letters."""
    return without_encoded(with_plain_newlines(decode(data)))


def _title(text: str, kind: str) -> str | None:
    titles = _TITLES.get(kind)
    first = next(titles(text[:_SEARCHED_CHARACTERS]), None) if titles else None
    return first if titles and first and is_title(first, titles(text)) else None


def _underlined(text: str) -> Iterator[str]:
    for line, below in pairwise(text.split("\n")):
        title = line.strip()
        is_text = title and not _RST_UNDERLINE.match(line)
        if is_text and _RST_UNDERLINE.match(below) and len(below.rstrip()) >= len(title) <= MAX_TITLE:
            yield without_roles(title)


def _matching(marked: re.Pattern[str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (" ".join(found[1].split())[:MAX_TITLE] for found in marked.finditer(text))


# What may be a title, by the extension of a file.
_TITLES: Mapping[str, Callable[[str], Iterator[str]]] = {
    **dict.fromkeys(("rst", "rest"), _underlined),
    **dict.fromkeys(("adoc", "asciidoc", "asc"), _matching(_ASCIIDOC_TITLE)),
    "org": _matching(_ORG_TITLE),
    **dict.fromkeys(("tex", "latex", "ltx"), _matching(_LATEX_TITLE)),
}


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+\S")
_UNDERLINE = re.compile(r" {0,3}(?:=++|-{2,}+)[ \t]*+$")
# What a line of dashes underlines to no heading.
_NOT_A_PARAGRAPH = re.compile(r"\s*(?:[-+>|<]|\*(?!\*{0,2}\w)|\d+[.)]|$)")
_HTML_HEADING = re.compile(r"\s*<h1\b[^>]*>(.+?)</h1>", re.IGNORECASE)
_SEARCHED_LINES = 200  # a document without a heading up there has no title of its own
_SEARCHED_WIDTH = 1_000  # no title is longer, with the addresses of its links


class MarkdownExtractor(Extractor):
    """Reads .md and its kin."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
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


MAX_SUMMARY = 120  # characters: about a line of a comment
_SUMMARY_WITHIN = 4_096

_DOCSTRING = re.compile(r'(?:[ \t]*(?:#[^\n]*)?\n)*+[rRuU]?("""|\'\'\')\s*([^\n]+)')
_PREAMBLE = re.compile(r"(?:\s+|#![^\n]*|<\?php|package [\w.]+;?|[\"']use strict[\"'];?)+")


def _comments(line_mark: str, *blocks: str) -> re.Pattern[str]:
    lines = rf"(?:[ \t]*{line_mark}[^\n]*(?:\n|\Z))+"
    return re.compile("|".join([lines, *blocks]), re.DOTALL)


_SLASHES = _comments("//", r"/\*.*?\*/", "<!--.*?-->")
_HASHES = _comments("#")
_COMMENTS = {
    **dict.fromkeys(("ruby", "bash", "fish", "perl", "r", "julia", "elixir", "make", "dockerfile"), _HASHES),
    **dict.fromkeys(("cmake", "nix", "hcl", "powershell", "graphql", "nim"), _HASHES),
    **dict.fromkeys(("sql", "lua", "haskell"), _comments("--", r"/\*.*?\*/", r"\{-.*?-\}")),
    **dict.fromkeys(("clojure", "elisp", "scheme", "asm"), _comments(";")),
    **dict.fromkeys(("erlang", "fortran"), _comments("[%!]")),
    "ocaml": re.compile(r"\(\*.*?\*\)", re.DOTALL),
}
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
        file_name = name.rpartition("/")[2]
        summary = _summary(text[:_SUMMARY_WITHIN], language)
        return Extracted(
            text=text,
            type="code",
            title=f"{file_name}: {summary}" if summary else file_name,
            language=language,
        )


def _summary(head: str, language: str | None) -> str:
    """Return the first sentence that a file says of itself; nothing when it begins with code or a licence."""
    if language == "python":
        found = _DOCSTRING.match(head)
        return _sentence(found[2].partition(found[1])[0]) if found else ""
    comments = _COMMENTS.get(language or "", _SLASHES)
    position = 0
    while block := comments.match(head, _after_preamble(head, position)):
        lines = (_sentence(line) for line in block[0].split("\n"))
        summary = next((line for line in lines if line), "")
        if summary and not _NOT_A_SUMMARY.search(block[0]):
            return summary
        position = block.end()
    return ""


def _after_preamble(head: str, position: int) -> int:
    found = _PREAMBLE.match(head, position)
    return found.end() if found else position


def _sentence(line: str) -> str:
    text = line.strip().strip(_COMMENT_MARKS)
    if not any(map(str.isalpha, text)) or text.startswith("@"):
        return ""
    return text if len(text) <= MAX_SUMMARY else text[:MAX_SUMMARY].rpartition(" ")[0] + " …"
