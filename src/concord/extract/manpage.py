"""Manual pages in man(7) or mdoc(7) as Markdown: sections, entries of options, listings and paragraphs.

What a page defines is not run, nothing is shown of what it keeps for paper, a macro that is not in the table
shows its arguments, and a table is a listing of its source. mandoc(1) would show more of a page, but not from
which line of the file each of its lines comes, which is what citations name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped, fence_around
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.text.word_lists import listed, paired
from concord.types import Extracted

_JOINED = "\x01"  # stands for \c and the like: what is on both sides of it belongs together
_UNDERLINE = re.compile(r"(?:=+|-+)$")  # would make a heading of the line above it
_BULLET = re.compile(r"[•·∙○*+o-]|\(?\d{1,4}[.)]")
_DRAWN_BULLET = re.compile(r"[•·∙○*][ \x01]+")
_SUMMARY = re.compile(r"([^\n]*?\S)[ \t]+[-–—][ \t]+(\S[^\n]*)")

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*")
_COMMENT = re.compile(r"[.'][ \t]*\\[\"#]|'''|\\[\"#]")
_FOR_TERMINALS = re.compile(r"[.'][ \t]*i[fe][ \t]+n[ \t]*(?:\\\{[ \t]*)?")
_CONDITIONAL = listed("if ie el")
_DEFINING = listed("de de1 am ig")
_END_COMMENT = re.compile(r'(?<!\\)\\".*')
_ARGUMENT = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*+)"?|((?:\\.|[^ \t\\])++\\?|\\))', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:"
    r'["#].*'
    r"|[fFmMgkVYn$][-+]?(?:\(..|\[[^\]\n]*\]?|.)"
    r"|s(?:[-+]?\(..|[-+]?\[[^\]\n]*\]?|\([-+]..|[-+]?[123]\d|[-+]?\d)?"
    r"|(?P<delimited>[ABCDHLNRSXZbhlovwx])(?P<mark>.)(?P<within>.*?)(?:(?P=mark)|$)"
    r"|(?P<string>\*)?(?:\((?P<two>..)|\[(?P<long>[^\]\n]*)\]?)|\*(?P<short>.)"
    r"|(?P<other>.)"
    r")?",
    re.DOTALL,
)
_SHOWN = {**dict.fromkeys(" ~0", " "), "t": "\t", **dict.fromkeys("e\\E", "\\"), "'": "´", "c": _JOINED}
_SILENT = frozenset("&)/,|^%:{}!adruzp?@")  # any other letter after a backslash is that letter


# The characters that pages use, by their names in groff_char(7), and strings that programs define which write
# pages; a minus is a dash, as people type it.
_CHARACTERS = paired(r"""
em — en – hy - mi - bu • lq “ rq ” oq ‘ cq ’ aq ' dq " rs \ sl / ba | or | ul _ at @ sh # Do $ Eu € co © rg ®
tm ™ ha ^ ti ~ ga ` lB [ rB ] lC { rC } la ⟨ ra ⟩ de ° mu × +- ± ** ∗ eq = != ≠ <= ≤ >= ≥ pl + -> → <- ← ss ß
'e é `e è :a ä :o ö :u ü ,c ç *W - Tm ™ R ® Aq ' Lt < Gt > Le ≤ Ge ≥ Am & Ba | C` " C' " L" “ R" ” -- -
""")


class ManualExtractor(Extractor):
    """Reads manual pages; the title is a page's name, with what it says of itself."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        page = _Page()
        for page.number, request, rest in _lines(with_plain_newlines(decode(data))):
            page.take(request, rest)
        page.end_code([])
        if not page.lines:
            return Extracted("", "markdown")
        if title := _title(page.names, [line for line, _ in page.lines[:200]]):
            page.lines[:0] = [(f"# {title}", page.lines[0][1]), ("", page.lines[0][1])]
        text = clean(without_encoded("\n".join(line for line, _ in page.lines)))
        return Extracted(text, "markdown", title, file_lines=tuple(number for _, number in page.lines))


def _title(names: Sequence[str], lines: Sequence[str]) -> str | None:
    """Return `logrotate(8) - rotates logs`: its name and section, and what its first section says of it."""
    name, section, *_ = [*names, "", ""]
    first = next((at for at, line in enumerate(lines) if line.startswith("#")), len(lines))
    found = _SUMMARY.match("".join(lines[first + 2 : first + 3])[:2_000])
    called, summary = found.groups() if found else ("", "")
    spelt = (name.lower() if name.isupper() else name) or called.partition(",")[0]
    numbered = f"{spelt}({section.lower()})" if section and spelt else spelt
    return " - ".join(filter(None, (numbered, summary.strip())))[:MAX_TITLE].rstrip() or None


