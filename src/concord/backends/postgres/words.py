"""What the lexical index keeps of a chunk, in PostgreSQL's own forms: a tsvector, and rows of postings.

Tokens and stems are those of `text/terms.py`; PostgreSQL is given them ready made and adds no rules.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from concord.backends.columns import Columns
from concord.text.terms import tokenize
from concord.types import ChunkId

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it
# A posting is one number: how often the token occurs in each of the four columns, then the chunk's length.
_COUNT_BITS = 8
_MOST_COUNTED = 255
LENGTH_BITS = 32


class Entry(NamedTuple):
    """A chunk as it is indexed."""

    length: int  # tokens in all columns
    words: str  # a tsvector's text form
    counts: Mapping[str, int]  # token → how often in each column, packed


def entry_of(columns: Columns) -> Entry:
    """Return what is indexed of a chunk."""
    places: dict[str, str] = {}
    counts: dict[str, int] = {}
    length, position = 0, 1
    for column, text in enumerate(columns):
        label, one, tokens = LABELS[column], 1 << _COUNT_BITS * column, lexemes(text)
        for at, token in enumerate(tokens, position):
            if token in places:
                places[token] += f",{at}{label}"
                counts[token] += one
            else:
                places[token] = f"'{token}':{at}{label}"
                counts[token] = one
        if len(tokens) > _MOST_COUNTED:
            for token, number in Counter(tokens).items():
                counts[token] -= one * max(0, number - _MOST_COUNTED)
        length += len(tokens)
        position += len(tokens) + 1  # the gap keeps phrases within a column
    return Entry(length, " ".join(places.values()), counts)


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens = tokenize(text)
    if len(text) <= _LONGEST_BYTES // 4:
        return tokens
    return [token if len(token) <= _LONGEST_BYTES // 4 else _shortened(token) for token in tokens]


def posting_lines(org: int, segment: int, entries: Iterable[tuple[ChunkId, Entry]]) -> Iterator[str]:
    """Yield the postings of chunks that are written together, as lines for COPY: one a token."""
    found: defaultdict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for chunk_id, entry in entries:
        length = entry.length << LENGTH_BITS
        for token, count in entry.counts.items():
            chunks, packed = found[token]
            chunks.append(chunk_id)
            packed.append(length + count)
    for token, (chunks, packed) in sorted(found.items()):  # neighbours in the index are written together
        arrays = f"{{{str(chunks)[1:-1]}}}\t{{{str(packed)[1:-1]}}}"
        yield f"{org}\t{segment}\t{token}\t{len(chunks)}\t{arrays}\n"


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
