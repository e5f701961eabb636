"""One organisation in a schema of a PostgreSQL database: what `postgresql://` URLs open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from concord.core.errors import BadValue
from concord.store.contract import Place, WordIndex
from concord.store.postgres.connections import Connections, Location, locate
from concord.store.postgres.database import PostgresDatabase
from concord.store.postgres.migrations import bring_up_to_date, make
from concord.store.postgres.postings import BlockTables
from concord.store.postgres.vectors import PostgresVectorTables, build_indexes, index_state
from concord.store.postgres.words import BlockWords, Scopes
from concord.store.sql import override
from concord.store.store import SqlStore

if TYPE_CHECKING:
    from concord.core.protocols import Progress
    from concord.core.reports import Finding, VectorIndexState


def _words_class(options: Mapping[str, Any] | None) -> type[BlockWords]:
    if options and options["postgres.words"] == "native":
        from concord.store.postgres.native import NativeWords

        return NativeWords
    return BlockWords


class PostgresStore(SqlStore):
    """The storage of one organisation, until it is closed."""

    _database: PostgresDatabase

    def __init__(self, location: Location, is_made: bool, options: Mapping[str, Any] | None = None) -> None:
        self._connections = Connections(location)
        database = PostgresDatabase(self._connections, None if is_made else partial(make, location))
        # What building an index may use; None leaves it to the server.
        self._index_memory_mb: int | None = options["store.index_memory_mb"] if options else None
        scopes = Scopes()
        self._tables = PostgresVectorTables(scopes)
        super().__init__(database, BlockTables(), self._tables)
        self.words: WordIndex = _words_class(options)(database, scopes)

    @classmethod
    @override
    def open(cls, url: str, org: str, options: Mapping[str, Any] | None = None) -> PostgresStore:
        location = locate(url, org)
        return cls(location, bring_up_to_date(location), options)

    @property
    @override
    def place(self) -> Place:
        if not self._database.is_made:
            return Place(None, False, [], "")
        is_begun = self.catalog.snapshot().generation > 0
        return Place(None, is_begun, [], self._database.unique_id())

    @override
    def check(self) -> list[Finding]:
        from concord.store.postgres.upkeep import find_faults  # no search needs to load it

        with self._database.read() as session:
            return list(find_faults(session, self._tables))

    @override
    def repair(self, findings: Sequence[Finding]) -> None:
        from concord.store.postgres.upkeep import REPAIRS
        from concord.store.upkeep import put_right

        put_right(findings, self._database, self._tables, REPAIRS)
        if any(finding.fault == "index" for finding in findings):
            self._build_indexes()

    @override
    def maintain(self, progress: Progress) -> None:
        from concord.store.postgres.upkeep import analyze

        with self._database.read() as session:
            analyze(session)
        self._build_indexes()

    @override
    def vector_index_state(self) -> VectorIndexState | None:
        with self._database.read() as session:
            return index_state(session)

    @override
    def backup(self, path: str, progress: Progress) -> None:
        raise BadValue("a store in PostgreSQL is no file", hint="`pg_dump` copies it: docs/postgresql.md")

    @override
    def close(self) -> None:
        self._connections.close()

    def _build_indexes(self) -> None:
        with self._database.read() as session:
            build_indexes(session, self._index_memory_mb)
