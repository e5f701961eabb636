"""Which definition of a piece of code does a place stand in, and is a name defined there?

Read from the lines of the piece, by a reader that knows less of a language than `text.code` and is loaded in
a fraction of the time. A line that defines something says so by a keyword (`def`, `class`, `func`, `fn` …),
or is a name, parameters and a brace that opens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from concord.text.tokens import pattern

if TYPE_CHECKING:
    from concord.text.cuts import Heading

_NAME = r"(?P<{}>[^\W\d][\w$]*+[?!]?)"
_BY_KEYWORD = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?"
    r"|unsafe|extern|inline|virtual|override|sealed|partial|declare|const|local|open|suspend)[ \t]+)*"
    r"(?:def|class|function\*?|func|fn|fun|sub|struct|enum|union|trait|interface|module|mod|namespace|record|type)"
    r"[ \t]+(?:\([^)\n]*\)[ \t]*)?(?:[\w$]+(?:\.|::))*"
    + _NAME.format("named")
    + r"(?![ \t]+\w+[ \t]*[=;])"  # struct point origin = {0, 0}
)
_BY_VALUE = (
    r"(?:export[ \t]+)?(?:const|let|var)[ \t]+"
    + _NAME.format("valued")
    + r"[ \t]*=[ \t]*(?:async[ \t]*)?(?:function\b|class\b|\([^()\n]*\)[ \t]*(?::[^=\n]*)?=>|[\w$]+[ \t]*=>)"
)
_BY_SHAPE = (
    r"(?!(?:if|for|while|switch|catch|return|else|do|try|with|using|lock|foreach|match|when|unless)\b)"
    r"(?:[\w$<>\[\],.:*&~?@ \t]*[ \t*&:~])?"
    + _NAME.format("shaped")
    + r"[ \t]*\([^;{}\n'\"]*\)[^;{}()=\n]*\{[ \t]*$"
)
_DEFINITION = pattern(rf"^(?P<indent>[ \t]*+)(?:{_BY_KEYWORD}|{_BY_VALUE}|{_BY_SHAPE})", re.MULTILINE)
_WITHOUT_SHAPE = pattern(rf"^(?P<indent>[ \t]*+)(?:{_BY_KEYWORD}|{_BY_VALUE})", re.MULTILINE)
_OPENING = pattern(r"\{[ \t]*$", re.MULTILINE)
_LINE = pattern(r"[ \t]*")
_CLOSING = ")]}"  # what a line begins with that still belongs to the definition above


class Definition(NamedTuple):
    """Where a definition begins, how far it is indented, and its name."""

    start: int
    indent: int
    name: str


def definitions_in(text: str) -> Iterator[Definition]:
    """Yield what a piece of code defines, in order."""
    # Without a brace at the end of a line, no shape fits, and the rest is read in half the time.
    form = _DEFINITION if "{" in text and _OPENING.search(text) else _WITHOUT_SHAPE
    for found in form.finditer(text):
        name = found[found.lastgroup or 0]
        yield Definition(found.start(), len(found["indent"].expandtabs()), name)


def defined_at(name: str, text: str) -> int | None:
    """Return where in a piece of code the line begins that defines a name; None where none does."""
    if name not in text:
        return None
    return next((one.start for one in definitions_in(text) if one.name == name), None)


def symbol_at(text: str, at: int, carried: Heading) -> Heading:
    """Return the names that a place in a piece of code stands under; outside all, what the piece carries."""
    known = list(definitions_in(text))
    around: list[Definition] = []
    for one in known:
        if one.start > at:
            break
        around = [*(outer for outer in around if outer.indent < one.indent), one]
    line = text.rfind("\n", 0, at) + 1
    if around and line > around[-1].start:
        around = _still_open(text, line, around)
    if not around:
        return carried
    return (*_above(carried, {one.name for one in known}), *(one.name for one in around))


def _still_open(text: str, line: int, around: list[Definition]) -> list[Definition]:
    """Return the definitions around a line, by its indentation."""
    found = _LINE.match(text, line)
    spaces = found[0] if found else ""
    if text[line + len(spaces) : line + len(spaces) + 1] in _CLOSING:
        return around
    return [one for one in around if one.indent < len(spaces.expandtabs())]


def _above(carried: Heading, own: Collection[str]) -> Heading:
    """Return the names that a piece carries, up to the first that it defines itself."""
    return tuple(takewhile(lambda name: name not in own, carried))
