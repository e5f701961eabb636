"""What else could be asked? The query as it was probably meant, words that are known, related documents.

Every suggestion is a query to try as it stands. Words and titles come from the store that was searched, so
none crosses organisations, and only from what the filter lets through. They are shown outside of any
quotation, so a title that reads like an order, or comes from a source nobody vouches for, is not suggested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from concord.answering.absent_words import is_found, unknown_words
from concord.text.characters import folded
from concord.text.injection import warnings_about
from concord.text.pattern import pattern
from concord.text.slips import is_slip
from concord.text.terms import written
from concord.text.vowel_signs import MARKS
from concord.types import ChunkId, Document, Query

if TYPE_CHECKING:
    from concord.storage import Catalog, LexicalIndex

MOST_SUGGESTED = 5
MAX_TEXT = 200  # characters of a query that is suggested again, put right
MAX_TITLE = 80  # characters; a longer title is a text
_TITLES = 3
LEAST_SWAPPED, MOST_SWAPPED = 5, 20  # letters of a word in which two may have changed places
_WORD = pattern(rf"(?:[^\W_]|[{MARKS}])+")

# A word → known words like it, with how many chunks hold each.
LikeWords = Callable[[str], Sequence[tuple[str, int]]]


def suggestions(text: str, words: Mapping[str, Sequence[str]], titles: Sequence[str] = ()) -> tuple[str, ...]:
    """Return other queries worth trying, the likeliest first.

    `words` are the unknown words of the query, each with known words like it. If the query is one word, any
    of these may help; if it is several, only those that a word was mistyped for. An address or a path
    (ann@shop.example) is several words, though no space is in it.
    """
    meant = {word: found for word, like in words.items() if (found := _meant(word, like))}
    is_one = len(_WORD.findall(text)) == 1
    alone = [word for like in words.values() for word in like] if is_one else meant.values()
    return _distinct([*_did_you_mean(text, meant), *alone, *titles], besides=text)


def suggested_words(query: Query, near: LikeWords, index: LexicalIndex) -> dict[str, list[str]]:
    """Return each word of the query that no chunk holds, with words like it that the filter lets through."""
    return {
        written(word): [written(like) for like in _like(word, near, index) if is_found(like, query, index)]
        for word in unknown_words(query)
    }


def related_titles(
    chunk_ids: Sequence[ChunkId], catalog: Catalog, is_wanted: Callable[[str], bool]
) -> tuple[str, ...]:
    """Return the titles of the documents that these chunks are from, in their order."""
    trusted = {source.id for source in catalog.sources() if source.trust == "trusted"}
    read = catalog.read(chunk_ids)
    documents = [read[chunk_id][1] for chunk_id in chunk_ids if chunk_id in read]
    titles = (" ".join(document.title.split()) for document in documents if _is_shown(document, trusted))
    return tuple(dict.fromkeys(title for title in titles if title and is_wanted(title)))[:_TITLES]


def _like(word: str, near: LikeWords, index: LexicalIndex) -> list[str]:
    """Return known words like one; if none of them is what was meant, also those with two letters swapped.

    The index keeps stems, and swapping letters may change the stem: that of stetings is far from settings.
    """
    like = [one for one, _ in near(word)]
    if _meant(word, like) or not LEAST_SWAPPED <= len(word) <= MOST_SWAPPED:
        return like
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    held = index.frequencies(swapped)[1]
    return [*like, *sorted((one for one in swapped if held.get(one)), key=lambda one: -held[one])]


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
