"""What the lexical index keeps of a chunk, in PostgreSQL's own forms: a tsvector, and rows of postings.

Tokens and stems are those of `text/terms.py`; PostgreSQL is given them ready made and adds no rules.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from concord.backends.columns import Columns
from concord.text.terms import tokenize
from concord.types import ChunkId

LABELS = "ABCD"  # how a tsvector says which column a token stands in: title, content, tags, terms
_LONGEST_BYTES = 1024  # a longer token is kept by its beginning and a digest: a tsvector refuses it
# A posting is one number: how often the token occurs in each of the four columns, then the chunk's length.
COUNT_BITS = 8
MOST_COUNTED = 255
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
        label, one, tokens = LABELS[column], 1 << COUNT_BITS * column, lexemes(text)
        for at, token in enumerate(tokens, position):
            if token in places:
                places[token] += f",{at}{label}"
                counts[token] += one
            else:
                places[token] = f"'{token}':{at}{label}"
                counts[token] = one
        if len(tokens) > MOST_COUNTED:
            for token, number in Counter(tokens).items():
                counts[token] -= one * max(0, number - MOST_COUNTED)
        length += len(tokens)
        position += len(tokens) + 1  # the gap keeps phrases within a column
    return Entry(length, " ".join(places.values()), counts)


def lexemes(text: str) -> list[str]:
    """Return the tokens of a text as they are indexed."""
    tokens, surely_short = tokenize(text), _LONGEST_BYTES // 4
    if len(text) <= surely_short or max(map(len, tokens), default=0) <= surely_short:
        return tokens
    return [_shortened(token) for token in tokens]


def postings(entries: Iterable[tuple[ChunkId, Entry]]) -> dict[str, list[int]]:
    """Return for every token of some chunks: a chunk, how often and of what length, the next chunk …

    Flat lists, because two lists a token, or pairs in one, take longer to make and to write.
    """
    found: dict[str, list[int]] = {}
    for chunk_id, entry in entries:
        length = entry.length << LENGTH_BITS
        for token, count in entry.counts.items():
            held = found.get(token)
            if held is None:
                found[token] = [chunk_id, length + count]
            else:
                held += (chunk_id, length + count)
    return found


def posting_lines(org: int, segment: int, found: Mapping[str, list[int]]) -> Iterator[str]:
    """Yield the postings of chunks that are written together, as lines for COPY: one a token."""
    for token in sorted(found):  # neighbours in the index are written together
        flat = found[token]
        if len(flat) == 2:  # most tokens are in one chunk, and a list takes longer to write than a number
            yield f"{org}\t{segment}\t{token}\t1\t{{{flat[0]}}}\t{{{flat[1]}}}\n"
        else:
            chunks, packed = str(flat[::2])[1:-1], str(flat[1::2])[1:-1]
            yield f"{org}\t{segment}\t{token}\t{len(flat) // 2}\t{{{chunks}}}\t{{{packed}}}\n"


def _shortened(token: str) -> str:
    if len(token.encode()) <= _LONGEST_BYTES:
        return token
    return token[: _LONGEST_BYTES // 8] + hashlib.sha256(token.encode()).hexdigest()
