"""What the lexical index keeps of a chunk, in PostgreSQL's own forms: a tsvector, and rows of postings.

Tokens and stems are those of `text/terms.py`; PostgreSQL is given them ready made and adds no rules.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from concord.backends.columns import Columns
from concord.text.terms import tokenize
from concord.types import ChunkId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it
# A posting is one number: how often the token occurs in each of the four columns, then the chunk's length.
_COUNT_BITS = 8
_MOST_COUNTED = 255
LENGTH_BITS = 32
_LAST_POSITION = 16383  # that a tsvector tells from those after it
_PLACES: dict[str, list[str]] = {label: [] for label in LABELS}


class Entry(NamedTuple):
    """A chunk as it is indexed."""

    tokens: Sequence[Sequence[str]]  # of each column
    words: str  # a tsvector's text form

    @property
    def length(self) -> int:
        """How many tokens there are in all columns."""
        return sum(map(len, self.tokens))


class Postings(NamedTuple):
    """The postings of chunks that are written together: token by token, in order, one after the other."""

    terms: list[str]
    sizes: Numbers  # how many chunks each term is in
    chunks: Numbers
    packed: Numbers


def entry_of(columns: Columns) -> Entry:
    """Return what is indexed of a chunk."""
    tokens = [lexemes(text) for text in columns]
    found: dict[str, str] = {}
    position = 1
    for label, column in zip(LABELS, tokens, strict=True):
        for token, place in zip(column, _places(label, position, len(column)), strict=True):
            found[token] = f"{found[token]},{place}" if token in found else f"'{token}':{place}"
        position += len(column) + 1  # the gap keeps phrases within a column
    return Entry(tokens, " ".join(found.values()))


def _places(label: str, start: int, number: int) -> list[str]:
    """Return how a tsvector says positions that follow each other, 12B: made once, used by all chunks."""
    known, end = _PLACES[label], min(start + number, _LAST_POSITION)
    known += [f"{at}{label}" for at in range(len(known), end)]
    return known[start:end] + [f"{_LAST_POSITION}{label}"] * (number - max(0, end - start))


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens, surely_short = tokenize(text), _LONGEST_BYTES // 4
    if len(text) <= surely_short or max(map(len, tokens), default=0) <= surely_short:
        return tokens
    return [_shortened(token) for token in tokens]


def postings(entries: Sequence[tuple[ChunkId, Entry]]) -> Postings:
    """Return the postings of chunks.

    Every occurrence of a token becomes one number that says in this order which token, which chunk and which
    column: sorted, they are counted by how often each comes.
    """
    import numpy as np  # late: a search writes nothing

    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    found: list[int] = []
    for _, entry in entries:
        for tokens in entry.tokens:
            found += map(numbers.__getitem__, tokens)
    terms = sorted(numbers)
    rank = np.empty(len(terms), np.int64)
    rank[np.array([numbers[term] for term in terms], np.int64)] = np.arange(len(terms))
    sizes = [len(tokens) for _, entry in entries for tokens in entry.tokens]
    fields = len(sizes)  # a column of a chunk each
    occurrences = rank[np.array(found, np.int64)] * fields + np.repeat(np.arange(fields), sizes)
    occurrences.sort()
    first = _first_of_each(occurrences)
    often = np.minimum(np.diff(first, append=len(occurrences)), _MOST_COUNTED)
    occurrences = occurrences[first]
    often <<= occurrences % len(LABELS) * _COUNT_BITS
    occurrences //= len(LABELS)
    first = _first_of_each(occurrences)
    term, chunk = np.divmod(occurrences[first], len(entries))
    length = np.array([entry.length for _, entry in entries], np.int64) << LENGTH_BITS
    return Postings(
        terms,
        np.bincount(term),
        np.array([chunk_id for chunk_id, _ in entries], np.int64)[chunk],
        np.add.reduceat(often, first) + length[chunk],
    )


def _first_of_each(ordered: Numbers) -> Numbers:
    """Return where the numbers of an ordered list come first."""
    import numpy as np

    return np.flatnonzero(np.diff(ordered, prepend=-1))


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
