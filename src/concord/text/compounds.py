"""The two words that a longer one may be made of: Kündigungsfrist, checkbutton, panicprone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concord.text.scripts import has_unspaced
from concord.text.tokens import folded, stem

LEAST_PART = 4  # letters: shorter words stand in too many others by chance
LEAST_STEM = 3  # letters of a part's stem: iing, of a mistyped settliing, has the stem i, which is everywhere
LONGEST = 32  # letters of a word that is taken apart
_LINKS = ("", "s", "es", "n", "en", "e", "er")  # letters between two German words, which belong to neither

Parts = tuple[str, str]


def splits(word: str) -> Iterator[Parts]:
    """Yield the pairs that a word may be made of, folded; nothing for what is not one word of letters."""
    tokens = folded(word)
    if len(tokens) != 1 or len(tokens[0]) > LONGEST or not tokens[0].isalpha() or has_unspaced(word):
        return
    token = tokens[0]
    for end in range(LEAST_PART, len(token) - LEAST_PART + 1):
        for link in _LINKS:
            begin = end + len(link)
            if token.startswith(link, end) and _are_words(parts := (token[:end], token[begin:])):
                yield parts


def _are_words(parts: Parts) -> bool:
    return all(len(part) >= LEAST_PART and len(stem(part)) >= LEAST_STEM for part in parts)


def likeliest(pairs: Iterable[Parts], known: set[str]) -> Parts | None:
    """Return the pair of known words with the fewest letters left out, and of those the most even one."""
    whole = (pair for pair in pairs if known.issuperset(pair))
    return max(whole, key=lambda pair: (sum(map(len, pair)), min(map(len, pair))), default=None)
