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
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from concord.core.errors import (
    Action,
    BackendDown,
    BadValue,
    CorruptStore,
    Hint,
    SchemaTooNew,
    StoreBusy,
    UsageError,
)
from concord.core.filesystem import replace_file, sweep_drafts
from concord.core.values import check_org
from concord.store.contents import VERSION, Contents, Held, contents_in, fill
from concord.store.contract import Place
from concord.store.embeddings import all_vectors
from concord.store.files import file_identity, file_lock
from concord.store.links import links_in
from concord.store.models import ADDED, model_of
from concord.store.rows import identity_column
from concord.store.sql import Database, Duplicate, explained, override, says
from concord.store.sqlite.connections import Connection, open_nothing
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.file import translated
from concord.store.sqlite.vectors import SQLiteVectorTables
from concord.store.sqlite.words import SQLiteWords, SQLiteWordTables
from concord.store.store import SqlStore

if TYPE_CHECKING:
    from concord.core.protocols import Progress

SCHEME = "json://"
WRITE_WAIT_S = 60.0  # for another process that writes: it takes as long as writing the file takes

_LINKED = """
SELECT v.chunk, e.text_hash FROM kb_chunk_vectors AS v JOIN kb_models AS m ON m.key = v.model
LEFT JOIN kb_embeddings AS e ON e.id = v.embedding WHERE m.identity = :identity ORDER BY v.chunk"""


def open_in_memory() -> Connection:
    """Return a connection to an empty store that lasts as long as it."""
    connection = open_nothing()
    connection.pragma("foreign_keys", True)
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


class MemoryStore(SqlStore):
    """The storage of one organisation, as long as it is referred to. Each one that is opened is empty."""

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        database = database or MemoryDatabase()
        super().__init__(database, SQLiteWordTables(), SQLiteVectorTables())
        self.words = SQLiteWords(database)

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> MemoryStore:
        return cls()

    @property
    @override
    def place(self) -> Place:
        return Place(None, True, f"memory {id(self)}")

    @override
    def backup(self, path: str, progress: Progress) -> None:
        raise UsageError(
            "only a store in SQLite can be copied to a file while it is in use",
            hint=Hint(Action.MIGRATE_TO, "{migrate_to} copies any store", url="sqlite:///folder"),
        )

    @override
    def close(self) -> None:
        pass


class JsonDatabase(MemoryDatabase):
    """Tables that are as the file says whenever they are looked at."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = self.name = path
        self._seen: tuple[int, ...] | None = None  # of the file that the tables were read from or written to

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
                data = msgspec.json.encode(_contents(connection))
                sweep_drafts(self.path)  # nobody else writes now
                with _explained(self.path):
                    replace_file(self.path, data)  # all or nothing, also when the power fails
                signature = self._signature()
            self._seen = signature

    @override
    @contextmanager
    def lock(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        with _explained(folder := os.path.dirname(self.path)):
            os.makedirs(folder, mode=0o700, exist_ok=True)  # for its owner's eyes
        with file_lock(self.path, name, doing, wait_s):
            yield

    def _catch_up(self) -> None:
        """Read the file, unless it is the one that was read or written last."""
        signature = self._signature()
        if signature == self._seen or self._connection.in_transaction:
            return
        connection = open_in_memory()
        if signature is not None:
            self._read(connection)
        self._connection, self._seen = connection, signature

    def _signature(self) -> tuple[int, ...] | None:
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
                contents = _decoded(data, self.path)
                fill(connection, contents, SQLiteVectorTables(), SQLiteWordTables(), DIALECT)
        except (msgspec.DecodeError, ValueError, KeyError, apsw.Error, Duplicate) as fault:
            raise CorruptStore(
                f"{self.path} is damaged, or is no knowledge base: {fault}",
                hint="move it away, or restore a copy",
            ) from fault


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
        return Place(self._path, os.path.lexists(self._path), unique_id)


def locate(url: str, org: str) -> str:
    """Return the file that holds an organisation."""
    folder = url.removeprefix(SCHEME)
    if not url.startswith(SCHEME) or not folder.startswith("/") or "\0" in folder:
        raise BadValue(f"{url!r} names no JSON store", hint="write json:///absolute/folder")
    check_org(org)
    return os.path.join("/" + folder.strip("/"), f"{org}.json")


def _decoded(data: bytes, path: str) -> Contents:
    """Return what a file holds.

    Raises:
        SchemaTooNew: a newer program wrote it.
        ValueError: it is damaged, or no file of ours.
    """
    version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version")
    if version is not None and int(bytes(version)) > VERSION:
        hint = Hint(Action.UPGRADE, package="concord-kb")
        raise SchemaTooNew(f"{path} was written by a newer program", hint=hint)
    contents = msgspec.json.decode(data, type=Contents)
    models, chunks = dict(contents.spaces), {chunk.id for chunk in contents.chunks}
    if any(held.vectors.keys() - chunks for held in models.values()):
        raise ValueError("a vector belongs to no chunk")
    if contents.active is not None and contents.active not in models:
        raise ValueError(f"there are no vectors of {contents.active.name}")
    return contents


def _contents(connection: Connection) -> Contents:
    contents = contents_in(connection)
    contents.cached = list(all_vectors(connection, SQLiteVectorTables()))
    vectors = {(identity, key): vector for identity, key, vector in contents.cached}
    for row in connection.rows(ADDED):
        model = model_of(*row)
        identity = model.identity
        rows = connection.rows(_LINKED, {"identity": identity_column(identity)})
        linked = {chunk: b"" if key is None else vectors[identity, key] for chunk, key in rows}
        contents.spaces.append((identity, Held(model.recipe, linked)))
        contents.active = identity if model.is_active else contents.active
    last = dict(connection.rows("SELECT name, seq FROM sqlite_sequence"))
    contents.last_chunk_id, contents.last_turn = last.get("kb_chunks", 0), last.get("kb_outbox", 0)
    contents.unsettled = dict(connection.rows("SELECT turn, chunk FROM kb_outbox ORDER BY turn"))
    contents.links, contents.common, contents.unlinked = links_in(connection)
    return contents


_REFUSED = says(
    BackendDown,
    "{place} cannot be used: {fault}",
    Hint(Action.STORE, "check the folder, or use another {store}"),
)


def _explained(path: str) -> AbstractContextManager[None]:
    return explained(OSError, ((OSError, _REFUSED),), path)
