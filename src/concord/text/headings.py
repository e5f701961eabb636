"""Headings: their words without marks, which of them name releases, and which one a place stands under.

A chunk of several sections carries what their headings share. What a place in it stands under is read from
its lines, by a reader that knows less of Markdown than `text.markdown`: where it cannot be sure, the heading
that the chunk carries stays.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import takewhile
from operator import eq
from typing import NamedTuple

from concord.text.tokens import has_digit, pattern
from concord.types import Heading

# Documents whose text is Markdown.
MARKDOWN_TYPES = ("markdown", "html", "note", "office", "mail", "notebook")
SEVERAL = 2  # a changelog has at least two: a single one may be anything, such as the version of a licence

_FENCES = ("```", "~~~")
_FRONT_MATTER = ("---", "+++")  # as the first line: a # below it begins a comment
_DEEPEST_LEVEL = 6

_LONGEST = 200  # characters; what is longer is a paragraph
_LONGEST_READ = 1_000  # characters: addresses of badges are long, and are read to be left out
_DEEPEST_MARK = 3  # how far marks may stand within marks: a badge is an image within a link
_MARKS = frozenset("`*_[]<>\\{}")
_LINK = pattern(r"!?\[([^\]\[]*)\](?:\((?:[^()]|\([^()]*\))*+\)|\[[^\]\[]*\])")
_CODE = pattern(r"(?<!`)`+(?!`)(.+?)(?<!`)`+(?!`)")
_UNSEEN = pattern(r"</?[A-Za-z][^<>]*>|<!--.*?-->|\{\s?[:#.][^{}]*\}\s*$")  # tags, attributes of a heading
_STARRED = pattern(r"(?<![\\*])(?P<mark>\*{1,3})(?![\s*])([^*]+)(?<!\s)(?P=mark)(?!\*)")
_UNDERSCORED = pattern(r"(?<![\\\w])(?P<mark>_|__(?=[^_]*\s))(?![\s_])([^_]+)(?<!\s)(?P=mark)(?!\w)")
_ESCAPED = pattern(r"\\([!-/:-@\[-`{-~])")

_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DATE = rf"(?:\d{{4}}[-/.]\d\d?(?:[-/.]\d\d?)?|\d\d?\.\d\d?\.\d{{4}}|{_MONTH}[ .,\d]{{0,12}}\d{{4}})"
# Version 3.2.1 (2020-01-01) · version 1.33 - Sergey Poznyakoff, 2021-01-07 · [3.2.1] / 2020-01-01 · v0.8.1
# · Changes with nginx 1.15.5    02 Oct 2018
_RELEASE = pattern(
    rf"""
    (?:\*[ \t]++)?
    (?P<named>(?:[\w-]++[ \t]++){{0,2}}changes[ \t]++(?:in|with(?:[ \t]++[^\W\d][\w-]*+){{1,3}})[ \t]++)?
    \[?
    (?P<called>version[ \t]++v?|release[ \t]++v?|v)?
    \d++(?:\.\w++)++(?:-[\w.]+)?
    \]?
    (?P<when>
        [ \t]*+[(\[][^()\[\]\n]{{1,60}}[)\]]
      | (?:[ \t]*+[-–—/,:])?[ \t]++(?:[^\n]{{1,60}}[ \t,(])?{_DATE}\)?
      | [ \t]++released
    )?
    (?:[ \t]*+\[\w{{1,20}}\])?
    [ \t]*+[:.]?[ \t]*+$
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_YEAR = pattern(r"\b(?:19|20)\d\d\b")
_NUMBER_ALONE = pattern(r"\[?\d+\.\d+\.\d+(?:-[\w.]+)?\]?")  # of two parts it would be a chapter's


def shared(paths: Sequence[Heading]) -> Heading:
    """Return what paths have in common, from the outermost heading on."""
    return reduce(lambda a, b: a[: len(list(takewhile(bool, map(eq, a, b))))], paths) if paths else ()


