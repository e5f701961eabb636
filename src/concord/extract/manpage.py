"""Manual pages in man(7) or mdoc(7) as Markdown: sections, entries of options, listings and text.

What a page defines is not run, a macro that is not in the table shows its arguments, and a table is a listing
of its source. mandoc(1) would show more of a page, but not from which line of the file each of its lines
comes, which is what citations name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile

from concord.core.overriding import override
from concord.core.protocols import Extractor
from concord.extract.decode import decode, with_plain_newlines
from concord.extract.markdown_writer import escaped, fence_around
from concord.extract.text import MAX_TITLE
from concord.text.clean import clean, without_encoded
from concord.text.word_lists import listed
from concord.types import Extracted

_JOINED = "\x01"  # stands for \c and the like: what is on both sides of it belongs together
_FILLED = 40  # characters: once a line has as many, the next line of the file begins a new one
_BODY = "  "
_MAX_CONDITIONS = 10  # on one line
_BEGINS_A_LINE = re.compile(r"(?!\d+[.)](?:\s|$))[\w(\"“‘'\[<$/.]")
_UNDERLINE = re.compile(r"(?:=+|-+)$")  # would make a heading of the line above it
_BULLET = re.compile(r"[•·∙○*+o-]|\(?\d{1,4}[.)]")
_DRAWN_BULLET = re.compile(rf"[ \t]*(•|\d{{1,4}}\.)[ \t]*{_JOINED}")  # of DocBook: its text follows
_SUMMARY = re.compile(r"(\S[^\n]*?)[ \t]+[-–—][ \t]+(\S[^\n]*)")

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*")
_COMMENT = re.compile(r"[.'][ \t]*\\[\"#]|'''|\\[\"#]")
_END_COMMENT = re.compile(r'(?<!\\)\\".*')
_ARGUMENT = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*+)"?|((?:\\.|[^ \t\\])++\\?|\\))', re.DOTALL)
_CONDITION = re.compile(
    r"[ \t]*+(!?)[ \t]*+(?:(['\"]).*?\2.*?\2|((?:\\[^{\s]|[^\s\\])*))[ \t]*(?:\\\{[ \t]*)?"
)
_FALSE = listed("t e v \\nF")  # on paper, on an even page, by vroff, when an index is written
_ESCAPE = re.compile(
    r"\\(?:"
    r'["#].*'
    r"|[fFmMgkVYn$][-+]?(?:\(..|\[[^\]\n]*\]?|.)"
    r"|s(?:[-+]?\(..|[-+]?\[[^\]\n]*\]?|[-+]?'[^'\n]*'?|\([-+]..|[-+]?[123]\d|[-+]?\d)?"
    r"|\*(?:\((?P<string2>..)|\[(?P<string>[^\]\n]*)\]?|(?P<string1>.))"
    r"|(?P<delimited>[ABCDHLNRSXZbhlovwx])(?P<mark>.)(?P<within>.*?)(?:(?P=mark)|$)"
    r"|\((?P<two>..)|\[(?P<long>[^\]\n]*)\]?"
    r"|(?P<other>.)"
    r")?",
    re.DOTALL,
)
_SHOWN = {**dict.fromkeys(" ~0", " "), "t": "\t", **dict.fromkeys("e\\E", "\\"), "'": "´", "c": _JOINED}
_SILENT = frozenset("&)/,|^%:{}!adruzp?@")  # any other letter after a backslash is that letter


def _pairs(table: str) -> dict[str, str]:
    """Return every second word of a table by the one before it."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# Characters by their names in groff_char(7); a minus is a dash, as people type it.
_CHARACTERS = _pairs(r"""
em — en – hy - mi - bu • ci ○ sq □ lq “ rq ” oq ‘ cq ’ aq ' dq " Fo « Fc » rs \ sl / ba | or | br │ ru _
ul _ at @ sh # Do $ ct ¢ Eu € Ye ¥ Po £ co © rg ® tm ™ sc § ps ¶ dg † ha ^ ti ~ ga ` aa ´ lB [ rB ] lC {
rC } la ⟨ ra ⟩ OK ✓ de ° fm ′ sd ″ mc µ 12 ½ 14 ¼ 34 ¾ mu × di ÷ +- ± ** ∗ eq = == ≡ != ≠ <= ≤ >= ≥ pl +
no ¬ ap ∼ ~~ ≈ if ∞ md ⋅ pc · -> → <- ← <> ↔ ua ↑ da ↓ rA ⇒ lA ⇐ AE Æ ae æ OE Œ oe œ ss ß /O Ø /o ø oA Å
oa å .i ı ff ff fi fi fl fl Fi ffi Fl ffl *a α *b β *l λ *m μ *p π *W -
""")
# Strings that macros or the programs that write pages define.
_STRINGS = _pairs(
    """lq “ rq ” Tm ™ R ® Aq ' Lt < Gt > Le ≤ Ge ≥ Ne ≠ Am & Ba | Pm ± q " C` " C' " L" “ R" ” -- -"""
)
_ACCENTS = dict(zip("'`^:~,v", "\u0301\u0300\u0302\u0308\u0303\u0327\u030c", strict=True))