def shown(text: str) -> str:
    """Return what is seen of a text with escapes."""
    return _ESCAPE.sub(_escape, text) if "\\" in text else text


def _escape(found: re.Match[str]) -> str:
    if other := found["other"]:
        return _SHOWN.get(other, "" if other in _SILENT else other)
    if found["delimited"]:  # a movement to the right is a space
        return " " if found["delimited"] == "h" and "-" not in found["within"] else ""
    name = found["two"] or found["long"] or found["short"] or ""
    if re.fullmatch("u[0-9A-F]{4}", name):
        return chr(int(name[1:], 16)) if not "uD800" <= name <= "uDFFF" else ""
    return _CHARACTERS.get(name, "")


def _arguments(rest: str) -> list[str]:
    """Return what a request's arguments show: words, or what stands between quotes."""
    found = _ARGUMENT.findall(_END_COMMENT.sub("", rest))
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
            end = "." + "".join(rest.split()[name != "ig" :][:1] or ["."])
            next((line for _, line in lines if line.replace(" ", "").startswith(end)), None)
        elif not _COMMENT.match(line) and (name or not request):
            yield number, name, rest.replace("\\{", "").replace("\\}", "")


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
        self._lists: list[str] = []  # of mdoc's open lists, the mark of their items if they have no terms
        self._awaits: Callable[[str], None] | None = None  # takes the next text as a heading or a term
        self._words: list[str] = []  # of the line that is open
        self._begun = 1  # the file's line where it began
        self._indent = ""
        self._after_term = 0  # how many lines there are, if the last is a term
        self._code_from: int | None = None  # where in `lines` the open listing begins

    def take(self, request: str, rest: str) -> None:
        """Take a line of the file."""
        arguments = _arguments(rest) if request else []
        if request in _WORDS:
            self._program = self._program or "".join(arguments[:1]) * (request == "Nm")
            self.put(_written([request, *arguments], self._program))
        elif request in ("TH", "Dt"):
            self.names = self.names or arguments
        elif request in _REQUESTS:
            _REQUESTS[request](self, arguments)
        elif request[:1].isupper():  # a font, or a macro that is defined somewhere
            self.put(" ".join(arguments))
        elif not request and rest.strip():
            if rest[0] in " \t":
                self.end_line()
            self.put(shown(rest))
        elif not request:
            self.paragraph()

    def put(self, text: str) -> None:
        """Take what a line shows, as a heading or a term where one is awaited."""
        if self._awaits is not None:
            awaits, self._awaits = self._awaits, None
            awaits(text)
        elif self._code_from is not None:
            self.lines.append((self._indent + text.replace(_JOINED, "").rstrip(), self.number))
        elif text.strip():
            self._begun = self._begun if self._words else self.number
            self._words.append(text)

    def end_line(self) -> None:
        line = _together(_DRAWN_BULLET.sub("- ", " ".join(self._words), count=1))
        self._words.clear()
        if line:
            line = "\\" + line if _UNDERLINE.match(line) else escaped(line)
            self.lines.append((self._indent + line, self._begun))

    def paragraph(self, indent: str | None = None) -> None:
        """Begin a paragraph: indented so, or as the one before."""
        self.end_line()
        if self._code_from is not None or self.lines and self.lines[-1][0]:
            self.lines.append(("", self.number))
        self._indent = self._indent if indent is None else indent

    def plain(self, _: Sequence[str]) -> None:
        self._awaits = None
        self.paragraph("  " if self._lists else "")

    def heading(self, marks: str, arguments: Sequence[str]) -> None:
        self._lists.clear()
        self.end_code([])
        self._awaits = None if arguments else lambda text: self.heading(marks, [text])
        if words := _together(" ".join(arguments)):
            self.paragraph("")
            self.lines += [(f"{marks} {words}", self.number), ("", self.number)]

    def entry(self, term: str) -> None:
        """Begin an entry, or an item of a list where the term is a bullet or a number."""
        words = _together(term)
        self.end_line()
        if self._after_term != len(self.lines):
            self.paragraph()
        self._indent = ""
        self.put("•" if _BULLET.fullmatch(words) and not words[-2:-1].isdigit() else words)
        if not _BULLET.fullmatch(words):
            self.begin_body([])
            self._after_term = len(self.lines)

    def begin_body(self, _: Sequence[str]) -> None:
        """Go on with what is said of the line before, which may be a term."""
        self.end_line()
        self._indent = "  "

    def tagged(self, _: Sequence[str]) -> None:
        self._awaits = self.entry

    def indented(self, arguments: Sequence[str]) -> None:
        self._awaits = None
        if "".join(arguments[:1]).strip():
            self.entry(arguments[0])
        else:
            self.paragraph("  ")

    def item(self, arguments: Sequence[str]) -> None:
        if "Xo" in arguments:  # its term is on the next lines
            self.tagged([])
        else:
            self.entry("".join(self._lists[-1:]) or _written(arguments, self._program))

    def begin_list(self, arguments: Sequence[str]) -> None:
        self.end_line()
        is_marked = not {"-bullet", "-dash", "-hyphen", "-enum"}.isdisjoint(arguments)
        self._lists.append("•" if is_marked else "")

    def end_list(self, _: Sequence[str]) -> None:
        del self._lists[-1:]
        self.plain([])

    def begin_code(self, arguments: Sequence[str]) -> None:
        self.end_line()
        is_filled = not {"-filled", "-ragged", "-centered"}.isdisjoint(arguments)
        if self._code_from is None and not is_filled:
            self._code_from = len(self.lines)

    def end_code(self, _: Sequence[str]) -> None:
        """Put fences around the lines since `begin_code`, and let no line be blank at the end."""
        self.end_line()
        begun, self._code_from = self._code_from, None
        while self.lines and not self.lines[-1][0].strip() and begun != len(self.lines):
            self.lines.pop()
        if begun is not None and (code := self.lines[begun:]):
            fence = self._indent + fence_around("\n".join(line for line, _ in code))
            self.lines[begun:] = [(fence, code[0][1]), *code, (fence, code[-1][1])]


