"""Notes once more, in files beside the store: they exist nowhere else, and a store may be damaged.

So do sources: which folders are indexed. All files hold the same, so that what is damaged in some of them
costs nothing. A line is a note or a source as it is stored, or the id of one that was deleted, after the
CRC-32 of the rest. Lines are added at the end; once something is changed or deleted, the files are written
anew without what they said of it. That happens under the store's write lock, just before a transaction is
committed: a deleted note has left these files before anybody is told that it is deleted. What a process that
is killed in between has written is there to be brought back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

from msgspec import DecodeError, Struct, convert, json
from msgspec.structs import replace

from concord.core.filesystem import CLOSED_IN_CHILDREN, replace_file
from concord.core.reports import Finding
from concord.store.contract import Salvage
from concord.store.rows import DOCUMENT_COLUMNS, SOURCE_COLUMNS, document_of, source_of
from concord.store.sqlite.file import NOTES, locate
from concord.store.upkeep import repairable
from concord.types import Document, Source

if TYPE_CHECKING:
    from concord.store.sqlite.connections import Connection

# Of 100 stores beyond opening, with each copy damaged once, 31 lost something with two copies, 12 with three.
_COPIES = ("", "-too", "-third", "-fourth")
# The id in an entry: looked for by how it begins, which is ten times as fast as by a checksum before it.
_ENTRY = re.compile(rb'\{"(?:id|gone)":("(?:[^"\\\n]|\\.)*")')
_HEAD = re.compile(rb"[0-9a-f]{8} ")
_CRC = 8  # digits

_FIELDS = ("name", "path", "kind", "prefix", "patterns", "tags", "trust", "about")  # not when it was synced
_OLD, _NEW = (", ".join(f"{row}.{field}" for field in _FIELDS) for row in ("old", "new"))
# They belong to the connection, not to the file: no other program meets them.
_WATCH = "".join(
    f"CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table} WHEN {when.format(row=row)}"
    f" BEGIN SELECT kb_note_changed({row}.id); END;"
    for event, row, changed in (
        ("insert", "new", ""),
        ("update", "new", f" AND ({_OLD}) IS NOT ({_NEW})"),
        ("delete", "old", ""),
    )
    for table, when in (
        ("kb_documents", "{row}.type = 'note'"),
        ("kb_sources", f"{{row}}.path IS NOT NULL{changed}"),
    )
)
_NOTES = f"""
SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d
WHERE d.source IN (SELECT key FROM kb_sources WHERE kind = 'notes')"""
_SOURCES = f"SELECT {SOURCE_COLUMNS} FROM kb_sources AS s WHERE s.path IS NOT NULL"
# Notes of early versions have their text in chunks alone.
_TEXT = """
SELECT group_concat(content, char(10, 10)) FROM (
    SELECT c.content FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
    WHERE d.id = :id ORDER BY c.position)"""


class _Gone(Struct, frozen=True):
    """The id of what was deleted: it must not come back."""

    gone: str = ""


_Kept = Document | Source
_Entry = _Kept | _Gone


class NoteLog:
    """The files beside one store."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._changed: dict[str, None] = {}
        self._is_checked = False

    def watch(self, connection: Connection) -> None:
        """Notice which notes a connection changes."""
        connection.create_scalar_function("kb_note_changed", self._note_changed, 1)
        connection.execute(_WATCH)
        self._is_checked = False

    def keep(self, connection: Connection) -> Callable[[], None]:
        """Write down what the running transaction has changed; return what takes that back.

        A disk that refuses does not stop the transaction: the store itself holds what is missing here.
        """
        changed, self._changed = list(self._changed), {}
        is_new = not self._is_checked and not all(map(os.path.exists, paths(self._store)))
        self._is_checked = True
        if not changed and not (is_new and stored(connection)):
            return lambda: None
        before = {path: _content(path) for path in paths(self._store)}
        kept = stored(connection, changed)
        entries: list[_Entry] = [*kept.values(), *(_Gone(id) for id in changed if id not in kept)]
        try:
            if None in before.values():
                mend(connection, self._store)
            for path in before:
                with suppress(OSError):
                    _write(path, _content(path) or b"", changed, entries)
        except BaseException:  # Ctrl-C, too
            _put_back(before)
            raise
        return partial(_put_back, before)

    def _note_changed(self, *ids: Any) -> None:
        self._changed.update(dict.fromkeys(map(str, ids)))


def paths(store: str) -> tuple[str, ...]:
    """Return the files beside a store."""
    return tuple(store + NOTES + ending for ending in _COPIES)


def salvage(url: str, org: str) -> Salvage:
    """Return the notes and sources that are whole in the files beside a store, which is not looked at."""
    path = locate(url, org).path
    kept = read(path)[0].values()
    notes = tuple(entry for entry in kept if isinstance(entry, Document))
    return Salvage(path, notes, tuple(entry for entry in kept if isinstance(entry, Source)))


def _write(path: str, content: bytes, changed: Iterable[str], entries: Iterable[_Entry]) -> None:
    """Add lines to a file; where it says something of these notes already, without that."""
    doomed = set(map(json.encode, changed))
    parts = [*_parts(content)]
    left = [part for id, part in parts if id not in doomed]
    is_torn = content != b"" and not content.endswith(b"\n")
    lines = b"\n" * is_torn + b"".join(map(_line, entries))
    if len(left) < len(parts):
        replace_file(path, b"".join(left) + lines)
        return
    with open(os.open(path, os.O_WRONLY | os.O_APPEND | CLOSED_IN_CHILDREN), "ab") as file:
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())


