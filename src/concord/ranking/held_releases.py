"""Does a text hold the release that a query asks for, or only others of the same name?"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from concord.ranking.words import AROUND, bare_words
from concord.text.contains import contains
from concord.text.dates import month_number
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word
from concord.text.terms import all_of, any_of, word_match
from concord.types import Match

# Who asks about releases has a word such as these; another release stands at such a place, as in a heading.
_ABOUT_RELEASES = pattern(
    r"\b(?:added|breaking|(?:bug)?fix(?:ed|es)?|change[ds]?|changelog|deprecated|features?|improvements?|migrat\w+"
    r"|new|news|notes|releases?d?|removed|security|since|upgrad\w+|versions?)\b",
    re.IGNORECASE,
)
_PLACE = r"\b(?:release|version)|^[#*=\[ ]{1,6}"
# What the number of a part comes after: its heading may have the number alone.
_PART = pattern(
    r"appendix|article|chapter|clause|figure|page|paragraph|part|rule|section|step|table|kapitel|abschnitt",
    re.IGNORECASE,
)
# A release that is one number: of a name, and with nothing after it that would be counted (Node 3 replicas).
# Of 9,904 judged queries 507 have a number after a word; it takes three for releases, all of which are held.
_WHOLE = pattern(
    r"(?<!\w)(?P<name>[^\W\d_]{2,}) (?:(?:release|version) )?v?(?P<n>[1-9][0-9]{0,2})"
    r"(?=[.,;:!?)]*(?: (?P<after>[^\W\d_]+)|$))"
)
# What is numbered and has no releases; what is asked for by its number may stand in a text as another (port).
_COUNTED = pattern(
    r"bugs?|case|class|code|day|error|exit|exercise|group|homework|http|issue|item|layer|lesson|level|line|module"
    r"|option|phase|point|port|problem|question|room|round|row|signal|stage|status|task|team|tier|top|type|unit"
    r"|week|woche|tag|zeile|fehler|stufe|seite",
    re.IGNORECASE,
)
_DIGITS = pattern("[0-9]+")
_BEGINNING = 5  # letters that names of one thing share: PostgreSQL, Postgres

Holders = Callable[[Match | None], Sequence[str]]  # some texts of the store that match


def holds_version(version: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether a text has a version, whosever it is; of it the index has only the numbers, in a row."""
    written = _as_written(version)
    return any(map(written.search, texts)) or any(map(written.search, holders(word_match(version))))


def is_of_another(version: str, asked: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether only other products have a version that is asked for of one with other releases."""
    name = _name(version, asked, texts)
    return name is not None and not _is_released(version, name, texts, holders)


def unheld_whole(asked: str, texts: Sequence[str], holders: Holders) -> Iterator[str]:
    """Yield the releases of one number, such as PostgreSQL 17, that nothing has, if a text has others."""
    yield from (one[0] for one in _whole_releases(asked, texts) if not _has_whole(one, texts, holders))


def other_versions(version: str, before: str, asked: str) -> str:
    """Return a pattern of versions after the same word; where releases are asked about, also in headings."""
    place = f"|{_PLACE}" if _ABOUT_RELEASES.search(asked) else ""
    return rf"(?:\b{re.escape(before)}{place})\W{{0,3}}v?{with_any_number(version.lstrip('vV'))}"


def with_any_number(word: str) -> str:
    """Return a pattern of a word with other numbers in it."""
    return _DIGITS.sub("[0-9]+", re.escape(word))


def _name(version: str, asked: str, texts: Sequence[str]) -> str | None:
    """Return what a release was asked for of, if a text has another release of it, named as such.

    Where none has, its changelog may not say whose it is.
    """
    words = bare_words(asked)
    before = words[: words.index(version)] if version in words else []
    while before and _ABOUT_RELEASES.fullmatch(before[-1]):
        before.pop()
    name = before[-1] if before else ""
    if not _ABOUT_RELEASES.search(asked) or not name.isalpha() or is_stop_word(name) or _PART.fullmatch(name):
        return None
    other = with_any_number(version.lstrip("vV"))
    beside = re.compile(rf"\b{re.escape(name)}\W{{0,3}}(?:(?:release|version)\W)?v?{other}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{_PLACE})\W{{0,3}}v?{other}", re.IGNORECASE | re.MULTILINE)
    is_known = any(beside.search(one) or at_place.search(one) and contains(one, name) for one in texts)
    return name if is_known else None


def _is_released(version: str, name: str, texts: Sequence[str], holders: Holders) -> bool:
    """Whether a text has a version and, or where it stands, the name: another product may have the number."""
    number, named = word_match(version), word_match(name)
    written = _as_written(version, name)

    def has_both(texts: Iterable[str]) -> bool:
        return any(written.search(text) and contains(text, name) for text in texts)

    both = all_of([one for one in (number, named) if one])
    return has_both(texts) or has_both(holders(both)) or has_both(holders(number))


def _as_written(version: str, name: str = "") -> re.Pattern[str]:
    """Return a pattern of a version; not of an address (10.1.1.1), nor of what another name is joined to."""
    joined = rf"(?:(?<![A-Za-z][-_])|(?<={re.escape(name)}[-_]))" if name else ""
    number = re.escape(version.lstrip("vV"))
    return re.compile(rf"(?<![0-9.]){joined}v?{number}(?![0-9]|\.[0-9]+\.[0-9])", re.IGNORECASE)


def _whole_releases(asked: str, texts: Sequence[str]) -> Iterator[re.Match[str]]:
    """Yield releases of one number, such as PostgreSQL 17, if a text has another of the same name.

    They are asked for by a word such as notes or upgrade, or alone, with a name that is written as one.
    """
    about = _ABOUT_RELEASES.search(asked)
    for found in _WHOLE.finditer(asked):
        name, after = found["name"], found["after"] or ""
        is_alone = asked.strip(f" {AROUND}") == found[0] and not name.isupper()
        is_counted = after and not is_stop_word(after) and not _ABOUT_RELEASES.fullmatch(after)
        is_name = not name.islower() and not is_stop_word(name) and not month_number(name)
        is_other = any(one.fullmatch(name) for one in (_ABOUT_RELEASES, _PART, _COUNTED))
        if not (about or is_alone) or is_counted or not is_name or is_other:
            continue
        other = rf"\b{re.escape(name)}\W{{0,3}}(?:(?:release|version)\W)?v?(?!{found['n']}\b)[0-9]+"
        if any(re.search(other, text, re.IGNORECASE) for text in texts):
            yield found


def _has_whole(release: re.Match[str], texts: Sequence[str], holders: Holders) -> bool:
    """Whether a text has a release of one number, or may have it: the number, and its name anywhere.

    Between them there may be more than can be told (15, 16 and 17; Vue.js 3; a table), and to say that
    nothing holds what is there is worse than to answer about another.
    """
    name, number = release["name"], release["n"]
    begun = name[:_BEGINNING].casefold()
    ended = rf"{number}(?!(?!(?:alpha|beta|rc)[0-9])\w)"  # 17beta1 is one of 17, and 17f0 begins an id
    written = re.compile(rf"(?:(?<![\w.])v?|{re.escape(name)}){ended}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{_PLACE}|\bv|/)\W{{0,3}}v?{ended}", re.IGNORECASE | re.MULTILINE)
    if any(written.search(one) and (begun in one.casefold() or at_place.search(one)) for one in texts):
        return True
    numbers = any_of([match for one in (number, f"v{number}") if (match := word_match(one))])
    apart = all_of([one for one in (word_match(name), numbers) if one])
    return bool(holders(any_of([one for one in (apart, word_match(f"{name}{number}")) if one])))
