"""Headings: their words without marks, which of them name releases, and which one a place stands under.

A chunk of several sections carries what their headings share. What a place in it stands under is read from
its lines, by a reader that knows less of Markdown than `text.markdown`: where it cannot be sure, the heading
that the chunk carries stays.

Many changelogs in Markdown have a release and its sections at one level, or releases at two (`# 1.3.0` above
`## 1.2.6`). By their levels alone a section would stand under no release, and one release below another.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import takewhile
from operator import eq

from concord.text.tokens import has_digit, pattern
from concord.types import Heading

MARKDOWN_TYPES = ("markdown", "html", "note", "office")  # documents whose text is Markdown
SEVERAL = 2  # a changelog has at least two: a single one may be anything, such as the version of a licence

_FENCES = ("```", "~~~")
_FRONT_MATTER = ("---", "+++")  # as the first line: a # below it begins a comment
_DEEPEST_LEVEL = 6

_LONGEST = 200  # characters; what is longer is a paragraph
_LONGEST_READ = 1_000  # characters: addresses of badges are long, and are read to be left out
_DEEPEST_MARK = 3  # how far marks may stand within marks: a badge is an image within a link
_MARKS = frozenset("`*_[]<>\\{}")
# Marks that stand for themselves, in code or after a backslash, are characters that no text has meanwhile.
_HIDDEN = {ord(mark): 0xFDD0 + n for n, mark in enumerate(sorted(_MARKS))}
_SHOWN = {hidden: mark for mark, hidden in _HIDDEN.items()}
_VERBATIM = pattern(r"(?<!`)(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)|\\(?P<escaped>[!-/:-@\[-`{-~])")
_LINK = pattern(r"!?\[([^\]\[]*)\](?:\((?:[^()]|\([^()]*\))*+\)|\[[^\]\[]*\])")
_TAG = pattern(r"</?[A-Za-z][^<>]*>|<!--.*?-->")
_ATTRIBUTES = pattern(r"\{\s?[:#.][^{}]*\}$")
_STARRED = pattern(r"(?<!\*)(?P<mark>\*{1,3})(?![\s*])([^*]+)(?<!\s)(?P=mark)(?!\*)")
_UNDERSCORED = pattern(r"(?<!\w)(?P<mark>_|__(?=[^_]*\s))(?![\s_])([^_]+)(?<!\s)(?P=mark)(?!\w)")

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
# bash (5.2.15-2) unstable; urgency=medium
_OF_DEBIAN = pattern(
    r"[a-z0-9][a-z0-9+.-]++[ ]\(\d[^()\s]{0,80}\)[ ][\w~. -]{1,80};[ ]urgency=[^\n]{1,80}$", re.MULTILINE
)
_YEAR = pattern(r"\b(?:19|20)\d\d\b")
_NUMBER_ALONE = pattern(r"\[?\d+\.\d+\.\d+(?:-[\w.]+)?\]?")  # of two parts it would be a chapter's
# twisted 26.4.0 (2026-04-13)
_NAMED = pattern(r"[\w-]+[ ]v?\d+(?:\.\w+)+[ ]\([^()]*\b(?:19|20)\d\d\b[^()]*\)")
# What may stand above the first: a release with its motto, or what is yet to be one.
_LIKE_A_RELEASE = pattern(
    r"\W*(?:(?:version|release)[ ]+)?v?\d+(?:\.\w+)+\]?(?:$|[ ]?[(\[/–—,:-])"
    r"|\W*(?:unreleased|upcoming|next(?:[ ](?:release|version))?|in[ ]development)\W*$",
    re.IGNORECASE,
)
# 3.12 - Networking, above 3.12.1: as much may be a release with its motto, above some that have dates.
_CHAPTER = pattern(r"\d+\.\d+[ ]?[:–—-][ ](?!unreleased|upcoming|in[ ]dev)[^\W\d]", re.IGNORECASE)
_BEGINS_WITH_NUMBER = pattern(r"\W*(?:(?:version|release)[ ]+)?v?\d+\.\d", re.IGNORECASE)

Rank = tuple[int, ...]  # of a heading: it stands below earlier headings with lower ranks


def shared(paths: Sequence[Heading]) -> Heading:
    """Return what paths have in common, from the outermost heading on."""
    return reduce(lambda a, b: a[: len(list(takewhile(bool, map(eq, a, b))))], paths) if paths else ()


def heading_at(text: str, at: int, carried: Heading, *, begins_document: bool) -> Heading:
    """Return the path of the heading that a place in a chunk stands under, or that of the chunk itself.

    A chunk begins with a heading or is part of one section. Only the first chunk of a document may have text
    before its first heading; in any other, such lines with a # are comments of a listing that began earlier.
    """
    may_have = "\n#" in text and "<!--" not in text and (begins_document or _level(text))
    headings = _paths(text) if may_have else []
    here = [path for start, path in headings if start <= at]
    above = _above(carried, [path for _, path in headings]) if here else None
    if above is None:
        return carried
    outer = len(above) - (release_of(above) is not None)  # whose sections may have its level
    if outer >= _level(text[headings[0][0] :]):
        return carried
    return (*above, *_below_release(here, carried))


def heading_lines(text: str) -> list[tuple[int, int]]:
    """Return where the lines of a chunk's headings begin and end."""
    starts = [start for start, _ in _paths(text)] if "\n#" in text else []
    return [(start, start + len(text[start:].partition("\n")[0])) for start in starts]


