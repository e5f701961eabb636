"""What a damaged file still holds, read page by page: SQLite itself gives up at the first that is wrong.

A table's rows are in leaf pages that name no table (sqlite.org/fileformat2.html). A row is known by the
number and types of its columns; whether a text is as it was written, its own hash tells.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from concord.core.errors import CorruptStore
from concord.store.contract import Salvage
from concord.store.rows import details_of, source_of
from concord.store.sqlite import note_log
from concord.store.sqlite.file import locate
from concord.types import Document, Source

_MAGIC = b"SQLite format 3\0"
_PAGE_BYTES = (16384, 4096)  # of stores of this version, and of earlier ones
_WAL_HEADER, _FRAME_HEADER = 32, 24
_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR = 13, 10, 2
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)  # by serial type
_REAL, _ZERO, _ONE, _BYTES, _TEXT = 7, 8, 9, 12, 13
# Columns of rows, each a type or several; whole numbers are kept as integers, and later versions have more.
_NUMBER, _MAYBE = (int, float), (str, type(None))
_NULL = type(None)
_DOCUMENT = (_NULL, str, int, str, str, str, str, str, str, int, int, _MAYBE, _NUMBER, str)
_SOURCE = (_NULL, str, str, _MAYBE, str, str, str, str, str, _NUMBER, (int, float, _NULL), str, str)
_LEAST_OF_DOCUMENT, _LEAST_OF_SOURCE, _LEAST_OF_CHUNK = 13, 11, 13
_TEXTS_OF_CHUNK = 5  # its own is the last

Pages = Mapping[int, bytes]
Row = tuple[int, list[Any]]  # the number of the row, and its columns


def salvage(url: str, org: str) -> Salvage:
    """Return the notes and sources of a store in a file, as far as they can be read. Nothing is changed."""
    path = locate(url, org).path
    logged, gone = note_log.read(path)
    readings = [_read(pages) for pages in _readings(path)]
    notes, sources = max(readings, key=lambda reading: len(reading[0]) + len(reading[1]), default=([], []))
    scanned = tuple(note for note in notes if note.id not in gone)
    return Salvage(path, tuple(logged.values()), scanned, tuple(sources))


def _read(pages: Pages) -> tuple[list[Document], list[Source]]:
    """Return notes and sources in the rows that look like those of documents, sources, tags and chunks."""
    documents: list[Row] = []
    sources: list[Source] = []
    tags: defaultdict[int, dict[str, int]] = defaultdict(dict)  # by the key of a document
    texts: defaultdict[int, dict[int, str]] = defaultdict(dict)  # of chunks: early versions had no others
    for key, row in (row for number in pages for row in _rows(number, pages)):
        if _fits(row, _DOCUMENT, _LEAST_OF_DOCUMENT):
            documents.append((key, row))
        elif _fits(row, _SOURCE, _LEAST_OF_SOURCE):
            with suppress(CorruptStore, ValueError):
                sources.append(source_of([*row[1:11], *(row[12:13] or [""])]))
        elif [type(value) for value in row] == [int, str, int]:
            tags[row[0]][row[1]] = row[2]
        elif len(row) >= _LEAST_OF_CHUNK:
            own = [value for value in row if isinstance(value, str)]
            if len(own) == _TEXTS_OF_CHUNK:
                texts[row[1]][row[2]] = own[-1]
    paths = {row[3] for _, row in documents}  # an index of paths looks like a table of tags
    notes = []
    for key, row in documents:
        labels = tuple(sorted(tags[key].keys() - paths, key=tags[key].__getitem__))
        with suppress(CorruptStore, ValueError):
            fields = details_of(row[13]) if len(row) > _LEAST_OF_DOCUMENT else {}
            fields = fields or {"content": "\n\n".join(texts[key][at] for at in sorted(texts[key]))}
            named: list[Any] = [row[1], "", row[3], "note", row[5], labels, details_of(row[6])]
            note = Document(*[*named, *row[7:13], fields])
            if row[4] == "note":
                notes.append(note)
    return notes, sources


def _fits(row: list[Any], columns: tuple[Any, ...], least: int) -> bool:
    return len(row) >= least and all(map(isinstance, row, columns))


def _readings(path: str) -> Iterator[Pages]:
    """Yield the pages of a file as the log beside it has them, for each size that they may have."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    size = int.from_bytes(data[16:18], "big")
    sizes = (65536 if size == 1 else size,) if data.startswith(_MAGIC) and size else _PAGE_BYTES
    for size in sizes:
        pages = {at // size + 1: data[at : at + size].ljust(size, b"\0") for at in range(0, len(data), size)}
        yield {**pages, **_logged(f"{path}-wal", size)}


def _logged(path: str, size: int) -> Pages:
    """Return the pages in a write-ahead log that transactions have committed."""
    if not os.path.exists(path):
        return {}
    with open(path, "rb") as file:
        data = file.read()
    salts, kept, pending = data[16:24], {}, {}
    for at in range(_WAL_HEADER, len(data) - size, size + _FRAME_HEADER):
        if data[at + 8 : at + 16] != salts:  # of an earlier round
            break
        pending[int.from_bytes(data[at : at + 4], "big")] = data[at + _FRAME_HEADER :][:size]
        if int.from_bytes(data[at + 4 : at + 8], "big"):
            kept.update(pending)
    return kept


def _rows(number: int, pages: Pages) -> Iterator[Row]:
    page = pages[number]
    at = 100 if number == 1 else 0
    kind = page[at] if at < len(page) else 0
    if kind not in (_TABLE_LEAF, _INDEX_LEAF, _INDEX_INTERIOR):
        return
    first = at + (12 if kind == _INDEX_INTERIOR else 8)
    for cell in range(first, first + 2 * int.from_bytes(page[at + 3 : at + 5], "big"), 2):
        with suppress(IndexError, KeyError, ValueError):  # ValueError: text that is none
            yield _row(int.from_bytes(page[cell : cell + 2], "big"), kind, page, pages)


def _row(at: int, kind: int, page: bytes, pages: Pages) -> Row:
    """Return the row of a cell.

    Raises:
        IndexError, KeyError, ValueError: it is damaged.
    """
    key, is_table = 0, kind == _TABLE_LEAF
    size, at = _varint(page, at + (4 if kind == _INDEX_INTERIOR else 0))
    if is_table:
        key, at = _varint(page, at)
    usable = len(page)
    if size > usable * len(pages):
        raise ValueError("no file is as long as this record says to be")
    most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    local = size
    if size > most:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= most else least
    parts, left = [page[at : at + local]], size - local
    following = int.from_bytes(page[at + local : at + local + 4], "big") if left else 0
    while left > 0:
        page = pages[following]
        parts.append(page[4 : 4 + left])
        left -= len(page) - 4
        following = int.from_bytes(page[:4], "big")
    return key, _columns(b"".join(parts))


def _columns(record: bytes) -> list[Any]:
    end, at = _varint(record, 0)
    kinds = []
    while at < end:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values = []
    for kind in kinds:
        value, at = _value(record, at, kind)
        values.append(value)
    return values


def _value(record: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind >= _BYTES:
        end = at + (kind - _BYTES) // 2
        if end > len(record):
            raise IndexError("the record ends before its column does")
        return (record[at:end].decode() if kind % 2 else record[at:end]), end
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, at
    if kind == _REAL:
        return struct.unpack(">d", record[at : at + 8])[0], at + 8
    if kind > _REAL:
        raise ValueError("there is no such type")
    width = _INTEGER_BYTES[kind]
    return (int.from_bytes(record[at : at + width], "big", signed=True) if kind else None), at + width


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9
