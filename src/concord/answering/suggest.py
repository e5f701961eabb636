"""What else could be asked? The query as it was probably meant, words that are known, related documents.

Every suggestion is a query to try as it stands. Words and titles come from the store that was searched, so
none crosses organisations, and only from what the filter lets through. They are shown outside of any
quotation, so a title that reads like an order, or comes from a source nobody vouches for, is not suggested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from concord.ranking.entities import mentioned
from concord.ranking.word_shapes import is_identifier, is_year
from concord.ranking.words import bare_words
from concord.text.characters import folded, has_digit
from concord.text.contains import contains
from concord.text.dates import month_number
from concord.text.identifiers import identifier_parts
from concord.text.pattern import pattern
from concord.text.quarters import quarters_in
from concord.text.slips import is_slip
from concord.text.stopwords import OTHERS, is_stop_word
from concord.text.terms import word_match, written
from concord.text.trust import warnings_about
from concord.text.unspaced import has_unspaced
from concord.text.vowel_signs import MARKS
from concord.types import ChunkId, Document, Query

if TYPE_CHECKING:
    from concord.storage import Catalog, LexicalIndex

MOST_SUGGESTED = 5
MAX_WORDS = 4  # of one query that are looked up: who mistypes more has pasted something
MAX_TEXT = 200  # characters of a query that is suggested again, put right
MAX_TITLE = 80  # characters; a longer title is a text
_TITLES = 3
LEAST_SWAPPED, MOST_SWAPPED = 5, 20  # letters of a word in which two may have changed places
_WORDS = pattern(r"[^\W\d_]+(?:-[^\W\d_]+)*")  # one word, or several with hyphens between them
_WORD = pattern(rf"(?:[^\W_]|[{MARKS}])+")
LEAST_LETTERS, LEAST_DIGITS = 3, 3  # of a word and a number that are said to be nowhere
MOST_DIGITS = 12  # of an amount
FEW_HOLDERS = 20  # chunks that may all have been superseded
FIRST_FEW = 3  # results: who reads them and finds no trace of a name takes them for what is known of it
MOST_READ = 10  # texts with the words of a name, in which it is looked for as it was typed

# A word → words like it, with how many chunks hold each.
LikeWords = Callable[[str], Sequence[tuple[str, int]]]


def suggestions(text: str, words: Mapping[str, Sequence[str]], titles: Sequence[str] = ()) -> tuple[str, ...]:
    """Return other queries worth trying, the likeliest first; `words` are those like an unknown one.

    To whoever typed one word, any word like it may help; of several, only those that were mistyped. An
    address or a path (ann@shop.example) is several, though no space is in it.
    """
    meant = {word: found for word, like in words.items() if (found := _meant(word, like))}
    is_one = len(_WORD.findall(text)) == 1
    alone = [word for like in words.values() for word in like] if is_one else meant.values()
    return _distinct([*_did_you_mean(text, meant), *alone, *titles], besides=text)


def suggested_words(query: Query, near: LikeWords, index: LexicalIndex) -> dict[str, list[str]]:
    """Return, for each word that nothing holds, words like it that stand in what the filter lets through."""
    return {
        written(word): [written(like) for like in _like(word, near, index) if _is_found(like, query, index)]
        for word in unknown_words(query)
    }


def _like(word: str, near: LikeWords, index: LexicalIndex) -> list[str]:
    """Return words like one; if none is what was meant, those in which two letters changed their places.

    The index keeps stems, and such a slip may change what the stem is: stetings has none of settings.
    """
    like = [one for one, _ in near(word)]
    if _meant(word, like) or not LEAST_SWAPPED <= len(word) <= MOST_SWAPPED:
        return like
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    held = index.frequencies(swapped)[1]
    return [*like, *sorted((one for one in swapped if held.get(one)), key=lambda one: -held[one])]


def _is_found(word: str, query: Query, index: LexicalIndex) -> bool:
    match = word_match(word)
    return match is not None and bool(index.search(match, query.filter, 1))


def unknown_words(query: Query) -> list[str]:
    """Return the words of a query that no chunk holds, of too many the longest; no month is mistyped."""
    unknown = [word for word in query.words if not query.frequencies.get(word) and not month_number(word)]
    chosen = sorted(unknown, key=len, reverse=True)[:MAX_WORDS]
    return [word for word in unknown if word in chosen]


def absent_words(query: Query) -> list[str]:
    """Return the words of a query that no chunk holds; no numbers, no identifiers, no parts of these."""
    return _plain_words(unknown_words(query), query)


def absent_numbers(query: Query, index: LexicalIndex) -> list[str]:
    """Return the numbers of a query that no chunk holds, and that name something: RFC 9110, error 4711.

    Short ones count something, years are told of as such, and a long one may be written 12,000.
    """
    typed = {*bare_words(query.text)}
    numbers = [word for word in unknown_words(query) if word in typed and _is_naming(word)]
    return [word for word in numbers if not (_is_amount(word) and _is_found(f"{int(word):,}", query, index))]


def _is_naming(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) >= LEAST_DIGITS and not is_year(word)


def _is_amount(number: str) -> bool:
    """Whether a number may be written with separators."""
    return LEAST_DIGITS < len(number) <= MOST_DIGITS and not number.startswith("0")


def words_elsewhere(query: Query, texts: Sequence[str], index: LexicalIndex) -> list[str]:
    """Return the telling words of a query that some chunk holds, and none that its filter lets through.

    `texts` are what was found: what stands in them need not be looked up. A small folder lacks many a common
    word, so those count that are rarer than most words of the query. Where nothing but what was superseded is
    left out, rare ones are looked up alone: that is little, and few searches shall pay for it.
    """
    words = _plain_words([word for word in query.words if query.frequencies.get(word)], query)
    rarest = sorted(words, key=lambda word: query.frequencies[word])[:MAX_WORDS]
    most = FEW_HOLDERS if query.filter.is_open else query.chunks
    telling = [word for word in words if word in rarest and _is_telling(word, words, query)]
    telling = [word for word in telling if query.frequencies[word] <= most]
    absent = (word for word in telling if not any(contains(text, word) for text in texts))
    return [word for word in absent if not _is_found(word, query, index)]


def _is_telling(word: str, words: Sequence[str], query: Query) -> bool:
    commoner = sum(query.frequencies[other] > query.frequencies[word] for other in words)
    return len(words) == 1 or 2 * commoner > len(words) - 1


def names_below(
    query: Query, texts: Sequence[str], index: LexicalIndex, read: Callable[[list[ChunkId]], Iterable[str]]
) -> list[str]:
    """Return the identifiers of a question, if none of the first texts found has any, that others have.

    The index finds them by their words, and max connections for max_connections: `read` gives the texts.
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
    """Return the identifier that a query is, where no text found has it as one name, as server_close.

    They have its words, as in server.close(). Texts that have it whole come first, so that it stands nowhere
    if the first ones lack it.
    """
    name = query.text.strip().removesuffix("()").rpartition(".")[2].rpartition("::")[2]
    parts = identifier_parts(name.strip("_")) if is_identifier(name) else []
    if len(parts) < 2:
        return None
    whole = re.compile(r"(?<!\w)_*" + "[_-]?".join(map(re.escape, parts)) + r"_*(?!\w)", re.IGNORECASE)
    return None if any(map(whole.search, texts)) else name