def _put_back(before: Mapping[str, bytes | None]) -> None:
    """Make the files what they were before a transaction that has failed; the store is not asked."""
    for path, content in before.items():
        with suppress(OSError):
            os.unlink(path) if content is None else replace_file(path, content)


def read(store: str) -> tuple[dict[str, _Kept], set[str]]:
    """Return what is whole in the files, by id, and the ids of what was deleted."""
    kept: dict[str, _Kept] = {}
    gone: set[str] = set()
    for path in paths(store):
        known, deleted = _read(path)
        kept.update({id: entry for id, entry in known.items() if _is_later(entry, kept.get(id))})
        gone |= deleted
    return kept, gone - kept.keys()


def _read(path: str) -> tuple[dict[str, _Kept], set[str]]:
    kept: dict[str, _Kept] = {}
    gone: set[str] = set()
    for text in _texts(_content(path) or b""):
        with suppress(DecodeError):  # of another version, perhaps
            entry = json.decode(text, type=dict[str, Any])
            kept.pop(id := entry.get("gone") or entry["id"], None)
            if "gone" in entry:
                gone.add(id)
            elif "prefix" in entry:
                kept[id] = convert(entry, Source)
            else:
                kept[id] = convert(entry, Document)
    return kept, gone


def find_faults(connection: Connection, store: str) -> Iterator[Finding]:
    """Yield what is wrong with the files beside a store; nothing is changed."""
    kept, logged = stored(connection), read(store)[0]
    if lost := sum(_is_newer(note, kept.get(id)) for id, note in logged.items()):
        message = f"{lost:,} notes are in {store}{NOTES} and not, or not so, in the store"
        yield repairable("notes", message, "brings them back, and so does {recover}")
    copies = [_read(path)[0] for path in paths(store)]
    if behind := sum(any(_is_newer(note, copy.get(id)) for copy in copies) for id, note in kept.items()):
        message = f"{behind:,} notes are not as in {store}{NOTES}, which is to outlast damage to the store"
        yield repairable("notes", message, "writes them there")


def _is_newer(note: _Kept, other: _Kept | None) -> bool:
    """Whether a note is not like another, and not older."""
    if isinstance(note, Source) or isinstance(other, Source):
        return False
    if other is None:
        return True
    place = {"path": note.path, "source_id": note.source_id, "indexed_at": note.indexed_at}
    return note.mtime_ns >= other.mtime_ns and note != replace(other, **place)


def _is_later(entry: _Kept, other: _Kept | None) -> bool:
    """Whether an entry is to take the place of another: of two that are as old it is none, but of sources."""
    if isinstance(entry, Document) and isinstance(other, Document):
        return entry.mtime_ns > other.mtime_ns
    return True


def mend(connection: Any, store: str) -> None:
    """Write everything anew: the newer version of each note, with what only these files hold."""
    kept, gone = read(store)
    now = stored(connection)
    kept.update({id: entry for id, entry in now.items() if _is_later(entry, kept.get(id))})
    entries: list[_Entry] = [*(_Gone(id) for id in sorted(gone - now.keys())), *kept.values()]
    for path in paths(store):
        with suppress(OSError):  # it is found again
            replace_file(path, b"".join(map(_line, entries)), mode=os.stat(store).st_mode & 0o777)


def stored(connection: Connection, ids: Sequence[str] | None = None) -> dict[str, _Kept]:
    """Return notes and sources of a store by id, all or some; each note with its text."""
    values = {} if ids is None else {"ids": list(ids)}
    notes, sources = (
        connection.rows(statement + ("" if ids is None else f" AND {row}.id IN (:ids...)"), values)
        for statement, row in ((_NOTES, "d"), (_SOURCES, "s"))
    )
    kept: dict[str, _Kept] = {source.id: source for source in map(source_of, sources)}
    for note in map(document_of, notes):
        fields = note.fields or {"content": connection.value(_TEXT, {"id": note.id}) or ""}
        kept[note.id] = replace(note, fields=fields)
    return kept


def _line(entry: _Entry) -> bytes:
    text = json.encode(entry)
    return b"%08x %s\n" % (crc32(text), text)


def _content(path: str) -> bytes | None:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return None


def _parts(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the id of each entry, and what is from there to the next."""
    starts = [
        (match.start() - _CRC - 1, match[1])
        for match in _ENTRY.finditer(content, _CRC + 1)
        if _HEAD.fullmatch(content, match.start() - _CRC - 1, match.start())
    ]
    for (start, id), (end, _) in pairwise([*starts, (len(content), b"")]):
        yield id, content[start:end]


def _texts(content: bytes) -> Iterator[bytes]:
    """Yield the entries that are as they were written, also where the end of a line was damaged."""
    for _, part in _parts(content):
        line = part.split(b"\n", 1)[0]
        for text in (line[_CRC + 1 :], line[_CRC + 1 : -1]):  # without what stands for a line end
            if crc32(text) == int(line[:_CRC], 16):
                yield text
