"""Porter's stemmer with exactly the steps of SQLite FTS5's `porter` tokenizer.

FTS5 works on the UTF-8 bytes of a folded token of 3 to 64 bytes; it differs from the paper (Porter, 1980) in
small ways: a suffix must leave something before it, `bli` and `logi` are rules of step 2, and `y` counts as a
vowel anywhere but at the start where a step only asks for some vowel. What the index holds was stemmed there,
so a better stemmer here would find less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

_MIN_BYTES, _MAX_BYTES = 3, 64  # FTS5 leaves shorter and longer tokens as they are

# Of the bytes a token may end in, those that begin some rule; the others end the work at once.
_LAST = frozenset("cdegilmnrstuy")

# Suffix and replacement, tried in order; the first suffix that fits decides, even when its condition does not
# hold. Keyed by the last letter but one, as FTS5 looks them up.
_Rules = dict[str, tuple[tuple[str, str], ...]]

_STEP_2: _Rules = {
    "a": (("ational", "ate"), ("tional", "tion")),
    "c": (("enci", "ence"), ("anci", "ance")),
    "e": (("izer", "ize"),),
    "g": (("logi", "log"),),
    "l": (("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    "o": (("ization", "ize"), ("ation", "ate"), ("ator", "ate")),
    "s": (("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "t": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
}
_STEP_3: _Rules = {
    "a": (("ical", "ic"),),
    "s": (("ness", ""),),
    "t": (("icate", "ic"), ("iciti", "ic")),
    "u": (("ful", ""),),
    "v": (("ative", ""),),
    "z": (("alize", "al"),),
}
_STEP_4: _Rules = {
    "a": (("al", ""),),
    "c": (("ance", ""), ("ence", "")),
    "e": (("er", ""),),
    "i": (("ic", ""),),
    "l": (("able", ""), ("ible", "")),
    "n": (("ant", ""), ("ement", ""), ("ment", ""), ("ent", "")),
    "o": (("ion", ""), ("ou", "")),
    "s": (("ism", ""),),
    "t": (("ate", ""), ("iti", "")),
    "u": (("ous", ""),),
    "v": (("ive", ""),),
    "z": (("ize", ""),),
}

_VOWELS = "aeiou"
_SHAPES = dict.fromkeys(range(256), "c") | {ord(v): "v" for v in _VOWELS} | {ord("y"): "y"}


@lru_cache(maxsize=1 << 16)
def stem(token: str) -> str:
    """Return the stem of a folded token (lower case, without accents: what `folded` returns)."""
    if len(token) < _MIN_BYTES and token.isascii() or token[-1:] not in _LAST:
        return token
    if token.isascii():
        return token if len(token) > _MAX_BYTES else _stemmed(token)
    data = token.encode("utf-8", "replace")
    if not _MIN_BYTES <= len(data) <= _MAX_BYTES:
        return token
    # One character a byte, as FTS5 sees it; a rule may even cut a character in two there.
    return _stemmed(data.decode("latin-1")).encode("latin-1").decode("utf-8", "replace")


def beginning(root: str) -> str:
    """Return what all words with a stem begin with: stemming may have changed its last letter.

    Of two letters it only makes a y an i, as in eyed.
    """
    return root[:-1] if len(root) > 2 or root[1:] == "i" else root


def candidates(line: str, root: str) -> Iterable[tuple[int, str]]:
    """Return the words of a line that may have a stem, each with the offset at which it begins.

    The line is of folded words, with a space before the first and after the last; offsets do not count the
    first space. Few words begin like a stem, and finding these takes far less time than stemming all.
    """
    start = " " + beginning(root)
    return _words_at(start, line) if start in line else ()


def with_stem(line: str, root: str) -> list[tuple[int, str]]:
    """Return the words of such a line that have a stem."""
    return [found for found in candidates(line, root) if stem(found[1]) == root]


def _words_at(start: str, line: str) -> Iterator[tuple[int, str]]:
    at = line.find(start)
    while at >= 0:
        end = line.find(" ", at + 1)
        yield at, line[at + 1 : end]
        at = line.find(start, end)


def occurrences(needle: str, text: str) -> Iterator[int]:
    """Yield where a string occurs in a text."""
    at = text.find(needle)
    while at >= 0:
        yield at
        at = text.find(needle, at + 1)


def _stemmed(word: str) -> str:
    word = _without_ending(_without_plural(word))
    if word[-1] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _apply(_STEP_2, word, 0)
    word = _apply(_STEP_3, word, 0)
    word = _apply(_STEP_4, word, 1)
    return _tidied(word)


def _without_plural(word: str) -> str:
    """Drop the s of a plural: step 1a."""
    if word[-1] != "s" or word[-2] == "s":
        return word
    if word[-2] != "e":
        return word[:-1]
    cut = 2 if len(word) > 4 and word[-4:-2] == "ss" or len(word) > 3 and word[-3] == "i" else 1
    return word[:-cut]


def _without_ending(word: str) -> str:
    """Drop ed and ing: step 1b."""
    if len(word) > 3 and word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if len(word) > len(suffix) and word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _mended(rest) if _has_vowel(rest) else word
    return word


def _mended(word: str) -> str:
    """Mend the end of a word from which step 1b took its ending."""
    if len(word) > 2 and word[-2:] in ("at", "bl", "iz"):
        return word + "e"
    last = word[-1]
    if last not in _VOWELS and last not in "lsz" and word[-2:-1] == last:
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _apply(rules: _Rules, word: str, above: int) -> str:
    """Replace the first suffix that fits, when what is before it measures above a number."""
    for suffix, replacement in rules.get(word[-2:-1], ()):
        if len(word) > len(suffix) and word.endswith(suffix):
            rest = word[: -len(suffix)]
            if _measure(rest) <= above or suffix == "ion" and rest[-1] not in "st":
                return word
            return rest + replacement
    return word


def _tidied(word: str) -> str:
    """Drop a final e and the second of two final l: steps 5a and 5b."""
    if word[-1] == "e":
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or measure == 1 and not _ends_short(rest):
            word = rest
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word


def _shape(word: str) -> str:
    """Return c for a consonant and v for a vowel, letter by letter; y is a vowel after a consonant."""
    shape = word.translate(_SHAPES)
    while (at := shape.find("y")) >= 0:
        shape = shape[:at] + ("v" if shape[at - 1 : at] == "c" else "c") + shape[at + 1 :]
    return shape


def _measure(word: str) -> int:
    """Return how often consonants follow vowels: the paper's m."""
    return _shape(word).count("vc")


def _has_vowel(word: str) -> bool:
    return "y" in word[1:] or any(vowel in word for vowel in _VOWELS)


def _ends_short(word: str) -> bool:
    """Whether it ends consonant, vowel, consonant other than w, x or y: the paper's *o."""
    return word[-1:] not in ("w", "x", "y") and _shape(word).endswith("cvc")
