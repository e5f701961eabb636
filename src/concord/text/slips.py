"""Is an unknown word a known one, mistyped? Only such words are corrected in "did you mean".

An index holds few of the words of a language, and most short words are one letter from others: without bread
in it, bread is near read. What people mistype has the first letter right, lacks a letter or has one twice,
swaps two, hits the key beside, or takes one vowel for another. Other changes are believed of long words.
"""

from __future__ import annotations

from itertools import pairwise

from concord.text.nearness import distance
from concord.text.stopwords import is_stop_word
from concord.text.tokens import folded

SHORTEST = 4  # letters of a word that can be told to be mistyped
LETTER_MORE_FROM = 6  # letters of a word that may have one too many, or lack any
BESIDE_FROM, SOUND_FROM, OTHER_FROM = 5, 6, 9  # letters of a word with another in the place of one
TWO_FROM = 8  # letters of a word that may be two slips off

_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SOUNDS = ("aeiouy", "cksz")
_BEFORE_LAST = "lrnsmcpf"  # words end in form, milk, act


def is_slip(word: str, other: str) -> bool:
    """Whether one word is another, mistyped: france is no misspelt frac, and bread no misspelt read."""
    typed, meant = "".join(folded(word)), "".join(folded(other))
    if len(typed) < SHORTEST or typed[:1] != meant[:1] or is_stop_word(other):
        return False
    return _is_mistyped(typed, meant) or meant[-1] in "ds" and _is_mistyped(typed, meant[:-1])


def _is_mistyped(typed: str, meant: str) -> bool:
    edits = distance(typed, meant, 2)
    if edits is None or edits == 2:
        return edits == 2 and len(typed) >= TWO_FROM
    shorter, longer = sorted((typed, meant), key=len)
    start = next((at for at, letter in enumerate(shorter) if letter != longer[at]), len(shorter))
    if len(typed) == len(meant):
        is_swapped = typed[start : start + 2] == meant[start : start + 2][::-1]
        return edits == 0 or is_swapped or _is_confused(typed, meant, start)
    if len(shorter) >= LETTER_MORE_FROM or longer[start] == longer[start - 1]:
        return True
    return shorter == typed and _is_between_consonants(longer, start)


def _is_confused(typed: str, meant: str, at: int) -> bool:
    """Whether a letter stands for another because its key is beside it or it sounds alike."""
    pair = {typed[at], meant[at]}
    is_beside = any(pair == {*keys} for row in _KEYS for keys in pairwise(row))
    is_alike = any(pair <= {*letters} for letters in _SOUNDS)
    size = len(typed)
    return size >= OTHER_FROM or is_beside and size >= BESIDE_FROM or is_alike and size >= SOUND_FROM


def _is_between_consonants(word: str, at: int) -> bool:
    """Whether a vowel stands between consonants that end no word together, so that it is missed in tokn."""
    vowels, before, after = _SOUNDS[0], word[at - 1], word[at + 1 : at + 2]
    if word[at] not in vowels or before in vowels or not after or after in vowels:
        return False
    return at + 2 < len(word) or not (before in _BEFORE_LAST or after == "s")