class ManualExtractor(Extractor):
    """Reads manual pages; the title is a page's name, with what it says of itself."""

    @override
    def extract(self, data: bytes, name: str) -> Extracted:
        page, names = _read(with_plain_newlines(decode(data)))
        if not page:
            return Extracted("", "markdown")
        if title := _title(names, [line for line, _ in page]):
            page[:0] = [(f"# {title}", page[0][1]), ("", page[0][1])]
        text = clean(without_encoded("\n".join(line for line, _ in page)))
        return Extracted(text, "markdown", title or None, file_lines=tuple(number for _, number in page))


def _title(names: tuple[str, str], lines: Sequence[str]) -> str:
    """Return `logrotate(8) - rotates logs`; the name is spelt as the page's first section does."""
    name, section = (" ".join(part.split()) for part in names)
    heading = next((at for at, line in enumerate(lines[:200]) if line.startswith("#")), 200)
    paragraph = takewhile(bool, lines[heading + 2 : heading + 200])  # a blank line parts it from its heading
    found = _SUMMARY.match(" ".join(paragraph).replace("```", "").strip()[:2_000])
    called, summary = (found[1], " ".join(found[2].split())) if found else ("", "")
    spellings = [part.strip() for part in called.split(",")]
    same = next((part for part in spellings if part.casefold() == name.casefold()), None)
    spelt = same or (name.lower() if name.isupper() else name) or spellings[0]
    numbered = f"{spelt}({section.lower()})" if section and spelt else spelt
    return " - ".join(filter(None, (numbered, summary)))[:MAX_TITLE].rstrip()


def shown(text: str) -> str:
    """Return what is seen of a text with escapes."""
    return _ESCAPE.sub(_escape, text) if "\\" in text else text