def _together(text: str) -> str:
    return re.sub(f" ?{_JOINED} ?", "", " ".join(text.split()))


def _each(names: str, action: Callable[..., None]) -> dict[str, Callable[..., None]]:
    return dict.fromkeys(names.split(), action)


_REQUESTS: Mapping[str, Callable[[_Page, Sequence[str]], None]] = {
    **_each("SH Sh", lambda page, arguments: page.heading("##", arguments)),
    **_each("SS Ss", lambda page, arguments: page.heading("###", arguments)),
    **_each("PP P LP HP Pp Lp RE", _Page.plain),
    **_each("sp Sp UNINDENT Ed", lambda page, _: page.paragraph()),
    **_each("br in ti ce INDENT YS", lambda page, _: page.end_line()),
    **_each("TP TQ", _Page.tagged),
    **_each("IP", _Page.indented),
    **_each("RS", _Page.begin_body),
    **_each("BI BR IB IR RB RI UE ME", lambda page, arguments: page.put("".join(arguments))),
    **_each("UR MT", lambda page, arguments: page.put(f"<{''.join(arguments[:1])}>")),
    **_each("nf EX Vb DS TS Bd", _Page.begin_code),
    **_each("fi EE Ve DE TE Ed", _Page.end_code),
    **_each("Bl", _Page.begin_list),
    **_each("It", _Page.item),
    **_each("El", _Page.end_list),
    **_each("IX PD DT UC AT Dd Os Bk Ek Bf Ef Sm Tg Rs Re EQ EN Ex LINKSTYLE", lambda *_: None),
}

# What a line of mdoc shows: words, with the brackets and signs that the macros between them add.
_PUNCTUATION = frozenset(".,:;)]?!")
_AROUND = paired('Op [] Bq [] Pq () Brq {} Aq <> Dq “” Sq ‘’ Ql ‘’ Qq ""')
_SIGNS = {
    **{name: sign + _JOINED for name, sign in paired("Oo [ Bo [ Po ( Ao < Do “ So ‘").items()},
    **{name: _JOINED + sign for name, sign in paired("Oc ] Bc ] Pc ) Ac > Dc ” Sc ’").items()},
    **{"Ns": _JOINED, "Nd": "-", "Fl": f"-{_JOINED}"},
}
_WORDS = listed(
    "Ad An Ap Ar Cd Cm D1 Dl Dv Em Er Ev Fa Fd Fn Fr Ft Ic In Li Lk Ms Mt Nm No Pa Pf Sx Sy Ta Tn Va Vt"
    " Xc Xo Xr"
).union(_AROUND, _SIGNS)


def _written(words: Sequence[str], program: str) -> str:
    """Return what a line shows on the page of a program, with _JOINED where no space belongs."""
    parts: list[str] = [program] if [word for word in words if word not in _PUNCTUATION] == ["Nm"] else []
    closing = ""
    for at, word in enumerate(words):
        if word in _AROUND:
            parts.append(_AROUND[word][0] + _JOINED)
            closing = _JOINED + _AROUND[word][1] + closing
        elif _PUNCTUATION.issuperset(word):
            is_last = _PUNCTUATION.issuperset("".join(words[at:]))
            parts.append(closing * is_last + _JOINED + word)
            closing = "" if is_last else closing
        elif words[at - 2 : at - 1] == ["Xr"]:
            parts.append(f"{_JOINED}({word})")
        else:
            parts.append(_SIGNS.get(word, "") if word in _WORDS else word)
    return " ".join(filter(None, [*parts, closing]))
