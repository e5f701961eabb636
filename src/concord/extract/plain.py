"""Plain text, logs, data files, and light markup (reStructuredText, AsciiDoc, Org) as text with its title."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from concord.extract.decode import HEAD_BYTES, decode
from concord.extract.formats import TEXT, Format, detect, extension
from concord.text.clean import clean, without_encoded
from concord.text.headings import is_title
from concord.text.plain import without_roles
from concord.types import Extracted

# A line of one repeated punctuation mark; it underlines the line before it when it is as long.
_RST_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*$")
_ASCIIDOC_TITLE = re.compile(r"^=[ \t]+(\S.*)$", re.MULTILINE)
_LATEX_TITLE = re.compile(r"^[ \t]*\\title\{((?:[^{}\n]|\n(?![ \t]*\n)){1,400})\}", re.MULTILINE)
_ORG_TITLE = re.compile(r"^(?:#\+title:|\*)[ \t]+(\S.*)$", re.MULTILINE | re.IGNORECASE)
_SEARCHED_CHARACTERS = 8_192
MAX_TITLE = 200  # characters; what is longer is a paragraph


class PlainExtractor:
    """Reads whatever is text and nothing in particular."""

    def extract(self, data: bytes, name: str) -> Extracted:
        """Return the text; only light markup has a title."""
        text = clean(readable(data))
        found = detect(name, data[:HEAD_BYTES])
        form = found if isinstance(found, Format) and found.extractor == TEXT.extractor else TEXT
        return Extracted(text, form.type, _title(text, extension(name)), language=form.language)


def readable(data: bytes) -> str:
    """Return what can be read in a file: its lines, without pictures that are written in letters."""
    return without_encoded(with_plain_newlines(decode(data)))


def with_plain_newlines(text: str) -> str:
    """Return the text with one newline character after every line, whatever ended it in the file."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


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
