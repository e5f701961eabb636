"""Plain text, logs, data files, and light markup (reStructuredText, AsciiDoc, Org) as text with its title."""

from __future__ import annotations

import re

from concord.extractors.decode import HEAD_BYTES, decode
from concord.extractors.formats import TEXT, Format, detect, extension
from concord.text.clean import clean
from concord.text.encoded import without_encoded
from concord.text.titles import without_roles
from concord.types import Extracted

# A line of one repeated punctuation mark; it underlines the line before it when it is as long.
_RST_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_ASCIIDOC_TITLE = re.compile(r"^=[ \t]+(\S.*)$", re.MULTILINE)
_ORG_TITLE = re.compile(r"^(?:#\+title:|\*)[ \t]+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_SEARCHED_CHARACTERS = 8_192
MAX_TITLE = 200  # characters; what is longer is a paragraph


class PlainExtractor:
    """Reads whatever is text and nothing in particular."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text; only light markup has a title."""
        text = clean(readable(data))
        found = detect(name, data[:HEAD_BYTES])
        form = found if isinstance(found, Format) and found.type == "data" else TEXT
        return Extracted(text, form.type, _title(text, extension(name)), language=form.language)


def readable(data: bytes) -> str:
    """Return what can be read in a file: its lines, without pictures that are written in letters."""
    return without_encoded(with_plain_newlines(decode(data)))


def with_plain_newlines(text: str) -> str:
    """Return the text with one newline character after every line, whatever ended it in the file."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _title(text: str, kind: str) -> str | None:
    head = text[:_SEARCHED_CHARACTERS]
    if kind in ("rst", "rest"):
        return _underlined(head.split("\n"))
    found = None
    if kind in ("adoc", "asciidoc", "asc"):
        found = _ASCIIDOC_TITLE.search(head)
    elif kind == "org":
        found = _ORG_TITLE.search(head)
    return found[1].strip()[:MAX_TITLE] if found else None


def _underlined(lines: list[str]) -> str | None:
    for line, below in zip(lines, lines[1:], strict=False):
        title = line.strip()
        is_text = title and not _RST_UNDERLINE.match(line)
        if is_text and _RST_UNDERLINE.match(below) and len(below.rstrip()) >= len(title) <= MAX_TITLE:
            return without_roles(title)
    return None
