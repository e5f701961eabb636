r"""What roff's escapes show: `\fB` nothing, `\-` a dash, `\(bu` a bullet, `\*(lq` what was defined.

A text is read once from left to right, and what a string holds is read when it is defined: no page takes
longer than its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from concord.extractors.roff_characters import character, numbered

JOINED = "\x1d"  # stands for \c: what the next line says follows without a space

# What follows a backslash. A name has one character, two after a bracket, or any number within brackets.
_NAME = r"(?:\((?P<{0}two>..)|\[(?P<{0}long>[^\]\n]*)\]?|(?P<{0}one>.))"
_ESCAPE = re.compile(
    r"\\(?:"
    r'(?P<comment>["#].*)'
    r"|(?P<font>[fFmMgkVY])(?:\(..|\[[^\]\n]*\]?|.)"
    r"|s(?:[-+]?\(..|[-+]?\[[^\]\n]*\]?|[-+]?'[^'\n]*'?|\([-+]..|[-+]?[123]\d|[-+]?\d)?"
    rf"|\*(?:{_NAME.format('string_')})"
    r"|n[-+]?(?:\(..|\[[^\]\n]*\]?|.)"
    r"|(?P<delimited>[ABCDHLNRSXZbhlovwx])(?P<mark>.)(?P<within>.*?)(?:(?P=mark)|$)"
    r"|\$(?:\(..|\[[^\]\n]*\]?|.)"
    r"|\((?P<two>..)|\[(?P<long>[^\]\n]*)\]?"
    r"|(?P<other>.)"
    r")?",
    re.DOTALL,
)
_SHOWN = {
    **dict.fromkeys(" ~0", " "),
    **{"t": "\t", "e": "\\", "\\": "\\", "E": "\\", "-": "-", ".": ".", "'": "´", "`": "`", "_": "_"},
    "c": JOINED,
}
# Escapes that print nothing. Any other letter after a backslash is that letter: \q is a q.
_SILENT = frozenset("&)/,|^%:{}!adruzpc?@")
_MAX_STRING = 100  # characters that a string holds, at most
_MAX_INTERPOLATED = 1_000_000  # characters that all of a page's come to
_MAX_TRANSLATED = 100

_PREDEFINED = {
    **{"lq": "“", "rq": "”", "Tm": "™", "R": "®", "S": "", 'L"': "“", 'R"': "”", "Aq": "'", "Px": "POSIX"},
    **{"Lt": "<", "Gt": ">", "Le": "≤", "Ge": "≥", "Ne": "≠", "Pm": "±", "Am": "&", "Ba": "|", "Na": "NaN"},
    **{"q": '"', "Lq": "“", "Rq": "”", "If": "∞", "Pi": "π", "ga": "`", "aa": "´", "ua": "↑", "va": "↕"},
    **{"C`": '"', "C'": '"', "--": "-", "PI": "π", "<=": "≤", ">=": "≥", "Ai": "ANSI"},
}


class Escapes:
    """Shows text with escapes, by the strings that a page has defined so far."""

    def __init__(self) -> None:
        self._strings = dict(_PREDEFINED)
        self._room = _MAX_INTERPOLATED
        self._translated: dict[int, str] = {}

    def define(self, name: str, value: str, *, adds: bool = False) -> None:
        """Keep what a string holds from here on."""
        before = self._strings.get(name, "") if adds else ""
        self._strings[name] = (before + self.shown(value))[:_MAX_STRING]

    def is_defined(self, name: str) -> bool:
        """Whether a string has a name."""
        return name in self._strings

    def translate(self, pairs: str) -> None:
        """Show some characters as others from here on, as pod2man does with Ω for its dashes; no letters."""
        shown = self.shown(pairs)[: 2 * _MAX_TRANSLATED]
        self._translated |= {
            ord(one): to for one, to in zip(shown[::2], shown[1::2], strict=False) if not one.isascii()
        }

    def shown(self, text: str) -> str:
        """Return what is seen of a text."""
        if "\\" not in text:
            return text
        seen = _ESCAPE.sub(self._one, text)
        return seen.translate(self._translated) if self._translated else seen

    def _one(self, found: re.Match[str]) -> str:
        kind = found.lastgroup
        if kind is None or kind in ("comment", "font"):
            return ""
        if kind == "other":
            other = found["other"]
            return _SHOWN.get(other) or ("" if other in _SILENT else other)
        if kind.startswith("string_"):
            return self._string(found[kind].partition(" ")[0])
        if found["delimited"]:
            return _DELIMITED.get(found["delimited"], _nothing)(found["within"])
        return character(found[kind])

    def _string(self, name: str) -> str:
        value = self._strings.get(name, "")
        self._room -= len(value)
        return value if self._room >= 0 else ""


def _nothing(_: str) -> str:
    return ""


def _moved(distance: str) -> str:
    """Return what a movement leaves: to the right a space, elsewhere nothing."""
    return " " if distance.lstrip("+|")[:1].isdigit() and not distance.startswith("0") else ""


def _by_number(number: str) -> str:
    return numbered(int(number)) if number.isascii() and number.isdigit() and len(number) < 8 else ""


_DELIMITED: dict[str, Callable[[str], str]] = {
    "C": character,
    "N": _by_number,
    "h": _moved,
    "o": lambda over: over[:1],
    "Z": _nothing,
}
