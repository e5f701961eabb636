"""Word lists of several languages (`data/words.json`, read once, late), and function words of queries.

Languages are never mixed: `die`, `war`, `hat` and `son` are function words in one language and content in
another. English function words are dropped unless the query is in another language. It is, if it has

- two different function words of that language that English lacks,
- more of these than of English ones, and
- one that no English text would have: van der Waals, de novo, Los Angeles and Des Moines are English, too.

In other scripts no word is mistaken for an English one, so their function words are left out of any query.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pkgutil import get_data

from msgspec import json

_LANGUAGES = ("german", "french", "spanish", "italian", "portuguese", "dutch")
_MIN_FOREIGN = 2
_OPERATORS = ("AND", "OR", "NOT")
_AROUND = "\"'“”„«»()[]{}<>.,;:!?¿¡…-_*。，、！？；："


def listed(words: str) -> frozenset[str]:
    """Return words that are written with white space between them."""
    return frozenset(words.split())


def paired(table: str) -> dict[str, str]:
    """Return every second word of a table by the one before it."""
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of `data/words.json`."""
    return listed(_lists()[name])


@cache
def _lists() -> dict[str, str]:
    lists: dict[str, str] = json.decode(get_data("concord", "data/words.json") or b"{}")
    return lists


def is_stop_word(word: str) -> bool:
    """Whether this is a function word of English."""
    return _plain(word) in word_list("stop_english")


def significant(words: Sequence[str]) -> list[str]:
    """Return the words without the function words of their language; all when nothing else is left."""
    plain = [_plain(word) for word in words]
    stop_words, other_scripts = _stop_words_for(set(plain)), word_list("stop_other_scripts")
    shouted = not any(character.islower() for word in words for character in word)
    return [
        word
        for word, lower in zip(words, plain, strict=True)
        if lower not in stop_words
        and lower not in other_scripts
        # Capitals among small letters say that it is a name: IT, US, WHO.
        or (len(word) > 1 and word.isupper() and word not in _OPERATORS and not shouted)
    ] or list(words)


def _stop_words_for(words: set[str]) -> frozenset[str]:
    """Return the stop words of the language that these words show."""
    english = word_list("stop_english")
    foreign = words - english
    language = max(_others(), key=lambda language: len(foreign & language))
    shown = foreign & language
    if len(shown) < _MIN_FOREIGN or len(shown) <= len((words & english) - language):
        return english
    return language if shown - word_list("stop_also_english") else english


def shows_english(words: Iterable[str]) -> bool:
    """Whether words are English: they have more function words of English alone than foreign ones."""
    distinct = {_plain(word) for word in words}
    english, others = word_list("stop_english"), frozenset[str]().union(*_others())
    # Also words of Polish, Danish, Romanian, Finnish and others.
    shared = others | word_list("stop_also_english") | word_list("stop_widespread")
    return len(distinct & english - shared) > len(distinct & others - english)


@cache
def _others() -> tuple[frozenset[str], ...]:
    return tuple(word_list(f"stop_{language}") for language in _LANGUAGES)


def _plain(word: str) -> str:
    """Return a word in lower case, with a typewriter's apostrophe and no punctuation around it."""
    return word.lower().replace("’", "'").strip(_AROUND)