def _plain_words(words: Sequence[str], query: Query) -> list[str]:
    """Return those words of a query that say something; no numbers, no identifiers, no parts of these.

    A quarter is found in whatever form it is written, so that its words may well stand nowhere.
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


def related_titles(
    chunk_ids: Sequence[ChunkId], catalog: Catalog, is_wanted: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the titles of the documents that these chunks are from, in their order."""
    trusted = {source.id for source in catalog.sources() if source.trust == "trusted"}
    read = catalog.read(chunk_ids)
    documents = [read[chunk_id][1] for chunk_id in chunk_ids if chunk_id in read]
    titles = (" ".join(document.title.split()) for document in documents if _is_shown(document, trusted))
    return tuple(dict.fromkeys(title for title in titles if title and is_wanted(title)))[:_TITLES]


def _meant(word: str, like: Sequence[str]) -> str | None:
    """Return the nearest word that an unknown one is a slip for."""
    return next((known for known in like if is_slip(word, known)), None)


def _did_you_mean(text: str, nearest: Mapping[str, str]) -> Iterator[str]:
    """Yield the query with mistyped words put right; the rest stays as typed."""
    if nearest and len(text) <= MAX_TEXT:
        yield _WORD.sub(lambda found: _replaced(found[0], nearest), " ".join(text.split()))


def _replaced(typed: str, nearest: Mapping[str, str]) -> str:
    key = typed if typed in nearest else typed.lower()
    return nearest.get(key) or nearest.get("".join(folded(typed)), typed)


def _is_shown(document: Document, trusted: set[str]) -> bool:
    is_short = len(document.title) <= MAX_TITLE
    return document.source_id in trusted and is_short and not warnings_about("", document.title)


def _distinct(found: Sequence[str], *, besides: str) -> tuple[str, ...]:
    """Return the first few that differ, in more than case, from each other and from what was asked."""
    chosen = {besides.casefold(): besides}
    for one in found:
        chosen.setdefault(one.casefold(), one)
    return tuple(chosen.values())[1 : MOST_SUGGESTED + 1]
