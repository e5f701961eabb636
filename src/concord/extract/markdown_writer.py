"""Writes Markdown from elements that open and close, and remembers what each line was in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from itertools import count, repeat
from typing import NamedTuple

from concord.extract.decode import with_plain_newlines
from concord.text.word_lists import listed

MAX_ROW = 1_000  # characters; a longer "row" is a page laid out with a table, and becomes paragraphs
MAX_INDENT = 8  # deeper lists are indented no further: crafted nesting would take quadratic room
MAX_QUOTE = 3
MAX_COLUMNS = 256  # of a sheet: cells up to there keep their columns, those beyond follow without gaps
LOWEST_HEADING = 6  # level
HEADINGS = tuple(f"h{level}" for level in range(1, LOWEST_HEADING + 1))
BLOCKS = frozenset(HEADINGS) | listed(
    "html body main article section div p header footer nav aside address form fieldset legend figure "
    "figcaption dl dt dd details summary center hgroup search hr caption thead tbody tfoot table tr td th "
    "menu ul ol li blockquote pre"
)

_CELLS = ("td", "th")
_BREAK = "\x1e"  # stands for <br> until the block ends
_ANCHORS = ("#", "¶", "§", "🔗")  # how the link looks that many headings end with, to themselves
_READS_AS_MARKUP = re.compile(r"#{1,6}(?:\s|$)|```|~~~|\|")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight(?:-source)?|brush:)-?\s*([\w+#]+)")
_BETWEEN_WORDS = re.compile(r"%20|[\W_]+")
_WORD = re.compile(r"[^\W\d_]{3,20}")

Attributes = Mapping[str, str | None]


class Line(NamedTuple):
    """A line of Markdown and where it comes from."""

    text: str
    origin: str | None  # text to look for in the file; None: same as the line before; "": same as the next


class MarkdownLines:
    """Takes a page's elements and text in order; `lines` is the Markdown so far."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._inline: list[str] = []  # text of the block that is open
        self._heading = 0
        self._quotes = 0
        self._lists: list[Iterator[str]] = []  # of each open list, the markers of its next items
        self._marker = ""  # the bullet or number of a list item that has no text yet
        self._code: list[str] | None = None
        self._language = ""
        self._tables = 0  # how many are open: one inside another is only text
        self._row: list[list[str]] | None = None
        self._cell: list[str] | None = None
        self._rows = 0  # rows of the open table that are written
        self._last = ""  # the kind of the line that was written last

    def markdown(self) -> str:
        """Return what was written, the open block included."""
        self.end_block()
        return "\n".join(line.text for line in self.lines)

    def heading(self, words: str) -> None:
        """Write a heading of the first level."""
        self.open("h1", {})
        self.text(words)
        self.close("h1")

    def text(self, text: str) -> None:
        """Take text; white space counts only inside <pre>."""
        (self._inline if self._code is None else self._code).append(text)

    def open(self, tag: str, attributes: Attributes) -> None:
        """Take the start of an element."""
        if tag == "br":
            self.text(_BREAK)
        elif tag == "img":
            self.text(f" {told_by(attributes)} ")
        elif tag == "code":
            self._name_language(attributes)
        elif tag in BLOCKS or "-" in tag:  # a component: <my-card>
            self.end_block()
            self._begin(tag, attributes)

    def _begin(self, tag: str, attributes: Attributes) -> None:
        if tag in HEADINGS:
            self._heading = int(tag[1]) if self._cell is None else 0
        elif tag in ("ul", "ol"):
            self._lists.append(repeat("- ") if tag == "ul" else (f"{number}. " for number in count(1)))
        elif tag == "li" and self._lists:
            self._marker = next(self._lists[-1])
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "pre" and self._cell is None and self._code is None:
            self._code, self._language = [], ""
            self._name_language(attributes)
        elif tag == "table":
            self._tables += 1
            self._rows = 0 if self._tables == 1 else self._rows
        elif tag == "tr" and self._tables == 1:
            self._row = []
        elif tag in _CELLS and self._tables == 1 and self._row is not None:
            self._cell = []

    def _name_language(self, attributes: Attributes) -> None:
        found = _LANGUAGE.search(attributes.get("class") or "")
        if found and self._code is not None:
            self._language = self._language or found[1]

    def close(self, tag: str) -> None:
        """Take the end of an element."""
        if tag not in BLOCKS and "-" not in tag:
            return
        if tag in HEADINGS and self._inline and self._inline[-1].strip() in _ANCHORS:
            self._inline.pop()
        if tag == "pre" and self._code is not None:
            self._write_code()
        self.end_block()
        if tag in HEADINGS:
            self._heading = 0
        elif tag == "blockquote":
            self._quotes -= 1
        elif tag in ("ul", "ol", "li"):
            self._marker = ""
            if tag != "li":
                self._lists.pop()
        elif tag == "table":
            self._tables -= 1
        elif self._tables == 1:
            self._close_in_table(tag)

    def _close_in_table(self, tag: str) -> None:
        if tag in _CELLS and self._row is not None and self._cell is not None:
            self._row.append(self._cell)
            self._cell = None
        elif tag == "tr":
            self._end_row()

    def row(self, texts: Sequence[str]) -> None:
        """Write a row of cells that are known already."""
        self._row = [[" ".join(text.split())] for text in texts]
        self._end_row()

    def _end_row(self) -> None:
        """Write the row, as paragraphs if it is too long to be one."""
        row, self._row, self._cell = self._row or [], None, None
        while row and not row[-1]:
            row.pop()
        texts = [" ".join(cell) for cell in row]
        if len(row) > 1 and sum(map(len, texts)) <= MAX_ROW:
            self._write_row(texts)
        else:
            for paragraph in (line for cell in row for line in cell):
                self._write_block([paragraph])

    def end_block(self) -> None:
        """Write the open block, if there is anything in it."""
        parts = "".join(self._inline).split(_BREAK)
        self._inline.clear()
        lines = [line for part in parts if (line := " ".join(part.split()))]
        if not lines:
            return
        if self._cell is not None:
            self._cell.extend(lines)
        elif self._heading:
            text = " ".join(lines)
            self._write("heading", [Line(f"{'#' * self._heading} {text}", text)])
        else:
            self._write_block(lines)

    def _write_block(self, lines: list[str]) -> None:
        kind = "item" if self._lists else "text"
        quote = "> " * min(self._quotes, MAX_QUOTE)
        indent = "  " * min(len(self._lists) - 1, MAX_INDENT)
        rest = "  " if self._lists else ""
        markers = [self._marker or rest, *[rest] * (len(lines) - 1)]
        written = [
            Line(quote + indent + marker + escaped(line), line)
            for marker, line in zip(markers, lines, strict=True)
        ]
        self._marker = ""
        self._write(kind, written)

    def _write_row(self, texts: list[str]) -> None:
        cells = " | ".join(text.replace("|", "\\|") for text in texts)
        lines = [Line(f"| {cells} |", next((text for text in texts if text), None))]
        if self._rows == 0:  # Markdown knows no table without a head
            lines.append(Line("|" + " --- |" * len(texts), None))
        self._write("row" if self._rows else "first row", lines)
        self._last = "row"
        self._rows += 1

    def _write_code(self) -> None:
        code = "".join(self._code or ())
        code, self._code = with_plain_newlines(code.replace(_BREAK, "\n")).strip("\n"), None
        if not code.strip():
            return
        fence = fence_around(code)
        body = [Line(line.rstrip(), line.strip() or None) for line in code.split("\n")]
        self._write("code", [Line(fence + self._language, ""), *body, Line(fence, None)])

    def _write(self, kind: str, lines: list[Line]) -> None:
        together = kind == self._last and kind in ("item", "row")
        if self.lines and not together:
            self.lines.append(Line("", None))
        self.lines.extend(lines)
        self._last = kind


