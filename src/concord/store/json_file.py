"""A store that is kept as one JSON file an organisation: what `json:///folder` URLs open.

For small collections, where a file that any program can read matters more than speed. It is worked on in
SQLite's memory; every change writes the whole file, under another name first, so that a crash leaves the old
one or the new one and never a half. Other processes may read and write it too: each looks whether the file
has changed before it reads its own copy, and a lock lets one write at a time.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from concord.core.errors import Action, BackendDown, BadValue, CorruptStore, Hint, StoreBusy, UsageError
from concord.core.filesystem import replace_file, sweep_drafts
from concord.core.values import check_org
from concord.store.catalog import SqlCatalog
from concord.store.contents import fill
from concord.store.contract import EVERY, Place, Select, TextHash, WordIndex
from concord.store.embeddings import SqlCache
from concord.store.files import file_birthplace, file_identity, file_lock, organisations_beside
from concord.store.json_format import contents_of, decoded, saved_in
from concord.store.sql import Database, Duplicate, explained, override, says
from concord.store.sqlite.connections import Connection, open_nothing
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.file import translated
from concord.store.sqlite.vectors import SQLiteVectorTables
from concord.store.sqlite.words import SQLiteWords, SQLiteWordTables
from concord.store.store import SqlStore
from concord.types import Document, Identity, Vector

if TYPE_CHECKING:
    from concord.core.protocols import Progress


_numbers = count(1)


def open_in_memory() -> Connection:
    """Return a connection to an empty store that lasts as long as it."""
    connection = open_nothing()
    connection.pragma("foreign_keys", True)
    connection.file = (0, next(_numbers))  # no file has these numbers: vectors are kept by them
    return connection


class MemoryDatabase(Database):
    """The tables of one store."""

    dialect = DIALECT
    name = "the store in memory"

    def __init__(self) -> None:
        self._connection = open_in_memory()
        self._turn = threading.RLock()  # whoever writes may read meanwhile
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @override
    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._turn, translated(self.name):
            yield self._connection

    @override
    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._turn, translated(self.name), self._connection:
            yield self._connection

    @override
    @contextmanager
    def lock(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        if not self._locks[name].acquire(timeout=wait_s):
            raise StoreBusy(f"another thread is {doing}", hint="wait for it to finish")
        try:
            yield
        finally:
            self._locks[name].release()

    @override
    def origin(self) -> str:
        return ""


class MemoryStore(SqlStore):
    """The storage of one organisation, as long as it is referred to. Each one that is opened is empty."""

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        database = database or MemoryDatabase()
        words, tables = SQLiteWordTables(), SQLiteVectorTables()
        super().__init__(database, words, tables)
        self.catalog = _WholeCatalog(database, words)
        self.cache = _WholeCache(database, tables)
        self.words: WordIndex = SQLiteWords(database)

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> MemoryStore:
        return cls()

    @property
    @override
    def place(self) -> Place:
        return Place(None, True, [], f"memory {id(self)}")

    @override
    def backup(self, path: str, progress: Progress) -> None:
        raise UsageError(
            "only a store in SQLite can be copied to a file while it is in use",
            hint=Hint(Action.MIGRATE_TO, "{migrate_to} copies any store", url="sqlite:///folder"),
        )

    @override
    def close(self) -> None:
        pass


# What is read one by one would hold the lock for as long as the caller takes.


class _WholeCatalog(SqlCatalog):
    @override
    def documents(self, select: Select = EVERY) -> Iterator[Document]:
        return iter([*super().documents(select)])


class _WholeCache(SqlCache):
    @override
    def entries(self) -> Iterator[tuple[Identity, TextHash, Vector]]:
        return iter([*super().entries()])


SCHEME = "json://"
WRITE_WAIT_S = 60.0  # for another process that writes: it takes as long as writing the file takes

_Signature = tuple[int, int, int]


class JsonDatabase(MemoryDatabase):
    """Tables that are as the file says whenever they are looked at."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = self.name = path
        self._seen: _Signature | None = None  # the file that the tables were read from or written to

    @override
    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._turn:
            self._catch_up()
            with super().read() as connection:
                yield connection

    @override
    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._turn, self.lock("writing", "writing to this store", WRITE_WAIT_S):
            self._catch_up()
            with super().transaction() as connection:
                yield connection
                signature = self._write(connection)
            self._seen = signature

    @override
    @contextmanager
    def lock(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        with _explained(folder := os.path.dirname(self.path)):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # for its owner's eyes
        with file_lock(self.path, name, doing, wait_s):
            yield

    @override
    def origin(self) -> str:
        folder, name = os.path.split(self.path)
        origin = file_birthplace(folder)  # not the file's: each change is a new file
        return origin and f"{origin}/{name}"

    def _catch_up(self) -> None:
        """Read the file, unless it is the one that was read or written last."""
        signature = self._signature()
        if signature == self._seen or self._connection.in_transaction:
            return
        connection = open_in_memory()
        if signature is not None:
            self._read(connection)
        self._connection, self._seen = connection, signature

    def _signature(self) -> _Signature | None:
        """Return what differs from one version of the file to the next: each is a new file."""
        with _explained(self.path):
            try:
                status = os.stat(self.path)
            except FileNotFoundError:
                return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _read(self, connection: Connection) -> None:
        with _explained(self.path), open(self.path, "rb") as file:
            data = file.read()
        try:
            with connection:
                contents = contents_of(decoded(data, self.path))
                fill(connection, contents, SQLiteVectorTables(), SQLiteWordTables(), DIALECT)
        except (msgspec.DecodeError, ValueError, apsw.Error, Duplicate) as fault:
            raise CorruptStore(
                f"{self.path} is damaged, or is no knowledge base: {fault}",
                hint="move it away, or restore a copy",
            ) from fault

    def _write(self, connection: Connection) -> _Signature | None:
        """Replace the file, all or nothing, also when the power fails."""
        data = _encoded(connection)
        sweep_drafts(self.path)  # nobody else writes now
        with _explained(self.path):
            replace_file(self.path, data)
        return self._signature()


class JsonStore(MemoryStore):
    """The storage of one organisation in one file."""

    def __init__(self, path: str) -> None:
        super().__init__(JsonDatabase(path))
        self._path = path

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> JsonStore:
        store = cls(locate(url, org))
        with store._database.read():  # a damaged file is reported now
            return store

    @property
    @override
    def place(self) -> Place:
        folder, name = os.path.split(self._path)
        unique_id = f"{file_identity(folder)}/{name}"  # each change is a new file
        return Place(self._path, os.path.lexists(self._path), organisations_beside(self._path), unique_id)


def locate(url: str, org: str) -> str:
    """Return the file that holds an organisation."""
    folder = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not folder.startswith("/") or "\0" in folder:
        raise BadValue(f"{url!r} names no JSON store", hint="write json:///absolute/folder")
    check_org(org)
    return os.path.join("/" + folder.strip("/"), f"{org}.json")


def _encoded(connection: Connection) -> bytes:
    """Return what the file is to hold."""
    saved = saved_in(connection)
    try:
        return msgspec.json.encode(saved)
    except UnicodeEncodeError as fault:
        odd = next(
            (document.path for document in saved.documents if repr(fault.object) in repr(document)),
            "something",
        )
        raise BadValue(
            f"{odd} holds half a character, which a JSON file cannot",
            hint="rename or convert a file; notes are mended by exporting and importing them again",
        ) from fault


_REFUSED = says(
    BackendDown,
    "{place} cannot be used: {fault}",
    Hint(Action.STORE, "check the folder, or use another {store}"),
)


def _explained(path: str) -> AbstractContextManager[None]:
    return explained(OSError, ((OSError, _REFUSED),), path)
