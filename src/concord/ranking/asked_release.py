"""Which release does a query ask for, which passages stand under it, and how far does that lift them?

To the index 8.0.0 is an 8 and two noughts, which every changelog is full of, and meaning tells no release
from another. So what stands under a release that is asked for comes before what stands under others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from concord.ranking.lift import lifted
from concord.ranking.words import bare_words
from concord.text.contains import contains
from concord.text.dates import days_of
from concord.text.identifiers import is_version
from concord.text.pattern import pattern
from concord.text.stopwords import is_stop_word
from concord.text.terms import tokenize
from concord.types import ChunkId, Ranked, Survivor

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


def with_release_first(
    ranked: list[Ranked], survivors: Sequence[Survivor], asked: str
) -> tuple[list[Ranked], set[ChunkId]]:
    """Lift what has the version that a query asks for, and more so if the first then stands under another.

    Return the order, and what surely was asked for: what stands under it and under the name before it, if it
    has one, or of that only the section that the query names.
    """
    versions = dict(_versions(asked)) if "." in asked else {}
    if not 1 <= len(versions) <= MOST_VERSIONS:
        return ranked, set()
    places = {one.ranked.chunk_id: _place(one) for one in survivors}
    under = {one for version, name in versions.items() for one in _under(version, name, places)}
    others = {*tokenize(asked)}.difference(*(tokenize(f"{name} {one}") for one, name in versions.items()))
    sections = {
        one.ranked.chunk_id for one in survivors if one.ranked.chunk_id in under and _has_section(one, others)
    }
    holding = {one.ranked.chunk_id for one in survivors if _holds_any(versions, one.chunk.text)}
    shares = {
        **dict.fromkeys(holding, HELD_LIFT),
        **dict.fromkeys(under, UNDER_LIFT),
        **dict.fromkeys(sections, UNDER_LIFT + SECTION_LIFT),
    }
    aside = {} if sections else _aside(survivors, under, others)
    order = lifted(ranked, {one: share - aside.get(one, 0.0) for one, share in shares.items()})
    if _is_of_another(order, under, places):
        order = lifted(order, dict.fromkeys(under, INSTEAD_LIFT))
    return order, _named(sections or under, [*filter(None, versions.values())], places)


def _aside(survivors: Sequence[Survivor], under: set[ChunkId], words: Iterable[str]) -> dict[ChunkId, float]:
    """Return how far passages of a release are put behind the one that says most of what is asked.

    All of them are called alike, and have much the same words: what tells them apart is rare among them.
    """
    texts = {one.ranked.chunk_id: one.chunk.text for one in survivors if one.ranked.chunk_id in under}
    told = [word for word in words if not is_stop_word(word)]
    holding = {word: {one for one, text in texts.items() if contains(text, word)} for word in told}
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
    """Return what tells where a passage stands, a line each."""
    document = survivor.document
    return "\n".join((document.path, document.title, *survivor.chunk.heading))


def _under(version: str, name: str, places: Mapping[ChunkId, str]) -> set[ChunkId]:
    """Return what stands under a version; if nothing does, under what begins with it (9.0.1, 9.0rc1).

    Where some passages stand under the name before it, only those: another product may have the number.
    """
    named = {one: place for one, place in places.items() if name and contains(place, name)} or places
    exact = {one for one, place in named.items() if _exactly(version).search(place)}
    return exact or {one for one, place in named.items() if _begins_with(version).search(place)}


def _is_of_another(order: Sequence[Ranked], under: set[ChunkId], places: Mapping[ChunkId, str]) -> bool:
    """Whether what is first stands under a release that was not asked for."""
    first = order[0].chunk_id if order else None
    return first is not None and first not in under and _OF_A_RELEASE.search(places[first]) is not None


def _named(under: set[ChunkId], names: Sequence[str], places: Mapping[ChunkId, str]) -> set[ChunkId]:
    """Return what stands under one of some names, or all where none was asked for."""
    return {one for one in under if not names or any(contains(places[one], name) for name in names)}


def _holds_any(versions: Iterable[str], text: str) -> bool:
    return any(_begins_with(version).search(text) for version in versions)


def _exactly(version: str) -> re.Pattern[str]:
    number = rf"{re.escape(version)}(?:\.0)?"
    return re.compile(rf"(?<![0-9.])v?{number}(?!\w|\.[0-9]|-(?:alpha|beta|rc|pre))", re.IGNORECASE)


def _begins_with(version: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![0-9.])v?{re.escape(version)}(?![0-9]|\.[0-9]+\.[0-9])", re.IGNORECASE)


def _has_section(survivor: Survivor, words: set[str]) -> bool:
    """Whether a heading of a passage, or a line that may be one, has no other words than a query."""
    lines = (line for line in survivor.chunk.text.split("\n") if len(line) <= _LONGEST_TITLE)
    titles = map(tokenize, (*survivor.chunk.heading, *lines))
    return any(title and words.issuperset(title) for title in titles)