def _below_release(paths: Sequence[Heading], carried: Heading) -> Heading:
    """Return the last of some paths; a section at the level of the chunk's release goes below that."""
    last = paths[-1]
    release = next((path for path in paths if path[-1:] == carried[-1:]), last)
    outer = len(release) - 1
    is_beside = last[:outer] == release[:-1] and last[outer : outer + 1] not in ((), release[-1:])
    if is_beside and names_release(release[-1]) and not names_release(last[outer]):
        return (*release, *last[outer:])
    return last


def _paths(text: str) -> list[tuple[int, Heading]]:
    """Return where the headings of a chunk stand, with their paths.

    Empty if a heading has no words, or a higher level than the first: then what is above it is unknown.
    """
    paths: list[tuple[int, Heading]] = []
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
            outer = [*(above for above in outer if above[0] < level), (level, title)]
            paths.append((start, tuple(words for _, words in outer)))
        start += len(line) + 1
    return paths


def _level(line: str) -> int:
    hashes = len(line) - len(line.lstrip("#"))
    return hashes if hashes <= _DEEPEST_LEVEL and line[hashes : hashes + 1] == " " else 0


def _above(carried: Heading, paths: Sequence[Heading]) -> Heading | None:
    """Return the path above a chunk's own headings; None if its path does not fit them.

    Its path ends with what its headings share, or with the first below that: of a heading above nothing but a
    deeper one, no section is made.
    """
    common = shared(paths)
    below = next((path[: len(common) + 1] for path in paths if len(path) > len(common)), common)
    for known in (below, common):
        if carried[len(carried) - len(known) :] == known:
            return carried[: len(carried) - len(known)]
    return None


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
        words = _VERBATIM.sub(lambda mark: (mark["code"] or mark["escaped"]).translate(_HIDDEN), words)
        words = _TAG.sub("", _unwrapped(_LINK, r"\1", words))
        words = _ATTRIBUTES.sub("", words.rstrip())
        words = _unwrapped(_UNDERSCORED, r"\2", _unwrapped(_STARRED, r"\2", words))
        words = " ".join(words.translate(_SHOWN).split())
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
    if packaged := _OF_DEBIAN.match(text, start, end):
        return packaged
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
    if not (_is_of_many(first) or _LIKE_A_RELEASE.match(first)):
        return True
    others = filter(_is_of_many, headings)
    if _CHAPTER.match(first) and not _is_of_many(first):
        others = filter(lambda title: not _NUMBER_ALONE.fullmatch(title), others)  # they are its sections
    return len({first, *others}) < SEVERAL


def _is_of_many(title: str) -> bool:
    return names_release(title) or _NAMED.fullmatch(title) is not None


def heading_ranks(headings: Sequence[tuple[int, str]]) -> list[Rank]:
    """Return the ranks of headings, each given with its level: that, but for those of a changelog.

    In a changelog all releases have the rank of the first. What follows a release stands below it: deeper
    headings, and sections that have the same level as the release.
    """
    sure = [names_release(title) for _, title in headings]
    releases = [heading for heading, is_sure in zip(headings, sure, strict=True) if is_sure]
    if len({title for _, title in releases}) < SEVERAL:
        return [(level,) for level, _ in headings]
    levels = {level for level, _ in releases}
    is_named = [
        is_sure or level in levels and bool(_BEGINS_WITH_NUMBER.match(title))
        for is_sure, (level, title) in zip(sure, headings, strict=True)
    ]
    return list(_changelog_ranks(headings, is_named))


def _changelog_ranks(headings: Sequence[tuple[int, str]], is_named: Sequence[bool]) -> Iterator[Rank]:
    outermost = headings[is_named.index(True)][0]
    least_below = 0 if _has_sections_beside(headings, is_named) else 1  # how much deeper a section stands
    current: int | None = None  # the level of the release that headings stand under
    for (level, _), named in zip(headings, is_named, strict=True):
        if named:
            current = level
            yield (outermost,)
        elif current is not None and level >= current + least_below:
            yield (outermost, level)
        else:
            yield (level if current is None else min(level, outermost),)
            current = None


def _has_sections_beside(headings: Sequence[tuple[int, str]], is_named: Sequence[bool]) -> bool:
    """Whether headings of a release's level are its sections: the same ones, such as Fixed, follow several.

    What follows only one may be another release (20160726), or no part of any (License).
    """
    releases_above: dict[str, set[int]] = {}
    release = -1
    for at, (level, title) in enumerate(headings):
        if is_named[at]:
            release = at
        elif release >= 0 and level == headings[release][0]:
            releases_above.setdefault(title, set()).add(release)
    return any(len(releases) >= SEVERAL for releases in releases_above.values())
