"""The lines of a roff file as a formatter for terminals takes them: requests with their arguments, and text.

Comments, definitions of macros and what is only for other devices are gone; lines that a backslash divided
are whole. Macros that a page defines are not run: where one shows its arguments, they are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concord.extractors.roff_escapes import Escapes
from concord.text.word_lists import listed

_REQUEST = re.compile(r"[.'][ \t]*([^\s\\\x00-\x20]*)[ \t]*")
_COMMENT = re.compile(r"[.'][ \t]*\\[\"#]|'''|\\[\"#]")
_ARGUMENT = re.compile(r'[ \t]*+(?:"((?:[^"]|"")*+)"?|((?:\\.|[^ \t\\])++\\?|\\))', re.DOTALL)
_CONDITION = re.compile(
    r"[ \t]*+(?P<not>!?)[ \t]*+(?:(?P<mode>[ntoev])(?=[ \t.'\\]|$)|(?P<kind>[dcrmFS])[ \t]*(?P<name>[^\s\\]+)"
    r"|(?P<mark>['\"])(?P<one>.*?)(?P=mark)(?P<other>.*?)(?P=mark)|(?P<number>(?:\\[^{\s]|[^\s\\])+))[ \t]*"
)
_REGISTER = re.compile(r"!?\\n(?:\((..)|\[([^\]]*)\]|(.))$")
_MAX_REGISTERS = 1_000
_MAY_BE_MORE = frozenset(".'\\")  # a line that begins with anything else is text
_MAX_CONDITIONS = 10  # on one line
_MAX_ARGUMENTS = 100_000
_MAX_OPEN = 100  # .ie that wait for their .el
_USES_ARGUMENTS = re.compile(r"(?:\.[ \t]*[A-Z]{1,2}[ \t]|\.[ \t]*nop\b|[^.']).*\\\$")


class RoffLine(NamedTuple):
    """A request, or a line of text."""

    number: int  # the line of the file
    name: str  # of the request; empty for text
    rest: str  # arguments or text, with escapes


class RoffLines:
    """Reads a file; what it defines is known to `escapes`."""

    def __init__(self, source: str, escapes: Escapes) -> None:
        self._lines = _whole_lines(source)
        self._escapes = escapes
        self._defined: dict[str, bool] = {}  # macro → whether it shows its arguments
        self._registers = {".g": True}  # whether each is above 0; pages ask by .g whether this is groff
        self._else: list[bool] = []  # for each .ie that waits for its .el, whether that will hold
        self._skipping = 0  # how many levels deep in a block that is skipped

    def __iter__(self) -> Iterator[RoffLine]:
        """Yield the lines that are for us."""
        for number, line in self._lines:
            if self._skipping:
                self._skipping = max(0, self._skipping + _depth(line))
            elif line[:1] not in _MAY_BE_MORE:
                yield RoffLine(number, "", line)
            elif not _COMMENT.match(line) and (read := self._read(number, line)):
                yield read

    def _read(self, number: int, line: str) -> RoffLine | None:
        for _ in range(_MAX_CONDITIONS):
            request = _REQUEST.match(line)
            if not request:
                return RoffLine(number, "", _without_braces(line))
            name, rest = request[1], line[request.end() :]
            if name not in ("if", "ie", "el"):
                return self._request(number, name, rest)
            holds, body = self._condition(name, rest)
            if not holds:
                self._skipping = max(0, _depth(body))
                return None
            line = body.lstrip(" \t").removeprefix("\\{").lstrip(" \t")
            if not line:
                return None
        return None

    def _request(self, number: int, name: str, rest: str) -> RoffLine | None:
        if name not in _OURS and name not in self._defined:
            return RoffLine(number, name, _without_braces(rest)) if name else None
        if name in ("de", "de1", "dei", "am", "ig"):
            self._define(name, split_arguments(rest))
        elif name in ("ds", "ds1", "as", "as1"):
            key, _, value = rest.partition(" ")
            self._escapes.define(key.strip(), value.lstrip(" ").removeprefix('"'), adds=name[0] == "a")
        elif name == "nr":
            key, value, *_ = [*split_arguments(rest), "", ""]
            if len(self._registers) < _MAX_REGISTERS:
                self._registers[key] = value.lstrip("+")[:1] in tuple("123456789")
        elif name == "tr":
            self._escapes.translate(rest)
        elif name == "nop":
            return RoffLine(number, "", rest)
        elif self._defined.get(name):
            return RoffLine(number, "", " ".join(split_arguments(rest)))
        elif name:
            return RoffLine(number, name, _without_braces(rest))
        return None

    def _define(self, request: str, arguments: Sequence[str]) -> None:
        """Pass over the lines of a macro, or of what is to be ignored."""
        named = request != "ig"
        ends = "." + (arguments[named] if len(arguments) > named else ".")
        body: list[str] = []
        for _, line in self._lines:
            if line.startswith(ends) or (ends == ".." and line.startswith(". .")):
                break
            body.append(line)
        if named and arguments and arguments[0] not in _KNOWN_AS_DEFINED:
            self._defined[arguments[0]] = any(map(_USES_ARGUMENTS.match, body))

    def _condition(self, name: str, rest: str) -> tuple[bool, str]:
        """Return whether a condition holds, and what depends on it."""
        if name == "el":
            return (self._else.pop() if self._else else False), rest
        found = _CONDITION.match(rest)
        holds = found is not None and (self._holds(found) != bool(found["not"]))
        if name == "ie" and len(self._else) < _MAX_OPEN:
            self._else.append(not holds)
        return holds, rest[found.end() :] if found else rest

    def _holds(self, condition: re.Match[str]) -> bool:
        if condition["mode"]:
            return condition["mode"] in "no"  # for terminals, on an odd page: the first
        if condition["kind"]:
            name = condition["name"]
            return condition["kind"] == "d" and (name in self._defined or self._escapes.is_defined(name))
        if condition["mark"]:
            return self._escapes.shown(condition["one"]) == self._escapes.shown(condition["other"])
        register = _REGISTER.match(condition["number"])
        if register is None:
            return condition["number"] in tuple("123456789")
        return self._registers.get(register[1] or register[2] or register[3] or "", False)


_OURS = listed("de de1 dei am ig ds ds1 as as1 nr tr nop")
# Macros that tools define in each page they write, and that are understood without their definitions.
_KNOWN_AS_DEFINED = listed(
    "Sp Vb Ve IX INDENT UNINDENT EX EE UR UE MT ME SY YS OP TQ MR URL MTO SH SS PP TP IP B I"
)


def split_arguments(rest: str) -> list[str]:
    """Return the arguments of a request: words, or what stands between quotes."""
    if not rest:
        return []
    if '"' not in rest and "\\" not in rest:
        return rest.split(None, _MAX_ARGUMENTS)
    found = _ARGUMENT.finditer(_uncommented(rest))
    pairs = zip(found, range(_MAX_ARGUMENTS), strict=False)
    return [one[1].replace('""', '"') if one[1] is not None else one[2] for one, _ in pairs]


def _uncommented(rest: str) -> str:
    at = rest.find('\\"')
    while at > 0 and rest[at - 1] == "\\":  # a backslash itself, then a quote
        at = rest.find('\\"', at + 1)
    return rest if at < 0 else rest[:at]


def _without_braces(text: str) -> str:
    return text.replace("\\{", "").replace("\\}", "") if "\\" in text else text


def _depth(line: str) -> int:
    return line.count("\\{") - line.count("\\}")


def _whole_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with the next where a backslash ends it."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(source.split("\n"), 1):
        if not parts:
            if line[-1:] != "\\":  # nearly all
                yield number, line
                continue
            first = number
        goes_on = line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2 == 1
        parts.append(line[:-1] if goes_on else line)
        if not goes_on or _COMMENT.match(line):
            yield first, "".join(parts)
            parts = []
    if parts:
        yield first, "".join(parts)
