"""Rows of postings in the binary form of COPY: every field after its length, highest byte first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from concord.backends.postgres.array_form import BIGINT
from concord.backends.postgres.byte_runs import SPARE, Bytes, Numbers, runs, write_at, write_texts

COPY_POSTINGS = "COPY kb_postings_rows (segment, size, chunks, packed, term) FROM STDIN (FORMAT binary)"
HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"

_ARRAY = np.dtype([(name, ">i4") for name in ("bytes", "dimensions", "nulls", "item", "number", "from")])
_ITEM = np.dtype([("bytes", ">i4"), ("number", ">i8")])
_FIELDS = 5
_START = np.dtype(
    [
        ("fields", ">i2"),
        ("segment_bytes", ">i4"),
        ("segment", ">i8"),
        ("size_bytes", ">i4"),
        ("size", ">i4"),
        ("chunks", _ARRAY),
    ]
)
_LENGTH = np.dtype(">i4")


class Terms(NamedTuple):
    """Where terms stand in a text of many."""

    starts: Numbers
    lengths: Numbers
    texts: Bytes


class Postings(NamedTuple):
    """Some terms: in how many chunks each is, and these, those of one term after those of another."""

    terms: Terms
    sizes: Numbers
    chunks: Numbers
    packed: Numbers


def posting_rows(segment: int, some: Postings) -> bytes:
    """Return the rows of postings of a segment."""
    sizes, lengths = some.sizes, some.terms.lengths
    starts = np.empty(len(sizes), _START)
    starts["fields"] = _FIELDS
    starts["segment_bytes"], starts["segment"] = 8, segment
    starts["size_bytes"], starts["size"] = 4, sizes
    starts["chunks"] = arrays = _arrays(sizes)
    items = sizes * _ITEM.itemsize
    rows = _START.itemsize + _ARRAY.itemsize + 2 * items + _LENGTH.itemsize + lengths
    made = np.empty(int(rows.sum()) + SPARE, np.uint8)
    row = rows.cumsum() - rows
    chunks = row + _START.itemsize
    packed = chunks + items + _ARRAY.itemsize
    term = packed + items
    write_texts(made, term + _LENGTH.itemsize, some.terms.texts, some.terms.starts, lengths)
    write_at(made, row, starts)
    write_at(made, chunks + items, arrays)
    write_at(made, runs(chunks, sizes, _ITEM.itemsize), _items(some.chunks))
    write_at(made, runs(packed, sizes, _ITEM.itemsize), _items(some.packed))
    write_at(made, term, lengths.astype(_LENGTH))
    return made[:-SPARE].tobytes()


def _arrays(sizes: Numbers) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Return what arrays of so many numbers begin with; they have one dimension and no NULL."""
    heads = np.zeros(len(sizes), _ARRAY)
    heads["bytes"] = _ARRAY.itemsize - 4 + sizes * _ITEM.itemsize
    heads["dimensions"] = heads["from"] = 1
    heads["item"] = BIGINT
    heads["number"] = sizes
    return heads


def _items(numbers: Numbers) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    items = np.empty(len(numbers), _ITEM)
    items["bytes"] = 8
    items["number"] = numbers
    return items
