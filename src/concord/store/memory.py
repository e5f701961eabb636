"""A store in SQLite's memory: what `memory://` opens, and what a store in a JSON file is worked on in.

There is one connection and one lock: nobody reads while somebody writes. Databases that connections share in
memory have no log, so that readers would have to wait for a writer there as well.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from concord.core.errors import Action, Hint, StoreBusy, UsageError
from concord.store.catalog import SqlCatalog
from concord.store.contract import EVERY, Place, Select, Store, TextHash, WordIndex
from concord.store.embeddings import SqlCache
from concord.store.overriding import override
from concord.store.sql import Database
from concord.store.sqlite.connections import Connection, open_nothing
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.faults import translated
from concord.store.sqlite.vectors import SQLiteVectorTables
from concord.store.sqlite.words import SQLiteWords, SQLiteWordTables
from concord.store.store import SqlStore
from concord.types import Document, Identity, Vector

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding

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


class MemoryStore(SqlStore, Store):
    """The storage of one organisation, as long as it is referred to. Each one that is opened is empty."""

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        self._database = database or MemoryDatabase()
        words, tables = SQLiteWordTables(), SQLiteVectorTables()
        super().__init__(self._database, words, tables)
        self.catalog = _WholeCatalog(self._database, words)
        self.cache = _WholeCache(self._database, tables)
        self.words: WordIndex = SQLiteWords(self._database)

    @classmethod
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> MemoryStore:
        """Return a new store, whatever the URL."""
        return cls()

    @property
    @override
    def place(self) -> Place:
        return Place(None, True, [], f"memory {id(self)}")

    @override
    def lock(self, name: str, doing: str, *, wait_s: float) -> AbstractContextManager[None]:
        return self._database.lock(name, doing, wait_s)

    @override
    def check(self) -> list[Finding]:
        return []  # no disk can damage it

    @override
    def repair(self, findings: Sequence[Finding]) -> None:
        pass

    @override
    def maintain(self, progress: Progress) -> None:
        pass

    @override
    def vector_index_state(self) -> None:
        return None

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
