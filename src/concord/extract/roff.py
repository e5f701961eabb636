"""The language of manual pages: which lines of a file a terminal is given, and what their escapes show.

What a page defines is not run. A file is read once, and what a string holds is read when it is defined, so
that no page takes longer than its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from concord.text.word_lists import listed

JOINED = "\x01"  # stands for \c and the like: what is on both sides of it belongs together

_MAX_STRING = 100  # characters that a string of a page's own holds, at most
_MAX_INTERPOLATED = 1_000_000  # characters that all of them come to
_MAX_CONDITIONS = 10  # on one line
_MAX_OPEN = 100  # .ie that wait for their .el
_FALSE = listed("t e v \\nF")  # on paper, on an even page, by vroff, when an index is written

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\]*)[ \t]*")
_COMMENT = re.compile(r"[.'][ \t]*\\[\"#]|'''|\\[\"#]")
_ARGUMENT = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*+)"?|((?:\\.|[^ \t\\])++\\?|\\))', re.DOTALL)
_END_COMMENT = re.compile(r'(?<!\\)\\".*')
_CONDITION = re.compile(
    r"[ \t]*+(!?)[ \t]*+(?:(['\"]).*?\2.*?\2|((?:\\[^{\s]|[^\s\\])*))[ \t]*(?:\\\{[ \t]*)?"
)
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
_SHOWN = {**dict.fromkeys(" ~0", " "), "t": "\t", **dict.fromkeys("e\\E", "\\"), "'": "´", "c": JOINED}
_SILENT = frozenset("&)/,|^%:{}!adruzp?@")  # any other letter after a backslash is that letter
# Characters by their names in groff_char(7); a minus is a dash, as people type it.
_NAMED = r"""
em — en – hy - mi - bu • ci ○ sq □ lq “ rq ” oq ‘ cq ’ aq ' dq " Fo « Fc » rs \ sl / ba | or | br │ ru _
ul _ at @ sh # Do $ ct ¢ Eu € Ye ¥ Po £ co © rg ® tm ™ sc § ps ¶ dg † ha ^ ti ~ ga ` aa ´ lB [ rB ] lC {
rC } la ⟨ ra ⟩ OK ✓ de ° fm ′ sd ″ mc µ S1 ¹ S2 ² S3 ³ 12 ½ 14 ¼ 34 ¾ mu × di ÷ +- ± ** ∗ eq = == ≡ != ≠
<= ≤ >= ≥ pl + no ¬ ap ∼ ~~ ≈ if ∞ sr √ mo ∈ md ⋅ pc · -> → <- ← <> ↔ ua ↑ da ↓ rA ⇒ lA ⇐ AE Æ ae æ OE Œ
oe œ ss ß -D Ð Sd ð TP Þ Tp þ /L Ł /l ł /O Ø /o ø oA Å oa å .i ı ff ff fi fi fl fl Fi ffi Fl ffl *a α *b β
*g γ *d δ *e ε *l λ *m μ *p π *W -
"""
_PREDEFINED = """lq “ rq ” Tm ™ R ® Aq ' Lt < Gt > Le ≤ Ge ≥ Ne ≠ Am & Ba | Pm ± q " C` " C' " -- - ua ↑"""
_ACCENTS = dict(zip("'`^:~,v", "\u0301\u0300\u0302\u0308\u0303\u0327\u030c", strict=True))


