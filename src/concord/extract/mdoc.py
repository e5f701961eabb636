"""What a line of mdoc(7) shows: macros that call each other, with the brackets and signs that they add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from concord.extract.roff import JOINED, pairs
from concord.text.word_lists import listed

_PUNCTUATION = frozenset(".,:;)]?!")
_AROUND = pairs("Op [] Bq [] Pq () Brq {} Aq <> Dq “” Sq ‘’ Ql ‘’") | {"Qq": '""'}
_OPENS = pairs('Oo [ Bo [ Po ( Bro { Ao < Do “ So ‘ Qo "') | {"Xo": ""}  # closed on a later line
_CLOSES = pairs('Oc ] Bc ] Pc ) Brc } Ac > Dc ” Sc ’ Qc "') | {"Xc": ""}
_SYSTEMS = pairs("Bx BSD Fx FreeBSD Nx NetBSD Ox OpenBSD Dx DragonFly Ux UNIX At AT&T")
_FONTS = listed("Ad Ar Cd Cm Dv Em Er Ev Fa Fd Fr Ft Ic Li Ms Mt No Pa Sx Sy Ta Tn Va Vt")
_CALLABLE = _FONTS.union(listed("An Ap Fl Fn Nm Ns Pf Xr"), _AROUND, _OPENS, _CLOSES, _SYSTEMS)
_NOT_PARSED = listed("Nd Lk In")  # lines that call no other macro
MDOC_WORDS = _CALLABLE | _NOT_PARSED | listed("It Dl D1 St Ex Fo Fc")

_SHOWN_AS: Mapping[str, Callable[[list[str], str], list[str]]] = {
    "Fl": lambda words, _: [f"-{word}" for word in words] or [f"-{JOINED}"],
    "Ar": lambda words, _: words or ["file ..."],
    "Nm": lambda words, name: words or [name],
    "Nd": lambda words, _: ["-", *words],
    "Ns": lambda words, _: [JOINED, *words],
    "Ap": lambda words, _: [f"{JOINED}'{JOINED}", *words],
    "Pf": lambda words, _: [*words[:1], JOINED, *words[1:]],
    "Xr": lambda words, _: ["{}({})".format(*words, "")] if words else [],
    "Fn": lambda words, _: [f"{''.join(words[:1])}({', '.join(words[1:])})"],
    "Fo": lambda words, _: [*words[:1], f"{JOINED}({JOINED}"],
    "Fc": lambda _, __: [f"{JOINED})"],
    "In": lambda words, _: [f"<{word}>" for word in words],
    "Lk": lambda words, _: [*words[1:], f"<{words[0]}>"] if words else [],
    "An": lambda words, _: [word for word in words if not word.startswith("-")],
    "St": lambda words, _: [word.removeprefix("-").upper() for word in words],
    "Ex": lambda _, name: ["The", name, "utility exits 0 on success, and >0 if an error occurs."],
}


def mdoc_text(macro: str, words: list[str], name: str) -> str:
    """Return what a macro shows of its words on a page called `name`, with JOINED where no space belongs."""
    end = len(words)
    while end and words[end - 1] in _PUNCTUATION:
        end -= 1
    shown: list[str] = []
    closing: list[str] = []
    for called, arguments in _calls(macro, words[:end]):
        if called in _AROUND:
            closing.append(JOINED + _AROUND[called][1])
        shown += _shown(called, arguments, name)
    return " ".join([*shown, *reversed(closing), *(JOINED + mark for mark in words[end:])])


def _shown(macro: str, words: list[str], name: str) -> list[str]:
    if macro in _AROUND or macro in _OPENS:
        return [(_OPENS.get(macro) or _AROUND.get(macro, "")[:1]) + JOINED, *words]
    if macro in _CLOSES:
        return [JOINED + _CLOSES[macro], *words]
    if macro in _SYSTEMS:
        return [_SYSTEMS[macro], *words]
    return _SHOWN_AS[macro](words, name) if macro in _SHOWN_AS else words


def _calls(macro: str, words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the macros of a line, each with its arguments; after a sign only flags go on."""
    arguments: list[str] = []
    is_parsed = macro not in _NOT_PARSED
    for word in words:
        if (is_parsed and word in _CALLABLE) or word in _PUNCTUATION:
            if arguments or macro != "No":
                yield macro, arguments
            arguments = []
            if word in _PUNCTUATION:
                yield "Ns", [word]
            macro = word if word in _CALLABLE else "Fl" if macro == "Fl" else "No"
        else:
            arguments.append(word)
    if arguments or macro != "No":
        yield macro, arguments
