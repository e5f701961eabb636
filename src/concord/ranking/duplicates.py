"""Which of the ranked chunks say the same? Near-duplicates become one result that names the others."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, lru_cache
from itertools import chain, product
from unicodedata import category

from msgspec import Struct

from concord.ranking.lexicon import NEGATIONS, OPPOSED, UNSPACED_NEGATIONS
from concord.text.characters import beyond_ascii, has_digit, is_near
from concord.text.unspaced import UNSPACED
from concord.types import ChunkId, Ranked

DUPLICATE = 0.95  # word-set similarity from which two chunks are one text: a name more makes it another

_SIGNS = bytes(code for code in range(0x80) if not chr(code).isalnum() and chr(code) != "_")
_SPACED = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))

_ONE = ord("1")
_PARTED = 40  # words that two copies may have apart at one place
_FEW_APART = 4  # words: so near, looking for where they meet is quicker than noting where everything is
_TOGETHER = 3  # words by which they are seen to go on alike
_MIN_ROOT = 3  # letters of a word that another has a prefix to
_MANY = 32  # word sets: more of them are compared as bits, which have to be made first

Words = AbstractSet[str]


class Collapsed(Struct, frozen=True):
    """A chunk that stands for others of the same text."""

    ranked: Ranked
    duplicates: tuple[ChunkId, ...]  # best first


@lru_cache(maxsize=64)
def word_set(text: str) -> frozenset[str]:
    """Return the words of a text, case and signs aside; of scripts without spaces, pairs of characters.

    A text of signs alone is one word.
    """
    return frozenset(_in_order(text))


def says_the_same(one: str, other: str, asked: AbstractSet[str]) -> bool:
    """Whether near-duplicates have their words in the same order, and what only one has is no answer.

    An answer is a number, a word asked for, or one that turns a statement: a negation, must instead of may.
    """
    mine, theirs = _sequence(one), _sequence(other)
    if mine == theirs:
        return True
    if any(_tells_apart(word, asked) for word in word_set(one) ^ word_set(other)):  # cheap, and mostly enough
        return False
    changes = _changes(mine, theirs)
    if changes is None:
        return False
    more, less = map(frozenset, changes)  # what both have is in another place
    return (
        more.isdisjoint(less)
        and not any(_tells_apart(word, asked) for word in more | less)
        and not _are_opposites(more, less)
    )


def similarity(one: Words, other: Words) -> float:
    """Return the Jaccard similarity of two word sets; 0 where both are empty."""
    return _jaccard(len(one & other), len(one), len(other))


class Likeness:
    """How many words chunks share."""

    def __init__(self, words: Mapping[ChunkId, Words]) -> None:
        self._words = words
        self._bits = _bits(words) if len(words) > _MANY else None

    def size(self, chunk_id: ChunkId) -> int:
        """Return how many different words a chunk has."""
        return len(self._words[chunk_id])

    def similarity(self, one: ChunkId, other: ChunkId) -> float:
        """Return the Jaccard similarity of two chunks' words."""
        mine, theirs = self._words[one], self._words[other]
        if self._bits is None:
            return similarity(mine, theirs)
        return _jaccard((self._bits[one] & self._bits[other]).bit_count(), len(mine), len(theirs))

    def are_near_duplicates(self, one: ChunkId, other: ChunkId) -> bool:
        """Whether the words of two chunks are nearly the same."""
        if self._bits is None and _differ(self._words[one], self._words[other]):
            return False
        return self.similarity(one, other) >= DUPLICATE


def collapse(
    ranked: Iterable[Ranked],
    likeness: Likeness,
    is_same: Callable[[ChunkId, ChunkId], bool] = lambda one, other: True,
) -> list[Collapsed]:
    """Make one of chunks whose words are nearly the same; the best stays. `is_same` has the last word."""
    kept: dict[ChunkId, tuple[Ranked, list[ChunkId]]] = {}
    by_size: dict[int, list[tuple[int, ChunkId]]] = defaultdict(list)  # kept ones, each after its place
    for place, one in enumerate(ranked):
        size = likeness.size(one.chunk_id)
        # Sets whose sizes differ by more cannot be that similar; this spares most of the comparisons.
        sizes = range(math.floor(DUPLICATE * size), math.ceil(size / DUPLICATE) + 1)
        alike = sorted(
            (before, other)
            for near in sizes
            for before, other in by_size.get(near, ())
            if likeness.are_near_duplicates(one.chunk_id, other)
        )
        same = next((other for _, other in alike if is_same(one.chunk_id, other)), None)
        if same is None:
            kept[one.chunk_id] = (one, [])
            by_size[size].append((place, one.chunk_id))
        else:
            kept[same][1].append(one.chunk_id)
    return [Collapsed(one, tuple(others)) for one, others in kept.values()]


