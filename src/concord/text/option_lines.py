"""Which line of a text describes an option of a command, and is that its entry, which tells most?

A manual in plain text names an option in three places: as the term of its entry, with indented text below; in
a summary, with a few words after it; and in a sentence, of which a line may happen to begin with the option.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from concord.text.tokens import pattern

ENTRY, LISTED, BEGUN = 1.0, 0.3, 0.0  # how surely a line is what describes an option

_BEGINS = r"^(?:[ \t]*\.\.[ \t]+(?:\w+:)?option::)?[^\w\n]{0,60}(?:-[^,\n]{1,40},[ \t]*){0,8}"
_INDENT = pattern(r"[ \t]*")
# What else a term has: its value and its other names, as in --count=NUM, -c NUM, --count <n>.
_TERM = pattern(
    r"(?:[ \t]?[=\[<{(|][^\s,]*+|,[ \t]*-[^\s,]+|[ \t][A-Z][A-Z0-9_-]+|[ \t][a-z]+(?=[ \t]*$))*"
    r"[`*]*:{0,2}[ \t]*$"
)
# Words that are set to both margins stand two spaces apart, too.
_LISTED = pattern(r"[^\s,]*(?:,[ \t]*-[^\s,]+)*[`*]*(?:[ \t]*[|:–—]|[ \t]+-[ \t]|[ \t]{3,}\S|\t)")


class Description(Struct, frozen=True):
    """Where the line begins, and how surely it is what describes the option."""

    start: int
    sureness: float


def description(option: str, text: str) -> Description | None:
    """Return the line that most surely describes an option, of those that begin with it; None without any.

    Others and a comma may stand before it: -c, --count.
    """
    if option not in text:
        return None
    found = [Description(one.start(), _sureness(text, one)) for one in _begun(option).finditer(text)]
    return max(found, key=lambda one: one.sureness, default=None)


@lru_cache(maxsize=16)
def _begun(option: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEGINS}(?<![\w-]){re.escape(option)}(?![\w-])", re.MULTILINE)


def _sureness(text: str, found: re.Match[str]) -> float:
    line, begun = text[found.start() :].partition("\n")[0], found[0].lstrip()
    rest = text[found.end() : found.start() + len(line)]
    if begun.startswith((".. ", "#")) or _TERM.match(rest) and _is_explained(text, found.start(), line):
        return ENTRY
    return LISTED if begun[:1] in "*|+" or _LISTED.match(rest) else BEGUN


def _is_explained(text: str, start: int, line: str) -> bool:
    """Whether a line has what is said of it below: further in, or as a paragraph where it is one itself."""
    below = text[start + len(line) + 1 :]
    further_in = _width(below.lstrip("\n")) - _width(line)
    is_paragraph = text[:start].endswith("\n\n") or not text[:start].strip()
    is_alone = is_paragraph and below.startswith(("\n", ":")) and bool(below.strip())
    return further_in > 0 or is_alone and further_in == 0


def _width(text: str) -> int:
    found = _INDENT.match(text)
    return len(found[0].expandtabs()) if found else 0
