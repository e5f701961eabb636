"""What the lexical index keeps of a chunk, in PostgreSQL's own forms: a tsvector, and rows of postings.

Tokens and stems are those of `text/terms.py`; PostgreSQL is given them ready made and adds no rules of its own.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from concord.backends.columns import Columns
from concord.text.terms import tokenize
from concord.types import ChunkId

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
# Beyond these a tsvector gives up or loses count. Chunks are a hundredth as long.
_LAST_POSITION = 16383
_MOST_PLACES = 255
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest
_COUNT_BITS = 8
_MOST_COUNTED = (255, 255, 255, 127)  # so that four counts fit an integer with a sign


class Entry(NamedTuple):
    """A chunk as it is indexed."""

    length: int  # tokens in all columns
    words: str  # a tsvector's text form
    counts: dict[str, int]  # token → how often in each column, packed


def entry_of(columns: Columns) -> Entry:
    """Return what is indexed of a chunk."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    counted: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    length, position = 0, 1
    for column, text in enumerate(columns):
        label, tokens = LABELS[column], lexemes(text)
        for at, token in enumerate(tokens, position):
            places[token].append(f"{min(at, _LAST_POSITION)}{label}")
            counted[token][column] += 1
        length += len(tokens)
        position += len(tokens) + 1  # the gap keeps phrases within a column
    words = " ".join(f"'{token}':{','.join(at[:_MOST_PLACES])}" for token, at in places.items())
    return Entry(length, words, {token: _packed(numbers) for token, numbers in counted.items()})


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens = tokenize(text)
    if len(text) <= _LONGEST_BYTES // 4:
        return tokens
    return [token if len(token) <= _LONGEST_BYTES // 4 else _shortened(token) for token in tokens]


def posting_lines(org: int, segment: int, entries: Iterable[tuple[ChunkId, Entry]]) -> Iterator[str]:
    """Yield the postings of chunks that are written together, as lines for COPY: one a token."""
    found: defaultdict[str, tuple[list[str], list[str], list[str]]] = defaultdict(lambda: ([], [], []))
    for chunk_id, entry in entries:
        written, length = str(chunk_id), str(entry.length)
        for token, count in entry.counts.items():
            chunks, counts, lengths = found[token]
            chunks.append(written)
            counts.append(str(count))
            lengths.append(length)
    for token, columns in sorted(found.items()):  # a token's neighbours in the index are written together
        arrays = "\t".join("{" + ",".join(numbers) + "}" for numbers in columns)
        yield f"{org}\t{segment}\t{token}\t{arrays}\n"


def _packed(counted: Sequence[int]) -> int:
    return sum(
        min(number, most) << _COUNT_BITS * column
        for column, (number, most) in enumerate(zip(counted, _MOST_COUNTED, strict=True))
    )


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