def pairs(table: str) -> dict[str, str]:
    """Return every second word of a table by the one before it."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


_CHARACTERS = pairs(_NAMED)


class Line(NamedTuple):
    """A request with its arguments, or a line of text."""

    number: int  # in the file, from 1
    request: str  # its name; empty for text
    rest: str  # arguments or text, with escapes


class Roff:
    """Reads a file; what it has defined so far decides what its escapes show."""

    def __init__(self, source: str) -> None:
        self._lines = _whole_lines(source)
        self._strings = pairs(_PREDEFINED)
        self._room = _MAX_INTERPOLATED
        self._else: list[bool] = []  # for each .ie that waits for its .el, whether that will hold
        self._skipping = 0  # how many levels deep in a block that is skipped

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines for a terminal, without comments and definitions."""
        for number, line in self._lines:
            if self._skipping:
                self._skipping = max(0, self._skipping + _depth(line))
            elif not _COMMENT.match(line):
                yield from self._read(number, line)

    def shown(self, text: str) -> str:
        """Return what is seen of a text."""
        return _ESCAPE.sub(self._escape, text) if "\\" in text else text

    def _read(self, number: int, line: str) -> Iterator[Line]:
        """Yield the line, once its conditions hold, if it is not for roff itself."""
        for _ in range(_MAX_CONDITIONS):
            request = _REQUEST.match(line)
            name, rest = (request[1], line[request.end() :]) if request else ("", line)
            if name not in ("if", "ie", "el"):
                yield from self._request(number, name, rest)
                return
            holds, line = self._condition(name, rest)
            if not holds:
                self._skipping = max(0, _depth(line))
            if not holds or not line:
                return

    def _request(self, number: int, name: str, rest: str) -> Iterator[Line]:
        if name in ("de", "de1", "am", "ig"):
            self._pass_over(rest.split()[name != "ig" :])
        elif name in ("ds", "as"):
            key, _, value = rest.partition(" ")
            self._strings[key] = self.shown(value.lstrip(" ").removeprefix('"'))[:_MAX_STRING]
        else:
            yield Line(number, name, _without_braces(rest))

    def _pass_over(self, arguments: list[str]) -> None:
        """Pass over the lines of a definition, or of what is to be ignored."""
        end = "." + "".join(arguments[:1] or ["."])
        next((line for _, line in self._lines if line.replace(" ", "").startswith(end)), None)

    def _condition(self, name: str, rest: str) -> tuple[bool, str]:
        """Return whether a condition holds, and what depends on it."""
        if name == "el":
            return bool(self._else) and self._else.pop(), rest.removeprefix("\\{").lstrip(" \t")
        found = _CONDITION.match(rest)
        holds = found is not None and found[2] is None and (found[3] not in _FALSE) != bool(found[1])
        if name == "ie" and len(self._else) < _MAX_OPEN:
            self._else.append(not holds)
        return holds, rest[found.end() if found and holds else 0 :]

    def _escape(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind is None:
            return ""
        if kind == "other":
            return _SHOWN.get(found["other"], "" if found["other"] in _SILENT else found["other"])
        if kind.startswith("string"):
            value = self._strings.get(found[kind].partition(" ")[0], "")
            self._room -= len(value)
            return value if self._room >= 0 else ""
        if not found["delimited"]:
            return _character(found[kind])
        move = found["within"].lstrip("+|") if found["delimited"] == "h" else ""
        return " " if move[:1].isdigit() and move[:1] != "0" else ""  # to the right


def arguments_of(rest: str) -> list[str]:
    """Return the arguments of a request, with their escapes: words, or what stands between quotes."""
    if '"' not in rest and "\\" not in rest:
        return rest.split()
    found = _ARGUMENT.finditer(_END_COMMENT.sub("", rest))
    return [
        quoted.replace('""', '"') if (quoted := argument[1]) is not None else argument[2]
        for argument in found
    ]


def _character(name: str) -> str:
    """Return the character of a name; nothing for one that nobody knows."""
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return unicodedata.normalize("NFC", name[1] + _ACCENTS[name[0]])
    if re.fullmatch("u[0-9A-F]{4,5}", name):
        code = int(name[1:], 16)
        return chr(code) if 32 <= code < 0xD800 or code >= 0xE000 else ""
    return _CHARACTERS.get(name, "")


def _without_braces(text: str) -> str:
    return text.replace("\\{", "").replace("\\}", "") if "\\" in text else text


def _depth(line: str) -> int:
    return line.count("\\{") - line.count("\\}")


def _whole_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with the next where a backslash ends it."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(source.split("\n"), 1):
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1 and not _COMMENT.match(line)
        first = first if parts else number
        parts.append(line[:-1] if goes_on else line)
        if not goes_on:
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)
