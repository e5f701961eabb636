"""Chunks that are indexed together, in PostgreSQL's own forms: a tsvector for each, and rows of postings.

Every occurrence of a token is a number that says whose it is. Sorted, those of one chunk and token stand
together: what took a dictionary a chunk is done for a thousand chunks at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.errors import ProgramLimitExceeded

from concord.backends.columns import Columns
from concord.backends.postgres.array_form import TextItems, Tsvectors, text_item
from concord.backends.postgres.words import COUNT_BITS, LABELS, LENGTH_BITS, MOST_COUNTED, Vocabulary
from concord.types import ChunkId

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_COLUMN_BITS = 2
_COLUMN = (1 << _COLUMN_BITS) - 1

_FIELD_BITS = 32  # of a column of a chunk among those that are indexed together

# What a tsvector can hold.
_POSITION_BITS = 14
_LAST_POSITION = (1 << _POSITION_BITS) - 1  # those after it count as the same
_MOST_POSITIONS = 256  # of a token
_MOST_BYTES = 1 << 20
_HEAD_BYTES = 8  # how many bytes follow, how many tokens
_NUMBER_BITS = 28  # of a token among those that are indexed together
_PLACE_BITS = _POSITION_BITS + _COLUMN_BITS


class Indexed(NamedTuple):
    """What is stored with some chunks: how many tokens each has, and which stand where."""

    lengths: list[int]
    words: Tsvectors


class Postings(NamedTuple):
    """Some terms: in how many chunks each is, and these, those of one term after those of another."""

    terms: TextItems
    sizes: Numbers
    chunks: Numbers
    packed: Numbers


class _Learned:
    """Tokens with their texts, as tsvectors are made of them; one segment after another adds to it."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self.texts = b""  # of all tokens, one after the other
        self.ends = array("q")  # of each there
        self.items: list[bytes] = []  # each of them as an array of texts has it

    def catch_up(self) -> None:
        """Take the texts of new tokens down."""
        new = [token.encode() for token in self.vocabulary.tokens[len(self.ends) :]]
        self.items += map(text_item, new)
        self.ends.extend(islice(accumulate(map(len, new), initial=len(self.texts)), 1, None))
        self.texts += b"".join(new)


_MOST_WORDS = 1 << 16  # that are remembered from one segment to the next, as many as are stemmed once only
_idle: list[_Learned] = []  # as many as there were segments at once


@contextmanager
def new_segment() -> Iterator[Segment]:
    """Lend an empty segment."""
    try:
        learned = _idle.pop()
    except IndexError:
        learned = _Learned()
    yield Segment(learned)
    if len(learned.vocabulary) <= _MOST_WORDS:
        _idle.append(learned)


class Segment:
    """The chunks that are indexed together."""

    def __init__(self, learned: _Learned) -> None:
        self.chunks: list[ChunkId] = []
        self._learned = learned
        self._found: list[Numbers] = []  # the number of each token, in order
        self._sizes: list[Numbers] = []  # how many tokens each column of each chunk has

    @property
    def tokens(self) -> int:
        """How many tokens all chunks have."""
        return sum(map(len, self._found))

    def add(self, chunks: Iterable[tuple[ChunkId, Columns]]) -> Indexed:
        """Take chunks in, and return what is stored with them."""
        found: list[int] = []
        sizes: list[int] = []
        for chunk_id, columns in chunks:
            self.chunks.append(chunk_id)
            for text in columns:
                before = len(found)
                if text:  # most chunks have no tags, and no parts of identifiers
                    found += self._learned.vocabulary.lexemes(text)
                sizes.append(len(found) - before)
        self._found.append(np.fromiter(found, np.int64, len(found)))
        self._sizes.append(np.fromiter(sizes, np.int64, len(sizes)))
        self._learned.catch_up()
        lengths = _lengths(self._sizes[-1]).tolist()
        texts, ends = np.frombuffer(self._learned.texts, np.uint8), np.array(self._learned.ends)
        made = _tsvectors(_occurrences(self._found[-1], self._sizes[-1]), len(lengths), texts, ends)
        return Indexed(lengths, Tsvectors(len(lengths), made))

    def postings(self, at_once: int) -> Iterator[Postings]:
        """Yield all postings in the order of their terms, about so many together."""
        found, sizes = np.concatenate(self._found), np.concatenate(self._sizes)
        order, rank = _ordered(self._learned.vocabulary.tokens, np.flatnonzero(np.bincount(found)))
        fields = np.repeat(np.arange(len(sizes)), sizes)  # a column of a chunk each
        found = (rank[found] << _FIELD_BITS) + fields
        found.sort()
        first = _first_of_each(found)
        often = np.minimum(np.diff(first, append=len(found)), MOST_COUNTED)
        often <<= (found[first] & _COLUMN) * COUNT_BITS
        posting = found[first] >> _COLUMN_BITS
        first = _first_of_each(posting)
        term, chunk = _split(posting[first], _FIELD_BITS - _COLUMN_BITS)
        packed = _summed(often, first) + (_lengths(sizes)[chunk] << LENGTH_BITS)
        terms = TextItems([self._learned.items[number] for number in order])
        return _parted(Postings(terms, np.bincount(term), np.array(self.chunks)[chunk], packed), at_once)


