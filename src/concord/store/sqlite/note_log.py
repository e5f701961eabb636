"""Notes once more, in two files beside the store: they exist nowhere else, and a store may be damaged.

Both files hold the same, so that one damaged place costs nothing. A line is a note as it is stored, or the id
of one that was deleted, after the CRC-32 of the rest. Lines are added at the end; what a note said before it
was changed or deleted is blotted out where it stands. That happens under the store's write lock, just before
a transaction is committed: a deleted note has left these files before anybody is told that it is deleted.
A line says that it is a draft until the transaction is committed: a process may be killed in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

from msgspec import DecodeError, Struct, json
from msgspec.structs import replace

from concord.core.filesystem import CLOSED_IN_CHILDREN, replace_file
from concord.core.reports import Finding
from concord.store.rows import DOCUMENT_COLUMNS, document_of
from concord.store.sqlite.file import NOTES
from concord.store.upkeep import repairable
from concord.types import Document

if TYPE_CHECKING:
    from concord.store.sqlite.connections import Connection

LARGE = 1_000_000  # bytes: a smaller file may be mostly blank
_SETTLED, _DRAFT = b" ", b"?"  # behind the checksum
_START = re.compile(rb'[0-9a-f]{8}[ ?]\{"(?:id|gone)":')
_NAMED = re.compile(rb'^.{9}\{"id":("(?:[^"\\\n]|\\.)*").*$', re.MULTILINE)  # whatever the checksum says
_CRC = 8  # digits

# They belong to the connection, not to the file: no other program meets them.
_WATCH = "".join(
    f"CREATE TEMP TRIGGER kb_note_{name} AFTER {name} ON main.kb_documents WHEN {row}.type = 'note'"
    f" BEGIN SELECT kb_note_changed({row}.id); END;"
    for name, row in (("insert", "new"), ("update", "new"), ("delete", "old"))
)
_NOTES = f"""
SELECT {DOCUMENT_COLUMNS} FROM kb_documents AS d
WHERE d.source IN (SELECT key FROM kb_sources WHERE kind = 'notes')"""
# Notes of early versions have their text in chunks alone.
_TEXT = """
SELECT group_concat(content, char(10, 10)) FROM (
    SELECT c.content FROM kb_chunks AS c JOIN kb_documents AS d ON d.key = c.document
    WHERE d.id = :id ORDER BY c.position)"""


class _Gone(Struct, frozen=True):
    """The id of a note that was deleted: it must not come back out of a damaged store."""

    gone: str = ""


_Entry = Document | _Gone


class NoteLog:
    """The files beside one store."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._changed: dict[str, None] = {}
        self._before: dict[str, bytes | None] = {}  # the running transaction
        self._drafts: dict[str, list[int]] = {}  # where its lines say that they are drafts
        self._is_checked = False

    def watch(self, connection: Connection) -> None:
        """Notice which notes a connection changes."""
        connection.create_scalar_function("kb_note_changed", self._note_changed, 1)
        connection.execute(_WATCH)
        self._is_checked = False

    def keep(self, connection: Connection) -> None:
        """Write down what the running transaction has changed.

        A disk that refuses does not stop the transaction: the store itself holds what is missing here.
        """
        changed, self._changed = list(self._changed), {}
        is_new = not self._is_checked and not all(map(os.path.exists, paths(self._store)))
        self._is_checked = True
        if changed or (is_new and stored(connection)):
            self._write(connection, changed)

    def settle(self) -> None:
        """Note that the transaction has been committed."""
        self._before.clear()
        while self._drafts:
            with suppress(OSError):
                _settle(*self._drafts.popitem())

    def set_back(self) -> None:
        """Make the files what they were before a transaction that has failed; the store is not asked."""
        self._changed.clear()
        self._drafts.clear()
        while self._before:
            path, content = self._before.popitem()
            with suppress(OSError):
                os.unlink(path) if content is None else replace_file(path, content)

    def _note_changed(self, *ids: Any) -> None:
        self._changed.update(dict.fromkeys(map(str, ids)))

    def _write(self, connection: Connection, changed: Sequence[str]) -> None:
        """Add lines for some notes, or all where there is no file yet, and blot out earlier ones."""
        self._before = {path: _content(path) for path in paths(self._store)}
        kept = stored(connection, changed)
        entries: list[_Entry] = [*kept.values(), *(_Gone(id) for id in changed if id not in kept)]
        for path in paths(self._store):
            with suppress(OSError):
                if os.path.exists(path):
                    self._drafts[path] = _append(path, entries, changed)
                else:
                    mend(connection, self._store)


def paths(store: str) -> tuple[str, ...]:
    """Return the files beside a store."""
    return store + NOTES, f"{store}{NOTES}-too"


