"""Which words and names of a query do texts lack? For the notes of an answer, which say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from concord.ranking.entities import mentioned
from concord.ranking.word_shapes import is_identifier, is_year
from concord.ranking.words import bare_words
from concord.text.characters import has_digit
from concord.text.contains import contains
from concord.text.dates import month_number
from concord.text.identifiers import identifier_parts
from concord.text.pattern import pattern
from concord.text.quarters import quarters_in
from concord.text.stopwords import OTHERS, is_stop_word
from concord.text.terms import word_match
from concord.text.unspaced import has_unspaced
from concord.types import ChunkId, Query

if TYPE_CHECKING:
    from concord.storage import LexicalIndex

MAX_WORDS = 4  # of one query that are looked up: who mistypes more has pasted something
LEAST_LETTERS, LEAST_DIGITS = 3, 3  # of a word and of a number that are reported as absent
MOST_DIGITS = 12  # of an amount
FEW_HOLDERS = 20  # chunks that may all have been superseded
FIRST_FEW = 3  # results: who reads them and finds no trace of a name takes them for all that there is
MOST_READ = 10  # texts with the words of a name, in which it is looked for as it was typed
_WORDS = pattern(r"[^\W\d_]+(?:-[^\W\d_]+)*")  # one word, or several with hyphens between them


def unknown_words(query: Query) -> list[str]:
    """Return words of a query that no chunk holds, at most the longest few; months are never mistyped."""
    unknown = [word for word in query.words if not query.frequencies.get(word) and not month_number(word)]
    chosen = sorted(unknown, key=len, reverse=True)[:MAX_WORDS]
    return [word for word in unknown if word in chosen]


def absent_words(query: Query) -> list[str]:
    """Return the words of a query that no chunk holds, without numbers, identifiers and parts of these."""
    return _plain_words(unknown_words(query), query)


def absent_numbers(query: Query, index: LexicalIndex) -> list[str]:
    """Return the numbers of a query that no chunk holds, and that name something: RFC 9110, error 4711.

    Short numbers only count something, years have a note of their own, and texts may have 12000 as 12,000.
    """
    typed = {*bare_words(query.text)}
    numbers = [word for word in unknown_words(query) if word in typed and _names_something(word)]
    return [word for word in numbers if not (_is_amount(word) and is_found(f"{int(word):,}", query, index))]


def words_elsewhere(query: Query, texts: Sequence[str], index: LexicalIndex) -> list[str]:
    """Return the telling words of a query that chunks hold, but none that its filter lets through.

    `texts` are what was found: a word that stands there need not be looked up. A small folder lacks many
    common words, so only words count that are rarer than most of the query's. If the filter keeps out nothing
    but superseded texts, only words that few chunks hold are looked up: few searches should pay for this.
    """
    words = _plain_words([word for word in query.words if query.frequencies.get(word)], query)
    rarest = sorted(words, key=lambda word: query.frequencies[word])[:MAX_WORDS]
    most = FEW_HOLDERS if query.filter.is_open else query.chunks
    telling = [word for word in words if word in rarest and _is_telling(word, words, query)]
    telling = [word for word in telling if query.frequencies[word] <= most]
    absent = (word for word in telling if not any(contains(text, word) for text in texts))
    return [word for word in absent if not is_found(word, query, index)]


def names_below(
    query: Query, texts: Sequence[str], index: LexicalIndex, read: Callable[[list[ChunkId]], Iterable[str]]
) -> list[str]:
    """Return the identifiers of a question that only texts below the first few results hold.

    Empty if any of the first few holds one of them. Further texts are looked for by the words of a name, and
    then read, since the index takes `max connections` for `max_connections`.
    """
    names = [name for name in query.entities if is_identifier(name)][:MAX_WORDS]
    if names == [query.text.strip()] or any(mentioned(names, text) for text in texts[:FIRST_FEW]):
        return []
    if below := {name for text in texts[FIRST_FEW:] for name in mentioned(names, text)}:
        return [name for name in names if name in below]
    matches = {name: match for name in names if (match := word_match(name))}
    found = {name: index.search(match, query.filter, MOST_READ) for name, match in matches.items()}
    return [
        name for name, ids in found.items() if mentioned([name], "\n".join(read([i.chunk_id for i in ids])))
    ]


def name_apart(query: Query, texts: Sequence[str]) -> str | None:
    """Return the identifier that the query consists of, as server_close, if no text found has it as one name.

    Texts may have its words apart, as in server.close(). Those that have it whole would come first, so if
    the first ones lack it, it stands nowhere.
    """
    name = query.text.strip().removesuffix("()").rpartition(".")[2].rpartition("::")[2]
    parts = identifier_parts(name.strip("_")) if is_identifier(name) else []
    if len(parts) < 2:
        return None
    whole = re.compile(r"(?<!\w)_*" + "[_-]?".join(map(re.escape, parts)) + r"_*(?!\w)", re.IGNORECASE)
    return None if any(map(whole.search, texts)) else name


def is_found(word: str, query: Query, index: LexicalIndex) -> bool:
    """Whether a chunk that the query's filter lets through holds a word."""
    match = word_match(word)
    return match is not None and bool(index.search(match, query.filter, 1))


def _names_something(number: str) -> bool:
    return number.isascii() and number.isdecimal() and len(number) >= LEAST_DIGITS and not is_year(number)


def _is_amount(number: str) -> bool:
    """Whether a number may be written with separators."""
    return LEAST_DIGITS < len(number) <= MOST_DIGITS and not number.startswith("0")


def _is_telling(word: str, words: Sequence[str], query: Query) -> bool:
    """Whether a word is rarer than most of the query's words."""
    commoner = sum(query.frequencies[other] > query.frequencies[word] for other in words)
    return len(words) == 1 or 2 * commoner > len(words) - 1


def _plain_words(words: Sequence[str], query: Query) -> list[str]:
    """Return the words that say something by themselves, without numbers, identifiers and parts of these.

    The words of a quarter are left out, too: it is found in any form, so texts need not have these.
    """
    quarters = (one.written for one in quarters_in(query.text)) if has_digit(query.text) else ()
    whole = {*bare_words(query.text)}.difference(*(one.split() for one in quarters))
    # WLAN is a word of WLAN-Zertifikat; of object->complex128, object is none.
    typed = {part for word in whole for part in (word.split("-") if _WORDS.fullmatch(word) else [word])}
    alone = (word for word in words if word in typed and word.isalpha())
    plain = (word for word in alone if word.islower() or word.istitle() or word.isupper())
    return [word for word in plain if len(word) >= LEAST_LETTERS and not _says_nothing(word)]


def _says_nothing(word: str) -> bool:
    """Whether a word is a function word in some language, or of a script without spaces between words."""
    is_common = is_stop_word(word) or any(word.lower() in language for language in OTHERS)
    return is_common or has_unspaced(word)