@lru_cache(maxsize=64)
def _sequence(text: str) -> tuple[str, ...]:
    """Return the words of a text, which is compared with one after another."""
    return tuple(_in_order(text))


def _changes(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[list[str], list[str]] | None:
    """Return the words of each text that the other lacks where they stand; None where they part for long."""
    more: list[str] = []
    less: list[str] = []
    while True:
        shared = _shared(one, other)
        one, other = one[shared:], other[shared:]
        if not one or not other:
            return [*more, *one], [*less, *other]
        skipped = _until_they_meet(one, other)
        if skipped is None:
            return None
        more += one[: skipped[0]]
        less += other[: skipped[1]]
        one, other = one[skipped[0] :], other[skipped[1] :]


def _until_they_meet(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[int, int] | None:
    """Return how many words of each are left out, few of both, before they go on alike."""
    for apart in range(1, _FEW_APART):  # mostly: one word for another, one more, two in another order
        for mine in range(max(0, apart - len(other)), min(apart, len(one)) + 1):
            if one[mine : mine + _TOGETHER] == other[apart - mine : apart - mine + _TOGETHER]:
                return mine, apart - mine
    places = {other[at : at + _TOGETHER]: at for at in range(min(len(other), _PARTED), -1, -1)}
    starts = ((mine, one[mine : mine + _TOGETHER]) for mine in range(min(len(one), _PARTED) + 1))
    apart, mine = min(
        ((mine + places[start], mine) for mine, start in starts if start in places), default=(_PARTED, 0)
    )
    return (mine, apart - mine) if apart < _PARTED else None


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts begin with alike; halving compares them in C."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _tells_apart(word: str, asked: AbstractSet[str]) -> bool:
    if word in asked or word in NEGATIONS or has_digit(word):
        return True
    return not word.isascii() and (word in UNSPACED_NEGATIONS or not UNSPACED_NEGATIONS.isdisjoint(word))


def _are_opposites(some: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Whether a word may stand for its opposite: may for must, able for unable."""
    if some & OPPOSED and others & OPPOSED:
        return True
    pairs = (sorted(pair, key=len) for pair in product(some, others))
    return any(len(short) >= _MIN_ROOT and long.endswith(short) for short, long in pairs)


def _in_order(text: str) -> list[str]:
    folded = text.casefold()
    return _words(folded) or [" ".join(folded.split())]


def _words(folded: str) -> list[str]:
    if is_near(folded):
        return _without_signs(folded).split()
    return [part for found in _runs().finditer(folded) for part in _parts(found)]


def _without_signs(text: str) -> str:
    """Return a text with spaces for signs: a third of what a regular expression takes to find the words."""
    data = text.encode("utf-8", "surrogatepass").translate(_SPACED)
    spaced = data.decode("utf-8", "surrogatepass")
    for character in set(beyond_ascii(text)):
        if not character.isalnum() and not _is_vowel(character):
            spaced = spaced.replace(character, " ")
    return spaced


def _is_vowel(character: str) -> bool:
    """Whether it is a sign or point on which a word of Hindi, Hebrew and their like depends."""
    return character >= "\u0591" and category(character)[0] == "M"


@cache
def _runs() -> re.Pattern[str]:  # costs milliseconds to compile: ASCII text does not pay
    return re.compile(f"([{UNSPACED}]+)|[^\\W{UNSPACED}]+")


def _parts(found: re.Match[str]) -> Iterable[str]:
    run = found[0]
    if found[1] is None or len(run) < 3:
        return (run,)
    return (run[at : at + 2] for at in range(len(run) - 1))


def _differ(one: Words, other: Words) -> bool:
    """Whether two word sets are surely no near-duplicates; a few words mostly tell."""
    needed = (len(one) + len(other)) * DUPLICATE / (1 + DUPLICATE)  # words that both have
    bearable = len(one) - math.floor(needed)
    for word in one:
        if word not in other:
            bearable -= 1
            if bearable < 0:
                return True
    return False


def _jaccard(shared: int, one: int, other: int) -> float:
    union = one + other - shared
    return shared / union if union else 0.0


def _bits(sets: Mapping[ChunkId, Words]) -> dict[ChunkId, int]:
    """Return each word set as bits over the words that several have, so that an overlap costs one AND."""
    times = Counter(chain.from_iterable(sets.values()))
    places = {word: place for place, word in enumerate(word for word, count in times.items() if count > 1)}
    found: dict[ChunkId, int] = {}
    for chunk_id, words in sets.items():
        digits = bytearray(b"0") * (len(places) + 1)  # setting bits in a growing number costs far more
        for word in words & places.keys():
            digits[places[word]] = _ONE
        found[chunk_id] = int(digits, base=2)
    return found
