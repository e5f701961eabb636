"""One organisation in one SQLite file: what `sqlite://` URLs open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from concord.core.errors import Action, Hint, NotFound
from concord.store.contract import Place
from concord.store.files import file_identity, file_lock
from concord.store.sql import Database, override
from concord.store.sqlite.connections import Connection, Readers, Writer
from concord.store.sqlite.dialect import DIALECT
from concord.store.sqlite.file import Location, OpenedFile, locate
from concord.store.sqlite.migrations import bring_up_to_date, make_if_missing
from concord.store.sqlite.vectors import CODES_FROM, SQLiteVectorTables
from concord.store.sqlite.words import SQLiteWords, SQLiteWordTables
from concord.store.store import SqlStore

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState


class SQLiteDatabase(Database):
    """The tables of one file."""

    dialect = DIALECT

    def __init__(self, location: Location) -> None:
        self.location = location
        self.file = OpenedFile(location.path, self._make_ready)
        self.readers = Readers(location, self.file)
        self.writer = Writer(location, self.file)

    @override
    def read(self) -> AbstractContextManager[Connection]:
        return self.readers.connection()

    @override
    def transaction(self) -> AbstractContextManager[Connection]:
        return self.writer.transaction()

    @override
    @contextmanager
    def lock(self, name: str, doing: str, wait_s: float) -> Iterator[None]:
        self.file.made()  # the lock lies beside it, and whoever takes one will write
        with file_lock(self.location.path, name, doing, wait_s):
            yield

    def close(self) -> None:
        """Close all connections."""
        self.readers.close()
        self.writer.close()

    def _make_ready(self) -> None:
        """Make the file, or bring one up to date that was put in the place of ours."""
        readers = Readers(self.location, OpenedFile(self.location.path))
        try:
            make_if_missing(self.location)
            bring_up_to_date(self.location, readers)
        finally:
            readers.close()


class SQLiteStore(SqlStore):
    """The storage of one organisation, until it is closed."""

    def __init__(self, location: Location, codes_from: int | None = CODES_FROM) -> None:
        self._file = SQLiteDatabase(location)
        self._codes_from = codes_from
        self._tables = SQLiteVectorTables(codes_from, self._file.read)
        super().__init__(self._file, SQLiteWordTables(), self._tables)
        self.words = SQLiteWords(self._file)

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> SQLiteStore:
        location, options = locate(url, org), options or {}
        is_off = options.get("vectors.index") == "off"
        store = cls(location, None if is_off else options.get("vectors.index_from", CODES_FROM))
        if not store._file.file.is_missing():
            store._file.file.made()  # ready, that is
        return store

    @property
    @override
    def place(self) -> Place:
        path = self._file.location.path
        return Place(path, not self._file.file.is_missing(), file_identity(path))

    @override
    @contextmanager
    def lock(self, name: str, doing: str, *, wait_s: float) -> Iterator[None]:
        from concord.store.sqlite.upkeep import is_worth_merging, merge_words  # late: no search needs it

        with self._file.lock(name, doing, wait_s):
            before = self.catalog.snapshot().generation
            yield
            after = self.catalog.snapshot().generation
            if is_worth_merging(after - before, self.catalog.count().documents):
                merge_words(self._file.writer)

    @override
    def check(self) -> list[Finding]:
        if self._file.file.is_missing():
            return []  # comparing words would make a file
        from concord.store.sqlite.upkeep import find_faults  # no search needs to load it

        # On connections of its own: one that has read the full-text index remembers what a repair replaces.
        readers = Readers(self._file.location, self._file.file)
        try:
            return find_faults(readers, self._file.writer)
        finally:
            readers.close()

    @override
    def repair(self, findings: Sequence[Finding]) -> None:
        from concord.store.sqlite.upkeep import repairs
        from concord.store.upkeep import put_right

        put_right(findings, self._file, SQLiteVectorTables(), repairs(self._file.location.path))

    @override
    def vector_index_state(self) -> VectorIndexState | None:
        from concord.core.reports import VectorIndexState

        least = self._codes_from
        why = "vectors.index is off" if least is None else f"made in memory, from {least:,} vectors on"
        return VectorIndexState(covered=0, size_bytes=0, absent=why)

    @override
    def backup(self, path: str, progress: Progress) -> None:
        from concord.store.sqlite.upkeep import write_backup

        if not self.place.is_begun:
            raise NotFound(
                "there is nothing to copy: nothing was ever kept here",
                hint=Hint(Action.STORE, "check {store} and {org}"),
            )
        write_backup(self._file.readers, path, progress)

    @override
    def close(self) -> None:
        self._tables.close()
        self._file.close()
