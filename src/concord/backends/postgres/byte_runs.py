"""Bytes that numpy lays down for many rows at once: runs of different lengths, and items at any place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_BLOCK = 8
SPARE = _BLOCK - 1  # bytes that `write_texts` may write, and read, after the last one


def runs(starts: Numbers, lengths: Numbers, step: int = 1) -> Numbers:
    """Return numbers that run on from each start, so many of each: of 5 and 9, 2 and 3: 5 6, 9 10 11."""
    ends = lengths.cumsum()
    found: Numbers = np.repeat(starts - (ends - lengths) * step, lengths)
    found += np.arange(0, len(found) * step, step)
    return found


def write_at(made: Bytes, places: Numbers, items: NDArray[Any]) -> None:
    """Write items into bytes, the first byte of each at its place."""
    if len(items):
        form = np.dtype(f"V{items.dtype.itemsize}")  # field by field, records take three times as long
        every_place = np.ndarray(len(made) - form.itemsize + 1, form, made, strides=(1,))
        every_place[places] = items.view(form)


def write_texts(made: Bytes, places: Numbers, texts: Bytes, starts: Numbers, lengths: Numbers) -> None:
    """Write parts of a text into bytes at their places, which are in order, in blocks of eight bytes.

    What follows each there, up to seven bytes, is written over, but the beginning of the next one. Both texts
    and bytes have as many to spare at their ends.
    """
    every_block = np.ndarray(len(texts) - _BLOCK + 1, f"V{_BLOCK}", texts, strides=(1,))
    longest = int(lengths.max(initial=0))
    for done in range((longest - 1) // _BLOCK * _BLOCK, -1, -_BLOCK):  # the first block of each comes last
        rest = np.flatnonzero(lengths > done) if done else slice(None)
        write_at(made, places[rest] + done, every_block[starts[rest] + done])