def _ordered(tokens: Sequence[str], used: Numbers) -> tuple[list[int], Numbers]:
    """Return some numbers in the order of their tokens, and by number the place of each of them there."""
    order = sorted(used.tolist(), key=tokens.__getitem__)
    rank = np.zeros(len(tokens), np.int64)
    rank[np.fromiter(order, np.int64, len(order))] = np.arange(len(order))
    return order, rank


def _parted(found: Postings, at_once: int) -> Iterator[Postings]:
    ends = found.sizes.cumsum()
    first = start = 0
    while first < len(ends):
        last = max(first + 1, int(ends.searchsorted(start + at_once)))
        stop = int(ends[last - 1])
        yield Postings(
            TextItems(found.terms.items[first:last]),
            found.sizes[first:last],
            found.chunks[start:stop],
            found.packed[start:stop],
        )
        first, start = last, stop


def _tsvectors(occurrences: Numbers, chunks: int, texts: Bytes, ends: Numbers) -> bytes:
    """Return the tsvectors of chunks as `tsvectorrecv` takes them, each after its length.

    One holds how many tokens it has, then each token with a NUL, how many positions and the positions.
    """
    token, place = _split(occurrences, _PLACE_BITS)
    first = _first_of_each(token)
    often = np.diff(first, append=len(token))
    chunk, number = _split(token[first], _NUMBER_BITS)
    lengths = np.diff(ends, prepend=0)[number]
    items = lengths + 3 + 2 * often
    totals = np.bincount(chunk, items, chunks).astype(np.int64) + _HEAD_BYTES
    if totals.max() > _MOST_BYTES:  # refused here: there it would be called a fault of ours
        raise ProgramLimitExceeded("string is too long for tsvector")
    heads = totals.cumsum() - totals
    starts = items.cumsum() - items + _HEAD_BYTES * (chunk + 1)
    made = np.zeros(totals.sum(), np.uint8)
    _write(made, heads, totals - 4, ">i4")
    _write(made, heads + 4, np.bincount(chunk, minlength=chunks), ">i4")
    made[_runs(starts, lengths)] = texts[_runs(ends[number] - lengths, lengths)]
    _write(made, starts + lengths + 1, often, ">u2")
    position, column = _split(place, _COLUMN_BITS)
    weighed = position + (_COLUMN - column << _POSITION_BITS)  # the first column weighs the most
    _write(made, _runs(starts + lengths + 3, often, step=2), weighed, ">u2")
    return made.tobytes()


def _occurrences(found: Numbers, sizes: Numbers) -> Numbers:
    """Return where tokens stand, in order, as bits: chunk, token, position, column.

    Positions that a tsvector cannot tell apart are one, and those of a token that are too many are left out.
    """
    lengths = _lengths(sizes)
    chunk = np.repeat(np.arange(len(lengths)), lengths)
    column = np.repeat(np.arange(len(sizes)) & _COLUMN, sizes)
    # The gap after each column keeps phrases within one.
    position = np.minimum(_runs(np.zeros_like(lengths), lengths) + column + 1, _LAST_POSITION)
    token = (chunk << _NUMBER_BITS) + found
    placed = (token << _PLACE_BITS) + (position << _COLUMN_BITS) + column
    placed.sort()
    placed = placed[_first_of_each(placed >> _COLUMN_BITS)]
    often = np.diff(_first_of_each(placed >> _PLACE_BITS), append=len(placed))
    kept: Numbers = placed[_runs(np.zeros_like(often), often) < _MOST_POSITIONS]
    return kept


def _lengths(sizes: Numbers) -> Numbers:
    """Return how many tokens each chunk has."""
    lengths: Numbers = sizes.reshape(-1, len(LABELS)).sum(axis=1)
    return lengths


def _first_of_each(ordered: Numbers) -> Numbers:
    """Return where each of the numbers of an ordered list comes first."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def _split(numbers: Numbers, bits: int) -> tuple[Numbers, Numbers]:
    """Return what stands before the last bits, and what stands in them."""
    return numbers >> bits, numbers & (1 << bits) - 1


def _summed(numbers: Numbers, starts: Numbers) -> Numbers:
    """Return the sums of the numbers from each start to the next."""
    return np.add.reduceat(numbers, starts) if len(starts) else numbers


def _runs(starts: Numbers, lengths: Numbers, step: int = 1) -> Numbers:
    """Return numbers that run on from each start, so many of each: of 5 and 9, 2 and 3: 5 6, 9 10 11."""
    ends = lengths.cumsum()
    runs: Numbers = np.repeat(starts - (ends - lengths) * step, lengths)
    runs += np.arange(0, len(runs) * step, step)
    return runs


def _write(made: Bytes, places: Numbers, numbers: Numbers, form: str) -> None:
    """Write numbers into bytes at their places."""
    written = numbers.astype(form)
    for at, part in enumerate(written.view(np.uint8).reshape(-1, written.itemsize).T):
        made[places + at] = part
