"""Which lines of a text give something a name: definitions, settings, options, terms and headings?

Every name is read at once, without a parser, in time that grows with the text: chunks are read again whenever
the title or the path of their document changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from concord.text.headings import heading_lines, heading_words, line_words
from concord.text.tokens import pattern
from concord.types import DocumentType, Heading

_OPTION = r"(?<![\w-])--?[A-Za-z][\w-]*"
_MARKS = r"[`*_]{0,4}"
_VALUED = (
    rf"{_OPTION}(?:[ =]?(?:<[^<>\n]{{0,60}}>|\[[^\[\]\n]{{0,60}}\]|\{{[^{{}}\n]{{0,60}}\}}"
    rf"|[A-Z][A-Z0-9_|.,:-]{{0,40}}(?![a-z]))(?:\.{{3}})?|=[\w.|-]{{1,40}}){{0,3}}{_MARKS}"
)
# An option with its value and other names, then two spaces, a sign or the end of the line. What comes after a
# line that ends with a backslash belongs to a command.
_ENTRY = pattern(
    r"(?<!\\\n)^[ \t>]*+(?:[-*+•|][ \t]+|#{1,6}[ \t]+|\.\.[ \t]+(?:\w{1,20}:)?option::[ \t]*)?"
    rf"{_MARKS}(?P<name>{_VALUED}(?:(?:,|[ \t]?[/|]|[ \t]or)[ \t]*{_MARKS}{_VALUED}){{0,5}})"
    r"(?=[ \t]{2,}\S|\t|[ \t]*$|[ \t]*[:|–—(]|[ \t]-[ \t])",
    re.MULTILINE,
)
OPTION = pattern(_OPTION)
# A term in code marks: of a list, of a paragraph of its own, or in the first cell of a row.
_TERM = pattern(
    r"^[ \t]*+(?:[-*+][ \t]+|\|[ \t]*)?\[?(?:\*\*)?(?P<mark>`{1,2})(?P<name>[^`\s]{1,80}+)"
    r"(?:[ \t][^`\n]{0,80}+)?(?P=mark)(?:\*\*)?(?:\]\([^()\n]{0,200}\))?[ \t]*(?=$|[:|–—(=]|-[ \t])",
    re.MULTILINE,
)
_DIRECTIVE = pattern(
    r"^[ \t]*+\.\.[ \t]+(?:\w{1,20}:)?(?:auto)?(?:function|class|method|classmethod|staticmethod|attribute"
    r"|property|data|exception|decorator|envvar|confval|setting|module|member|macro|type|var|struct|union|enum"
    r"|describe|object)::[ \t]*(?:(?:async|abstract|static|class|final)[ \t]+)*(?P<name>[\w.:$-]+)",
    re.MULTILINE,
)
_ABOVE_TEXT = pattern(  # a word alone after an empty line, and what is said of it below, further in
    r"\n(?<=\n\n)(?P<indent>[ \t]*+)(?P<name>[A-Za-z_][\w.-]++)=?\n(?=(?P=indent)[ \t]+\S)"
)
_EMPTY_LINE = "\n\n"
_AFTER_NAME = pattern(r"[(=\[<]")
_SENTENCE_ENDS = (".", ",", ";", ":")
_LINE_BELOW = pattern(r"\n([=~^\"'*+#-])\1{2}")  # which is quick to look for
_UNDERLINED = pattern(r"^(?P<name>\S[^\n]{0,119})\n([=~^\"'*+#-])\2{2,}[ \t]*$", re.MULTILINE)

# A definition has a keyword (`def`, `class`, `func`, `fn` …), or is a name, parameters and an opening brace.
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
_CLOSING = ")]}"  # what a line begins with that still belongs to the definition above

_ASSIGNMENT = pattern(
    r"^(?P<indent>[ \t]*+)(?:#[ \t]*define[ \t]+(?P<macro>\w+)"
    r"|(?:(?:export|declare|readonly|public|private|protected|static|final|pub|const|let|var|val)[ \t]+)*"
    r"(?P<name>[A-Za-z_]\w*+)(?P<type>[ \t]*+:[ \t]*+[^\s=][^=\n]{0,79})?[ \t]*+=(?![=~>]))",
    re.MULTILINE,
)
_KEY = pattern(
    r"^(?P<indent>[ \t]*+)(?:-[ \t]+)?(?:[#;][ \t]?(?=[\w.-]+[ \t]*=))?(?:export[ \t]+)?[\"']?"
    r"(?P<name>[A-Za-z_][\w.-]{0,79})[\"']?[ \t]*(?:=(?!=)|:(?!\S))",
    re.MULTILINE,
)
_SECTION = pattern(r"^[ \t]*+\[+[ \t\"']*(?P<name>[\w.-]{1,80})[ \t\"']*\]", re.MULTILINE)
_MEMBER = pattern(r"[{,][ \t]*\"(?P<name>[A-Za-z_][\w.-]{0,79})\"[ \t]*:")  # of JSON on one line


class Named(NamedTuple):
    """Where the line begins that gives a name, how far it is indented, and the name as written."""

    start: int
    indent: int
    name: str


def named_in(type: DocumentType, text: str) -> Iterator[Named]:
    """Yield the places that give names; of prose, all but headings."""
    return _READERS.get(type, _explained)(text)


def has_headings(type: DocumentType) -> bool:
    """Whether documents of a type are prose, whose headings name things."""
    return type not in _READERS


def headings_in(prose: str) -> list[Named]:
    """Return the headings inside a chunk, and its first line if that is no sentence."""
    line = prose.partition("\n")[0].rstrip()
    first = [Named(0, 0, line_words(line))] if not line.endswith(_SENTENCE_ENDS) else []
    marked = [Named(start, 0, line_words(prose[start:end])) for start, end in heading_lines(prose)]
    underlined = _UNDERLINED.finditer(prose) if _LINE_BELOW.search(prose) else ()
    lined = [Named(found.start(), 0, heading_words(found["name"])) for found in underlined]
    return [*first, *marked, *lined]


def outer_names(places: Iterable[Named]) -> list[str]:
    """Return the names that others stand below, further in: of classes, and of settings that have parts."""
    around: list[Named] = []
    names: dict[str, None] = {}
    for place in places:
        around = [outer for outer in around if outer.indent < place.indent]
        names |= dict.fromkeys(outer.name for outer in around)
        around.append(place)
    return list(names)


def symbol_at(text: str, at: int, carried: Heading) -> Heading:
    """Return the names that a place in a piece of code stands under; outside all, what the piece carries."""
    known = list(definitions_in(text))
    around: list[Named] = []
    for place in takewhile(lambda place: place.start <= at, known):
        around = [*(outer for outer in around if outer.indent < place.indent), place]
    line = text.rfind("\n", 0, at) + 1
    bare = text[line:].lstrip(" \t")
    if around and line > around[-1].start and bare[:1] not in _CLOSING:
        indent = len(text[line : len(text) - len(bare)].expandtabs())
        around = [place for place in around if place.indent < indent]
    if not around:
        return carried
    own = {place.name for place in known}
    return (*takewhile(lambda name: name not in own, carried), *(place.name for place in around))


def definitions_in(text: str) -> Iterator[Named]:
    """Yield what a piece of code defines, in order."""
    # Without a brace at the end of a line, no shape fits, and the rest is read in half the time.
    form = _DEFINITION if "{" in text and _OPENING.search(text) else _WITHOUT_SHAPE
    for found in form.finditer(text):
        name = found[found.lastgroup or 0]
        yield Named(found.start(), _width(found), name)


def _defined(code: str) -> Iterator[Named]:
    """Yield definitions, macros, and assignments that are not indented, have a type or are of constants."""
    places = list(definitions_in(code))
    for found in _ASSIGNMENT.finditer(code):
        name, indent = found["macro"] or found["name"], _width(found)
        if not indent or found["type"] or found["macro"] or name.isupper():
            places.append(Named(found.start(), indent, name))
    yield from sorted(places)


def _set(settings: str) -> Iterator[Named]:
    """Yield keys, sections, and the members of objects in one line."""
    keys = [Named(found.start(), _width(found), found["name"]) for found in _KEY.finditer(settings)]
    sections = [Named(found.start(), -1, found["name"]) for found in _SECTION.finditer(settings)]
    members = [Named(found.start(), 0, found["name"]) for found in _MEMBER.finditer(settings)]
    yield from sorted([*keys, *sections, *members])


def _explained(prose: str) -> Iterator[Named]:
    """Yield entries of options, terms and directives."""
    for entry in _ENTRY.finditer(prose) if "-" in prose else ():
        yield from (Named(entry.start(), 0, name) for name in OPTION.findall(entry["name"]))
    for form, sign, before in ((_TERM, "`", ""), (_DIRECTIVE, "::", ""), (_ABOVE_TEXT, "\n", _EMPTY_LINE)):
        for found in form.finditer(before + prose) if sign in prose else ():
            name = _AFTER_NAME.split(found["name"])[0].strip("\"'.:")
            yield Named(found.start("name") - len(before), 0, name)


_READERS: Mapping[str, Callable[[str], Iterator[Named]]] = {"code": _defined, "data": _set}


def _width(found: re.Match[str]) -> int:
    return len(found["indent"].expandtabs())