def heading_at(text: str, at: int, carried: Heading, *, begins_document: bool) -> Heading:
    """Return the path of the heading that a place in a chunk stands under, or that of the chunk itself.

    A chunk begins with a heading or is part of one section. Only the first chunk of a document may have text
    before its first heading; in any other, such lines with a # are comments of a listing that began earlier.
    """
    headings = _headings(text) if begins_document or _level(text) else []
    path: list[_Heading] = []
    for heading in takewhile(lambda heading: heading.start <= at, headings):
        path = [*(outer for outer in path if outer.level < heading.level), heading]
    own = tuple(heading.words for heading in path)
    # The chunk's path may end with what its own headings begin with.
    said = next(n for n in range(len(own), -1, -1) if carried[len(carried) - n :] == own[:n])
    if not own or len(carried) - said >= headings[0].level:
        return carried
    return (*carried, *own[said:])


def heading_lines(text: str) -> list[tuple[int, int]]:
    """Return where the lines of a chunk's headings begin and end."""
    starts = [heading.start for heading in _headings(text)]
    return [(start, start + len(text[start:].partition("\n")[0])) for start in starts]


class _Heading(NamedTuple):
    start: int
    level: int
    words: str


def _headings(text: str) -> list[_Heading]:
    """Return the headings of a chunk that begin with #, outside of listings and front matter.

    Empty if a heading has no words, or a higher level than the first: then what is above it is unknown.
    """
    headings: list[_Heading] = []
    fence, start = "", 0
    for line in text.split("\n") if "\n#" in text else ():
        mark = line.lstrip()[:3]
        if mark in _FENCES or mark == fence or (not start and line.rstrip() in _FRONT_MATTER):
            fence = "" if mark == fence else fence or mark
        elif not fence and (level := _level(line)):
            headings.append(_Heading(start, level, line_words(line)))
            if level < headings[0].level or not headings[-1].words:
                return []
        start += len(line) + 1
    return headings


def _level(line: str) -> int:
    hashes = len(line) - len(line.lstrip("#"))
    return hashes if hashes <= _DEEPEST_LEVEL and line[hashes : hashes + 1] == " " else 0


def line_words(line: str) -> str:
    """Return the words of a heading that begins with #; of the # at its end those of a word (C#) stay."""
    raw = line.strip().lstrip("#")
    bare = raw.rstrip("#")
    return heading_words(raw if bare[-1:].strip() else bare)


def heading_words(raw: str) -> str:
    """Return the words of a heading, without the marks of emphasis, code, links, images and anchors.

    What may be Markdown or code is taken for code: `__init__` and `snake_case_name` keep their underscores.
    """
    words = " ".join(raw[:_LONGEST_READ].split())
    if not _MARKS.isdisjoint(words):
        parts = _CODE.split(_unwrapped(_LINK, r"\1", words))
        for at, part in enumerate(parts[::2]):
            bare = _unwrapped(_STARRED, r"\2", _UNSEEN.sub("", part))
            parts[2 * at] = _ESCAPED.sub(r"\1", _unwrapped(_UNDERSCORED, r"\2", bare))
        words = " ".join("".join(parts).split())
    return words[:_LONGEST].rstrip()


def _unwrapped(marked: re.Pattern[str], kept: str, words: str) -> str:
    """Return words without the marks around some of them, from the innermost on."""
    for _ in range(_DEEPEST_MARK):
        words, changes = marked.subn(kept, words)
        if not changes:
            break
    return words


def release_at(text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
    """Return a line that is the name of a release and no more; a number alone, or a list of them, is none."""
    name = _RELEASE.match(text, start, end)
    if not name or not (name["named"] or name["called"] or _YEAR.search(name["when"] or "")):
        return None
    return None if _RELEASE.match(text, min(end, name.end() + 1), end) else name


def names_release(title: str) -> bool:
    """Whether a heading that is marked as one names a release: its number may stand alone."""
    return has_digit(title) and bool(release_at(title) or _NUMBER_ALONE.fullmatch(title))


def release_of(heading: Iterable[str]) -> str | None:
    """Return the release that stands in the path of a heading."""
    return next(filter(names_release, heading), None)


def is_title(first: str, headings: Iterable[str]) -> bool:
    """Whether the first heading of a text names all of it, and is not just the first of several releases."""
    is_release = names_release(first) or "unreleased" in first.casefold()
    return not is_release or len({first, *filter(names_release, headings)}) < SEVERAL
