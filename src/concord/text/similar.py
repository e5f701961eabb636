"""Which words of an index are near a mistyped one? By edits, beginnings and parts.

An index holds stems, so a typed word is near a token when either the word or its stem is; what a person is
shown is a word that really stands in a text. Numbers are never near each other: 404 is no misspelt 403.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from concord.text.scripts import has_unspaced, is_form
from concord.text.tokens import folded, stem, tokenize

MIN_LETTERS = 3  # of a word, and of a token: shorter ones are near everything
ONE_EDIT_FROM, TWO_EDITS_FROM = 4, 6  # letters a word must have to be one or two edits off
MIN_PART = 4  # letters of a word that is looked for inside others
BEGINS, CONTAINS = 2, 3  # what a longer token counts as, in edits: "kubern" is as far off as two slips
UNSURE = 4  # a stem that only the words it stands for can show to be near: implmentaton, implement
SPELLINGS = 5  # places to look at for the word that a token stands for
ALIKE = 3  # first letters that words must share where not all can be compared
_MOST_UNSURE = 10
_SPARE = 2  # words that are looked at beyond those asked for: one may be nearer than its stem
_LONGEST_ENDING = 7  # that stemming takes off: ization
_LONGEST = 32  # longer words are data; nobody mistypes them

_BLOCK = 64  # letters of other scripts stand in blocks of this many code points, small ones together


# How far a token of an index is from what was typed, minus how many chunks hold it, and the token itself: so
# that the nearest comes first, and then the most frequent.
Near = tuple[int, int, str]


class Typed(Struct, frozen=True):
    """A word as it is compared: folded, its stem, how far off it may be, the stems one edit away."""

    word: str
    root: str
    allowed: int
    one_off: frozenset[str]
    letters: frozenset[str]


def typed(word: str) -> Typed | None:
    """Return a word ready to be compared; None for what is too short, too long, several words or unspaced."""
    tokens = folded(word)
    if len(tokens) != 1 or not MIN_LETTERS <= len(tokens[0]) <= _LONGEST or has_unspaced(tokens[0]):
        return None
    letters = len(tokens[0]) - is_form(tokens[0])
    allowed = (letters >= ONE_EDIT_FROM) + (letters >= TWO_EDITS_FROM)
    one_off = frozenset(tokenize(" ".join(variants(tokens[0])))) if allowed else frozenset[str]()
    return Typed(tokens[0], stem(tokens[0]), allowed, one_off, frozenset(tokens[0]))


def variants(word: str) -> Iterator[str]:
    """Yield the spellings one edit away: a letter left out, swapped with the next, changed or added.

    The first letter stays: hardly anybody mistypes it, and most other words differ in it.
    """
    alphabet = _alphabet(word)
    yield word
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        yield from (before + letter + after for letter in alphabet)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in alphabet if letter != after[0])
        if len(after) > 1 and after[0] != after[1]:
            yield before + after[1] + after[0] + after[2:]


def similar(
    asked: Typed,
    vocabulary: Iterable[tuple[str, int]],
    spellings: Callable[[str], Iterable[str]],
    limit: int,
) -> list[tuple[str, int]]:
    """Return words near the typed one, nearest first, then most frequent, with how many chunks hold each.

    `vocabulary` holds tokens and how many chunks hold each, `spellings` says which words one stands for.
    """
    edits = ((_edits_to(asked, token), -chunks, token) for token, chunks in vocabulary)
    close = ((far, rarity, token) for far, rarity, token in edits if far is not None)
    found = sorted(near for near in close if _is_comparable(asked.word, near[2]))
    sure = [near for near in found if near[0] < UNSURE][: limit + _SPARE]
    if not sure or sure[0][0] > 1:
        sure += [near for near in found if near[0] == UNSURE][:_MOST_UNSURE]
    best = sorted(_shown(asked, near, islice(spellings(near[2]), SPELLINGS)) for near in sure)
    return [(word, -rarity) for far, rarity, word in best if far < UNSURE][:limit]


def _shown(asked: Typed, near: Near, spellings: Iterable[str]) -> Near:
    """Return a token by the nearest of the words that it stands for in texts; they may be nearer than it."""
    far, rarity, token = near
    known = [word.lower() for word in spellings if stem("".join(folded(word))) == token]
    if not known:
        return near
    apart = ((distance(asked.word, "".join(folded(word)), asked.allowed), word) for word in known)
    edits, _, best = min((asked.allowed + 1 if off is None else off, len(word), word) for off, word in apart)
    if edits > asked.allowed:  # the word is a part of it, or two stems happen to be alike: capital, capath
        edits = far if far <= 1 or asked.word in f"{token}e" else UNSURE
    return edits, rarity, best


def distance(word: str, other: str, at_most: int) -> int | None:
    """Return how many letters must be added, left out, changed or swapped with the next; None when more."""
    if abs(len(word) - len(other)) > at_most:
        return None
    row = _last_row(*_without_shared_start(word, other), at_most)
    return row[-1] if row and row[-1] <= at_most else None


def _begins_nearly(asked: Typed, token: str) -> bool:
    """Whether a token is near the beginning of the word, the rest of which may be an ending."""
    word, most = asked.word, asked.allowed
    if most < 2 or word[:ALIKE] != token[:ALIKE] or not 0 < len(word) - len(token) <= _LONGEST_ENDING:
        return False
    return min(_last_row(*_without_shared_start(token, word), most), default=most + 1) <= most


def _without_shared_start(word: str, other: str) -> tuple[str, str]:
    pairs = enumerate(zip(word, other, strict=False))
    shared = next((at for at, (a, b) in pairs if a != b), min(len(word), len(other)))
    return word[shared:], other[shared:]


def _last_row(word: str, other: str, at_most: int) -> list[int]:
    """Return the edits between a word and each beginning of another; nothing when all are more."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        earlier, before, row = before, row, [i]
        for j, facing in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == facing:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > at_most:
            return []
    return row


def _edits_to(asked: Typed, token: str) -> int | None:
    """Return how far a token is from the word, if it is near; the cheap questions come first."""
    if token in asked.one_off:
        return int(token != asked.root)
    most = asked.allowed
    is_as_long = len(asked.root) - most <= len(token) <= len(asked.word) + most
    # Each edit changes two letters of the set at most: this spares nearly all of the comparisons.
    if is_as_long and len(asked.letters.symmetric_difference(token)) <= 2 * most:
        apart = (distance(form, token, most) for form in {asked.word, asked.root})
        if known := [edits for edits in apart if edits is not None]:
            return min(known)
    # Stemming takes off a final e: database holds base, though databas does not.
    if asked.word in f"{token}e":
        is_long = len(asked.word) >= MIN_PART
        return BEGINS if token.startswith(asked.word) else CONTAINS if is_long else None
    return UNSURE if _begins_nearly(asked, token) else None


def _is_comparable(word: str, token: str) -> bool:
    return (
        len(token) >= MIN_LETTERS
        and is_form(token) == is_form(word)  # parts of a word with signs are no words
        and [*filter(str.isdigit, word)] == [*filter(str.isdigit, token)]
        and any(map(str.isalpha, token))
        and not has_unspaced(token)
    )


def _alphabet(word: str) -> list[str]:
    if word.isascii():
        return list("abcdefghijklmnopqrstuvwxyz")
    starts = {ord(letter) // _BLOCK * _BLOCK for letter in word if letter.isalpha()}
    return [
        chr(code) for start in sorted(starts) for code in range(start, start + _BLOCK) if chr(code).islower()
    ]
