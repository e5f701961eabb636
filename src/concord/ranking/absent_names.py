"""Which words of a query may be names that no text has, in whatever spelling?

Judged questions with a word that no text has are answered as often as others, because mostly it is just
another word for what a text says (encountered, genre). But if it is a name in the place of another (Paris for
Berlin), what was found is about the other. A word may be a name if it has a capital after its first letter or
within the query, or if the model has no token for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from unicodedata import normalize

from concord.ranking.words import words
from concord.text.pattern import pattern
from concord.text.slips import is_slip
from concord.types import Query

LEAST_PART = 3  # letters of each of two words that were typed as one
MOST_OTHERS = 5  # letters that only one of two words has: two slips change four, and an ending one more

_HYPHENS = dict.fromkeys(map(ord, "-\u00ad\u2010\u2011"))
_WORD = pattern(r"[^\W\d_]{3,}")
_LETTERS = pattern(r"[^\W\d_]+")


def absent_names(query: Query, texts: Sequence[str], is_word: Callable[[str], bool]) -> list[str]:
    """Return the words of a query that may be names and that no text has, in whatever spelling.

    A text has a word in another spelling if it is part of a longer one, or two words, or was mistyped.
    `texts` are the first that were found; `is_word` tells what the model knows as a word.
    """
    capitalised = _capitalised(query.meaning)
    unknown = [word for word, holding in query.frequencies.items() if not holding]
    names = [word for word in unknown if word.casefold() in capitalised or not is_word(word.casefold())]
    if not names:
        return []
    known = {*_WORD.findall("\n".join(texts).casefold())}
    return [word for word in names if not (_is_meant(word, known) or is_spelt_otherwise(word, texts))]


def is_spelt_otherwise(word: str, texts: Iterable[str]) -> bool:
    """Whether a text has a word with hyphens or ligatures in it, or as a part of a longer one."""
    bare = word.casefold()
    return any(bare in _without_hyphens(text) for text in texts)


def _without_hyphens(text: str) -> str:
    if text.isascii():  # most are, and this is ten times as quick
        return text.lower().replace("-", "")
    return normalize("NFKC", text).casefold().translate(_HYPHENS)


def _capitalised(text: str) -> set[str]:
    """Return the words with a capital that a sentence does not ask for, and their parts, folded.

    Empty if all words have one, as in a title.
    """
    typed = [word.text for word in words(text)]
    if not any(word[:1].islower() for word in typed):
        return set()
    named = [word for at, word in enumerate(typed) if word[:1].isupper() and at or _is_mixed(word)]
    return {part.casefold() for word in named for part in (word, *_LETTERS.findall(word))}


def _is_meant(word: str, known: set[str]) -> bool:
    """Whether a word was mistyped for a known one, or is two of them without the space between."""
    is_mixed, word = _is_mixed(word), word.casefold()  # OpenVPN is no open VPN
    places = range(LEAST_PART, len(word) - LEAST_PART + 1)
    if not is_mixed and any(word[:at] in known and word[at:] in known for at in places):
        return True
    letters, first = {*word}, word[0]
    alike = (one for one in known if one[0] == first and abs(len(one) - len(word)) <= 2)
    return any(len(letters.symmetric_difference(one)) <= MOST_OTHERS and is_slip(word, one) for one in alike)


def _is_mixed(word: str) -> bool:
    """Whether small letters and capitals stand in a word otherwise than at the beginning of a sentence."""
    return not (word.islower() or word.isupper() or word.istitle())