def _append(path: str, entries: Iterable[_Entry], changed: Collection[str]) -> list[int]:
    """Add lines to a file, and blot out what it said of some notes; return where they are called drafts."""
    lines = [_line(entry, _DRAFT) for entry in entries]
    doomed = set(map(json.encode, changed))
    with open(os.open(path, os.O_RDWR | CLOSED_IN_CHILDREN), "r+b") as file:
        before = file.read()
        is_torn = before != b"" and not before.endswith(b"\n")
        file.write(b"\n" * is_torn + b"".join(lines))
        for match in _NAMED.finditer(before):
            if match[1] in doomed:
                file.seek(match.start())
                file.write(b" " * len(match[0]))
        file.flush()
        os.fsync(file.fileno())
    if len(before) > LARGE and before.count(b" ") > len(before) / 2:
        before = b"".join(_lines(path))
        replace_file(path, before)
        places = [match.start() + _CRC for match in _START.finditer(before)]
        return places[len(places) - len(lines) :]  # drafts of others, who were killed, stay drafts
    begins = accumulate((len(line) for line in lines[:-1]), initial=len(before) + is_torn)
    return [begin + _CRC for begin in begins] if lines else []


def _settle(path: str, places: Iterable[int]) -> None:
    """Call drafts settled, as far as they are where they were written."""
    with open(os.open(path, os.O_RDWR | CLOSED_IN_CHILDREN), "r+b") as file:
        for place in places:
            file.seek(place)
            if file.read(1) == _DRAFT:
                file.seek(place)
                file.write(_SETTLED)


def read(store: str) -> tuple[dict[str, Document], set[str]]:
    """Return the notes that are whole in the files, by id, and the ids of those that were deleted."""
    notes: dict[str, Document] = {}
    gone: set[str] = set()
    for path in paths(store):
        known, deleted = _read(path)
        newer = {id for id, note in known.items() if id not in notes or note.mtime_ns > notes[id].mtime_ns}
        notes.update({id: known[id] for id in newer})
        gone |= deleted
    return notes, gone - notes.keys()


def _read(path: str, only: bytes = b"") -> tuple[dict[str, Document], set[str]]:
    notes: dict[str, Document] = {}
    gone: set[str] = set()
    for line in _lines(path):
        if only and line[_CRC : _CRC + 1] != only:
            continue
        with suppress(DecodeError):  # of another version, perhaps
            entry = json.decode(line[_CRC + 1 :], type=_Gone)
            gone.add(entry.gone)
            notes.pop(entry.gone, None)
            if not entry.gone:
                note = json.decode(line[_CRC + 1 :], type=Document)
                notes[note.id] = note
    return notes, gone


def find_faults(connection: Connection, store: str) -> Iterator[Finding]:
    """Yield what is wrong with the files beside a store; nothing is changed."""
    kept, logged = stored(connection), read(store)[0]
    settled = {id for path in paths(store) for id in _read(path, only=_SETTLED)[0]}
    if lost := sum(_is_newer(logged[id], kept.get(id)) for id in settled & logged.keys()):
        said = f"{lost:,} notes are in {store}{NOTES} and not, or not so, in the store"
        yield repairable("notes", said, "brings them back, and so does {recover}")
    copies = [_read(path)[0] for path in paths(store)]
    if behind := sum(any(_is_newer(note, copy.get(id)) for copy in copies) for id, note in kept.items()):
        said = f"{behind:,} notes are not as in {store}{NOTES}, which is to outlast damage to the store"
        yield repairable("notes", said, "writes them there")


def _is_newer(note: Document, other: Document | None) -> bool:
    """Whether a note is not like another, and not older."""
    if other is None:
        return True
    place = {"path": note.path, "source_id": note.source_id, "indexed_at": note.indexed_at}
    return note.mtime_ns >= other.mtime_ns and note != replace(other, **place)


def mend(connection: Any, store: str) -> None:
    """Write all notes anew: the newer version of each, with those that only these files hold."""
    logged, gone = read(store)
    kept = stored(connection)
    newer = {id: note for id, note in kept.items() if id not in logged or note.mtime_ns > logged[id].mtime_ns}
    entries: list[_Entry] = [*(_Gone(id) for id in sorted(gone - kept.keys())), *{**logged, **newer}.values()]
    for path in paths(store):
        with suppress(OSError):  # it is found again
            replace_file(path, b"".join(map(_line, entries)), mode=os.stat(store).st_mode & 0o777)


def stored(connection: Connection, ids: Sequence[str] | None = None) -> dict[str, Document]:
    """Return notes of a store by id, all or some, each with its text."""
    some = "" if ids is None else " AND d.id IN (:ids...)"
    rows = connection.rows(_NOTES + some, {} if ids is None else {"ids": list(ids)})
    return {note.id: _with_text(note, connection) for note in map(document_of, rows)}


def _with_text(note: Document, connection: Connection) -> Document:
    if note.fields:
        return note
    return replace(note, fields={"content": connection.value(_TEXT, {"id": note.id}) or ""})


def _line(entry: _Entry, state: bytes = _SETTLED) -> bytes:
    text = json.encode(entry)
    return b"%08x%s%s\n" % (crc32(text), state, text)


def _content(path: str) -> bytes | None:
    with suppress(OSError), open(path, "rb") as file:
        return file.read()
    return None


def _lines(path: str) -> Iterator[bytes]:
    """Yield the lines that are as they were written, also where the end of another was damaged."""
    data = _content(path) or b""
    starts = [match.start() for match in _START.finditer(data)]
    for start, end in pairwise([*starts, len(data) + 1]):
        line = data[start:end].split(b"\n", 1)[0] if b"\n" in data[start:end] else data[start : end - 1]
        if crc32(line[_CRC + 1 :]) == int(line[:_CRC], 16):
            yield line + b"\n"
