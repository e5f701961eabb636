"""Chunks that are indexed together, in PostgreSQL's own forms: a tsvector for each, and rows of postings.

Every occurrence of a token is a number that says whose it is. Sorted, those of one chunk and token stand
together: what took a dictionary a chunk is done for a thousand chunks at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from psycopg.errors import ProgramLimitExceeded

from concord.backends.postgres.array_form import Tsvectors
from concord.backends.postgres.byte_runs import SPARE, Bytes, Numbers, runs, write_at, write_texts
from concord.backends.postgres.copy_form import Postings, Terms
from concord.backends.postgres.words import COUNT_BITS, LABELS, LENGTH_BITS, MOST_COUNTED, Vocabulary
from concord.core.batches import batched
from concord.store.columns import Columns
from concord.types import ChunkId

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


class _Known(NamedTuple):
    """Tokens in the order of their texts, which is that of a tsvector: one out of order is sorted there."""

    places: Numbers  # by number
    starts: Numbers  # by place: where the text of each begins, and how long it is
    lengths: Numbers
    texts: Bytes

    def terms(self, places: Numbers) -> Terms:
        """Return those that have some places."""
        return Terms(self.starts[places], self.lengths[places], self.texts)


class _Learned:
    """Words that have been seen; one segment after another adds to it."""

    def __init__(self) -> None:
        self.vocabulary = Vocabulary()
        self._order: list[int] = []
        self._ends = array("q")  # of the text of each among all, by number
        self._texts = b""
        self._known: _Known | None = None

    def known(self) -> _Known:
        """Return all tokens; those that are new are put in their places among the others."""
        tokens, before = self.vocabulary.tokens, len(self._order)
        if self._known is None or before < len(tokens):
            new = [token.encode() for token in tokens[before:]]
            self._ends.extend(islice(accumulate(map(len, new), initial=len(self._texts)), 1, None))
            self._texts += b"".join(new)
            # The first are in order, so that this takes about as long as to look at each.
            self._order = sorted([*self._order, *range(before, len(tokens))], key=tokens.__getitem__)
            self._known = self._ordered()
        return self._known

    def _ordered(self) -> _Known:
        numbers = np.array(self._order, np.int64)
        places = np.empty_like(numbers)
        places[numbers] = np.arange(len(numbers))
        ends = np.array(self._ends, np.int64)
        lengths = np.diff(ends, prepend=0)
        texts = np.frombuffer(self._texts + bytes(SPARE), np.uint8)
        return _Known(places, (ends - lengths)[numbers], lengths[numbers], texts)


_MOST_WORDS = 1 << 16  # that are remembered from one segment to the next, as many as are stemmed once only
_idle: list[_Learned] = []  # as many as there were segments at once
_LISTED = 64  # chunks whose tokens are in a list: there, each takes much room


class Growing:
    """A segment whose tokens are found little by little, while there is time."""

    def __init__(self, chunks: Iterable[tuple[ChunkId, Columns]]) -> None:
        self._left = batched(chunks, _LISTED)
        self._chunks: list[ChunkId] = []
        self._found: list[Numbers] = []  # the number of each token
        self._sizes: list[int] = []  # how many each column has

    @cached_property
    def _learned(self) -> _Learned:
        """What is known of words; lent when it is needed, so that segments that grow in turn share it."""
        try:
            return _idle.pop()
        except IndexError:
            return _Learned()

    def grow(self) -> bool:
        """Find the tokens of some more chunks; return whether there were any."""
        some = next(self._left, None)
        if some is None:
            return False
        self._chunks += [chunk_id for chunk_id, _ in some]
        self._found.append(_numbers([columns for _, columns in some], self._learned.vocabulary, self._sizes))
        return True

    def whole(self) -> Segment:
        """Return the segment of all chunks; what was learned of words is left to the next one."""
        while self.grow():
            pass
        segment = Segment(self._chunks, self._found, self._sizes, self._learned.known())
        if len(self._learned.vocabulary) <= _MOST_WORDS:
            _idle.append(self._learned)
        return segment


class Segment:
    """The chunks that are indexed together."""

    def __init__(
        self, chunks: list[ChunkId], found: Sequence[Numbers], sizes: Sequence[int], known: _Known
    ) -> None:
        self.chunks = chunks
        self._sizes = np.array(sizes, np.int64)
        self._lengths = self._sizes.reshape(-1, len(LABELS)).sum(axis=1)
        self._known = known
        self._found = known.places[np.concatenate(found)] if found else np.zeros(0, np.int64)

    @property
    def number(self) -> ChunkId:
        """What the segment goes by: the last of its chunks."""
        return max(self.chunks)

    @property
    def tokens(self) -> int:
        """How many tokens all chunks have."""
        return len(self._found)

    def indexed(self, start: int, stop: int) -> Indexed:
        """Return what is stored with some of the chunks."""
        columns = len(LABELS)
        first, last = (int(self._lengths[:end].sum()) for end in (start, stop))
        occurrences = _occurrences(self._found[first:last], self._sizes[start * columns : stop * columns])
        made = _tsvectors(occurrences, stop - start, self._known)
        return Indexed(self._lengths[start:stop].tolist(), Tsvectors(stop - start, made))

    def postings(self, at_once: int) -> Iterator[Postings]:
        """Yield all postings in the order of their terms, about so many together."""
        fields = np.repeat(np.arange(len(self._sizes)), self._sizes)  # a column of a chunk each
        found = (self._found << _FIELD_BITS) + fields
        found.sort()
        first = _first_of_each(found)
        often = np.minimum(np.diff(first, append=len(found)), MOST_COUNTED)
        often <<= (found[first] & _COLUMN) * COUNT_BITS
        posting = found[first] >> _COLUMN_BITS
        first = _first_of_each(posting)
        place, chunk = _split(posting[first], _FIELD_BITS - _COLUMN_BITS)
        packed = _summed(often, first) + (self._lengths[chunk] << LENGTH_BITS)
        starts = _first_of_each(place)
        terms, sizes = self._known.terms(place[starts]), np.diff(starts, append=len(place))
        return _parted(Postings(terms, sizes, np.array(self.chunks)[chunk], packed), at_once)


def _numbers(chunks: Iterable[Columns], vocabulary: Vocabulary, sizes: list[int]) -> Numbers:
    """Return the number of each token of some chunks in order; how many each column has is noted down."""
    found: list[int] = []
    for columns in chunks:
        for text in columns:
            before = len(found)
            if text:  # most chunks have no tags, and no parts of identifiers
                found += vocabulary.lexemes(text)
            sizes.append(len(found) - before)
    return np.fromiter(found, np.int64, len(found))


def _parted(found: Postings, at_once: int) -> Iterator[Postings]:
    ends = found.sizes.cumsum()
    first = start = 0
    while first < len(ends):
        last = max(first + 1, int(ends.searchsorted(start + at_once)))
        stop = int(ends[last - 1])
        yield Postings(
            Terms(found.terms.starts[first:last], found.terms.lengths[first:last], found.terms.texts),
            found.sizes[first:last],
            found.chunks[start:stop],
            found.packed[start:stop],
        )
        first, start = last, stop


def _tsvectors(occurrences: Numbers, chunks: int, known: _Known) -> bytes:
    """Return the tsvectors of chunks as `tsvectorrecv` takes them, each after its length.

    One holds how many tokens it has, then each token with a NUL, how many positions and the positions.
    """
    token, place = _split(occurrences, _PLACE_BITS)
    first = _first_of_each(token)
    often = np.diff(first, append=len(token))
    chunk, which = _split(token[first], _NUMBER_BITS)
    lengths = known.lengths[which]
    items = lengths + 3 + 2 * often
    totals = np.bincount(chunk, items, chunks).astype(np.int64) + _HEAD_BYTES
    if totals.max() > _MOST_BYTES:  # refused here: there it would be called a fault of ours
        raise ProgramLimitExceeded("string is too long for tsvector")
    heads = totals.cumsum() - totals
    starts = items.cumsum() - items + _HEAD_BYTES * (chunk + 1)
    made = np.zeros(int(totals.sum()) + SPARE, np.uint8)
    write_texts(made, starts, known.texts, known.starts[which], lengths)
    made[starts + lengths] = 0
    write_at(made, heads, (totals - 4).astype(">i4"))
    write_at(made, heads + 4, np.bincount(chunk, minlength=chunks).astype(">i4"))
    write_at(made, starts + lengths + 1, often.astype(">u2"))
    position, column = _split(place, _COLUMN_BITS)
    weighed = position + (_COLUMN - column << _POSITION_BITS)  # the first column weighs the most
    write_at(made, runs(starts + lengths + 3, often, step=2), weighed.astype(">u2"))
    return made[:-SPARE].tobytes()


def _occurrences(found: Numbers, sizes: Numbers) -> Numbers:
    """Return where tokens stand, in order, as bits: chunk, token, position, column.

    Positions that a tsvector cannot tell apart are one, and those of a token that are too many are left out.
    """
    lengths = sizes.reshape(-1, len(LABELS)).sum(axis=1)
    chunk = np.repeat(np.arange(len(lengths)), lengths)
    column = np.repeat(np.arange(len(sizes)) & _COLUMN, sizes)
    # The gap after each column keeps phrases within one.
    position = np.minimum(runs(np.zeros_like(lengths), lengths) + column + 1, _LAST_POSITION)
    token = (chunk << _NUMBER_BITS) + found
    placed = (token << _PLACE_BITS) + (position << _COLUMN_BITS) + column
    placed.sort()
    placed = placed[_first_of_each(placed >> _COLUMN_BITS)]
    often = np.diff(_first_of_each(placed >> _PLACE_BITS), append=len(placed))
    kept: Numbers = placed[runs(np.zeros_like(often), often) < _MOST_POSITIONS]
    return kept


def _first_of_each(ordered: Numbers) -> Numbers:
    """Return where each of the numbers of an ordered list comes first."""
    return np.flatnonzero(np.diff(ordered, prepend=-1))


def _split(numbers: Numbers, bits: int) -> tuple[Numbers, Numbers]:
    """Return what stands before the last bits, and what stands in them."""
    return numbers >> bits, numbers & (1 << bits) - 1


def _summed(numbers: Numbers, starts: Numbers) -> Numbers:
    """Return the sums of the numbers from each start to the next."""
    return np.add.reduceat(numbers, starts) if len(starts) else numbers
