"""Manual pages in man(7) or mdoc(7) as Markdown: sections, entries of options, listings and paragraphs.

What a page defines is not run, a macro that is not in the table shows its arguments, and a table is a listing
of its source. mandoc(1) would show more of a page, but not from which line of the file each of its lines
comes, which is what citations name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped, fence_around
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.text.word_lists import listed, paired
from concord.types import Extracted

_UNDERLINE = re.compile(r"(?:=+|-+)$")  # would make a heading of the line above it
_BULLET = re.compile(r"[•·∙○*+o-]|\(?\d{1,4}[.)]")
_DRAWN_BULLET = re.compile(r"[•·∙○*] +")
_SUMMARY = re.compile(r"([^\n]*?\S)[ \t]+[-–—][ \t]+(\S[^\n]*)")

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*")
_COMMENT = re.compile(r"[.'][ \t]*\\[\"#]|'''|\\[\"#]")
_FOR_TERMINALS = re.compile(r"[.'][ \t]*i[fe][ \t]+n[ \t]*(?:\\\{[ \t]*)?")
_CONDITIONAL = listed("if ie el")
_DEFINING = listed("de de1 am ig")
_ARGUMENT = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*+)"?|((?:\\.|[^ \t\\])++\\?|\\))', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:"
    r'["#].*'
    r"|[fFmMgkVYn$][-+]?(?:\(..|\[[^\]\n]*\]?|.)"
    r"|s(?:[-+]?\(..|[-+]?\[[^\]\n]*\]?|\([-+]..|[-+]?[123]\d|[-+]?\d)?"
    r"|(?P<delimited>[ABCDHLNRSXZbhlovwx])(?P<mark>.)(?P<within>.*?)(?:(?P=mark)|$)"
    r"|\*?(?:\((?P<two>..)|\[(?P<long>[^\]\n]*)\]?)|\*."
    r"|(?P<other>.)"
    r")?",
    re.DOTALL,
)
_SHOWN = {**dict.fromkeys(" ~0", " "), "t": "\t", **dict.fromkeys("e\\E", "\\"), "'": "´"}
_SILENT = frozenset("&)/,|^%:{}!acdruzp?@")  # any other letter after a backslash is that letter
# The characters that pages use, by their names in groff_char(7); a minus is a dash, as people type it.
_CHARACTERS = paired(r"""
em — en – hy - mi - bu • lq “ rq ” oq ‘ cq ’ aq ' dq " rs \ sl / ba | or | ul _ at @ sh # Do $ Eu € co © rg ®
tm ™ ha ^ ti ~ ga ` lB [ rB ] lC { rC } de ° mu × +- ± != ≠ <= ≤ >= ≥ -> → <- ← ss ß :a ä :o ö :u ü -- -
""")
_ACCENTS = ("'", "`", ":", "^", "~", ",")  # of a letter that is not among them: it is shown without


class ManualExtractor(Extractor):
    """Reads manual pages; the title is a page's name, with what it says of itself."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        page = _Page()
        for page.number, request, rest in _lines(with_plain_newlines(decode(data))):
            page.take(request, rest)
        page.end_listing()
        if not page.lines:
            return Extracted("", "markdown")
        if title := _title(page.names, [line for line, _ in page.lines[:200]]):
            page.lines[:0] = [(f"# {title}", page.lines[0][1]), ("", page.lines[0][1])]
        text = clean(without_encoded("\n".join(line for line, _ in page.lines)))
        return Extracted(text, "markdown", title, file_lines=tuple(number for _, number in page.lines))


def _title(names: Sequence[str], lines: Sequence[str]) -> str | None:
    """Return `logrotate(8) - rotates logs`: its name and section, and what its first section says of it."""
    first = next((at for at, line in enumerate(lines) if line.startswith("#")), len(lines))
    found = _SUMMARY.match("".join(lines[first + 2 : first + 3])[:2_000])
    called, summary = found.groups() if found else ("", "")
    name, section, *_ = [*names, called.partition(",")[0], ""] if len(names) < 2 else names
    numbered = f"{name.lower() if name.isupper() else name}({section.lower()})" if section else name
    return " - ".join(filter(None, (numbered, summary.strip())))[:MAX_TITLE].rstrip() or None


def shown(text: str) -> str:
    """Return what is seen of a text with escapes."""
    return _ESCAPE.sub(_escape, text) if "\\" in text else text


def _escape(found: re.Match[str]) -> str:
    if other := found["other"]:
        return _SHOWN.get(other, "" if other in _SILENT else other)
    if found["delimited"]:  # a movement to the right is a space
        return " " if found["delimited"] == "h" and "-" not in found["within"] else ""
    name = found["two"] or found["long"] or ""
    return _CHARACTERS.get(name, name[1:2] if name[:1] in _ACCENTS else "")


def _arguments(rest: str) -> list[str]:
    """Return what a request's arguments show: words, or what stands between quotes."""
    found = _ARGUMENT.findall(rest.partition('\\"')[0])
    return [shown(word or inside.replace('""', '"')) for inside, word in found]


