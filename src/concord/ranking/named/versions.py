"""A version that a query names: has the product it names such a release, and which passages stand under it?

To the index 8.0.0 is an 8 and two noughts, of which every changelog is full, and by meaning all releases are
alike. So passages under the release that was asked for come before those under others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from concord.ranking.named.codes import with_any_number
from concord.ranking.named.kinds import FoundTexts, Kind, Lifted, ReadPassages
from concord.ranking.words import bare_words
from concord.text.contains import contains
from concord.text.dates import days_of
from concord.text.identifiers import is_version
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word
from concord.text.terms import all_of, tokenize, word_match
from concord.types import ChunkId, Ranked, Survivor

# A query about releases has one of these words. A release is named after one of the words below, or as a
# heading.
ABOUT_RELEASES = pattern(
    r"\b(?:added|breaking|(?:bug)?fix(?:ed|es)?|change[ds]?|changelog|deprecated|features?|improvements?|migrat\w+"
    r"|new|news|notes|releases?d?|removed|security|since|upgrad\w+|versions?)\b",
    re.IGNORECASE,
)
AT_RELEASE = r"\b(?:release|version)|^[#*=\[ ]{1,6}"
# What the number of a part comes after: its heading may have the number alone.
PART = pattern(
    r"appendix|article|chapter|clause|figure|page|paragraph|part|rule|section|step|table|kapitel|abschnitt",
    re.IGNORECASE,
)
# Of the range of scores. Of 184 questions such as "pytest 8.0.0 bug fixes" 129 had the right section first
# without any of these, 134 without the lift for sections, 169 with all.
HELD_LIFT = 0.1  # for the number in the text: past near ties, as any name does
UNDER_LIFT = 0.3  # for the number in a heading, the title or the path
SECTION_LIFT = 1.0  # besides, for a section below it that the query names: before its other sections
INSTEAD_LIFT = 1.0  # for what stands under it, where the first stands under another
# What of it does not speak of what is asked is put back, where no section is named. Of 130 questions about
# one change of a release ("git 2.39 grep") 81 had its passage first without this and 104 have it, 108 and
# 120 among the first three.
OFF_TOPIC = 1.0

MOST_VERSIONS = 8  # who pastes more asks for none of them
_LONGEST_TITLE = 40  # characters of a line that may name a section
_CALLED = {"release", "version", "v"}
# A title that ends in a version, or goes on with its date; the number of a chapter (1.2 Setup) does not.
_OF_A_RELEASE = pattern(r"(?<![\w.])v?\d+(?:\.\w+)+\]?[ \t]*(?:$|[(\[/–—,-]|\d{4}-|released)", re.MULTILINE)


def _named(found: FoundTexts) -> Iterator[str]:
    """Yield the versions of a query if a text has another version after the same word.

    Without this condition any number with dots would count as a version.
    """
    asked = found.query.meaning
    words = [word for word in bare_words(asked) if not days_of(word)]
    for before, word in dict.fromkeys(pairwise(words)):
        if before and is_version(word) and any(map(_others(word, before, asked).search, found.texts)):
            yield word


def _others(version: str, before: str, asked: str) -> re.Pattern[str]:
    """Return a pattern of versions after the same word; if the query is about releases, also in headings."""
    place = f"|{AT_RELEASE}" if ABOUT_RELEASES.search(asked) else ""
    other = rf"(?:\b{re.escape(before)}{place})\W{{0,3}}v?{with_any_number(version.lstrip('vV'))}"
    return re.compile(other, re.IGNORECASE | re.MULTILINE)


def _is_held(named: str, found: FoundTexts) -> bool | None:
    """Whether a text has a version; where the query names a product, as a version of that product."""
    if not is_version(named):
        return None
    written = _as_written(named)
    texts = found.texts
    if not any(map(written.search, texts)) and not any(map(written.search, found.holders(word_match(named)))):
        return False
    product = _product(named, found.query.meaning, texts)
    return product is None or _is_released(named, product, found)


def _product(version: str, asked: str, texts: Sequence[str]) -> str | None:
    """Return the product whose release is asked for, if a text names another release of it.

    If none does, the changelog may not say which product it is of, and the name decides nothing.
    """
    words = bare_words(asked)
    before = words[: words.index(version)] if version in words else []
    while before and ABOUT_RELEASES.fullmatch(before[-1]):
        before.pop()
    name = before[-1] if before else ""
    if not ABOUT_RELEASES.search(asked) or not name.isalpha() or is_stop_word(name) or PART.fullmatch(name):
        return None
    other = with_any_number(version.lstrip("vV"))
    beside = re.compile(rf"\b{re.escape(name)}\W{{0,3}}(?:(?:release|version)\W)?v?{other}", re.IGNORECASE)
    at_place = re.compile(rf"(?:{AT_RELEASE})\W{{0,3}}v?{other}", re.IGNORECASE | re.MULTILINE)
    is_known = any(beside.search(one) or at_place.search(one) and contains(one, name) for one in texts)
    return name if is_known else None


def _is_released(version: str, name: str, found: FoundTexts) -> bool:
    """Whether a text has a version, and it or its place the name: another product may have that number."""
    number, named = word_match(version), word_match(name)
    written = _as_written(version, name)

    def has_both(texts: Iterable[str]) -> bool:
        return any(written.search(text) and contains(text, name) for text in texts)

    both = all_of([one for one in (number, named) if one])
    return has_both(found.texts) or has_both(found.holders(both)) or has_both(found.holders(number))


def _as_written(version: str, name: str = "") -> re.Pattern[str]:
    """Return a pattern of a version that matches no part of an address (10.1.1.1) or of a longer name."""
    joined = rf"(?:(?<![A-Za-z][-_])|(?<={re.escape(name)}[-_]))" if name else ""
    number = re.escape(version.lstrip("vV"))
    return re.compile(rf"(?<![0-9.]){joined}v?{number}(?![0-9]|\.[0-9]+\.[0-9])", re.IGNORECASE)


def _lift(lifted: Lifted, read: ReadPassages) -> Lifted:
    """Lift passages with the version that a query asks for, and more if another release would come first.

    Those under the version, and under the product's name if the query has one, are marked as asked for; if
    the query names a section, only that section is.
    """
    asked = read.query.meaning
    versions = dict(_versions(asked))
    if not 1 <= len(versions) <= MOST_VERSIONS:
        return lifted
    places = {one.ranked.chunk_id: _place(one) for one in read.survivors}
    under = {one for version, name in versions.items() for one in _under(version, name, places)}
    others = {*tokenize(asked)}.difference(*(tokenize(f"{name} {one}") for one, name in versions.items()))
    below = [one for one in read.survivors if one.ranked.chunk_id in under]
    sections = {one.ranked.chunk_id for one in below if _has_section(one, others)}
    holding = {one.ranked.chunk_id for one in read.survivors if _holds_any(versions, one.chunk.text)}
    shares = {
        **dict.fromkeys(holding, HELD_LIFT),
        **dict.fromkeys(under, UNDER_LIFT),
        **dict.fromkeys(sections, UNDER_LIFT + SECTION_LIFT),
    }
    texts = {one.ranked.chunk_id: one.chunk.text for one in below}
    aside = {} if sections else _aside(texts, others)
    lifted = lifted.by({one: share - aside.get(one, 0.0) for one, share in shares.items()})
    if _is_of_another(lifted.ranked, under, places):
        lifted = lifted.by(dict.fromkeys(under, INSTEAD_LIFT))
    names = [*filter(None, versions.values())]
    return lifted.marked(_under_names(sections or under, names, places), "release")


def _aside(texts: Mapping[ChunkId, str], words: Iterable[str]) -> dict[ChunkId, float]:
    """Return how far passages of a release are put behind the one that says most of what is asked.

    All passages of a release are called alike, and have much the same words: what tells them apart is rare
    among them.
    """
    asked = (word for word in words if not is_stop_word(word))
    holding = {word: {one for one, text in texts.items() if contains(text, word)} for word in asked}
    worth = {word: math.log(len(texts) / len(found)) for word, found in holding.items() if found}
    said = {one: math.fsum(worth[word] for word in worth if one in holding[word]) for one in texts}
    best, most = max(said.values(), default=0.0), math.fsum(worth.values())
    return {one: OFF_TOPIC * (best - own) / most for one, own in said.items()} if most else {}


def _versions(asked: str) -> Iterator[tuple[str, str]]:
    """Yield the versions in a query, each with the name before it, or nothing where none is."""
    words = [word for word in bare_words(asked) if word.casefold() not in _CALLED]
    for before, word in pairwise(["", *words]):
        if is_version(word) and not days_of(word):
            yield word.lstrip("vV"), before if before.isalpha() and not is_stop_word(before) else ""


def _place(survivor: Survivor) -> str:
    """Return the path, title and headings of a passage, a line each."""
    document = survivor.document
    return "\n".join((document.path, document.title, *survivor.chunk.heading))


def _under(version: str, name: str, places: Mapping[ChunkId, str]) -> set[ChunkId]:
    """Return the passages under a version; if there are none, under one that begins so (9.0.1, 9.0rc1).

    If some of them stand under the product's name, only those: another product may have the same number.
    """
    named = {one: place for one, place in places.items() if name and contains(place, name)} or places
    exact = {one for one, place in named.items() if _exactly(version).search(place)}
    return exact or {one for one, place in named.items() if _begins_with(version).search(place)}


def _is_of_another(order: Sequence[Ranked], under: set[ChunkId], places: Mapping[ChunkId, str]) -> bool:
    """Whether the first passage stands under another release than the one asked for."""
    first = order[0].chunk_id if order else None
    return first is not None and first not in under and _OF_A_RELEASE.search(places[first]) is not None


def _under_names(under: set[ChunkId], names: Sequence[str], places: Mapping[ChunkId, str]) -> set[ChunkId]:
    """Return the passages under one of these names; all of them if there are no names."""
    return {one for one in under if not names or any(contains(places[one], name) for name in names)}


def _holds_any(versions: Iterable[str], text: str) -> bool:
    return any(_begins_with(version).search(text) for version in versions)


def _exactly(version: str) -> re.Pattern[str]:
    number = rf"{re.escape(version)}(?:\.0)?"
    return re.compile(rf"(?<![0-9.])v?{number}(?!\w|\.[0-9]|-(?:alpha|beta|rc|pre))", re.IGNORECASE)


def _begins_with(version: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9.])v?{re.escape(version)}(?![0-9]|\.[0-9]+\.[0-9])", re.IGNORECASE)


def _has_section(survivor: Survivor, words: set[str]) -> bool:
    """Whether a heading of a passage, or a line that may be one, is made of these words alone."""
    lines = (line for line in survivor.chunk.text.split("\n") if len(line) <= _LONGEST_TITLE)
    titles = map(tokenize, (*survivor.chunk.heading, *lines))
    return any(title and words.issuperset(title) for title in titles)


KIND = Kind(_named, _is_held, _lift)
