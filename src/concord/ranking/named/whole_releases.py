"""A release that a query names by one number: PostgreSQL 17."""

from __future__ import annotations

import re
from collections.abc import Iterator

from concord.ranking.named.kinds import FoundTexts, Kind
from concord.ranking.named.versions import ABOUT_RELEASES, AT_RELEASE, PART
from concord.ranking.words import AROUND
from concord.text.dates import month_number
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word
from concord.text.terms import all_of, any_of, word_match

# A release that is one number: after a name, and without a noun behind it that is counted (Node 3 replicas).
# Of 9,904 judged queries 507 have a number after a word. Three are taken for releases, and texts hold these.
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
_BEGINNING = 5  # letters that names of one thing share: PostgreSQL, Postgres


def _named(found: FoundTexts) -> Iterator[str]:
    """Yield the releases of a query if a text has another release of the same name.

    The query must have a word such as notes or upgrade, or be the release alone, its name with a capital.
    """
    asked = found.query.meaning
    bare, is_about = asked.strip(f" {AROUND}"), ABOUT_RELEASES.search(asked) is not None
    for release in _WHOLE.finditer(asked):
        is_alone = bare == release[0] and not release["name"].isupper()
        if (is_about or is_alone) and _is_release(release) and _has_others(release, found):
            yield release[0]


def _is_release(release: re.Match[str]) -> bool:
    name, after = release["name"], release["after"] or ""
    is_counted = after and not is_stop_word(after) and not ABOUT_RELEASES.fullmatch(after)
    is_name = not name.islower() and not is_stop_word(name) and not month_number(name)
    is_other = any(one.fullmatch(name) for one in (ABOUT_RELEASES, PART, _COUNTED))
    return is_name and not is_counted and not is_other


def _has_others(release: re.Match[str], found: FoundTexts) -> bool:
    name, number = re.escape(release["name"]), release["n"]
    other = rf"\b{name}\W{{0,3}}(?:(?:release|version)\W)?v?(?!{number}\b)[0-9]+"
    return any(re.search(other, text, re.IGNORECASE) for text in found.texts)


def _is_held(named: str, found: FoundTexts) -> bool | None:
    """Whether a text has the number of a release, and its name anywhere: then it may have the release.

    Many things may stand between them (15, 16 and 17; Vue.js 3; a table), and to miss a release that is there
    is worse than to answer about another. A quoted release is looked for as a quotation.
    """
    release = None if named in found.query.phrases else _WHOLE.fullmatch(named)
    if not release:
        return None
    name, number = release["name"], release["n"]
    begun = name[:_BEGINNING].casefold()
    ended = rf"{number}(?!(?!(?:alpha|beta|rc)[0-9])\w)"  # 17beta1 is one of 17, and 17f0 begins an id
    written = re.compile(rf"(?:(?<![\w.])v?|{re.escape(name)}){ended}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{AT_RELEASE}|\bv|/)\W{{0,3}}v?{ended}", re.IGNORECASE | re.MULTILINE)
    if any(written.search(one) and (begun in one.casefold() or at_place.search(one)) for one in found.texts):
        return True
    numbers = any_of([match for one in (number, f"v{number}") if (match := word_match(one))])
    apart = all_of([one for one in (word_match(name), numbers) if one])
    return bool(found.holders(any_of([one for one in (apart, word_match(f"{name}{number}")) if one])))


KIND = Kind(_named, _is_held)