def _lines(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines for a terminal, without comments and definitions: number, request or "", the rest."""
    lines = enumerate(source.replace("\\\n", " \n").split("\n"), 1)
    skipped = 0  # how many levels deep in a block that is not shown
    for number, line in lines:
        line = _FOR_TERMINALS.sub("", line, count=1) if _FOR_TERMINALS.match(line) else line
        request = _REQUEST.match(line)
        name, rest = (request[1], line[request.end() :]) if request else ("", line)
        if skipped or name in _CONDITIONAL:
            skipped = max(0, skipped + line.count("\\{") - line.count("\\}"))
        elif name in _DEFINING:
            next((line for _, line in lines if line.replace(" ", "").startswith("..")), None)
        elif not _COMMENT.match(line) and (name or not request):
            yield number, name, rest.replace("\\{", "").replace("\\}", "")


# What requests do to the page; any other shows its arguments, as fonts do.
_HEADINGS = {"SH": "##", "Sh": "##", "SS": "###", "Ss": "###"}
_PARAGRAPHS = listed("PP P LP HP Pp Lp RE El")
_BREAKS = listed("br in ti ce INDENT YS")
_TERMS = listed("TP TQ IP It")
_LISTINGS = listed("nf EX Vb DS TS Bd")
_LISTING_ENDS = listed("fi EE Ve DE TE Ed")
_TIGHT = listed("BI BR IB IR RB RI UE ME")  # what they show stands together
_SILENT_REQUESTS = listed("Bl IX PD DT UC AT Dd Os Bk Ek Sm Tg Ex LINKSTYLE")
_MDOC = listed(
    "Ad An Ao Ac Ap Aq Ar Bc Bo Bq Brq Cd Cm D1 Dc Dl Do Dq Dv Em Er Ev Fa Fl Fn Ft Ic In Li Lk Ms Mt Nd Nm"
    " No Ns Oc Oo Op Pa Pc Pf Po Pq Ql Qq Sc So Sq Sx Sy Ta Tn Va Vt Xc Xo Xr"
)


class _Page:
    """The Markdown so far, with the file's line for each of its own.

    A paragraph is one line: of two, the second could begin with a word that would be taken for an option's
    entry. An entry is a line with its term, flush left, and what is said of it, indented.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self.number = 1  # the file's line that is being read
        self.names: Sequence[str] = ()  # the page's name and section: ls, 1
        self._program = ""  # what a page in mdoc calls itself
        self._next = ""  # what the next text is: a term, or a heading of so many #
        self._words: list[str] = []  # of the line that is open
        self._begun = 1  # the file's line where it began
        self._indent = ""
        self._after_term = 0  # how many lines there are, if the last is a term
        self._listing: int | None = None  # where in `lines` the open one begins

    def take(self, request: str, rest: str) -> None:
        """Take a line of the file."""
        arguments = _arguments(rest) if request else []
        if request in ("TH", "Dt"):
            self.names = self.names or arguments
        elif request in _HEADINGS:
            self.end_listing()
            self._next = _HEADINGS[request]
            self.put(" ".join(arguments))
        elif request in _TERMS:
            self._begin_entry(request, arguments)
        elif request in _PARAGRAPHS or request in ("sp", "Sp") or not request + rest.strip():
            self.paragraph("" if request in _PARAGRAPHS else self._indent)
        elif request in _BREAKS or request == "RS":
            self.end_line()
            self._indent = "  " if request == "RS" else self._indent
        elif request in _LISTINGS:
            self.end_line()
            self._listing = len(self.lines) if self._listing is None and "-filled" not in arguments else None
        elif request in _LISTING_ENDS:
            self.end_listing()
        elif request not in _SILENT_REQUESTS:
            self._show(request, arguments, rest)

    def _show(self, request: str, arguments: Sequence[str], rest: str) -> None:
        if request in _MDOC:
            self.put(self._written([request, *arguments]))
        elif request[:1].isupper():  # a font, or a macro that is defined somewhere
            self.put(("" if request in _TIGHT else " ").join(arguments))
        elif not request:
            if rest[0] in " \t":
                self.end_line()
            self.put(shown(rest))

    def _begin_entry(self, request: str, arguments: Sequence[str]) -> None:
        """Begin an entry; its term may be on the next line."""
        self._next = "term"
        if request == "It" and "Xo" not in arguments:
            self.put(self._written(arguments) or "•")
        elif request == "IP" and "".join(arguments[:1]).strip():
            self.put(arguments[0])
        elif request == "IP":
            self._next = ""
            self.paragraph("  ")

    def put(self, text: str) -> None:
        """Take what a line shows, as a heading or a term where one is awaited."""
        kind, words = self._next, " ".join(text.split())
        self._next = "" if words else kind
        if self._listing is not None:
            self.lines.append((self._indent + text.rstrip(), self.number))
        elif words and kind.startswith("#"):
            self.paragraph("")
            self.lines += [(f"{kind} {words}", self.number), ("", self.number)]
        elif words and kind:
            self._term(words)
        elif words:
            self._begun = self._begun if self._words else self.number
            self._words.append(words)

    def _term(self, words: str) -> None:
        """Write the term of an entry; a bullet or a number begins an item of a list."""
        self.end_line()
        if self._after_term != len(self.lines):
            self.paragraph("")
        self._indent = ""
        if _BULLET.fullmatch(words) and not words[-2:-1].isdigit():
            words = "•"
        self.put(words)
        if not _BULLET.fullmatch(words):
            self.end_line()
            self._indent, self._after_term = "  ", len(self.lines)

    def end_line(self) -> None:
        """Write the open line."""
        line = _DRAWN_BULLET.sub("- ", " ".join(self._words), count=1)
        self._words.clear()
        if line:
            line = "\\" + line if _UNDERLINE.match(line) else escaped(line)
            self.lines.append((self._indent + line, self._begun))

    def paragraph(self, indent: str) -> None:
        """Begin a paragraph."""
        self.end_line()
        if self._listing is not None or self.lines and self.lines[-1][0]:
            self.lines.append(("", self.number))
        self._indent = indent

    def end_listing(self) -> None:
        """Put fences around the lines of the open listing, and let no line be blank at the end."""
        self.end_line()
        begun, self._listing = self._listing, None
        while self.lines and not self.lines[-1][0].strip() and begun != len(self.lines):
            self.lines.pop()
        if begun is not None and (code := self.lines[begun:]):
            fence = self._indent + fence_around("\n".join(line for line, _ in code))
            self.lines[begun:] = [(fence, code[0][1]), *code, (fence, code[-1][1])]

    def _written(self, words: Sequence[str]) -> str:
        """Return what a line of mdoc shows: its words without the macros between them."""
        if words and words[0] == "Nm":
            self._program = self._program or "".join(words[1:2])
            words = [self._program, *words[2:]]
        parts: list[str] = []
        for word in words:
            if word in ",.:;)" and parts:
                parts[-1] += word
            elif word in ("Fl", "Nd"):
                parts.append("-" if word == "Fl" else "- ")
            elif word not in _MDOC:
                parts.append(parts.pop() + word if parts[-1:] == ["-"] else word)
        text = " ".join(parts)
        return f"[{text}]" if "Op" in words[:1] else text
