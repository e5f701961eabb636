"""Which names does a query hold, which chunks mention them, and how much does a mention lift a chunk?

A name is two or more capitalised words in a row, or one word that `word_shapes.shape` takes for an
identifier, code, file name, version or number. A query with a name is of kind "entity".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from concord.ranking.lexicon import (
    CONCEPT_WORDS,
    COUNTED,
    DESIGNATORS,
    FIRST_NAMES,
    FUNCTION_WORDS,
    METRIC_WORDS,
    NAME_ADJECTIVES,
    NAME_PARTICLES,
    NAMED_AFTER,
    OPENERS,
    QUESTION_WORDS,
)
from concord.ranking.questions import asks
from concord.ranking.word_shapes import is_measure, is_number, is_year, shape
from concord.ranking.words import READ_CHARS, Word, is_initials, plain, words
from concord.text.unspaced import has_unspaced
from concord.types import ChunkId

MAX_ENTITIES = 16  # a pasted page holds hundreds, and each is looked for in each chunk that is read
HEADLINE_WORDS = 4  # this many capitalised words and no others: a headline, whose capitals say nothing
ENTITY_BOOST = 0.1  # of the list's score range: lifts a mention past near ties, not past a clear lead

_NEVER_NAMES = (FUNCTION_WORDS | QUESTION_WORDS | CONCEPT_WORDS) - {"vs"}  # VS Code is a name
_NEVER_OPEN = _NEVER_NAMES | OPENERS | NAME_ADJECTIVES  # and at the head of a query
# But for these, where the next word tells: see _opens_name.
_MAY_OPEN = NAME_PARTICLES | NAME_ADJECTIVES | FIRST_NAMES


@lru_cache(maxsize=16)
def entities(text: str) -> tuple[str, ...]:
    """Return the names in a query, in order, each once; the kind of a query depends on them, too."""
    read = text[:READ_CHARS]
    found: dict[str, None] = {}
    for name in _names(read, words(read)):
        found.setdefault(name)
        if len(found) == MAX_ENTITIES:
            break
    return tuple(found)


def mentioned(names: Collection[str], text: str) -> tuple[str, ...]:
    """Return those names that stand in a text as whole words, in any case."""
    folded = text.casefold() if names else ""
    return tuple(name for name in names if _stands_in(name, folded))


def mention_lifts(names: Collection[str], texts: Mapping[ChunkId, str]) -> dict[ChunkId, float]:
    """Return by which share of the list's score range each chunk is lifted that mentions a name."""
    return {chunk_id: ENTITY_BOOST for chunk_id, text in texts.items() if mentioned(names, text)}


def _names(text: str, query: Sequence[Word]) -> Iterator[str]:
    if len(query) == 1 and is_number(query[0].text):
        yield query[0].text  # a bare number is what is looked for, whatever its length
        return
    asked = asks(text, query)
    valued = any(plain(word.text) in METRIC_WORDS for word in query)
    runs = {} if _is_headline(query) else _runs(query, asked)
    for at, word in enumerate(query):
        if at in runs:
            yield from runs[at]
        elif _is_identifier(query, at, asked, valued):
            yield word.text


def _is_identifier(query: Sequence[Word], at: int, asked: bool, valued: bool) -> bool:
    text = query[at].text
    following = query[at + 1].text if at + 1 < len(query) and not query[at].ends else ""
    if is_number(text):
        before = query[at - 1].text if at and not query[at - 1].ends else ""
        return _is_named_number(before, text, following, asked or valued)
    sureness = shape(text, following)
    return sureness == "sure" or (sureness == "likely" and not asked)


def _is_named_number(before: str, text: str, following: str, in_prose: bool) -> bool:
    """Whether a number inside a longer query names something: error 404, Windows 11, intel 386.

    In prose it does not: in "price 300" it is the value of a metric, in "how do 1000 threads …" an amount.
    """
    if is_year(text) or is_measure(text, following):
        return False
    if plain(before) in DESIGNATORS:
        return True
    if in_prose or plain(before) in COUNTED:
        return False
    return shape(text, following) is not None or (
        _is_capitalised(before) and plain(before) not in _NEVER_NAMES
    )


def _runs(query: Sequence[Word], asked: bool) -> dict[int, tuple[str, ...]]:
    """Return each run of capitalised words that reads as a name at its first word, and nothing at its others.

    Words all in capitals are shouted or acronyms (REST API): they join a run but cannot make one.
    """
    found: dict[int, tuple[str, ...]] = {}
    for number, group in groupby(
        zip(_run_numbers(query, asked), enumerate(query), strict=True), key=lambda pair: pair[0]
    ):
        run = [numbered for _, numbered in group]
        if number and len(run) > 1 and any(not word.text.isupper() for _, word in run):
            found.update((at, ()) for at, _ in run)
            found[run[0][0]] = (re.sub(r"['’]s\Z", "", " ".join(word.text for _, word in run)),)
    return found


def _run_numbers(query: Sequence[Word], asked: bool) -> list[int]:
    """Return for each word which run of capitalised words it is in, from 1; 0 for none."""
    numbers: list[int] = []
    current, joined = 0, False
    for at, word in enumerate(query):
        barred = _NEVER_NAMES if at else _NEVER_OPEN
        inside = _is_capitalised(word.text) and (
            plain(word.text) not in barred or _opens_name(query, at, asked)
        )
        if inside and (word.starts or not joined):
            current += 1
        numbers.append(current if inside else 0)
        joined = inside and not word.ends
    return numbers


def _opens_name(query: Sequence[Word], at: int, asked: bool) -> bool:
    """Whether a word that mostly is no name begins one here, before a word with a capital: Los Angeles."""
    word = plain(query[at].text)
    if word not in _MAY_OPEN or at + 1 == len(query) or query[at].ends:
        return False
    following = query[at + 1].text
    if not _is_capitalised(following) or following.isupper():
        return False
    if plain(following) in _NEVER_NAMES - NAME_PARTICLES:
        return False
    if word in NAME_PARTICLES or plain(following) in NAMED_AFTER.get(word, ()):
        return True
    is_all = all(_is_capitalised(one.text) for one in query)
    if at == 0:  # nothing else tells New Zealand from new features, or Will Smith from a question
        return is_all and not asked
    return not is_all


def _is_capitalised(text: str) -> bool:
    """Whether a word begins with a capital and goes on with letters, or is initials: Ridge, AWS, J."""
    if not text[:1].isupper():
        return False
    return text[1:2].isalpha() or text[1:2] in {"'", "’", "-"} or (is_initials(text) and "." in text)


def _is_headline(query: Sequence[Word]) -> bool:
    """Whether every word but the small ones is capitalised, and four or more are."""
    capitals = sum(1 for word in query if word.text[0].isupper())
    if capitals < HEADLINE_WORDS:
        return False
    others = (word.text for word in query if not word.text[0].isupper())
    return all(plain(text) in FUNCTION_WORDS or is_number(text) for text in others)


def _goes_on(edge: str, neighbour: str) -> bool:
    """Whether a word goes on beyond its edge: in MP3ファイル, MP3 is a word of its own."""
    return neighbour.isalnum() and (has_unspaced(edge) or not has_unspaced(neighbour))


def _stands_in(name: str, folded: str) -> bool:
    words = name.casefold().split()
    if len(words) > 1 and words[0] in folded:  # they may stand on two lines
        folded = " ".join(folded.split())
    wanted = " ".join(words)
    at = folded.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not _goes_on(wanted[0], folded[at - 1 : at]) and not _goes_on(wanted[-1], folded[end : end + 1]):
            return True
        at = folded.find(wanted, end)
    return False