def _escape(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind is None:
        return ""
    value = found[kind]
    if kind == "other":
        return _SHOWN.get(value, "" if value in _SILENT else value)
    if kind == "within":  # a movement to the right is a space
        return " " if found["delimited"] == "h" and "-" not in value else ""
    return _STRINGS.get(value, "") if kind.startswith("string") else _character(value)


def _character(name: str) -> str:
    """Return the character of a name; nothing for one that nobody knows."""
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    if re.fullmatch("u[0-9A-F]{4,5}", name):
        code = int(name[1:], 16)
        return chr(code) if 32 <= code < 0xD800 or code >= 0xE000 else ""
    return _CHARACTERS.get(name, "")


def _arguments(rest: str) -> list[str]:
    """Return what a request's arguments show: words, or what stands between quotes."""
    if '"' not in rest and "\\" not in rest:
        return rest.split()
    found = _ARGUMENT.finditer(_END_COMMENT.sub("", rest))
    quoted = ((argument[1], argument[2]) for argument in found)
    return [shown(word if inside is None else inside.replace('""', '"')) for inside, word in quoted]


def _depth(line: str) -> int:
    return line.count("\\{") - line.count("\\}")


def _lines(source: str) -> Iterator[tuple[int, str, str]]:
    """Yield the lines for a terminal, without comments and definitions: number, request or "", the rest."""
    lines = _whole_lines(source)
    skipped = 0  # how many levels deep in a block that is not shown
    was_true = True  # the last .ie
    for number, line in lines:
        if skipped:
            skipped = max(0, skipped + _depth(line))
        elif not _COMMENT.match(line):
            name, rest, was_true = _request(line, was_true)
            if name is None:
                skipped = max(0, _depth(line))
            elif name in ("de", "de1", "am", "ig"):
                end = "." + "".join(rest.split()[name != "ig" :][:1] or ["."])
                next((line for _, line in lines if line.replace(" ", "").startswith(end)), None)
            else:
                yield number, name, rest.replace("\\{", "").replace("\\}", "")


def _whole_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with the next where a backslash ends it."""
    begun: list[str] = []
    first = 1
    for number, line in enumerate(source.split("\n"), 1):
        first = first if begun else number
        goes_on = line.endswith("\\") and not line.endswith("\\\\")
        begun.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield first, "".join(begun)
            begun = []
    if begun:
        yield first, "".join(begun)


def _request(line: str, was_true: bool) -> tuple[str | None, str, bool]:
    """Return what a line asks for, None if a condition is false, the rest, and what the last .ie said."""
    for _ in range(_MAX_CONDITIONS):
        request = _REQUEST.match(line)
        name, rest = (request[1], line[request.end() :]) if request else ("", line)
        if name not in ("if", "ie", "el"):
            return name, rest, was_true
        found = _CONDITION.match(f" n{rest}" if name == "el" else rest)
        holds = found is not None and found[2] is None and (found[3] not in _FALSE) != bool(found[1])
        holds = not was_true if name == "el" else holds
        was_true = holds if name == "ie" else was_true
        line = found.string[found.end() :] if found else ""
        if not holds or not line:
            return "if" if holds else None, "", was_true
    return "if", "", was_true


class _Page:
    """The Markdown so far: an entry is a line with its term, flush left, and what is said of it, indented.

    Lines are filled as a formatter would, but none begins with what would be taken for the term of an entry.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []  # with the file's line for each
        self.number = 1  # the file's line that is being read
        self._open: list[str] = []  # pieces of the line that is being filled
        self._begun = 1  # the file's line where it began
        self._length = 0
        self._indent = ""
        self._marker = ""  # the bullet of a list item that has no text yet
        self._after_entry = False
        self._code_from: int | None = None  # where in `lines` the open listing begins

    @property
    def in_code(self) -> bool:
        return self._code_from is not None

    def text(self, text: str) -> None:
        piece = " ".join(text.split())
        if self.in_code:
            self._write(self._indent + text.replace(_JOINED, "").rstrip(), self.number)
        elif piece:
            joins = piece.startswith(_JOINED) or self._open[-1:] and self._open[-1].endswith(_JOINED)
            if self._length >= _FILLED and not joins and _BEGINS_A_LINE.match(piece):
                self.end_line()
            self._begun = self._begun if self._open else self.number
            self._open.append(piece)
            self._length += len(_joined(piece)) + 1
            self._after_entry = False

    def end_line(self) -> None:
        line = _joined(" ".join(self._open))
        self._open.clear()
        self._length = 0
        if line:
            shown = "\\" + line if _UNDERLINE.match(line) else escaped(line)
            self._write((self._marker or self._indent) + shown, self._begun)
            self._marker = ""

    def paragraph(self, *, indented: bool | None = None) -> None:
        """Begin a paragraph: of an entry's body or not, or as the one before."""
        self.end_line()
        if self.in_code or self.lines and self.lines[-1][0]:
            self._write("", self.number)
        if indented is not None and not self.in_code:
            self._indent, self._marker = _BODY if indented else "", ""

    def heading(self, level: int, text: str) -> None:
        self.end_code()
        self.paragraph(indented=False)
        if words := _joined(text):
            self._write(f"{'#' * level} {words}", self.number)
            self.paragraph()

    def entry(self, term: str) -> None:
        """Begin an entry, or an item of a list where the term is a bullet or a number."""
        words = _joined(term)
        if _BULLET.fullmatch(words):
            self.paragraph(indented=True)
            self._marker = f"{words.strip('(.)')}. " if words[-2:-1].isdigit() else "- "
        elif self.in_code:
            self.text(words)
        else:
            if not self._after_entry:
                self.paragraph()
            self._indent = self._marker = ""
            self.text(words)
            self.begin_body()
            self._after_entry = True

    def begin_body(self) -> None:
        """Go on with what is said of the line before, which may be a term."""
        self.end_line()
        self._indent = self._indent if self.in_code else _BODY

    def begin_code(self) -> None:
        self.end_line()
        self._code_from = len(self.lines) if self._code_from is None else self._code_from

    def end_code(self) -> None:
        """Put fences around the lines since `begin_code`."""
        if self._code_from is None:
            return
        code = self.lines[self._code_from :]
        del self.lines[self._code_from :]
        self._code_from = None
        said = [at for at, (line, _) in enumerate(code) if line.strip()]
        if said:
            code = code[said[0] : said[-1] + 1]
            fence = self._indent + fence_around("\n".join(line for line, _ in code))
            self.lines += [(fence, code[0][1]), *code, (fence, code[-1][1])]

    def _write(self, line: str, number: int) -> None:
        self.lines.append((line, number))
        self._after_entry = False


def _joined(text: str) -> str:
    words = " ".join(text.split())
    return re.sub(f" ?{_JOINED} ?", "", words) if _JOINED in words else words


def _read(source: str) -> tuple[list[tuple[str, int]], tuple[str, str]]:
    """Return the lines of Markdown, each with its line of the file, and the page's name and section."""
    reader = _Reader()
    for number, request, rest in _lines(source):
        reader.take(number, request, rest)
    reader.page.end_code()
    reader.page.end_line()
    lines = reader.page.lines
    while lines and not lines[-1][0]:
        lines.pop()
    return lines, reader.names


class _Reader:
    """Reads the lines of a page of either kind."""

    def __init__(self) -> None:
        self.names = ("", "")  # the page's name and section: ls, 1
        self.page = _Page()
        self.wanted: Callable[[str], None] | None = None  # takes the next text as a heading or a term
        self.lists: list[str] = []  # the kinds of mdoc's open lists
        self._name = ""  # what a page in mdoc calls itself

    def take(self, number: int, request: str, rest: str) -> None:
        self.page.number = number
        if not request:
            self._take_text(rest)
        elif request in _MDOC:
            self._take_words(request, _arguments(rest))
        elif request in _MACROS or request[0].isupper():
            _MACROS.get(request, _Reader.spaced)(self, _arguments(rest))

    def put(self, text: str) -> None:
        """Take what a line shows, as a heading or a term where one is awaited."""
        if self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            wanted(text)
        elif (drawn := _DRAWN_BULLET.match(text)) and not self.page.in_code:
            self.page.entry(drawn[1])
        else:
            self.page.text(text)

    def _take_text(self, text: str) -> None:
        """Take a line of text: a blank one ends a paragraph, and an indented one begins a new line."""
        if not text or text.isspace():
            self.page.paragraph()
            return
        if text[0] in " \t":
            self.page.end_line()
        self.put(shown(text))

    def spaced(self, arguments: Sequence[str]) -> None:
        """Take arguments as words."""
        if arguments:
            self.put(" ".join(arguments))

    def close(self, arguments: Sequence[str]) -> None:
        """Take arguments as parts of one word, in different fonts."""
        if arguments:
            self.put("".join(arguments))

    def title(self, arguments: Sequence[str]) -> None:
        name, section, *_ = [*arguments, "", ""]
        self.names = self.names if self.names[0] else (name, section)

    def heading(self, level: int, arguments: Sequence[str]) -> None:
        words = " ".join(arguments)
        self.lists.clear()
        self.wanted = None if words else lambda text: self.page.heading(level, text)
        if words:
            self.page.heading(level, words)

    def paragraph(self, _: Sequence[str]) -> None:
        self.wanted = None
        self.page.paragraph(indented=bool(self.lists))

    def tagged(self, _: Sequence[str]) -> None:
        self.wanted = self.page.entry

    def indented(self, arguments: Sequence[str]) -> None:
        self.wanted = None
        if arguments and arguments[0].strip():
            self.page.entry(arguments[0])
        else:
            self.page.paragraph(indented=True)

    def begin_body(self, _: Sequence[str]) -> None:
        self.wanted = None
        self.page.begin_body()

    def begin_display(self, arguments: Sequence[str]) -> None:
        self.page.end_line()
        if not {"-literal", "-unfilled"}.isdisjoint(arguments):
            self.page.begin_code()

    def end_display(self, _: Sequence[str]) -> None:
        self.page.end_code()
        self.page.paragraph()

    def line_of_code(self, arguments: Sequence[str]) -> None:
        self.page.begin_code()
        self.page.text(_joined(_mdoc(arguments, self._name)))
        self.page.end_code()

    def begin_list(self, arguments: Sequence[str]) -> None:
        self.page.end_line()
        self.lists.append(next((word for word in arguments if word in _BULLETS or word in _TAGS), ""))

    def end_list(self, _: Sequence[str]) -> None:
        del self.lists[-1:]
        self.page.paragraph(indented=bool(self.lists))

    def item(self, arguments: Sequence[str]) -> None:
        kind, text = "".join(self.lists[-1:]), _mdoc(arguments, self._name)
        if kind in _BULLETS:
            self.page.entry("-")
        elif kind not in _TAGS:
            self.page.paragraph(indented=True)
            self.page.text(text)
        elif "Xo" in arguments:  # its term is on the next lines
            self.wanted = self.page.entry
        else:
            self.page.entry(text)

    def _take_words(self, macro: str, words: list[str]) -> None:
        """Take a line of mdoc's words."""
        if macro == "Nm":
            self._name = self._name or "".join(words[:1])
        self.put(_mdoc([macro, *words], self._name))


def _each(names: str, action: Callable[[_Reader, Sequence[str]], None]) -> dict[str, Callable[..., None]]:
    return dict.fromkeys(names.split(), action)


_MACROS: Mapping[str, Callable[[_Reader, Sequence[str]], None]] = {
    **_each("TH Dt", _Reader.title),
    **_each("SH Sh", lambda reader, arguments: reader.heading(2, arguments)),
    **_each("SS Ss", lambda reader, arguments: reader.heading(3, arguments)),
    **_each("PP P LP HP Pp Lp", _Reader.paragraph),
    **_each("sp Sp UNINDENT", lambda reader, _: reader.page.paragraph()),
    **_each("br in ti ce INDENT YS", lambda reader, _: reader.page.end_line()),
    **_each("TP TQ", _Reader.tagged),
    **_each("IP", _Reader.indented),
    **_each("RS", _Reader.begin_body),
    **_each("RE", lambda reader, _: reader.page.paragraph(indented=False)),
    **_each("BI BR IB IR RB RI", _Reader.close),
    **_each("UR MT", lambda reader, arguments: reader.spaced([f"<{''.join(arguments[:1])}>"])),
    **_each("UE ME", lambda reader, arguments: reader.close([_JOINED, *arguments])),
    **_each(
        "URL MTO",
        lambda reader, arguments: reader.spaced([*arguments[1:2], *map("<{}>".format, arguments[:1])]),
    ),
    **_each("MR", lambda reader, arguments: reader.spaced([_mdoc(["Xr", *arguments], "")])),
    **_each("nf EX Vb DS TS", lambda reader, _: reader.page.begin_code()),
    **_each("fi EE Ve DE TE", lambda reader, _: reader.page.end_code()),
    **_each("Bd", _Reader.begin_display),
    **_each("Ed", _Reader.end_display),
    **_each("Bl", _Reader.begin_list),
    **_each("It", _Reader.item),
    **_each("El", _Reader.end_list),
    **_each("Dl D1", _Reader.line_of_code),
    **_each("IX PD DT UC AT Dd Os Bk Ek Bf Ef Sm Tg Rs Re EQ EN Ex LINKSTYLE", lambda *_: None),
}
_BULLETS = listed("-bullet -dash -hyphen -enum")
_TAGS = listed("-tag -hang -ohang -inset -diag")

# What a line of mdoc shows: words, with the brackets and signs that the macros between them add.
_PUNCTUATION = frozenset(".,:;)]?!")
_AROUND = _pairs("Op [] Bq [] Pq () Brq {} Aq <> Dq “” Sq ‘’ Ql ‘’") | {"Qq": '""'}
_SIGNS = {
    **{name: sign + _JOINED for name, sign in _pairs('Oo [ Bo [ Po ( Bro { Ao < Do “ So ‘ Qo "').items()},
    **{name: _JOINED + sign for name, sign in _pairs('Oc ] Bc ] Pc ) Brc } Ac > Dc ” Sc ’ Qc "').items()},
    **{"Ns": _JOINED, "Ap": f"{_JOINED}'{_JOINED}", "Nd": "-", "Xo": "", "Xc": ""},
}
_FONTS = "Ad Ar Cd Cm Dv Em Er Ev Fa Fd Fr Ft Ic Li Ms Mt No Pa Sx Sy Ta Tn Va Vt"
_MDOC = listed(f"{_FONTS} An Fl Fn In Lk Nm Pf Xr").union(_AROUND, _SIGNS)


def _mdoc(words: Sequence[str], name: str) -> str:
    """Return what a line shows on a page called `name`, with _JOINED where no space belongs."""
    end = len(words)
    while end and words[end - 1] in _PUNCTUATION:
        end -= 1
    shown: list[str] = [name] if words[:end] == ["Nm"] else []
    closing: list[str] = []  # the innermost last
    macro = ""
    for word in words[:end]:
        if word in _MDOC:
            macro = word
            shown += [_AROUND[word][0] + _JOINED] if word in _AROUND else [_SIGNS.get(word, "")]
            closing += [_JOINED + _AROUND[word][1]] if word in _AROUND else []
        elif word in _PUNCTUATION:
            shown.append(_JOINED + word)
        else:
            shown.append(f"-{word}" if macro == "Fl" else f"{_JOINED}({word})" if macro == "(" else word)
            macro = {"Fl": "Fl", "Xr": "("}.get(macro, "")
    return " ".join(filter(None, [*shown, *reversed(closing), *(_JOINED + mark for mark in words[end:])]))
