"""What a line of mdoc(7) shows: macros that call each other, with the spaces and brackets they add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from concord.extractors.roff_escapes import JOINED, Escapes
from concord.extractors.roff_lines import split_arguments
from concord.text.word_lists import listed

_NONE: frozenset[str] = frozenset()
_CLOSING = frozenset(".,:;)]?!")
_OPENING = frozenset("([")

# What each macro puts around its arguments, then the macros that open and close over several lines.
_AROUND = {
    **{"Op": "[]", "Bq": "[]", "Pq": "()", "Brq": "{}", "Aq": "<>", "Dq": "“”", "Sq": "‘’", "Ql": "‘’"},
    "Qq": '""',
}
_OPENS = {
    "Oo": "[",
    "Bo": "[",
    "Po": "(",
    "Bro": "{",
    "Ao": "<",
    "Do": "“",
    "So": "‘",
    "Qo": '"',
    "Xo": "",
    "Eo": "",
}
_CLOSES = {
    "Oc": "]",
    "Bc": "]",
    "Pc": ")",
    "Brc": "}",
    "Ac": ">",
    "Dc": "”",
    "Sc": "’",
    "Qc": '"',
    "Xc": "",
    "Ec": "",
}
_PLAIN = listed(
    "Ad An Ar Cd Cm Dv Em En Er Es Ev Fa Fr Ft Ic Li Ms No Ot Pa Sx Sy Tn Va Vt Fd Bsx Hf Lb Dx Ns Ta"
)
_SYSTEMS = {
    "Bx": "BSD",
    "Fx": "FreeBSD",
    "Nx": "NetBSD",
    "Ox": "OpenBSD",
    "Ux": "UNIX",
    "At": "AT&T UNIX",
    "Dx": "DragonFly",
}


class Words(NamedTuple):
    """What a line shows, and whether it stands next to what is before and after it."""

    text: str
    joins: bool
    joins_next: bool


class MdocWords:
    """Shows lines of a page; `name` is what it calls itself."""

    def __init__(self, escapes: Escapes) -> None:
        self.name = ""
        self._escapes = escapes
        self._spaced = True  # whether words have spaces between them, which .Sm switches
        self._out: list[str] = []
        self._joins = False  # whether the next word follows without a space

    def shown(self, macro: str, rest: str) -> Words:
        """Return what a line shows that begins with a macro."""
        self._out, self._joins = [], False
        words: Sequence[str] = split_arguments(rest)
        begins_joined = macro in ("Ns", "Ap") or macro in _CLOSES
        quoted = _quoted(rest, words) if '"' in rest else _NONE
        words, after = _without_punctuation(words)
        closers: list[str] = []
        for name, arguments in _segments(macro, words, quoted):
            self._segment(name, arguments, closers)
        for mark in reversed(closers):
            self._put(mark, joins=True)
        for mark in after:
            self._put(mark, joins=True)
        text = "".join(self._out)
        return Words(text, begins_joined or text in _CLOSING, self._joins)

    def _segment(self, name: str, arguments: Sequence[str], closers: list[str]) -> None:
        if name in _AROUND:
            self._put(_AROUND[name][0], joins_next=True)
            closers.append(_AROUND[name][1])
            self._put_all(arguments)
        elif name in _OPENS:
            self._put(_OPENS[name], joins_next=bool(_OPENS[name]))
            self._put_all(arguments)
        elif name in _CLOSES:
            self._put(_CLOSES[name], joins=True)
            self._put_all(arguments)
        elif name in _SYSTEMS:
            version, *more = [*arguments, ""]
            plain = version[:1].isdigit()
            self._put(
                version + _SYSTEMS[name] if name == "Bx" and plain else f"{_SYSTEMS[name]} {version}".strip()
            )
            self._put_all(more)
        elif action := _ACTIONS.get(name):
            action(self, arguments)
        else:
            self._put_all(arguments)

    def _put(self, text: str, *, joins: bool = False, joins_next: bool = False) -> None:
        if not text:
            self._joins = self._joins or joins_next
            return
        if self._out and not (joins or self._joins) and self._spaced:
            self._out.append(" ")
        self._out.append(text)
        self._joins = joins_next

    def _put_all(self, words: Sequence[str], prefix: str = "") -> None:
        for word in words:
            if word in _CLOSING:
                self._put(word, joins=True)
            elif word in _OPENING:
                self._put(word, joins_next=True)
            elif word == "|":
                self._put(word)
            else:
                self._put(prefix + self._escapes.shown(word).replace(JOINED, ""))

    def _flag(self, arguments: Sequence[str]) -> None:
        if arguments and arguments[0] not in _CLOSING:
            self._put_all(arguments, "-")
        else:
            self._put("-", joins_next=not arguments)
            self._put_all(arguments)

    def _argument(self, arguments: Sequence[str]) -> None:
        self._put_all(arguments if arguments and arguments[0] not in _CLOSING else ["file ...", *arguments])

    def _own_name(self, arguments: Sequence[str]) -> None:
        if arguments and arguments[0] not in _CLOSING:
            self.name = self.name or self._escapes.shown(arguments[0])
            self._put_all(arguments)
        else:
            self._put_all([self.name, *arguments])

    def _together(self, arguments: Sequence[str]) -> None:
        self._joins = True
        self._put_all(arguments)

    def _apostrophe(self, arguments: Sequence[str]) -> None:
        self._put("'", joins=True, joins_next=True)
        self._put_all(arguments)

    def _prefix(self, arguments: Sequence[str]) -> None:
        self._put_all(arguments[:1])
        self._joins = True
        self._put_all(arguments[1:])

    def _reference(self, arguments: Sequence[str]) -> None:
        name, *more = [*arguments[:1]] or [""]
        section = arguments[1] if len(arguments) > 1 and arguments[1] not in _CLOSING else ""
        self._put(f"{self._escapes.shown(name)}({section})" if section else name)
        self._put_all([*more, *arguments[2 if section else 1 :]])

    def _function(self, arguments: Sequence[str]) -> None:
        shown = [self._escapes.shown(one) for one in arguments]
        inner = [one for one in shown[1:] if one not in _CLOSING]
        self._put(f"{''.join(shown[:1])}({', '.join(inner)})")
        self._put_all([one for one in shown[1:] if one in _CLOSING])

    def _header(self, arguments: Sequence[str]) -> None:
        self._put_all([f"<{one}>" for one in arguments[:1]])
        self._put_all(arguments[1:])

    def _link(self, arguments: Sequence[str]) -> None:
        address, text = arguments[:1], arguments[1:]
        self._put_all([*text, *(f"<{one}>" for one in address)] if text else address)

    def _standard(self, arguments: Sequence[str]) -> None:
        self._put_all([one.removeprefix("-").upper() for one in arguments[:1]])
        self._put_all(arguments[1:])

    def _spacing(self, arguments: Sequence[str]) -> None:
        self._spaced = arguments[0] != "off" if arguments else not self._spaced

    def _exits(self, arguments: Sequence[str]) -> None:
        named = [one for one in arguments if one != "-std"] or [self.name]
        self._put_all(["The", *named, "utility exits 0 on success, and >0 if an error occurs."])

    def _returns(self, arguments: Sequence[str]) -> None:
        named = ", ".join(f"{one}()" for one in arguments if one != "-std") or f"{self.name}()"
        self._put(
            f"Upon successful completion, {named} returns 0; otherwise -1 is returned and errno is set to "
            "indicate the error."
        )

    def _summary(self, arguments: Sequence[str]) -> None:
        self._put("-")
        self._put_all(arguments)

    def _author(self, arguments: Sequence[str]) -> None:
        self._put_all([one for one in arguments if one not in ("-split", "-nosplit")])

    def _nothing(self, _: Sequence[str]) -> None:
        pass


_ACTIONS: Mapping[str, Callable[[MdocWords, Sequence[str]], None]] = {
    "Fl": MdocWords._flag,
    "Ar": MdocWords._argument,
    "Nm": MdocWords._own_name,
    "Nd": MdocWords._summary,
    "Ns": MdocWords._together,
    "Ap": MdocWords._apostrophe,
    "Pf": MdocWords._prefix,
    "Xr": MdocWords._reference,
    "Fn": MdocWords._function,
    "In": MdocWords._header,
    "Lk": MdocWords._link,
    "St": MdocWords._standard,
    "Sm": MdocWords._spacing,
    "Ex": MdocWords._exits,
    "Rv": MdocWords._returns,
    "An": MdocWords._author,
    "Tg": MdocWords._nothing,
}
_CALLABLE = frozenset(_ACTIONS) - {"Nd", "Sm", "Ex", "Rv", "Tg", "In", "St", "Lk"} | (
    _AROUND.keys() | _OPENS.keys() | _CLOSES.keys() | _SYSTEMS.keys() | _PLAIN | {"Mt", "St"}
)


def _segments(macro: str, words: Sequence[str], quoted: frozenset[str]) -> Sequence[tuple[str, list[str]]]:
    """Return the macros of a line, each with its arguments."""
    found: list[tuple[str, list[str]]] = [(macro, [])]
    for word in words:
        if word in _CALLABLE and word not in quoted and macro not in ("Nd", "Lk", "In"):
            found.append((word, []))
        else:
            found[-1][1].append(word)
    return found


def _without_punctuation(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the words of a line, and the signs that end it: no bracket closes after them."""
    end = len(words)
    while end and words[end - 1] in _CLOSING:
        end -= 1
    return words[:end], words[end:]


def _quoted(rest: str, words: Sequence[str]) -> frozenset[str]:
    """Return the words that are quoted, which are no macros."""
    return frozenset(word for word in words if word in _CALLABLE and f'"{word}"' in rest)
