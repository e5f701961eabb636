"""Under which heading does a place in a chunk stand? A chunk of several sections carries what they share.

Read from the lines of the chunk, by a reader that knows less of Markdown than `text.markdown` and is loaded
in a fraction of the time: where it cannot be sure, the heading that the chunk carries stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concord.text.outline import Heading

MARKDOWN_TYPES = ("markdown", "html", "note", "office")  # documents whose text is Markdown

_FENCES = ("```", "~~~")
_FRONT_MATTER = ("---", "+++")  # as the first line: a # below it begins a comment
_DEEPEST = 6


def shared(paths: Sequence[Heading]) -> Heading:
    """Return what paths have in common, from the outermost heading on."""
    return reduce(_common, paths) if paths else ()


def heading_at(text: str, at: int, carried: Heading, *, begins_document: bool) -> Heading:
    """Return the path of the heading that a place in a chunk stands under, or that of the chunk itself.

    A chunk begins with a heading or is part of one section. Only the first chunk of a document may have text
    before its first heading; in any other, such lines with a # are comments of a listing that began earlier.
    """
    may_have = "\n#" in text and "<!--" not in text and (begins_document or _level(text))
    found = _paths(text) if may_have else []
    here = [path for start, path in found if start <= at]
    above = _above(carried, [path for _, path in found]) if here else None
    if above is None:
        return carried
    from concord.text.releases import release_of

    outer = len(above) - (release_of(above) is not None)  # whose sections may have its level
    if outer >= _level(text[found[0][0] :]):
        return carried
    return (*above, *_below_release(here, carried))


def heading_lines(text: str) -> list[tuple[int, int]]:
    """Return where the lines of a chunk's headings begin and end."""
    found = [start for start, _ in _paths(text)] if "\n#" in text else []
    return [(start, start + len(text[start:].partition("\n")[0])) for start in found]


def _below_release(paths: Sequence[Heading], carried: Heading) -> Heading:
    """Return the last of some paths; a section at the level of the chunk's release goes below that."""
    from concord.text.releases import names_release

    last = paths[-1]
    release = next((path for path in paths if path[-1:] == carried[-1:]), last)
    outer = len(release) - 1
    is_beside = last[:outer] == release[:-1] and last[outer : outer + 1] not in ((), release[-1:])
    if is_beside and names_release(release[-1]) and not names_release(last[outer]):
        return (*release, *last[outer:])
    return last


def _common(one: Heading, other: Heading) -> Heading:
    return one[: len(list(takewhile(bool, map(eq, one, other))))]


def _paths(text: str) -> list[tuple[int, Heading]]:
    """Return where the headings of a chunk stand, with their paths.

    Empty if a heading has no words, or a higher level than the first: then what is above it is unknown.
    """
    from concord.text.heading_words import line_words  # late: few passages have headings inside

    found: list[tuple[int, Heading]] = []
    outer: list[tuple[int, str]] = []
    fence, start, first = "", 0, 0
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if mark in _FENCES or mark == fence or (not start and line.rstrip() in _FRONT_MATTER):
            fence = "" if mark == fence else fence or mark
        elif not fence and (level := _level(line)):
            title, first = line_words(line), first or level
            if level < first or not title:
                return []
            outer = [*(one for one in outer if one[0] < level), (level, title)]
            found.append((start, tuple(one for _, one in outer)))
        start += len(line) + 1
    return found


def _level(line: str) -> int:
    hashes = len(line) - len(line.lstrip("#"))
    return hashes if hashes <= _DEEPEST and line[hashes : hashes + 1] == " " else 0


def _above(carried: Heading, paths: Sequence[Heading]) -> Heading | None:
    """Return the path above a chunk's own headings; None if its stored path does not fit them.

    The stored path ends with what its headings share or, from an earlier version, with the first below that.
    """
    common = shared(paths)
    below = next((path[: len(common) + 1] for path in paths if len(path) > len(common)), common)
    for known in (below, common):
        if carried[len(carried) - len(known) :] == known:
            return carried[: len(carried) - len(known)]
    return None
