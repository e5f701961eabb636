"""Which headings name a release, is one of them a title, and what is the level of each in a changelog?

Many changelogs in Markdown have a release and its sections at one level, or releases at two (`# 1.3.0` above
`## 1.2.6`). By their levels alone a section would stand under no release, and one release below another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from concord.text.tokens import has_digit, pattern

SEVERAL = 2  # a changelog has at least two: a single one may be anything, such as the version of a licence

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
_BEGINS_WITH_ONE = pattern(r"\W*(?:(?:version|release)[ ]+)?v?\d+\.\d", re.IGNORECASE)

Rank = tuple[int, ...]  # of a heading: it stands below earlier headings with lower ranks


def release_at(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return a line that is the name of a release and no more; a number alone, or a list of them, is none."""
    if packaged := _OF_DEBIAN.match(text, start, end):
        return packaged
    found = _RELEASE.match(text, start, end)
    if not found or not (found["named"] or found["called"] or _YEAR.search(found["when"] or "")):
        return None
    return None if _RELEASE.match(text, min(end, found.end() + 1), end) else found


def is_release(words: str) -> bool:
    """Whether a heading of plain text is the name of a release."""
    return release_at(words, 0, len(words)) is not None


def names_release(title: str) -> bool:
    """Whether a heading that is marked as one names a release: its number may stand alone."""
    if not has_digit(title):
        return False
    return is_release(title) or _NUMBER_ALONE.fullmatch(title) is not None


def release_of(heading: Iterable[str]) -> str | None:
    """Return the release that stands in the path of a heading."""
    return next(filter(names_release, heading), None)


def is_title(first: str, headings: Iterable[str]) -> bool:
    """Whether the first heading of a text names all of it, and is not just the first of several releases."""
    if not (_is_of_many(first) or _LIKE_A_RELEASE.match(first)):
        return True
    others = filter(_is_of_many, headings)
    if _CHAPTER.match(first) and not _is_of_many(first):
        others = filter(lambda one: not _NUMBER_ALONE.fullmatch(one), others)  # they are its sections
    return len({first, *others}) < SEVERAL


def _is_of_many(title: str) -> bool:
    return names_release(title) or _NAMED.fullmatch(title) is not None


def heading_ranks(headings: Sequence[tuple[int, str]]) -> list[Rank]:
    """Return the ranks of headings, each given with its level: that, but for those of a changelog.

    In a changelog all releases have the rank of the first. What follows a release stands below it: deeper
    headings, and sections that have the same level as the release.
    """
    sure = {at for at, (_, title) in enumerate(headings) if names_release(title)}
    if len({headings[at][1] for at in sure}) < SEVERAL:
        return [(level,) for level, _ in headings]
    levels = {headings[at][0] for at in sure}
    is_named = [level in levels and bool(_BEGINS_WITH_ONE.match(title)) for level, title in headings]
    is_named = [named or at in sure for at, named in enumerate(is_named)]
    outermost = headings[is_named.index(True)][0]
    has_sections_beside = _has_sections_beside(headings, is_named)
    ranks: list[Rank] = []
    current: int | None = None  # the level of the release that headings stand under
    for (level, _), named in zip(headings, is_named, strict=True):
        if named:
            current = level
            ranks.append((outermost,))
        elif current is not None and level >= current + (not has_sections_beside):
            ranks.append((outermost, level))
        else:
            ranks.append((level if current is None else min(level, outermost),))
            current = None
    return ranks


def _has_sections_beside(headings: Sequence[tuple[int, str]], is_named: Sequence[bool]) -> bool:
    """Whether headings of a release's level are its sections: the same ones, such as Fixed, follow several.

    What follows only one may be another release (20160726), or no part of any (License).
    """
    found: dict[str, set[int]] = {}
    release = -1
    for at, (level, title) in enumerate(headings):
        if is_named[at]:
            release = at
        elif release >= 0 and level == headings[release][0]:
            found.setdefault(title, set()).add(release)
    return any(len(releases) >= SEVERAL for releases in found.values())