def fence_around(code: str) -> str:
    """Return a fence that nothing in the code closes."""
    runs: list[str] = re.findall(r"`{3,}", code)
    return max(["``", *runs], key=len) + "`"


def escaped(line: str) -> str:
    """Return a line that a reader of Markdown will not take for a heading, a fence or a table."""
    return "\\" + line if _READS_AS_MARKUP.match(line) else line


def told_by(attributes: Attributes) -> str:
    """Return what an <img> says of its picture; where it says nothing, its file's name if that is words.

    An empty alternative text says that the picture is there for its looks.
    """
    words = [" ".join((attributes.get(name) or "").split()) for name in ("alt", "title")]
    said = dict.fromkeys(filter(None, words))
    if said or "alt" in attributes:
        return " ".join(said)
    return name_words(attributes.get("src") or "")


def name_words(path: str) -> str:
    """Return a file's name as words, if it is two at least: `request-flow.png` and not `IMG_0431.png`."""
    stem = path.partition("?")[0].rpartition("/")[2].rpartition(".")[0]
    words = [word for word in _BETWEEN_WORDS.split(stem) if word]
    return " ".join(words) if sum(_WORD.fullmatch(word) is not None for word in words) > 1 else ""


# Comments, elements whose content is no text, tags, text. `[^<>]` and `\Z` keep crafted input linear.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|template)\b.*?(?:</\1\s*>|\Z)|<[/!?a-z][^<>]*>|([^<]+|<)",
    re.DOTALL | re.IGNORECASE,
)
_KEY = 40  # characters, spaces left out: enough to be unmistakable
_SHORT_KEY = 12  # one as short as this is looked for nearby
_NEAR = 2_000
_MAX_MISSES = 2_000  # each costs a search to the end of the file


class SourceLines:
    """The text of an HTML file without its spaces, and the line that each part of it stands on."""

    def __init__(self, source: str) -> None:
        parts: list[str] = []
        self._starts: list[int] = []  # where in the text each part begins …
        self._lines: list[int] = []  # … and the line it stands on
        line, length = 1, 0
        for token in _TOKEN.finditer(source):
            for number, piece in enumerate(token[2].split("\n") if token[2] else ()):
                if part := "".join((unescape(piece) if "&" in piece else piece).split()):
                    parts.append(part)
                    self._starts.append(length)
                    self._lines.append(line + number)
                    length += len(part)
            line += token[0].count("\n")
        self._text = "".join(parts)
        self._cursor = 0
        self._misses = 0
        self._line = 1

    def line_of(self, text: str) -> int:
        """Return the line on which this text begins, looking on from the last one; its line if not found."""
        key = "".join(text[: 4 * _KEY].split())[:_KEY]
        end = len(self._text) if len(key) > _SHORT_KEY else self._cursor + _NEAR
        at = self._text.find(key, self._cursor, end) if key and self._misses < _MAX_MISSES else -1
        if at < 0:
            self._misses += bool(key)
        else:
            self._cursor = at + len(key)
            self._line = self._lines[bisect_right(self._starts, at) - 1]
        return self._line
