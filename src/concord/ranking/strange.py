"""Which words of a query are strange: no text has them, in whatever spelling, and they may be names?

Judged questions with a word that nothing holds are answered as often as others, because mostly that is just
another word for what the text says (encountered, genre). Where a name is put in the place of another (Paris
for Berlin), the answer is about the other. Such a word has a capital after its first letter or within the
query, or the model has no token for it.
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


def strange_words(query: Query, texts: Sequence[str], is_word: Callable[[str], bool]) -> list[str]:
    """Return those words of a query that nothing holds, that may be names, and that no text spells otherwise.

    A text does if it has the word as part of a longer one, or in two words, or if it was mistyped. `texts`
    are the first that were found; `is_word` tells what the model knows as a word.
    """
    names = _capitalised(query.meaning)
    unknown = [word for word, holding in query.frequencies.items() if not holding]
    odd = [word for word in unknown if word.casefold() in names or not is_word(word.casefold())]
    if not odd:
        return []
    known = {*_WORD.findall("\n".join(texts).casefold())}
    meant = [word for word in odd if _is_meant(word, known) or is_spelt_otherwise(word, texts)]
    return [word for word in odd if word not in meant]


def is_spelt_otherwise(word: str, texts: Iterable[str]) -> bool:
    """Whether a text has a word with hyphens or ligatures in it, or as a part of a longer one."""
    bare = word.casefold()
    return any(bare in _without_hyphens(text) for text in texts)


def _without_hyphens(text: str) -> str:
    if text.isascii():  # most are, and this is ten times as quick
        return text.lower().replace("-", "")
    return normalize("NFKC", text).casefold().translate(_HYPHENS)


def _capitalised(text: str) -> str:
    """Return the words with a capital that a sentence does not ask for, folded.

    None has one where no other word is small.
    """
    typed = [word.text for word in words(text)]
    if not any(word[:1].islower() for word in typed):
        return ""
    named = [word for at, word in enumerate(typed) if word[:1].isupper() and at or _is_mixed(word)]
    return " ".join(named).casefold()


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
