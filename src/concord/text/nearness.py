"""How near is a typed word to the words of an index? Edits, beginnings and parts, for those who mistype.

An index holds stems, so a typed word is near a token when either the word or its stem is; what a person is
shown is a word that really stands in a text. Numbers are never near each other: 404 is no misspelt 403.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import ascii_lowercase
from typing import NamedTuple

from concord.text.characters import folded
from concord.text.stem import stem
from concord.text.unspaced import has_unspaced

MIN_LETTERS = 3  # of a word, and of a token: shorter ones are near everything
ONE_EDIT_FROM, TWO_EDITS_FROM = 4, 6  # letters a word must have to be one or two edits off
MIN_PART = 4  # letters of a word that is looked for inside others
BEGINS, CONTAINS = 2, 3  # what a longer token counts as, in edits: "kubern" is as far off as two slips
SPELLINGS = 5  # places to look at for the word that a token stands for
_LONGEST = 32  # longer words are data; nobody mistypes them

_BLOCK = 64  # letters of other scripts stand in blocks of this many code points, small ones together


class Near(NamedTuple):
    """A token of an index and how far it is from what was typed; sorts nearest first, then most frequent."""

    edits: int
    rarity: int  # minus how many chunks hold it
    token: str

    @property
    def chunks(self) -> int:
        """How many chunks hold it."""
        return -self.rarity


class Typed(NamedTuple):
    """A word as it is compared: folded, its stem, how far off it may be, and the stems one edit away."""

    word: str
    root: str
    allowed: int
    one_off: frozenset[str]


def typed(word: str) -> Typed | None:
    """Return a word ready to be compared; None for what is too short, too long, several words or unspaced."""
    tokens = folded(word)
    if len(tokens) != 1 or not MIN_LETTERS <= len(tokens[0]) <= _LONGEST or has_unspaced(tokens[0]):
        return None
    allowed = (len(tokens[0]) >= ONE_EDIT_FROM) + (len(tokens[0]) >= TWO_EDITS_FROM)
    one_off = frozenset(map(stem, variants(tokens[0]))) if allowed else frozenset()
    return Typed(tokens[0], stem(tokens[0]), allowed, one_off)


def variants(word: str) -> Iterator[str]:
    """Yield the spellings one edit away: a letter left out, swapped with the next, changed or added."""
    alphabet = _alphabet(word)
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        yield from (before + letter + after for letter in alphabet)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in alphabet if letter != after[0])
        if len(after) > 1 and after[0] != after[1]:
            yield before + after[1] + after[0] + after[2:]


def nearest(asked: Typed, vocabulary: Iterable[tuple[str, int]]) -> list[Near]:
    """Return the tokens that are near, nearest first; `vocabulary` says how many chunks hold each."""
    letters = set(asked.word)
    found: list[Near] = []
    for token, chunks in vocabulary:
        # Each edit changes two letters of the set at most: this spares nearly all of the comparisons.
        if len(letters.symmetric_difference(token)) <= 2 * asked.allowed or asked.word in token:
            edits = _edits_to(asked, token)
        else:
            edits = 1 if token in asked.one_off else None
        if edits is not None and _is_comparable(asked.word, token):
            found.append(Near(edits, -chunks, token))
    return sorted(found)


def shown(asked: Typed, near: Near, spellings: Iterable[str]) -> Near:
    """Return a token by the nearest of the words that it stands for in texts; they may be nearer than it."""
    known = [word.lower() for word in spellings if stem("".join(folded(word))) == near.token]
    if not known:
        return near
    far = asked.allowed + 1
    apart = {word: distance(asked.word, "".join(folded(word)), asked.allowed) for word in known}
    best = min(known, key=lambda word: (far if apart[word] is None else apart[word], len(word), word))
    edits = apart[best]
    return near._replace(token=best, edits=near.edits if edits is None else min(near.edits, edits))


def distance(one: str, other: str, at_most: int) -> int | None:
    """Return how many letters must be added, left out, changed or swapped with the next; None when more."""
    if abs(len(one) - len(other)) > at_most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, facing in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == facing:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > at_most:
            return None
    return row[-1] if row[-1] <= at_most else None


def _edits_to(asked: Typed, token: str) -> int | None:
    known = [distance(form, token, asked.allowed) for form in {asked.word, asked.root}]
    edits = [many for many in known if many is not None]
    if token in asked.one_off:
        edits.append(1)
    if token.startswith(asked.word):
        edits.append(BEGINS)
    elif len(asked.word) >= MIN_PART and asked.word in token:
        edits.append(CONTAINS)
    return min(edits, default=None)


def _is_comparable(word: str, token: str) -> bool:
    return (
        len(token) >= MIN_LETTERS
        and _digits(word) == _digits(token)
        and any(map(str.isalpha, token))
        and not has_unspaced(token)
    )


def _digits(word: str) -> str:
    return "".join(filter(str.isdigit, word))


def _alphabet(word: str) -> list[str]:
    if word.isascii():
        return list(ascii_lowercase)
    starts = {ord(letter) // _BLOCK * _BLOCK for letter in word if letter.isalpha()}
    return [chr(code) for start in sorted(starts) for code in range(start, start + _BLOCK) if chr(code).islower()]
